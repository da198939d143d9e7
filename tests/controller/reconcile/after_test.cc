// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/after.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/controller/reconcile/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

const WallTime kNow = WallTime(std::chrono::seconds(1'800'000'000));

TrainJob JobAfter(const std::string& name, const std::string& after, const std::string& end = "") {
  TrainJob job;
  job.meta.name = name;
  job.meta.created = kNow;
  if (!after.empty()) job.meta.annotations[kAfterAnnotation] = after;
  if (!end.empty()) job.status.conditions.push_back({end, true, "", "", kNow, 1});
  job.status.state = end;
  return job;
}

TEST(ReadAfter, ReadsTheAnnotationOrSaysWhatIsWrong) {
  using Until = Awaited::Until;
  EXPECT_EQ(*ReadAfter(JobAfter("a", "")), std::vector<Awaited>());
  EXPECT_EQ(*ReadAfter(JobAfter("a", "b, c=Any,d=Failed,e=Complete")),
            (std::vector<Awaited>{
                {"b", Until::kComplete}, {"c", Until::kAny}, {"d", Until::kFailed}, {"e", Until::kComplete}}));
  const struct {
    std::string text, message;
  } rows[] = {
      {"B",
       "metadata.annotations.muster.dev/after: 'B' is not a name of a TrainJob; write prepare, or "
       "prepare=Any,tune=Failed"},
      {"b,", "'' is not a name of a TrainJob"},
      {"b=Done", "b: 'Done' is not one of Complete, Failed, Any"},
      {"b=", "b: '' is not one of"},
      {"ns/b", "'ns/b' is not a name of a TrainJob"},
  };
  for (const auto& row : rows)
    EXPECT_THAT(Message(ReadAfter(JobAfter("a", row.text)).status()), HasSubstr(row.message));
  std::string many = "b";
  for (int i = 0; i < 100; ++i) many += ",b";
  EXPECT_THAT(Message(ReadAfter(JobAfter("a", many)).status()), HasSubstr("it names more than 100 TrainJobs"));
}

TEST(HoldOf, HoldsAJobUntilTheOthersHaveEnded) {
  struct Row {
    std::string what, after;
    std::vector<TrainJob> others;
    std::string reason, message;  // empty: it may begin
  };
  for (const Row& row : std::vector<Row>{
           {"no annotation", "", {}, "", ""},
           {"complete", "b", {JobAfter("b", "", "Complete")}, "", ""},
           {"failed", "b=Failed", {JobAfter("b", "", "Failed")}, "", ""},
           {"any end", "b=Any,c=Any", {JobAfter("b", "", "Failed"), JobAfter("c", "", "Complete")}, "", ""},
           {"it runs", "b", {JobAfter("b", "")}, "WaitingForTrainJob", "it waits for TrainJob b to complete"},
           {"one of two runs",
            "b,c=Any",
            {JobAfter("b", "", "Complete"), JobAfter("c", "")},
            "WaitingForTrainJob",
            "it waits for TrainJob c to end"},
           {"missing", "b", {}, "TrainJobMissing", "there is no such TrainJob in its namespace"},
           {"what calls for a person is said first", "b,c", {JobAfter("b", "")}, "TrainJobMissing", "TrainJob c"},
           {"the other end", "b", {JobAfter("b", "", "Failed")}, "TrainJobEndedOtherwise", "which has ended: Failed"},
           {"itself", "a", {}, "AfterCycle", "TrainJobs wait for each other: a -> a; change"},
           {"a cycle", "b", {JobAfter("b", "c"), JobAfter("c", "a")}, "AfterCycle", "a -> b -> c -> a"},
           {"a cycle of others", "b", {JobAfter("b", "c"), JobAfter("c", "b")}, "AfterCycle", ": b -> c -> b;"},
           {"no cycle: what it waits for has come",
            "b",
            {JobAfter("b", "c"), JobAfter("c", "a", "Complete")},
            "WaitingForTrainJob",
            "TrainJob b"},
           {"a list that cannot be read", "b=", {}, "AfterInvalid", "is not one of"},
       }) {
    SCOPED_TRACE(row.what);
    const TrainJob job = JobAfter("a", row.after);
    std::map<std::string, const TrainJob*> jobs = {{"a", &job}};
    for (const TrainJob& other : row.others) jobs[other.meta.name] = &other;
    const auto hold = HoldOf(job, [&jobs](const std::string& name) {
      const auto found = jobs.find(name);
      return found == jobs.end() ? nullptr : found->second;
    });
    EXPECT_EQ(hold ? hold->reason : "", row.reason);
    EXPECT_EQ(hold && hold->warning, hold && hold->reason != "WaitingForTrainJob");
    EXPECT_THAT(hold ? hold->message : "", HasSubstr(row.message));
  }
}

TEST(HoldOf, AJobThatHasBegunWaitsNoMore) {
  TrainJob job = JobAfter("a", "b");
  const LookUp nobody = [](const std::string&) { return nullptr; };
  EXPECT_TRUE(HoldOf(job, nobody));
  job.status.start_time = kNow;
  EXPECT_FALSE(HoldOf(job, nobody));
}

TEST(Decide, AJobThatIsHeldBackMakesNothing) {
  TrainJob job = JobAfter("a", "b");
  job.active_deadline_seconds = 10;
  TrainJobPlan plan;
  plan.subdomain = "a";
  plan.service = {{"metadata", {{"name", "a"}}}};
  plan.jobs = {Planned("node", Step::kTrainer, 1, true)};
  Observed observed;
  observed.hold = Hold{"WaitingForTrainJob", "it waits for TrainJob b to complete"};
  TrainJobDecision decision = Decide(job, plan, observed, kNow + std::chrono::seconds(100));
  EXPECT_TRUE(decision.actions.empty());
  EXPECT_FALSE(decision.status.start_time);
  EXPECT_FALSE(decision.status.Finished()) << "its time has not begun";
  EXPECT_EQ(decision.status.state, "Waiting");
  EXPECT_EQ(decision.status.reason, "WaitingForTrainJob");
  EXPECT_EQ(decision.status.message, "it waits for TrainJob b to complete");
  EXPECT_FALSE(decision.status_may_wait);
  ASSERT_EQ(decision.events.size(), 1U);
  EXPECT_FALSE(decision.events[0].warning);

  job.status = decision.status;
  EXPECT_TRUE(Decide(job, plan, observed, kNow).events.empty()) << "said once";
  observed.hold = Hold{"TrainJobMissing", "there is none", true};
  decision = Decide(job, plan, observed, kNow);
  ASSERT_EQ(decision.events.size(), 1U);
  EXPECT_TRUE(decision.events[0].warning);
  EXPECT_EQ(decision.events[0].reason, "TrainJobMissing");

  job.suspend = true;
  EXPECT_EQ(Decide(job, plan, observed, kNow).status.state, "Suspended");
  job.suspend = false;
  observed.hold.reset();
  const WallTime begun = kNow + std::chrono::seconds(1000);
  decision = Decide(job, plan, observed, begun);
  EXPECT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.status.start_time, begun);
  EXPECT_EQ(decision.again, begun + std::chrono::seconds(10)) << "the deadline counts from the start";
}

}  // namespace
}  // namespace muster::controller
