// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Decide, AJobThatIsBoundToFailHasFailed) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].backoff_limit = 1;
  observed.pods = {Failed(Pod(observed.jobs[0], 1), 1), Pod(observed.jobs[0], 0)};
  EXPECT_THAT(Actions(Decide(Job(), TwoNodes(false, 1), observed, kNow)), IsEmpty());
  observed.pods.push_back(Failed(Pod(observed.jobs[0], 1, "y"), 1));
  TrainJobDecision decision = Decide(Job(), TwoNodes(false, 1), observed, kNow);
  EXPECT_EQ(decision.status.attempt, 1);
  decision = Decide(Job(), TwoNodes(false, 0), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_EQ(decision.status.Find("Failed")->reason, "FailedJobs");
}

TEST(Decide, PodsThatEndForOneFailureCostOne) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  TerminationMessage told = Told(139, ExitClass::kRetryable, 1, "killed by SIGSEGV");
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 139, told), Failed(Pod(observed.jobs[0], 1), 139, told)};
  EXPECT_EQ(Decide(Job(), TwoNodes(), observed, kNow).status.restarts, 2) << "one by the agents, one for both pods";
  told.cause->unix_millis = 1;
  observed.pods.push_back(Failed(Pod(observed.jobs[0], 1, "y"), 139, told));
  EXPECT_EQ(Decide(Job(), TwoNodes(), observed, kNow).status.restarts, 3);
}

TEST(Decide, ACommandWithoutWorkersCostsOneForEachPod) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  TerminationMessage told = Told(143, ExitClass::kRetryable, 0, "asked to stop");
  told.cause.reset();
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 143, told), Failed(Pod(observed.jobs[0], 0, "y"), 143, told)};
  EXPECT_EQ(Decide(Job(), TwoNodes(), observed, kNow).status.restarts, 2);
}

TEST(Decide, ARecreatedStepUnderTheAgentCostsAtLeastOne) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].failed_at = kNow;
  observed.jobs[0].failed_reason = "DeadlineExceeded";
  TrainJob job = Job();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
    EXPECT_EQ(decision.status.attempt, attempt);
    EXPECT_EQ(decision.status.restarts, attempt);
    job.status = decision.status;
    observed.jobs = {There("a-node-0", attempt)};
    observed.jobs[0].meta.annotations["muster.dev/restarts-left"] = fmt::format("{}", 3 - attempt);
    observed.jobs[0].failed_at = kNow;
  }
  EXPECT_NE(Decide(job, TwoNodes(), observed, kNow).status.Find("Failed"), nullptr);
}

TEST(Decide, AForgedMessageCostsNoMoreThanTheBudget) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  TerminationMessage told = Told(139, ExitClass::kRetryable, std::numeric_limits<int>::max(),
                                 "\x1b[2J\x1b[31mred \xc2\x9b"
                                 "31m");
  told.max_restarts = 0;
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 139, told)};
  const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.restarts, 3);
  ASSERT_EQ(decision.status.failures.size(), 1U);
  EXPECT_EQ(decision.status.failures[0].message, " [2J [31mred  31m");
}

TEST(Decide, TheBudgetEnds) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  for (int i = 0; i < 4; ++i) observed.pods.push_back(Failed(Pod(observed.jobs[0], 0, fmt::format("p{}", i)), 137));
  const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  const Condition* failed = decision.status.Find("Failed");
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->reason, "ReachedMaxRestarts");
  EXPECT_THAT(failed->message, HasSubstr("was killed by SIGKILL"));
  EXPECT_EQ(decision.status.restarts, 3) << "no restart follows the failure that exceeds the budget";
  EXPECT_THAT(Actions(decision), ElementsAre("suspend a-node-0")) << "its failed pod stays";
}

TEST(Decide, WhatTheAgentsHaveUsedUpIsNotGivenAgain) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 139, Told(139, ExitClass::kRetryable, 3, "killed by SIGSEGV"))};
  const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_EQ(decision.status.Find("Failed")->reason, "ReachedMaxRestarts");
  EXPECT_EQ(decision.status.restarts, 3);
}

TEST(Decide, AStepWithoutTheAgentIsRecreatedAsAWhole) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].failed_at = kNow;
  observed.jobs[0].failed_reason = "BackoffLimitExceeded";
  observed.pods = {Pod(observed.jobs[0], 0), Failed(Pod(observed.jobs[0], 1), 1)};
  TrainJob job = Job();
  const TrainJobPlan plan = TwoNodes(false, 1);
  TrainJobDecision decision = Decide(job, plan, observed, kNow);
  EXPECT_TRUE(decision.status_first);
  EXPECT_EQ(decision.status.attempt, 1);
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_EQ(decision.status.state, "Restarting");
  EXPECT_THAT(Actions(decision),
              ElementsAre("delete a-node-0", "delete pod a-node-0-0-x", "delete pod a-node-0-1-x", "create a-node-0"));
  EXPECT_EQ(decision.actions[3].object()["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"], "1");
  job.status = decision.status;
  observed.jobs = {There("a-node-0", 1)};
  observed.jobs[0].failed_at = kNow;
  observed.pods = {Failed(Pod(observed.jobs[0], 1), 1)};
  decision = Decide(job, plan, observed, kNow);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_EQ(decision.status.Find("Failed")->reason, "ReachedMaxRestarts");
}

// Kubernetes counts each pod that is lost or deleted in the Job's limit.
TEST(Decide, AJobThatReachedItsLimitByLostPodsIsRecreatedFree) {
  for (const bool platforms : {true, false}) {
    SCOPED_TRACE(platforms);
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.jobs[0].meta.created = kNow - 60 * kSecond;
    observed.jobs[0].failed_at = kNow;
    observed.jobs[0].failed_reason = "BackoffLimitExceeded";
    TrainJob job = Job();
    job.status.start_time = kNow - 90 * kSecond;
    job.status.restarts = 3;
    Failure lost;
    lost.pod = "a-node-0-1-w";
    lost.job = "a-node-0";
    lost.reason = "Deleted";
    lost.counted = !platforms;
    lost.time = kNow - 10 * kSecond;
    job.status.failures = {lost};
    const TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
    EXPECT_EQ(decision.status.Find("Failed") == nullptr, platforms);
    EXPECT_EQ(decision.status.attempt, platforms ? 1 : 0);
    EXPECT_EQ(decision.status.restarts, 3) << "what was used stays used";
    if (platforms) {
      EXPECT_THAT(decision.events.back().message, HasSubstr("the whole step starts again (not counted)"));
    }
  }
}

TEST(Decide, ANumberOfTheAttemptThatSomebodyRaisedCostsNothing) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0", 7)};
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, TwoNodes(false, 1), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty()) << "it would be created for ever";
  observed.jobs[0].failed_at = kNow;
  decision = Decide(job, TwoNodes(false, 1), observed, kNow);
  EXPECT_EQ(std::tie(decision.status.attempt, decision.status.restarts), std::make_tuple(8, 1));
  EXPECT_THAT(Actions(decision), ElementsAre("delete a-node-0", "create a-node-0"));
}

TEST(Decide, NeverMeansNever) {
  for (const bool agent : {true, false}) {
    TrainJobPlan plan = TwoNodes(agent);
    plan.jobs[0].restart = RestartPolicy::kNever;
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.pods = {Failed(Pod(observed.jobs[0], 0), 137), Pod(observed.jobs[0], 1)};
    TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
    ASSERT_TRUE(decision.status.Finished());
    EXPECT_EQ(decision.status.Find("Failed")->reason, "FailedJobs");

    observed.pods[0].disrupted = true;  // the Job fails nevertheless
    EXPECT_THAT(Actions(Decide(Job(), plan, observed, kNow)), IsEmpty()) << "no pod takes its place";
    observed.jobs[0].failed_at = kNow;
    observed.jobs[0].failed_reason = "BackoffLimitExceeded";
    EXPECT_EQ(Decide(Job(), plan, observed, kNow).status.Find("Failed")->reason, "FailedJobs");
  }
}

TEST(Decide, OnFailureCountsFatalCodesToo) {
  TrainJobPlan plan = TwoNodes();
  plan.jobs[0].restart = RestartPolicy::kOnFailure;
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Failed(Pod(observed.jobs[0], 0), 3), Pod(observed.jobs[0], 1)};
  TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_FALSE(decision.status.Finished());
  EXPECT_EQ(decision.status.restarts, 1);
  observed.pods[0] = Failed(Pod(observed.jobs[0], 0), 3, Told(3, ExitClass::kFatal, 3, "again"));
  decision = Decide(Job(), plan, observed, kNow);
  ASSERT_TRUE(decision.status.Finished());
  EXPECT_EQ(decision.status.Find("Failed")->reason, "ReachedMaxRestarts") << "the agents have used it up";
}

// JobSet restarts nothing without a failurePolicy. The default budget is for what the agents restart.
TEST(Decide, AJobWithoutTheAgentDoesNotUseTheirDefaultBudget) {
  for (const bool agents_only : {false, true}) {
    TrainJobPlan plan = TwoNodes();
    plan.agents_only = agents_only;
    plan.jobs.push_back(Planned("launcher", Step::kOther, 1, false));
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0"), There("a-launcher-0", 0, 1)};
    observed.jobs[1].failed_at = kNow;
    observed.jobs[1].failed_reason = "BackoffLimitExceeded";
    const TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
    EXPECT_EQ(decision.status.Find("Failed") != nullptr, agents_only);
    EXPECT_EQ(decision.status.attempt, agents_only ? 0 : 1);
  }
}

// A restart after a lost peer may end with a code that is fatal by itself.
TEST(Decide, ABudgetThatTheAgentsHaveUsedUpIsTheReason) {
  struct Row {
    int code, restarts;
    bool budget_used;
    const char* reason;
  };
  for (const Row& row : {Row{1, 3, true, "ReachedMaxRestarts"}, Row{137, 3, true, "ReachedMaxRestarts"},
                         Row{137, 3, false, "ReachedMaxRestarts"}, Row{1, 3, false, "FailedJobs"}}) {
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    TerminationMessage told = Told(row.code, Classify(row.code), row.restarts, "gloo: Connection closed by peer");
    told.budget_used = row.budget_used;
    observed.pods = {Failed(Pod(observed.jobs[0], 0), row.code, told), Pod(observed.jobs[0], 1)};
    const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
    ASSERT_TRUE(decision.status.Finished());
    EXPECT_EQ(decision.status.Find("Failed")->reason, row.reason) << row.code << row.budget_used;
    EXPECT_EQ(decision.status.restarts, 3);
  }
}

TEST(Decide, AFailureThatWasOvercomeIsTold) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].complete = true;
  observed.jobs[0].complete_at = kNow - kSecond;
  for (int index : {0, 1}) {
    ObservedPod pod = Pod(observed.jobs[0], index);
    pod.phase = "Succeeded";
    TerminationMessage told = ToldAt(pod.host, "a-node-0-1", kNow - 60 * kSecond, 139);
    told.exit_code = 0;
    told.exit_class = ExitClass::kSuccess;
    told.restart_count = 1;
    ObservedEnd end;
    end.container = "node";
    end.reason = "Completed";
    end.finished = kNow - 2 * kSecond;
    end.message = told;
    pod.ends = {end};
    observed.pods.push_back(pod);
  }
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_TRUE(decision.status.Finished());
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_THAT(Reasons(decision), ElementsAre("Restarted", "Complete"));
  EXPECT_THAT(decision.events[0].message, HasSubstr("rank 3 on pod a-node-0-1-x (node n1)"));
  EXPECT_THAT(decision.events[0].message, HasSubstr("the training started again in its pods"));
  ASSERT_EQ(decision.status.failures.size(), 1U);
  EXPECT_EQ(decision.status.failures[0].time, kNow - 60 * kSecond);
  EXPECT_EQ(decision.status.failures[0].exit_code, 139);
  EXPECT_EQ(decision.status.failures[0].reason, "Error");
}

TEST(Decide, WhatNoRestartHelpsEndsTheJobUnderEachPolicy) {
  struct Row {
    const char* what;
    int code, cause, pid;
    bool ends;
  };
  for (const Row& row :
       {Row{"no progress", 93, 3, 7, true}, Row{"no such command", 127, 127, 0, true},
        Row{"a worker that ended with 127", 127, 127, 7, false}, Row{"another code", 3, 3, 7, false}}) {
    SCOPED_TRACE(row.what);
    TrainJobPlan plan = TwoNodes();
    plan.jobs[0].restart = RestartPolicy::kOnFailure;
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    TerminationMessage told = Told(row.code, ExitClass::kFatal, 1, "why");
    told.cause->exit_code = row.cause;
    told.cause->pid = row.pid;
    observed.pods = {Failed(Pod(observed.jobs[0], 0), row.code, told), Pod(observed.jobs[0], 1)};
    const TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
    ASSERT_EQ(decision.status.Finished(), row.ends);
    if (!row.ends) continue;
    EXPECT_EQ(decision.status.Find("Failed")->reason, "FailedJobs");
  }
}

}  // namespace
}  // namespace muster::controller
