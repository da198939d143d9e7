// SPDX-License-Identifier: Apache-2.0
// Ends that come from outside a container, and initializers that cannot succeed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "controller/reconcile/failure.h"
#include "controller/reconcile/waiting.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An agent that was told to stop.
ObservedPod Stopped(ObservedPod pod) {
  TerminationMessage message;
  message.exit_code = 143;
  message.exit_class = ExitClass::kRetryable;
  message.reason = "preempted: SIGTERM";
  return Failed(std::move(pod), 143, message);
}

ObservedPodEvent Event(const char* reason, const char* message, WallTime last) {
  ObservedPodEvent event;
  event.reason = reason;
  event.message = message;
  event.last = last;
  return event;
}

TEST(OutsideCause, IsWhatKubernetesSays) {
  const auto disrupted = [](const char* reason, const char* message) {
    return [=](ObservedPod* pod) {
      pod->disrupted = true;
      pod->disruption = reason;
      pod->disruption_message = message;
    };
  };
  const struct {
    std::function<void(ObservedPod*)> change;
    const char *reason, *words;
    bool counted;
  } rows[] = {
      {disrupted("EvictionByEvictionAPI", "Eviction API: evicting"), "EvictionByEvictionAPI",
       ": EvictionByEvictionAPI: Eviction API: evicting", false},
      {[](ObservedPod* pod) {
         pod->disrupted = true;
         pod->disruption = "PreemptionByScheduler";
         pod->disruption_message = "default-scheduler: preempting to accommodate a higher priority pod";
         pod->event = Event("Preempted", "Preempted by pod 7f3a on node n1", kNow);
         pod->event.related = "important-0";
       },
       "PreemptionByScheduler", "by pod important-0: default-scheduler: preempting", false},
      {disrupted("TerminationByKubelet", "node shutdown"), "TerminationByKubelet", "node shutdown", false},
      {disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"), "DeletionByTaintManager",
       "NoExecute taint", false},
      {[](ObservedPod* pod) {
         pod->reason = "DeadlineExceeded";
         pod->message = "Pod was active on the node longer than the specified deadline";
       },
       "DeadlineExceeded", "DeadlineExceeded: Pod was active on the node longer", true},
      {[](ObservedPod* pod) { pod->meta.deleted = kNow + 30 * kSecond; }, "Deleted", "Deleted: the pod was deleted",
       false},
      {[](ObservedPod* pod) { pod->event = Event("Unhealthy", "Liveness probe failed: HTTP 500", kNow - 3 * kSecond); },
       "Unhealthy", "Unhealthy: Liveness probe failed: HTTP 500", true},
      {[](ObservedPod* pod) { pod->event = Event("Unhealthy", "Liveness probe failed", kNow + kSecond); }, "Error",
       "preempted: SIGTERM", true},
  };
  for (const auto& row : rows) {
    ObservedPod pod = Stopped(Pod(There("a-node-0"), 0));
    row.change(&pod);
    const auto failure = FailureOf(pod, RulesOf(pod, TwoNodes().jobs[0]));
    ASSERT_TRUE(failure) << row.words;
    EXPECT_EQ(failure->failure.reason, row.reason);
    EXPECT_EQ(failure->failure.counted, row.counted) << row.reason;
    EXPECT_THAT(Describe(failure->failure), HasSubstr(row.words));
    const bool says_signal = Describe(failure->failure).find("preempted: SIGTERM") != std::string::npos;
    EXPECT_EQ(says_signal, row.reason == std::string("Error")) << row.reason;
  }
}

TEST(OutsideCause, ThePreemptorIsNamedWhenItIsKnown) {
  ObservedPod pod = Stopped(Pod(There("a-node-0"), 0));
  pod.disrupted = true;
  pod.disruption = "PreemptionByScheduler";
  pod.disruption_message = "preempting";
  const auto found = [&pod] { return *FailureOf(pod, RulesOf(pod, TwoNodes().jobs[0])); };
  std::vector<Failure> known;
  EXPECT_EQ(Remember({found()}, &known).size(), 1U);
  EXPECT_THAT(known[0].message, ::testing::EndsWith("PreemptionByScheduler: preempting"));
  pod.event = Event("Preempted", "Preempted by pod 7f3a on node n1", kNow);
  pod.event.related = "important-0";
  EXPECT_TRUE(Remember({found()}, &known).empty()) << "it would be told twice";
  EXPECT_THAT(known[0].message, ::testing::EndsWith("by pod important-0: preempting"));
  pod.event = Event("Unhealthy", "Liveness probe failed", kNow + kSecond);
  EXPECT_TRUE(Remember({found()}, &known).empty());
  EXPECT_THAT(known[0].message, ::testing::EndsWith("by pod important-0: preempting")) << "another Event came";
}

TEST(OutsideCause, AWorkersOwnFailureIsStillTheCause) {
  ObservedPod pod = Failed(Pod(There("a-node-0"), 0), 139, Told(139, ExitClass::kRetryable, 0, "segmentation fault"));
  pod.meta.deleted = kNow;
  const auto failure = FailureOf(pod, RulesOf(pod, TwoNodes().jobs[0]));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->failure.message, "segmentation fault");
}

TEST(OutsideCause, SuspendingIsNoFailure) {
  TrainJob job = Job();
  job.suspend = true;
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Stopped(Pod(observed.jobs[0], 0)), Stopped(Pod(observed.jobs[0], 1))};
  observed.pods[0].meta.deleted = kNow;
  for (const bool resumed : {false, true}) {
    observed.jobs[0].suspended = resumed;
    job.suspend = !resumed;
    const TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
    EXPECT_THAT(decision.status.failures, IsEmpty());
    for (const EventText& event : decision.events) EXPECT_FALSE(event.warning) << event.message;
    job.status = decision.status;
  }
}

Observed Initializing(const TerminationMessage& message) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  ObservedPod pod = Pod(observed.jobs[0], 0);
  pod.waiting_reason = "CrashLoopBackOff";
  pod.waiting = "CrashLoopBackOff: container dataset-initializer: back-off 10s";
  pod.restarts_failed = true;
  ObservedEnd end;
  end.container = "dataset-initializer";
  end.exit_code = message.exit_code;
  end.started_again = true;
  end.finished = kNow - kSecond;
  end.message = message;
  pod.ends = {end};
  observed.pods = {pod};
  return observed;
}

TEST(Initializers, AFatalEndEndsTheJobWhateverTheKubeletRestarts) {
  TerminationMessage message;
  message.exit_code = 66;
  message.exit_class = ExitClass::kFatal;
  message.reason = "hf://org/data: 404 Not Found";
  const TrainJobDecision decision = Decide(Job(), WithData(), Initializing(message), kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_THAT(decision.status.Find("Failed")->message, HasSubstr("hf://org/data: 404 Not Found"));
  EXPECT_EQ(decision.status.failures.size(), 1U);
}

TEST(Initializers, ARetryableEndIsSaidWhileItIsTriedAgain) {
  TerminationMessage message;
  message.exit_code = 200;
  message.exit_class = ExitClass::kRetryable;
  message.reason = "the hub does not answer";
  TrainJobDecision decision = Decide(Job(), WithData(), Initializing(message), kNow);
  EXPECT_FALSE(decision.status.Finished());
  EXPECT_THAT(decision.status.message, HasSubstr("CrashLoopBackOff: container dataset-initializer: back-off 10s"));
  EXPECT_THAT(decision.status.message, HasSubstr("the hub does not answer"));
  Observed observed = Initializing(message);  // under restartPolicy Never, between two pods
  observed.pods[0].phase = "Failed";
  observed.pods[0].waiting.clear();
  observed.pods[0].ends[0].started_again = false;
  decision = Decide(Job(), WithData(), observed, kNow);
  EXPECT_THAT(decision.status.message, HasSubstr("; Kubernetes makes another pod"));
}

TEST(LostNode, IsSaidAtOnce) {
  TrainJob job = Job();
  job.status.state = "Running";
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  observed.pods[1].moved = kNow;
  observed.pods[1].event = Event("NodeNotReady", "Node is not ready", kNow);
  const TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.message, "pod a-node-0-1-x: its node n1 is not ready, and does not answer");
  EXPECT_EQ(decision.status.reason, "NodeNotReady");
  observed.pods[1].ready = true;
  EXPECT_EQ(Decide(job, TwoNodes(), observed, kNow).status.message, "");
}

TEST(State, IsNotRestartingWhereTheJobIsAboutToEnd) {
  const struct {
    const char* what;
    std::function<void(ObservedPod*)> change;
    const char* state;
  } rows[] = {
      {"a container has ended, and its pod not yet",
       [](ObservedPod* pod) {
         *pod = Failed(*pod, 0);
         pod->phase = "Running";
       },
       "Running"},
      {"a container was killed, and its pod has not failed yet",
       [](ObservedPod* pod) {
         *pod = Failed(*pod, 137);
         pod->phase = "Running";
       },
       "Running"},
      {"a pod has succeeded, and is not counted yet", [](ObservedPod* pod) { pod->phase = "Succeeded"; }, "Running"},
      {"a pod has failed and is replaced", [](ObservedPod* pod) { *pod = Failed(*pod, 137); }, "Restarting"},
      {"a pod is being deleted", [](ObservedPod* pod) { pod->meta.deleted = kNow; }, "Restarting"},
      {"its agent starts the workers again", [](ObservedPod* pod) { pod->ready = false; }, "Restarting"},
  };
  for (const auto& row : rows) {
    TrainJob job = Job();
    job.status.state = "Running";
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.jobs[0].ready = 1;
    observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
    for (ObservedPod& pod : observed.pods) pod.ready = true;
    row.change(&observed.pods[1]);
    EXPECT_EQ(Decide(job, TwoNodes(), observed, kNow).status.state, row.state) << row.what;
  }
}

TEST(Describe, NamesAnInitContainerThatFailed) {
  ObservedPod pod = Failed(Pod(There("a-node-0"), 0), 3);
  pod.ends[0].container = "prepare";
  pod.ends[0].init = true;
  EXPECT_THAT(Describe(FailureOf(pod, RulesOf(pod, TwoNodes().jobs[0]))->failure),
              HasSubstr("pod a-node-0-0-x, container prepare (node n1) ended with exit code 3"));
}

TEST(Suspended, ATrainJobThatWasCreatedSoCountsItsJobs) {
  TrainJob job = Job();
  job.suspend = true;
  const TrainJobDecision decision = Decide(job, WithData(), {}, kNow);
  ASSERT_EQ(decision.status.jobs.size(), 2U);
  for (const JobsStatus& counts : decision.status.jobs) EXPECT_EQ(counts.suspended, 1) << counts.name;
}

}  // namespace
}  // namespace muster::controller
