// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/reconcile/train_job_conditions.h"
#include "controller/reconcile/train_job_finished.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Decide, SuspendAndResume) {
  TrainJob job = Job();
  job.suspend = true;
  TrainJobDecision decision = Decide(job, TwoNodes(), {}, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  ASSERT_NE(decision.status.Find("Suspended"), nullptr);
  EXPECT_TRUE(decision.status.Find("Suspended")->status);
  EXPECT_EQ(decision.status.start_time, std::nullopt);
  job.status = decision.status;
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), ElementsAre("suspend a-node-0"));
  observed.jobs[0].suspended = true;
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), IsEmpty());
  job.suspend = false;
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), IsEmpty()) << "its pods are not gone yet";
  observed.jobs[0].active = 0;
  observed.pods = {Pod(observed.jobs[0], 0)};
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), IsEmpty()) << "nor is this one";
  observed.pods[0].meta.deleted = kNow;
  observed.pods[0].tracked = true;
  decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty()) << "the Job controller may not have seen the deletion";
  EXPECT_EQ(decision.again, kNow + 30 * kSecond);
  decision = Decide(job, TwoNodes(), observed, kNow + 30 * kSecond);
  EXPECT_THAT(Actions(decision), ElementsAre("delete a-node-0", "create a-node-0")) << "its node is lost";
  observed.pods[0].tracked = false;
  decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("delete a-node-0", "create a-node-0"));
  EXPECT_FALSE(decision.status.Find("Suspended")->status);
  EXPECT_EQ(decision.status.Find("Suspended")->reason, "Resumed");
}

TEST(Decide, SuspendAfterAnInterruptedRestart) {
  TrainJob job = Job();
  job.suspend = true;
  job.status.attempt = 1;
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  EXPECT_THAT(Actions(Decide(job, TwoNodes(), observed, kNow)), ElementsAre("delete a-node-0"));
}

// A Job that was suspended is not replaced for a restart either before its pods have ended.
TEST(Decide, ARestartAfterAResume) {
  TrainJob job = Job();
  TrainJobPlan plan = TwoNodes();
  plan.failure_rules = {{"rule", FailureRule::Action::kRestart, {}, {}, {}}};
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0"), There("a-other-0")};
  observed.jobs[0].suspended = true;
  observed.jobs[0].active = 0;
  observed.pods = {Pod(observed.jobs[0], 0)};
  observed.pods[0].meta.deleted = kNow;
  observed.pods[0].tracked = true;
  PlannedJob other = plan.jobs[0];
  other.name = "a-other-0";
  plan.jobs.push_back(other);
  observed.jobs[1].failed_at = kNow;
  observed.jobs[1].failed_reason = "BackoffLimitExceeded";
  const TrainJobDecision decision = Decide(job, plan, observed, kNow + 10 * kSecond);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.status.attempt, 0);
  EXPECT_EQ(decision.again, kNow + 30 * kSecond);
  EXPECT_EQ(Decide(job, plan, observed, kNow + 30 * kSecond).status.attempt, 1);
}

TEST(Decide, TheDeadlineCountsFromTheResume) {
  TrainJob job = Job();
  job.active_deadline_seconds = 60;
  job.status.state = "Created";
  TrainJobDecision decision = Decide(job, TwoNodes(), {}, kNow);
  EXPECT_EQ(decision.again, *job.meta.created + 60 * kSecond);
  decision = Decide(job, TwoNodes(), {}, kNow + 51 * kSecond);
  ASSERT_NE(decision.status.Find("Failed"), nullptr);
  EXPECT_EQ(decision.status.Find("Failed")->reason, "DeadlineExceeded");
  EXPECT_EQ(decision.status.Find("Failed")->message, "TrainJob exceeded its active deadline");
  EXPECT_THAT(decision.status.message, testing::HasSubstr("; raise "));
  job.status.conditions = {{"Suspended", false, "Resumed", "", kNow + 20 * kSecond, 1}};
  EXPECT_EQ(Decide(job, TwoNodes(), {}, kNow + 51 * kSecond).status.Find("Failed"), nullptr);
}

TEST(DecideFinished, StopsWhatRunsAndGoesAfterItsTime) {
  TrainJob job = Job();
  job.status.conditions = {{"Complete", true, "AllJobsCompleted", "", kNow, 1}};
  job.status.completion_time = kNow;
  Observed observed;
  observed.jobs = {There("a-monitor-0"), There("a-node-0")};
  observed.jobs[1].complete = true;
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow)), ElementsAre("delete a-monitor-0"));
  job.ttl_seconds_after_finished = 30;
  EXPECT_EQ(DecideFinished(job, {}, kNow).again, kNow + 30 * kSecond);
  EXPECT_THAT(Actions(DecideFinished(job, {}, kNow + 30 * kSecond)), ElementsAre("delete job a"));
}

TEST(Decide, TheRuntimeGivesDefaultsOfTime) {
  TrainJobPlan plan = TwoNodes();
  plan.active_deadline_seconds = 5;
  plan.ttl_seconds = 30;
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, plan, {}, kNow);
  ASSERT_TRUE(decision.status.Finished());
  EXPECT_EQ(decision.status.Find("Failed")->reason, "DeadlineExceeded");
  EXPECT_EQ(decision.status.ttl_seconds, 30);
  job.active_deadline_seconds = 100;
  EXPECT_FALSE(Decide(job, plan, {}, kNow).status.Finished()) << "its own goes first";

  job.status = decision.status;
  EXPECT_THAT(Actions(DecideFinished(job, {}, kNow + 29 * kSecond)), IsEmpty());
  EXPECT_THAT(Actions(DecideFinished(job, {}, kNow + 30 * kSecond)), ElementsAre("delete job a"));
  job.ttl_seconds_after_finished = 40;
  EXPECT_EQ(DecideFinished(job, {}, kNow + 30 * kSecond).again, kNow + 40 * kSecond);
}

TEST(Decide, JobsMayGoBeforeTheirTrainJob) {
  TrainJob job = Job();
  SetComplete(job, &job.status, kNow);
  Observed observed;
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].complete = true;
  observed.jobs[0].ttl_seconds = 10;
  TrainJobDecision decision = DecideFinished(job, observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  EXPECT_EQ(decision.again, kNow + 10 * kSecond);
  EXPECT_THAT(Actions(DecideFinished(job, observed, kNow + 10 * kSecond)), ElementsAre("delete a-node-0"));
}

}  // namespace
}  // namespace muster::controller
