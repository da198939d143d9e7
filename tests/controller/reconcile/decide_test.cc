// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "controller/reconcile/after.h"
#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Decide, TheFirstPassMakesTheServiceAndWhatWaitsForNothing) {
  const TrainJobDecision decision = Decide(Job(), WithData(), {}, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("service a", "create a-dataset-initializer-0"));
  EXPECT_EQ(decision.status.state, "Initializing");
  EXPECT_EQ(decision.status.nodes, 2);
  EXPECT_EQ(decision.status.start_time, kNow);
  EXPECT_THAT(decision.status.conditions, IsEmpty());
  ASSERT_EQ(decision.status.jobs.size(), 2U);
  EXPECT_EQ(decision.status.jobs[1].name, "node");
}

TEST(Decide, TheFirstStatusWaitsForTheFirstPods) {
  TrainJobDecision decision = Decide(Job(), TwoNodes(), {}, kNow);
  EXPECT_TRUE(decision.status_may_wait);
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].active = 0;
  observed.jobs[0].meta.created = kNow;
  decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_TRUE(decision.status_may_wait);
  EXPECT_EQ(decision.again, kNow + 2 * kSecond);
  EXPECT_FALSE(Decide(Job(), TwoNodes(), observed, kNow + 2 * kSecond).status_may_wait);
  TrainJob job = Job();
  job.suspend = true;
  EXPECT_FALSE(Decide(job, TwoNodes(), {}, kNow).status_may_wait);
  observed.jobs[0].active = 2;
  decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_FALSE(decision.status_may_wait);
  EXPECT_EQ(decision.status.state, "Created");
}

TEST(Decide, TheTrainerFollowsTheInitializer) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  EXPECT_THAT(Actions(Decide(Job(), WithData(), observed, kNow)), IsEmpty());
  observed.jobs[0].complete = true;
  const TrainJobPlan plan = WithData();
  const TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_THAT(Actions(decision), ElementsAre("create a-node-0"));
  EXPECT_EQ(decision.actions[0].object()["metadata"]["annotations"]["muster.dev/restarts-left"], "3");
  EXPECT_EQ(decision.status.state, "Created");
}

TEST(Decide, NothingIsDoneTwice) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_THAT(Actions(decision), IsEmpty());
  job.status = decision.status;
  decision = Decide(job, TwoNodes(), observed, kNow + kSecond);
  EXPECT_EQ(decision.status, job.status);
  EXPECT_THAT(decision.events, IsEmpty());
}

TEST(Decide, RunningThenComplete) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.jobs[0].ready = 2;
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.state, "Running");
  EXPECT_EQ(decision.status.ready_nodes, 2);
  EXPECT_THAT(Reasons(decision), ElementsAre("Running"));
  job.status = decision.status;
  observed.jobs[0] = There("a-node-0");
  observed.jobs[0].complete = true;
  observed.jobs[0].succeeded = 2;
  decision = Decide(job, TwoNodes(), observed, kNow + kSecond);
  const Condition* complete = decision.status.Find("Complete");
  ASSERT_NE(complete, nullptr);
  EXPECT_EQ(complete->reason, "AllJobsCompleted");
  EXPECT_EQ(complete->message, "jobset completed successfully");
  EXPECT_EQ(decision.status.state, "Complete");
  EXPECT_EQ(decision.status.completion_time, kNow + kSecond);
  EXPECT_THAT(Actions(decision), IsEmpty());
}

TEST(Decide, ObjectsAreMadeBeforeTheJobsThatNeedThem) {
  TrainJobPlan plan = WithData();
  plan.objects.resize(2);
  plan.objects[0].object = {{"metadata", {{"name", "a-token"}}}};
  plan.objects[1].object = {{"metadata", {{"name", "a-claim"}}}};
  plan.objects[1].for_initializers = true;
  EXPECT_THAT(Actions(Decide(Job(), plan, {}, kNow)),
              ElementsAre("service a", "object a-claim", "create a-dataset-initializer-0"));
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-dataset-initializer-0", 0, 1)};
  observed.jobs[0].complete = true;
  EXPECT_THAT(Actions(Decide(Job(), plan, observed, kNow)),
              ElementsAre("object a-claim", "object a-token", "create a-node-0"));
}

TEST(Decide, ARuntimeWithoutATrainerRunsToo) {
  TrainJobPlan plan = TwoNodes();
  plan.jobs = {Planned("other", Step::kOther, 2, false)};
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-other-0")};
  observed.jobs[0].ready = 2;
  const TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_EQ(std::tie(decision.status.state, decision.status.nodes), std::make_tuple("Running", 2));
}

TEST(Decide, AWaitingPodIsSaid) {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  observed.pods = {Pod(observed.jobs[0], 0)};
  observed.pods[0].waiting_reason = "ImagePullBackOff";
  observed.pods[0].waiting = "ImagePullBackOff: container node: not found";
  const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
  EXPECT_EQ(decision.status.state, "Waiting");
  EXPECT_EQ(decision.status.reason, "ImagePullBackOff");
  EXPECT_THAT(decision.status.message, HasSubstr("pod a-node-0-0-x: ImagePullBackOff: container node: not found"));
}

TEST(Decide, PodsThatCannotBeMadeAreSaid) {
  const struct {
    const char* what;
    int active;        // of two pods
    WallTime refused;  // one pod was made 5 s ago
    const char* state;
  } rows[] = {
      {"none is there", 0, kNow, "Waiting"},
      {"one is there", 1, kNow, "Waiting"},
      {"in the same second", 1, kNow - 5 * kSecond, "Waiting"},
      {"before the last one was made", 1, kNow - 6 * kSecond, "Created"},
      {"all are there", 2, kNow, "Created"},
  };
  for (const auto& row : rows) {
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.jobs[0].active = row.active;
    observed.jobs[0].refusal = "exceeded quota";
    observed.jobs[0].refused_at = row.refused;
    if (row.active > 0) {
      observed.pods = {Pod(observed.jobs[0], 0)};
      observed.pods[0].meta.created = kNow - 5 * kSecond;
    }
    const TrainJobDecision decision = Decide(Job(), TwoNodes(), observed, kNow);
    EXPECT_EQ(decision.status.state, row.state) << row.what;
    const bool waits = row.state == std::string("Waiting");
    EXPECT_EQ(decision.status.message, waits ? "Job a-node-0: its pods cannot be made: exceeded quota" : "")
        << row.what;
    EXPECT_EQ(decision.status.reason, waits ? "FailedCreate" : "") << row.what;
  }
}

// Each row has what the rows after it have, too: the earlier case decides.
TEST(Decide, TheFirstCaseThatHolds) {
  struct Row {
    const char* reason;
    bool deleted, ended, taken_over, unplanned;
  };
  for (const Row& row :
       std::vector<Row>{{"it is being deleted", true, true, true, true},
                        {"it has ended", false, true, true, true},
                        {"Kubeflow Trainer has started it: its JobSet goes on", false, false, true, true},
                        {"spec.x: it is wrong", false, false, false, true},
                        {"", false, false, false, false}}) {
    TrainJob job = Job();
    Observed observed;
    if (row.deleted) job.meta.deleted = kNow;
    if (row.ended) job.status.conditions = {{"Complete", true, "JobsCompleted", "", kNow, 1}};
    if (row.taken_over) {
      observed.job_set.emplace();
      observed.job_set->meta.name = job.meta.name;
      observed.job_set->meta.owners = HeadlessService().meta.owners;
    }
    const TrainJobPlan plan = TwoNodes();
    StatusOr<const TrainJobPlan*> known = &plan;
    if (row.unplanned) known = absl::InvalidArgumentError("spec.x: it is wrong");
    const bool runs = row.reason == std::string();
    EXPECT_EQ(NeedsPlan(job, observed), runs || row.reason == std::string("spec.x: it is wrong")) << row.reason;
    const TrainJobDecision decision = Decide(job, known, observed, kNow);
    EXPECT_EQ(decision.reason, row.reason);
    EXPECT_EQ(decision.actions.empty(), !runs) << row.reason;
  }
}

// A JobSet of that name that is another job's does not take the job over.
TEST(Decide, AForeignJobSetIsNotTheJobs) {
  Observed observed;
  observed.job_set.emplace();
  observed.job_set->meta.name = "a";
  EXPECT_TRUE(NeedsPlan(Job(), observed));
  EXPECT_FALSE(Decide(Job(), TwoNodes(), observed, kNow).actions.empty());
}

TEST(JobWithoutAPlan, SaysWhyOnce) {
  TrainJob job = Job();
  TrainJobDecision decision = Decide(job, absl::NotFoundError("spec.runtimeRef: there is no torch"), {}, kNow);
  EXPECT_EQ(decision.status.message, "spec.runtimeRef: there is no torch");
  EXPECT_THAT(Reasons(decision), ElementsAre("TrainJobResourcesCreationFailed"));
  job.status = decision.status;
  EXPECT_THAT(Decide(job, absl::NotFoundError("spec.runtimeRef: there is no torch"), {}, kNow).events, IsEmpty());
}

TEST(JobWithoutAPlan, ItsDeadlineHolds) {
  const Status why = absl::NotFoundError("spec.runtimeRef: there is no torch");
  struct Row {
    std::string what;
    TrainJob job;
    std::optional<WallTime> again;  // nullopt: the time does not run
  };
  TrainJob plain = Job();
  plain.active_deadline_seconds = 60;
  TrainJob resumed = plain, suspended = plain, waits = plain, waited = plain, unlimited = plain;
  resumed.status.conditions = {{"Suspended", false, "Resumed", "", kNow, 1}};
  suspended.suspend = true;
  waits.meta.annotations[kAfterAnnotation] = "b";
  waited = waits;
  waited.status.start_time = kNow + 5 * kSecond;
  unlimited.active_deadline_seconds.reset();
  for (const auto& [what, job, again] :
       std::vector<Row>{{"from the creation", plain, *plain.meta.created + 60 * kSecond},
                        {"from the resume", resumed, kNow + 60 * kSecond},
                        {"suspended", suspended, std::nullopt},
                        {"waits for others", waits, std::nullopt},
                        {"has waited", waited, kNow + 65 * kSecond},
                        {"no deadline", unlimited, std::nullopt}}) {
    TrainJobDecision decision = Decide(job, why, {}, kNow);
    EXPECT_EQ(decision.again, again) << what;
    EXPECT_FALSE(decision.status.Finished()) << what;
    decision = Decide(job, why, {}, again.value_or(kNow + 3600 * kSecond));
    ASSERT_EQ(decision.status.Finished(), again.has_value()) << what;
    if (!again) continue;
    EXPECT_EQ(decision.status.Find("Failed")->reason, "DeadlineExceeded") << what;
    EXPECT_EQ(decision.status.Find("Failed")->message,
              "TrainJob exceeded its active deadline: it waited: spec.runtimeRef: there is no torch");
    EXPECT_EQ(decision.status.message,
              "it took longer than spec.activeDeadlineSeconds: 60 s; it waited: spec.runtimeRef: there is no torch");
    EXPECT_THAT(Reasons(decision), ElementsAre("DeadlineExceeded"));
  }
}

TEST(Decide, AnyJobOfTheSuccessPolicyIsEnough) {
  TrainJobPlan plan = TwoNodes(false);
  plan.jobs.push_back(Planned("driver", Step::kOther, 1, false));
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0"), There("a-driver-0", 0, 1)};
  observed.jobs[1].complete = true;
  EXPECT_FALSE(Decide(Job(), plan, observed, kNow).status.Finished()) << "all of them";
  plan.success.jobs = {"driver"};
  TrainJobDecision decision = Decide(Job(), plan, observed, kNow);
  EXPECT_TRUE(decision.status.Finished());
  EXPECT_THAT(Actions(decision), ElementsAre("delete a-node-0")) << "the workers end";
  plan.success = {.all = false, .jobs = {}};
  EXPECT_TRUE(Decide(Job(), plan, observed, kNow).status.Finished());
}

TEST(Decide, WhatADependencyAsksForIsSeenAtEachStart) {
  struct Row {
    std::string what;
    Dependency::Until until;
    int ready, succeeded;
    bool complete, suspended;
    bool starts;
  };
  TrainJobPlan plan = TwoNodes(false);
  plan.jobs.push_back(Planned("launcher", Step::kOther, 1, false));
  for (const Row& row : std::vector<Row>{
           {"not all are ready", Dependency::Until::kReady, 1, 0, false, false, false},
           {"all are ready", Dependency::Until::kReady, 2, 0, false, false, true},
           {"one has succeeded, the other is ready", Dependency::Until::kReady, 1, 1, false, false, true},
           {"it is complete", Dependency::Until::kReady, 0, 2, true, false, true},
           {"it was ready before it was suspended", Dependency::Until::kReady, 0, 0, false, true, false},
           {"ready is not complete", Dependency::Until::kComplete, 2, 0, false, false, false},
           {"complete", Dependency::Until::kComplete, 0, 2, true, false, true},
       }) {
    SCOPED_TRACE(row.what);
    plan.jobs[1].after = {{"node", row.until}};
    Observed observed;
    observed.services = {HeadlessService()};
    observed.jobs = {There("a-node-0")};
    observed.jobs[0].ready = row.ready;
    observed.jobs[0].succeeded = row.succeeded;
    observed.jobs[0].complete = row.complete;
    observed.jobs[0].suspended = row.suspended;
    if (row.suspended) observed.jobs[0].active = 0;
    const auto actions = Actions(Decide(Job(), plan, observed, kNow));
    EXPECT_EQ(std::find(actions.begin(), actions.end(), "create a-launcher-0") != actions.end(), row.starts);
  }
}

}  // namespace
}  // namespace muster::controller
