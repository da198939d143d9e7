// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/reconcile/replacement.h"
#include "controller/reconcile/train_job_finished.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The watch of Jobs reports the end first.
TEST(Decide, WhatPodsSaidAtTheirEndIsAwaited) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  observed.jobs[0].complete = true;
  observed.jobs[0].complete_at = kNow - kSecond;
  TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_THAT(decision.status.conditions, IsEmpty());
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + 59 * kSecond);
  EXPECT_TRUE(Decide(Job(), TwoNodes(), observed, kNow + 59 * kSecond).status.Finished()) << "not for ever";

  for (ObservedPod& pod : observed.pods) {
    pod.phase = "Succeeded";
    ObservedEnd end;
    end.container = "node";
    end.message = Told(0, ExitClass::kSuccess, 1, "all workers succeeded");
    pod.ends = {end};
  }
  decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_TRUE(decision.status.Finished());
  EXPECT_EQ(decision.status.restarts, 1);
}

TEST(Decide, TheCauseOfAFailedJobIsAwaited) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  observed.jobs[0].failed_at = kNow - kSecond;
  observed.jobs[0].failed_reason = "PodFailurePolicy";
  EXPECT_FALSE(Decide(Job(), TwoNodes(), observed, kNow).status.Finished());
  observed.pods[1] = Failed(observed.pods[1], 3, Told(3, ExitClass::kFatal, 0, "ValueError: no such data"));
  const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  ASSERT_TRUE(decision.status.Finished());
  EXPECT_THAT(decision.status.Find("Failed")->message, HasSubstr("ValueError: no such data"));
}

TEST(Decide, TheLauncherSaysWhyItsNodesEnded) {
  TrainJobPlan plan = TwoNodes();
  plan.jobs[0].step = Step::kOther;  // of an MPI job
  plan.jobs.push_back(Planned("launcher", Step::kTrainer, 1, true));
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0"), There("a-launcher-0", 0, 1)};
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 7, ToldBy(7, ExitClass::kFatal, "mpirun ended with 7")),
                   Pod(observed.jobs[0], 1), Pod(observed.jobs[1], 0)};
  observed.jobs[0].failed_at = kNow - kSecond;
  observed.jobs[0].failed_reason = "PodFailurePolicy";
  TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_FALSE(decision.status.Finished());
  EXPECT_THAT(decision.status.failures, IsEmpty());
  EXPECT_EQ(decision.again, kNow + 59 * kSecond);
  EXPECT_THAT(Decide(Job(), plan, observed, kNow + 59 * kSecond).status.Find("Failed")->message,
              HasSubstr("Job a-node-0: PodFailurePolicy"));

  observed.pods[2] = Failed(observed.pods[2], 7, Told(7, ExitClass::kFatal, 0, "MPI_ABORT was invoked"));
  decision = Decide(Job(), plan, observed, kNow);
  EXPECT_THAT(decision.status.Find("Failed")->message,
              HasSubstr("(first failed job: a-launcher-0): rank 3 on pod a-launcher-0-0-x"));
  ASSERT_EQ(decision.status.failures.size(), 1U);
}

TEST(Decide, AFatalCodeEndsTheJobAtOnce) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0),
                   Failed(Pod(observed.jobs[0], 1), 3, Told(3, ExitClass::kFatal, 0, "ValueError: no such data"))};
  const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  const Condition* failed = decision.status.Find("Failed");
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->reason, "FailedJobs");
  EXPECT_THAT(failed->message,
              HasSubstr("jobset failed due to one or more job failures (first failed job: a-node-0): "));
  EXPECT_THAT(failed->message,
              HasSubstr("rank 3 on pod a-node-0-1-x (node n1) ended with exit code 3: ValueError: no such data"));
  EXPECT_TRUE(decision.status_first);
  EXPECT_THAT(Actions(decision), ElementsAre("suspend a-node-0")) << "its failed pod stays";
  EXPECT_THAT(Reasons(decision), ElementsAre("PodFailed", "Failed"));
  ASSERT_EQ(decision.status.failures.size(), 1U);
  EXPECT_EQ(decision.status.failures[0].rank, 3);
  EXPECT_EQ(decision.status.failures[0].exit_code, 3);
  EXPECT_EQ(decision.status.restarts, 0);
  ASSERT_EQ(decision.status.jobs.size(), 1U);
  EXPECT_EQ(decision.status.jobs[0], (JobsStatus{"node", 0, 0, 1, 0, 0}));
}

// Each agent reports the cause of the whole job, and any of them may be seen first.
TEST(Decide, AFailureNamesThePodOfTheCauseWhoeverReportsIt) {
  const WallTime ended = kNow - 2 * kSecond;
  struct Row {
    const char* what;
    bool own_end;  // the end of the cause's own pod is known, too
    const char* host;
    WallTime at;
    const char* pod;
    const char* node;
    std::optional<int> node_rank;
  };
  const Row rows[] = {
      {"its own end is not known yet", false, "a-node-0-1", ended, "a-node-0-1-x", "n2", 1},
      {"both ends are known", true, "a-node-0-1", ended, "a-node-0-1-x", "n2", 1},
      {"an earlier pod of the host name", false, "a-node-0-1", kNow - 40 * kSecond, "a-node-0-1-w", "n3", 1},
      {"its clock is behind", false, "a-node-0-1", ended - std::chrono::hours(1), "a-node-0-1-x", "n2", 1},
      {"its clock is ahead", false, "a-node-0-1", ended + std::chrono::hours(1), "a-node-0-1-x", "n2", 1},
      {"no time", false, "a-node-0-1", WallTime{}, "a-node-0-1-x", "n2", 1},
      {"a pod that is gone", false, "a-node-0-7", ended, "a-node-0-7", "", std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    ObservedPod first = Failed(Pod(observed.jobs[0], 0), 3, ToldAt("a-node-0-0", row.host, row.at));
    ObservedPod earlier = Failed(Pod(observed.jobs[0], 1, "w"), 143);
    ObservedPod second = Pod(observed.jobs[0], 1);
    earlier.disrupted = true;
    earlier.node = "n3";
    earlier.meta.created = kNow - 50 * kSecond;
    second.node = "n2";
    second.meta.created = kNow - 30 * kSecond;
    if (row.own_end) second = Failed(second, 3, ToldAt("a-node-0-1", row.host, row.at));
    observed.pods = {first, second, earlier};
    const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
    const auto& failures = decision.status.failures;
    const auto failure = std::find_if(failures.begin(), failures.end(), [](const Failure& one) { return one.counted; });
    ASSERT_NE(failure, failures.end());
    EXPECT_EQ(failures.size(), 2U) << "the failure is one, however many pods it ends";
    EXPECT_EQ(failure->pod, row.pod);
    EXPECT_EQ(failure->reported_by, "a-node-0-0-x");
    EXPECT_EQ(failure->node, row.node);
    EXPECT_EQ(failure->node_rank, row.node_rank);
    EXPECT_THAT(decision.status.Find("Failed")->message, HasSubstr(fmt::format("rank 3 on pod {}", row.pod)));
    EXPECT_THAT(decision.status.message, HasSubstr("KeyError: 'x'"));
    TrainJob job = Job();
    job.status = decision.status;
    job.status.conditions.clear();
    EXPECT_THAT(Reasons(Decide(job, TwoNodes(), observed, kNow)), ElementsAre("Failed")) << "no failure is new";
  }
}

// The agent has chosen the line. The last lines may be warnings of the teardown.
// Agents of commands without torchrun do not know each other, so each names its own end.
TEST(Decide, APodThatOnlyLostAPeerIsNotTheCause) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  const auto lost = [](const std::string& node, WallTime at) {
    TerminationMessage message = ToldAt(node, node, at);
    message.cause->consequence = true;
    return message;
  };
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 3, lost("a-node-0-0", kNow - 3 * kSecond)),
                   Failed(Pod(observed.jobs[0], 1), 3, ToldAt("a-node-0-1", "a-node-0-1", kNow))};
  observed.pods[0].ends[0].finished = kNow - 3 * kSecond;
  observed.pods[1].ends[0].finished = kNow;
  const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_THAT(decision.status.message, HasSubstr("on pod a-node-0-1-x"));
}

TEST(Decide, TheLineOfAFailureIsTheOneThatTheAgentChose) {
  struct Row {
    const char* what;
    std::string error_message, stderr_reason;
    std::string shown;
  };
  const Row rows[] = {
      {"of stderr", "", "KeyError: 'x'", "exit code 3: KeyError: 'x'"},
      {"of a traceback", "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nValueError: 1\n",
       "KeyError: 'x'", "exit code 3: ValueError: 1"},
      {"of a message", "first\nsecond", "KeyError: 'x'", "exit code 3: first"},
      {"none", "", "", "ended with exit code 3"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    TerminationMessage message = Told(3, ExitClass::kFatal, 0, "node a: worker rank 3 ended with exit code 3");
    message.cause->message = row.error_message;
    message.cause->stderr_reason = row.stderr_reason;
    message.cause->stderr_tail = {"KeyError: 'x'", "warning: destroy_process_group() was not called"};
    // As the kubelet brings it.
    message = *ParseTerminationMessage(EncodeTerminationMessage(message));
    observed.pods = {Failed(Pod(observed.jobs[0], 0), 3, message)};
    const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
    EXPECT_THAT(decision.status.message,
                ::testing::EndsWith(std::string(row.shown) + "; see kubectl logs a-node-0-0-x -c node"));
  }
}

TEST(Decide, APodThatIsAboutToFailIsWaitedFor) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0),
                   Failed(Pod(observed.jobs[0], 1), 3, Told(3, ExitClass::kFatal, 0, "no such data"))};
  observed.pods[1].phase = "Running";  // its container has ended
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_THAT(Actions(decision), IsEmpty()) << "its logs would go";
  EXPECT_EQ(decision.again, kNow + 29 * kSecond);
  job.status = decision.status;
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow + 29 * kSecond)), ElementsAre("suspend a-node-0"));
  observed.pods[1].phase = "Failed";
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow)), ElementsAre("suspend a-node-0"));
  observed.jobs[0].failed_at = kNow;  // by the Job controller's rules
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow)), IsEmpty());
}

// The Job controller and Muster count it, but its place is free only when the kubelet has set its phase.
TEST(Decide, APodThatWillFailIsTheCauseBeforeItsPhaseSaysSo) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Failed(Pod(observed.jobs[0], 1), 137)};
  observed.pods[1].phase = "Running";
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_THAT(decision.status.failures, IsEmpty());
  observed.pods[1].will_fail = true;
  decision = Decide(job, TwoNodes(), observed, kNow);
  ASSERT_EQ(decision.status.failures.size(), 1U);
  EXPECT_EQ(decision.status.failures[0].exit_code, 137);
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_THAT(Actions(decision), IsEmpty());
  job.status = decision.status;
  observed.pods[1].will_fail = false;
  observed.pods[1].phase = "Failed";
  decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.actions.size(), 1U) << "a new pod";
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_EQ(decision.status.failures, job.status.failures);
}

TEST(Decide, AnInitializerThatWillFailEndsTheJob) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  observed.jobs[0].backoff_limit = 0;
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 1)};
  observed.pods[0].phase = "Pending";
  EXPECT_EQ(Decide(Job(), WithData(), observed, kNow).status.Find("Failed"), nullptr);
  observed.pods[0].will_fail = true;
  const TrainJobDecision decision = Decide(Job(), WithData(), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_THAT(decision.status.message, HasSubstr("ended with exit code 1"));
  EXPECT_THAT(Actions(decision), IsEmpty()) << "its log would go";
}

TEST(Decide, ARetryableCodeIsCountedOnceAndThePodRecreated) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 137)};
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
  ASSERT_EQ(decision.actions.size(), 1U);
  const Action action = decision.actions[0];
  EXPECT_EQ(action.kind, Action::Kind::kCreatePodOfJob);
  EXPECT_THAT(action.name, ::testing::MatchesRegex("a-node-0-0-[0-9a-f]{5}"));
  EXPECT_EQ(std::tie(action.job, action.uid, action.index), std::make_tuple("a-node-0", "uid-a-node-0-0", 0));
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_THAT(Reasons(decision), ElementsAre("PodFailed"));
  job.status = decision.status;
  decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.actions[0].name, action.name) << "it would be made twice";
  observed.pods.push_back(Pod(observed.jobs[0], 0, "new"));
  decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_THAT(decision.events, IsEmpty());
}

TEST(Decide, APodOnALostNodeIsRecreatedBeforeItsEnd) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1)};
  observed.pods[1].meta.deleted = kNow;
  TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + kLostAfter);
  decision = Decide(Job(), TwoNodes(), observed, kNow + kLostAfter);
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(std::tie(decision.actions[0].kind, decision.actions[0].index),
            std::make_tuple(Action::Kind::kCreatePodOfJob, 1));
  EXPECT_THAT(Reasons(decision), ElementsAre("PodLost"));
}

TEST(Decide, ADisruptionCostsNothing) {
  for (const char* how : {"condition", "deleted", "Evicted", "Preempting"}) {
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    ObservedPod pod = Failed(Pod(observed.jobs[0], 0), 1);
    if (std::string_view(how) == "condition") {
      pod.disrupted = true;
    } else if (std::string_view(how) == "deleted") {
      pod.meta.deleted = kNow;
    } else {
      pod.reason = how;
    }
    observed.pods = {pod};
    const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
    EXPECT_EQ(decision.status.restarts, 0) << how;
    EXPECT_EQ(decision.status.Find("Failed"), nullptr) << how;
    EXPECT_THAT(Reasons(decision), ElementsAre("PodDisrupted")) << how;
  }
}

TEST(Decide, AnEndThatNobodySawCostsNothing) {
  for (const bool unseen : {true, false}) {
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    ObservedPod pod = Failed(Pod(observed.jobs[0], 0), 255);
    pod.ends[0].reason = "Unknown";
    pod.ends[0].unseen = unseen;
    observed.pods = {pod};
    const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
    EXPECT_EQ(decision.status.restarts, unseen ? 0 : 1);
    ASSERT_EQ(decision.status.failures.size(), 1U);
    EXPECT_EQ(decision.status.failures[0].exit_code, 255);
    const bool says_so = decision.status.failures[0].message.find("its node stopped under it") != std::string::npos;
    EXPECT_EQ(says_so, unseen);
  }
}

TEST(Decide, AContainerWhoseRuntimeStoppedIsStartedAgainFree) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  ObservedPod pod = Failed(Pod(observed.jobs[0], 0), 128);
  pod.ends[0].reason = "StartError";
  pod.ends[0].unseen = true;
  pod.ends[0].text = "context canceled";
  observed.pods = {pod};
  const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.restarts, 0);
  ASSERT_EQ(decision.status.failures.size(), 1U);
  EXPECT_EQ(decision.status.failures[0].message,
            "StartError: its node's container runtime stopped while it was started: context canceled");
  EXPECT_EQ(decision.status.failures[0].next_step, "");
}

// The launcher of an MPI job ends with 202 when a node's agent is gone.
TEST(Decide, ALauncherThatLostAPodWhichThePlatformTookCostsNothing) {
  using Change = std::function<void(ObservedPod&)>;
  const auto evicted = [](ObservedPod& pod) {
    pod = Failed(pod, 137);
    pod.disrupted = true;
  };
  const struct {
    const char* what;
    std::string host;  // the peer that the launcher names
    Change node;
    int restarts;
  } rows[] = {
      {"evicted", "a-node-0-1", evicted, 0},
      {"deleted, and still ends", "a-node-0-1", [](ObservedPod& pod) { pod.meta.deleted = kNow; }, 0},
      {"it runs", "a-node-0-1", [](ObservedPod&) {}, 1},
      {"another node", "a-node-0-0", evicted, 1},
      {"a longer name", "a-node-0-12", evicted, 1},
      {"evicted three minutes before", "a-node-0-1",
       [&evicted](ObservedPod& pod) {
         evicted(pod);
         *pod.ends[0].finished -= 180 * kSecond;
       },
       1},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    TrainJobPlan plan = TwoNodes();
    plan.jobs.push_back(Planned("launcher", Step::kTrainer, 1, true));
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0"), There("a-launcher-0", 0, 1)};
    TerminationMessage message = Told(202, ExitClass::kRetryable, 0, row.host + ".a:29522: the connection was lost");
    observed.pods = {Pod(observed.jobs[0], 0), Pod(observed.jobs[0], 1),
                     Failed(Pod(observed.jobs[1], 0), 202, message)};
    row.node(observed.pods[1]);
    TrainJob job = Job();
    TrainJobDecision decision = Decide(job, plan, observed, kNow);
    EXPECT_EQ(decision.status.restarts, row.restarts);
    if (row.restarts == 0) {  // the platform's deed becomes known after the launcher's end
      const ObservedPod taken = std::exchange(observed.pods[1], Pod(observed.jobs[0], 1));
      const TrainJobDecision before = Decide(Job(), plan, observed, kNow);
      EXPECT_EQ(before.status.restarts, 1);
      observed.pods[1] = taken;
      TrainJob charged = Job();
      charged.status = before.status;
      EXPECT_EQ(Decide(charged, plan, observed, kNow + kSecond).status.restarts, 0);
    }
    // The pod of the node is gone, and another one runs in its place.
    job.status = decision.status;
    observed.pods[1] = Pod(observed.jobs[0], 1, "y");
    EXPECT_EQ(Decide(job, plan, observed, kNow + kSecond).status.restarts, row.restarts) << "it stays so";
  }
}

TEST(Decide, AnInitializerThatFailedEndsTheJob) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  observed.jobs[0].failed_at = kNow;
  observed.jobs[0].failed_reason = "BackoffLimitExceeded";
  observed.jobs[0].failed_message = "Job has reached the specified backoff limit";
  const TrainJobDecision decision = Decide(Job(), WithData(), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_THAT(decision.status.Find("Failed")->message, HasSubstr("(first failed job: a-dataset-initializer-0)"));
  EXPECT_THAT(decision.status.message, HasSubstr("BackoffLimitExceeded"));
}

}  // namespace
}  // namespace muster::controller
