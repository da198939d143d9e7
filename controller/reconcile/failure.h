// SPDX-License-Identifier: Apache-2.0
// How the pods of a job failed: one failure per pod, whether it is fatal, and what it costs of the budget. Pure.
//
// Each pod's end counts once. A pod of a Job is known by its name, which no later pod of the Job gets; a pod of a
// PyTorchJob by its UID, since its replacement has its name. Kubernetes keeps the failed pods of a Job until the Job is
// deleted, so the same failures are found again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/api/train_job.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// How one pod of the plan failed.
struct PodFailure {
  Failure failure;                         // for the status
  std::string pod, job;                    // names of the pod that ended, and of its batch/v1 Job
  std::optional<WorkerFailure> elsewhere;  // the cause, if it is on another pod that is not named yet (NameCauses)
  bool fatal = false;                      // a retry would fail again: the job ends
  std::string origin;                      // equal for all pods that ended because of one failure
  bool spent = false;                      // the agents ended because they had used up the budget
  bool names_preemptor = false;            // the message of `failure` does: the scheduler names it after the deletion
  bool consequence = false;                // by its own words it only lost a peer (WorkerFailure), or by code 202
  bool told = false;                       // the launcher told the pod to end, and its own end says why
};

// What the plan of a job says about one of its pods.
struct PodRules {
  RestartPolicy restart = RestartPolicy::kOwn;
  bool agent = false;            // its command runs under the agent
  std::optional<int> node_rank;  // nullopt: the pod is not a node of the job
  bool initializer = false;      // a code that muster-initializer calls fatal ends the job, whatever `restart` says
};
PodRules RulesOf(const ObservedPod& pod, const PlannedJob& planned);

// Returns nullopt if the pod has not failed. Complete only after NameCauses().
std::optional<PodFailure> FailureOf(const ObservedPod& pod, const PodRules& rules);
// The newest end of a container with a code other than 0. The pod may run again by now. nullopt: no such end.
std::optional<PodFailure> NewestFailureOf(const ObservedPod& pod, const PodRules& rules);

// The last failure that a restart in place has overcome, from the message of a pod that succeeded. nullopt: none.
std::optional<PodFailure> OvercomeBy(const ObservedPod& pod, const PodRules& rules);
// The same from what the agent of `pod` says while it runs.
PodFailure OvercomeBy(const ObservedPod& pod, const PodRules& rules, const WorkerFailure& cause);
// Both, as far as they are known. `agents`: whatever pod said it.
std::vector<PodFailure> AllOvercomeBy(const ObservedPod& pod, const PodRules& rules,
                                      const std::optional<AgentsSaid>& agents);
// The event about one that is new: Restarted.
EventText RestartedInPods(const Failure& failure, bool with_container = false);

// The host name of the pod, by which its agent and its peers name it.
const std::string& HostOf(const ObservedPod& pod);

// A pod of the job on which a worker may have failed.
struct RankedPod {
  const ObservedPod* pod = nullptr;
  std::optional<int> node_rank;
};
// Makes each of `failures` whose cause was on another pod name that pod (Failure::pod). `pods`: all of the job. A pod
// is found by the host name of the cause; of several that had it one after the other, the one that existed when the
// worker ended. The agents agree on the cause, but any of them may be the first whose end is seen.
void NameCauses(const std::vector<RankedPod>& pods, const std::vector<PodFailure*>& failures);

// How long before or after a pod the platform may have taken the peer that it lost. Kubernetes notices a lost machine
// after 50 s, and deletes its pods then.
inline constexpr std::chrono::minutes kTakenWithin{2};

// Makes failures of pods that by their own words only lost a peer cost nothing, if the platform took that peer: its pod
// was deleted, evicted or lost with its node within kTakenWithin, as `pods` or `known`, the failures in the status,
// say. The message of such a failure begins with the peer's host name. An excused failure stays so while `known` has
// it; there it costs nothing from then on. Returns how many restarts had been charged for such failures.
int ExcuseConsequences(const std::vector<RankedPod>& pods, std::vector<Failure>* known,
                       std::vector<PodFailure>* failures);

// The failure that explains the others: fatal ones go first, then those that are no consequence of a peer's,
// then those that are no disruption, then the earliest. Null: `failures` is empty.
const PodFailure* RootCause(const std::vector<PodFailure>& failures);

// Restarts that the pods of one attempt of a step have used: those that agents report (at most `max_restarts`), and one
// for each failure that ended pods, however many. `said`: what the agents say while they run. Evictions, preemptions
// and lost nodes cost nothing, nor does a fatal failure, as no restart follows it.
int RestartsUsed(const std::vector<const ObservedPod*>& pods, const std::vector<PodFailure>& failures, int max_restarts,
                 int said = 0);

// Adds those of `found` that `known` lacks, and returns them. `known` keeps kMostFailures. Adding the same ones again
// changes nothing, but a preemptor that was not known is added to the message. Of a TrainJob, all pods that ended for
// one failure add it once.
std::vector<Failure> Remember(const std::vector<PodFailure>& found, std::vector<Failure>* known);

// "rank 3 on pod a-node-0-1 (node n1) was killed by SIGKILL, out of memory: MESSAGE". With the container, which is
// always named if it is not the one that trains or initializes: "rank 3 on pod a-node-0-1, container pytorch (node n1)
// ..."
std::string Describe(const Failure& failure, bool with_container = false);
// The same with what to do about it, while the pod is there: "...: MESSAGE; see kubectl logs ...".
std::string Explain(const Failure& failure, bool with_container = false);

}  // namespace muster::controller
