// What died in a job's pods, and what that means for the job: one failure a pod, the budget, fatal or not. Pure.
//
// A pod's end is judged once: by the name of the pod, which is never given again. Kubernetes keeps the pods of a Job
// that have failed until that Job goes, so the judgement can be made anew from what is observed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/api/train_job.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

// How one pod of the plan failed.
struct PodFailure {
  Failure failure;     // for the status
  bool fatal = false;  // trying again gives the same: the job is over
  std::string origin;  // the same for pods that ended for one failure
  bool spent = false;  // the agents had used the budget up, and ended for that reason
  bool told = false;   // its job's launcher told it to end: the launcher's own end says why
};

// What holds for a pod, by the plan of its job.
struct PodRules {
  RestartPolicy restart = RestartPolicy::kOwn;
  bool agent = false;            // its command runs under the agent
  std::optional<int> node_rank;  // of a node of the job
};
PodRules RulesOf(const ObservedPod& pod, const PlannedJob& planned);

// Nothing: it has not failed.
std::optional<PodFailure> FailureOf(const ObservedPod& pod, const PodRules& rules);
// The newest end of one of its containers that was bad, although the pod may have gone on. Nothing: none was.
std::optional<PodFailure> NewestFailureOf(const ObservedPod& pod, const PodRules& rules);

// Of several that failed: the one that was first by its own account, else by its end; a consequence of another's
// failure only where there is no other. Null: there is none.
const PodFailure* RootCause(const std::vector<PodFailure>& failures);

// Restarts that the pods of one attempt of a step have used up: what the agents charged, and one for each failure that
// ended pods, however many. Evictions, preemption and lost nodes cost nothing; nothing is restarted after a fatal one.
// The agents cannot have charged more than `max_restarts`, whatever a message says.
int RestartsUsed(const std::vector<const ObservedPod*>& pods, const std::vector<PodFailure>& failures,
                 int max_restarts);

// Adds those of `found` that `known` does not have, the newest last, and gives them; `known` keeps kMostFailures. The
// same ones again change nothing.
std::vector<Failure> Remember(const std::vector<PodFailure>& found, std::vector<Failure>* known);

// "rank 3 on pod a-node-0-1 (node n1) was killed by SIGKILL: out of memory: MESSAGE"; with the container behind the
// pod: "pod a-node-0-1, container pytorch (node n1) ..."
std::string Describe(const Failure& failure, bool with_container = false);

}  // namespace muster::controller
