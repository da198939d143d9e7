// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/taken_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

constexpr auto kNow = WallTime(std::chrono::seconds(1'800'000'000));

TrainJob Job() {
  TrainJob job;
  job.meta.name = "a";
  job.meta.uid = "uid-a";
  job.meta.created = kNow - std::chrono::seconds(10);
  return job;
}

// As Kubeflow Trainer and JobSet's controller write it.
ObservedJobSet JobSetWith(std::string_view status, std::string_view spec = "suspend: false") {
  auto read = ReadJobSet(YamlOf(fmt::format(
      "{{metadata: {{name: a, namespace: ns, uid: uid-js, ownerReferences: [{{kind: TrainJob, name: a, uid: "
      "uid-a, controller: true, apiVersion: trainer.kubeflow.org/v1alpha1}}]}}, spec: {{{}, replicatedJobs: "
      "[{{name: data}}, {{name: node}}]}}, status: {{{}}}}}",
      spec, status)));
  EXPECT_TRUE(read.ok()) << read.status();
  return read.value_or(ObservedJobSet());
}

std::vector<Action::Kind> Kinds(const TrainJobDecision& decision) {
  std::vector<Action::Kind> kinds;
  for (const Action& action : decision.actions) kinds.push_back(action.kind);
  return kinds;
}

TEST(TakenOver, AJobSetOfAnotherJobIsNotTheJobs) {
  ObservedJobSet job_set = JobSetWith("");
  EXPECT_TRUE(IsOf(job_set, Job()));
  TrainJob later = Job();
  later.meta.uid = "uid-b";
  EXPECT_FALSE(IsOf(job_set, later));
  job_set.meta.owners.clear();
  EXPECT_FALSE(IsOf(job_set, Job()));
}

TEST(TakenOver, TheStatusOfTheJobSetIsTheJobs) {
  const TrainJobDecision decision = DecideTakenOver(
      Job(),
      JobSetWith("restarts: 2, replicatedJobsStatus: [{name: node, ready: 1, active: 1, succeeded: 0, failed: 0, "
                 "suspended: 0}, {name: data, succeeded: 1}, {name: other, failed: 3}]"),
      kNow);
  EXPECT_TRUE(decision.actions.empty());
  EXPECT_EQ(decision.status.state, "Running");
  EXPECT_EQ(decision.status.restarts, 2);
  EXPECT_EQ(decision.status.jobs,
            (std::vector<JobsStatus>{{.name = "data", .succeeded = 1}, {.name = "node", .ready = 1, .active = 1}}));
  EXPECT_TRUE(decision.status.conditions.empty());
}

TEST(TakenOver, TheEndOfTheJobSetIsTheJobs) {
  struct {
    const char* conditions;
    const char* type;
    const char* reason;
    const char* message;
  } const rows[] = {
      {"{type: Completed, status: 'True', reason: AllJobsCompleted, message: jobset completed successfully}",
       "Complete", "AllJobsCompleted", "jobset completed successfully"},
      {"{type: Failed, status: 'True', reason: FailedJobs, message: jobset failed due to one or more job failures}",
       "Failed", "FailedJobs", "jobset failed due to one or more job failures"},
  };
  for (const auto& row : rows) {
    const TrainJobDecision decision =
        DecideTakenOver(Job(), JobSetWith(fmt::format("conditions: [{}]", row.conditions)), kNow);
    const Condition* found = decision.status.Find(row.type);
    ASSERT_NE(found, nullptr) << row.type;
    EXPECT_TRUE(found->status);
    EXPECT_EQ(found->reason, row.reason);
    EXPECT_EQ(found->message, row.message);
    EXPECT_EQ(decision.status.state, row.type);
    EXPECT_TRUE(decision.actions.empty());
  }
}

TEST(TakenOver, SuspendAndResumeReachTheJobSet) {
  struct {
    bool wanted;
    const char* is;
    std::vector<Action::Kind> kinds;
  } const rows[] = {{true, "suspend: false", {Action::Kind::kSuspendJobSet}},
                    {true, "suspend: true", {}},
                    {false, "suspend: true", {Action::Kind::kResumeJobSet}},
                    {false, "suspend: false", {}}};
  for (const auto& row : rows) {
    TrainJob job = Job();
    job.suspend = row.wanted;
    const TrainJobDecision decision = DecideTakenOver(job, JobSetWith("", row.is), kNow);
    EXPECT_EQ(Kinds(decision), row.kinds) << row.wanted << row.is;
    EXPECT_EQ(decision.status.state, row.wanted ? "Suspended" : "Created");
  }
}

TEST(TakenOver, TheDeadlineDeletesTheJobSet) {
  TrainJob job = Job();
  job.active_deadline_seconds = 11;
  TrainJobDecision decision = DecideTakenOver(job, JobSetWith(""), kNow);
  EXPECT_EQ(decision.again, kNow + std::chrono::seconds(1));
  decision = DecideTakenOver(job, JobSetWith(""), kNow + std::chrono::seconds(1));
  EXPECT_EQ(Kinds(decision), std::vector{Action::Kind::kDeleteJobSet});
  EXPECT_EQ(decision.status.Find("Failed")->reason, "DeadlineExceeded");
  EXPECT_TRUE(decision.status_first);
  job.suspend = true;
  EXPECT_FALSE(DecideTakenOver(job, JobSetWith("", "suspend: true"), kNow + std::chrono::hours(1)).status.Finished());
}

}  // namespace
}  // namespace muster::controller
