// SPDX-License-Identifier: Apache-2.0
// Helpers for tests of train_job_decide.h: a TrainJob `a`, the objects observed of it, and decisions as short texts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/text.h"
#include "controller/reconcile/train_job_decide.h"
#include "tests/controller/reconcile/planned.h"

namespace muster::controller {

inline const WallTime kNow = WallTime(std::chrono::seconds(1'800'000'000));
inline constexpr auto kSecond = std::chrono::seconds(1);

inline TrainJob Job() {
  TrainJob job;
  job.meta.ns = "default";
  job.meta.name = "a";
  job.meta.uid = "uid-a";
  job.meta.generation = 1;
  job.meta.created = kNow - 10 * kSecond;
  job.runtime.name = "torch";
  return job;
}

// A trainer step of two pods under the agent, with a budget of three restarts.
inline TrainJobPlan TwoNodes(bool agent = true, int budget = 3) {
  TrainJobPlan plan;
  plan.subdomain = "a";
  plan.service = {{"metadata", {{"name", "a"}}}};
  plan.max_restarts = budget;
  plan.jobs = {Planned("node", Step::kTrainer, 2, agent)};
  return plan;
}

inline TrainJobPlan WithData() {
  TrainJobPlan plan = TwoNodes();
  plan.jobs.insert(plan.jobs.begin(), Planned("dataset-initializer", Step::kDatasetInitializer, 1, false));
  plan.jobs[1].after = {{"dataset-initializer", Dependency::Until::kComplete}};
  return plan;
}

inline ObservedJob There(const std::string& name, int attempt = 0, int pods = 2) {
  ObservedJob job;
  job.meta.name = name;
  job.meta.uid = fmt::format("uid-{}-{}", name, attempt);
  job.meta.annotations["muster.dev/restarts-left"] = "3";
  job.attempt = attempt;
  job.pods = pods;
  job.active = pods;
  return job;
}

inline ObservedPod Pod(const ObservedJob& of, int index, const std::string& suffix = "x") {
  ObservedPod pod;
  pod.meta.name = fmt::format("{}-{}-{}", of.meta.name, index, suffix);
  pod.meta.uid = fmt::format("uid-{}", pod.meta.name);
  pod.meta.owners = {{"batch/v1", "Job", of.meta.name, of.meta.uid, true}};
  pod.job = of.meta.name;
  pod.host = fmt::format("{}-{}", of.meta.name, index);
  pod.index = index;
  pod.attempt = of.attempt;
  pod.node = "n1";
  pod.phase = "Running";
  pod.ran = true;
  return pod;
}

inline ObservedPod Failed(ObservedPod pod, int code, std::optional<TerminationMessage> message = {}) {
  pod.phase = "Failed";
  ObservedEnd end;
  end.container = "node";
  end.exit_code = code;
  end.reason = "Error";
  end.finished = kNow - kSecond;
  end.message = std::move(message);
  pod.ends = {end};
  return pod;
}

// The pod has succeeded in a round of run `id`, at kNow - 1 s. "": it was in none.
inline ObservedPod SucceededIn(const std::string& id, ObservedPod pod) {
  pod = Failed(std::move(pod), 0);
  pod.phase = "Succeeded";
  TerminationMessage message;
  message.reason = "all workers succeeded";
  message.run_id = id;
  if (!id.empty()) message.round = 2;
  pod.ends[0].message = message;
  return pod;
}

// The termination message of an agent whose worker ended with `code`.
inline TerminationMessage Told(int code, ExitClass exit_class, int restarts, const std::string& why) {
  TerminationMessage message;
  message.exit_code = code;
  message.exit_class = exit_class;
  message.reason = why;
  message.restart_count = restarts;
  message.max_restarts = 3;
  message.cause = WorkerFailure();
  message.cause->rank = 3;
  message.cause->exit_code = code;
  message.cause->message = why;
  return message;
}

// The same of the agent on host `at`, whose cause is a worker on host `cause` that ended at `ended`.
inline TerminationMessage ToldAt(const std::string& at, const std::string& cause, WallTime ended, int code = 3) {
  TerminationMessage message = Told(code, Classify(code), 0, "KeyError: 'x'");
  message.node = message.host = at;
  message.cause->node = message.cause->host = cause;
  message.cause->unix_millis = std::chrono::duration_cast<std::chrono::milliseconds>(ended.time_since_epoch()).count();
  return message;
}

// The termination message of a node of an MPI job after the launcher told it that the job has ended.
inline TerminationMessage ToldBy(int code, ExitClass exit_class, const std::string& why) {
  TerminationMessage message;
  message.exit_code = code;
  message.exit_class = exit_class;
  message.reason = kVerdictReason + why;
  return message;
}

inline std::string NameOf(Action::Kind kind) {
  using Kind = Action::Kind;
  static const std::map<Kind, std::string> kNames = {{Kind::kCreateService, "service"},
                                                     {Kind::kCreateObject, "object"},
                                                     {Kind::kCreateJob, "create"},
                                                     {Kind::kCreatePod, "create pod"},
                                                     {Kind::kCreatePodOfJob, "create pod"},
                                                     {Kind::kScaleJob, "scale"},
                                                     {Kind::kAnnotatePod, "tell"},
                                                     {Kind::kEndPod, "end"},
                                                     {Kind::kAdoptPod, "adopt"},
                                                     {Kind::kSuspendJob, "suspend"},
                                                     {Kind::kDeleteJob, "delete"},
                                                     {Kind::kDeletePod, "delete pod"},
                                                     {Kind::kDropPod, "drop pod"},
                                                     {Kind::kDeleteService, "delete service"},
                                                     {Kind::kDeleteObject, "delete object"},
                                                     {Kind::kDeleteOwner, "delete job"}};
  return kNames.at(kind);
}

inline std::vector<std::string> Actions(const Steps& decision) {
  std::vector<std::string> actions;
  for (const Action& action : decision.actions)
    actions.push_back(fmt::format("{} {}", NameOf(action.kind), action.name));
  return actions;
}

inline std::vector<std::string> Reasons(const Steps& decision) {
  std::vector<std::string> reasons;
  for (const EventText& event : decision.events) reasons.push_back(event.reason);
  return reasons;
}

}  // namespace muster::controller
