// SPDX-License-Identifier: Apache-2.0
// What a failure asks the user to do. e2e/controller/cause_rows.py shows the same in jobs that run.
#include "controller/reconcile/next_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "controller/reconcile/failure.h"
#include "controller/reconcile/train_job_conditions.h"
#include "controller/reconcile/train_job_finished.h"
#include "controller/reconcile/waiting.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kLogs[] = "see kubectl logs -n ml a-node-0-1-x -c node";

ObservedPod Ended(int code) {
  ObservedPod pod = Failed(Pod(There("a-node-0"), 1), code, Told(code, Classify(code), 0, "words"));
  pod.meta.ns = "ml";
  return pod;
}

TEST(NextStep, NamesTheRemedyOfEachFailure) {
  const struct {
    const char* name;
    int code;
    std::function<void(ObservedPod*)> change;
    const char* step;
  } rows[] = {
      {"a worker's own end", 1, [](ObservedPod*) {}, kLogs},
      {"the container runs again", 1, [](ObservedPod* pod) { pod->ends[0].started_again = true; },
       "see kubectl logs -n ml a-node-0-1-x -c node --previous"},
      {"it waits to", 1, [](ObservedPod* pod) { pod->ends[0].started_again = pod->ends[0].waits_to_start = true; },
       kLogs},
      {"of a local run", 1, [](ObservedPod* pod) { pod->logs = "muster logs a"; }, "see muster logs a --node 1"},
      {"memory", 137,
       [](ObservedPod* pod) {
         pod->ends[0].message->cause->oom_killed = true;
         pod->memory_limits = {{"proxy", "1Gi"}, {"node", "64Mi"}};
       },
       "raise resources.limits.memory of container node (it was 64Mi)"},
      {"memory of the machine", 137, [](ObservedPod* pod) { pod->ends[0].message->cause->oom_killed = true; },
       "its node had too little memory: set resources.requests.memory of container node"},
      {"shared memory", 1,
       [](ObservedPod* pod) {
         pod->ends[0].message->cause->message = "might be caused by insufficient shared memory (shm).";
       },
       "mount an emptyDir of medium Memory at /dev/shm of container node"},
      {"SIGBUS", 135, [](ObservedPod*) {}, "mount an emptyDir of medium Memory at /dev/shm of container node"},
      {"no such command: the worker has no pid", 127, [](ObservedPod*) {},
       "correct the command of container node, or its image"},
      {"no such command in a shell", 127, [](ObservedPod* pod) { pod->ends[0].message->cause->pid = 7; }, kLogs},
      {"containerd cannot start it", 128,
       [](ObservedPod* pod) {
         pod->ends[0].message.reset();
         pod->ends[0].reason = "StartError";
       },
       "correct the command of container node, or its image"},
      {"evicted over a limit", 137,
       [](ObservedPod* pod) {
         pod->reason = "Evicted";
         pod->message = "Usage of EmptyDir volume \"x\" exceeds the limit \"1Mi\".";
         pod->ends[0].message.reset();
       },
       "raise the limit that it exceeded"},
      {"evicted from a full node", 137,
       [](ObservedPod* pod) {
         pod->reason = "Evicted";
         pod->message = "The node was low on resource: memory.";
         pod->ends[0].message.reset();
       },
       "request what the pod needs (resources.requests), so that its node keeps it"},
      {"the pod's deadline", 143, [](ObservedPod* pod) { pod->reason = "DeadlineExceeded"; },
       "raise activeDeadlineSeconds of the pod"},
      {"preempted", 143,
       [](ObservedPod* pod) {
         pod->disrupted = true;
         pod->disruption = "PreemptionByScheduler";
       },
       "give the job a higher priority (priorityClassName)"},
      {"deleted: another pod replaces it", 143, [](ObservedPod* pod) { pod->meta.deleted = kNow; }, ""},
      {"its container never ran", 0,
       [](ObservedPod* pod) {
         pod->ends.clear();
         pod->reason = "UnexpectedAdmissionError";
       },
       "see kubectl describe pod -n ml a-node-0-1-x"},
  };
  for (const auto& row : rows) {
    ObservedPod pod = Ended(row.code);
    row.change(&pod);
    const auto failure = FailureOf(pod, RulesOf(pod, TwoNodes().jobs[0]));
    ASSERT_TRUE(failure) << row.name;
    EXPECT_EQ(failure->failure.next_step, row.step) << row.name;
    EXPECT_THAT(Explain(failure->failure), EndsWith(row.step)) << row.name;
  }
}

// The agent of pod 0 tells of a worker on pod 1: its log explains the end.
TEST(NextStep, IsAboutThePodOfTheCause) {
  const ObservedJob job = There("a-node-0");
  ObservedPod told = Failed(Pod(job, 0), 137, ToldAt("a-node-0-0", "a-node-0-1", kNow, 137));
  ObservedPod cause = Pod(job, 1);
  cause.memory_limits = {{"node", "64Mi"}};
  told.ends[0].message->cause->oom_killed = true;
  auto failure = FailureOf(told, RulesOf(told, TwoNodes().jobs[0]));
  NameCauses({{&told, 0}, {&cause, 1}}, {&*failure});
  EXPECT_EQ(failure->failure.pod, "a-node-0-1-x");
  EXPECT_EQ(failure->failure.next_step, "raise resources.limits.memory of container node (it was 64Mi)");
}

// The worker has said nothing: its rank and code are not said twice.
TEST(Describe, SaysTheCodeOnce) {
  TerminationMessage message = Told(7, ExitClass::kFatal, 0, "");
  message.reason = "worker rank 3 ended with exit code 7";
  ObservedPod pod = Failed(Pod(There("a-node-0"), 1), 7, message);
  EXPECT_EQ(Describe(FailureOf(pod, RulesOf(pod, TwoNodes().jobs[0]))->failure),
            "rank 3 on pod a-node-0-1-x (node n1) ended with exit code 7");
  pod.ends[0].exit_code = message.exit_code = 93;
  message.reason = "no progress: worker rank 3 ended with exit code 7";
  pod.ends[0].message = message;
  EXPECT_THAT(Describe(FailureOf(pod, RulesOf(pod, TwoNodes().jobs[0]))->failure), HasSubstr("no progress"));
}

// The command that the next step names works only while the pod is there.
TEST(Log, ThePodOfTheCauseIsAwaited) {
  TrainJob job = Job();
  job.status.state = "Failed";
  SetCondition(&job.status, "Failed", true, "FailedJobs", "", 1, kNow);
  Observed observed;
  observed.jobs = {There("a-node-0")};
  const ObservedPod reporter =
      Failed(Pod(observed.jobs[0], 0), 3, ToldAt("a-node-0-0", "a-node-0-1", kNow));  // at -1 s
  observed.pods = {reporter, Pod(observed.jobs[0], 1)};
  const TrainJobDecision decision = DecideFinished(job, observed, kNow);
  EXPECT_TRUE(decision.actions.empty());
  EXPECT_EQ(decision.again, kNow + 29 * kSecond);
  EXPECT_EQ(DecideFinished(job, observed, kNow + 29 * kSecond).actions.size(),
            1U);  // the cause's agent was killed, say
  observed.pods[1] = Failed(Pod(observed.jobs[0], 1), 3, ToldAt("a-node-0-1", "a-node-0-1", kNow));
  EXPECT_EQ(DecideFinished(job, observed, kNow).actions.size(), 1U);
}

TEST(Log, OfWhichPodIsAwaited) {
  const ObservedJob job = There("a-node-0");
  NamedCauses causes;
  AddCauses(Failed(Pod(job, 0), 3, ToldAt("a-node-0-0", "a-node-0-1", kNow)), &causes);
  AddCauses(Failed(Pod(job, 3), 0, ToldAt("a-node-0-3", "a-node-0-2", kNow, 0)), &causes);  // overcome
  ObservedPod outlasted = Failed(Pod(job, 4), 1);
  outlasted.phase = "Running";
  outlasted.decides = "node";
  outlasted.running = {"proxy"};
  Steps steps;
  EXPECT_EQ(AwaitLog(Pod(job, 1), causes, kNow, &steps), kNow + 29 * kSecond);
  EXPECT_EQ(AwaitLog(Pod(job, 2), causes, kNow, &steps), std::nullopt);
  EXPECT_EQ(AwaitLog(Failed(Pod(job, 1), 3), causes, kNow, &steps), std::nullopt);
  EXPECT_TRUE(steps.actions.empty());
  EXPECT_EQ(AwaitLog(outlasted, causes, kNow, &steps), kNow + 89 * kSecond);
  EXPECT_EQ(steps.actions.size(), 1U);  // ends the proxy
}

TEST(Log, OfAContainerThatTheKubeletStartsAgainIsAwaited) {
  struct Row {
    const char* what;
    bool waits, ended_here;
    bool ends, awaited;
  };
  const Row rows[] = {
      {"it has just ended", true, false, true, true},
      {"the pod's end is asked for", true, true, false, true},
      {"it was started again before the pod's end", false, true, false, true},
      {"it was started again long ago", false, false, false, false},
  };
  for (const Row& row : rows) {
    ObservedPod pod = Failed(Pod(There("a-node-0"), 0), 78);
    pod.phase = "Running";
    pod.ends[0].started_again = true;
    pod.ends[0].waits_to_start = row.waits;
    pod.ended_here = row.ended_here;
    Steps steps;
    EXPECT_EQ(AwaitLog(pod, {}, kNow, &steps).has_value(), row.awaited) << row.what;
    EXPECT_EQ(steps.actions.size(), row.ends ? 1U : 0U) << row.what;
    pod.phase = "Failed";
    EXPECT_FALSE(AwaitLog(pod, {}, kNow, &steps)) << row.what;
  }
}

TEST(NextStep, ADifferentWaitIsNews) {
  EXPECT_TRUE(IsNews({"FailedMount", "m"}, "pod a: Unschedulable: 0/1 nodes"));
  EXPECT_FALSE(IsNews({"ErrImagePull", "m"}, "pod a: ImagePullBackOff: Back-off pulling image: ErrImagePull"));
  EXPECT_FALSE(IsNews({"", "m"}, ""));
  EXPECT_EQ(NextStepOfWait("Failed", "Error: secret \"x\" not found"), "once it exists the pod starts");
  EXPECT_EQ(NextStepOfWait("Failed", "Error: failed to start"), "");
}

TEST(NextStep, NamesTheRemedyOfAPodThatWaits) {
  ObservedPod pod = Pod(There("a-node-0"), 0);
  pod.phase = "Pending";
  pod.waiting_reason = "ImagePullBackOff";
  pod.waiting = "ImagePullBackOff: container node: Back-off pulling image \"nothing:1\"";
  std::optional<WallTime> again;
  EXPECT_EQ(
      WaitOf(pod, kNow, &again)->message,
      "pod a-node-0-0-x: ImagePullBackOff: container node: Back-off pulling image \"nothing:1\"; correct the image, or "
      "the credentials of its registry (imagePullSecrets)");
}

}  // namespace
}  // namespace muster::controller
