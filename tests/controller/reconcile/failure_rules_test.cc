// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/failure_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/controller/reconcile/planned.h"

namespace muster::controller {
namespace {

using Rule = FailureRule::Action;
using ::testing::HasSubstr;

const WallTime kNow = WallTime(std::chrono::seconds(1'800'000'000));
constexpr auto kSecond = std::chrono::seconds(1);

TEST(MatchRule, TheFirstRuleThatMatchesAJob) {
  const std::vector<FailedJob> jobs = {
      {"a-node-0", "node", kNow, "BackoffLimitExceeded", "Job has reached the specified backoff limit"},
      {"a-node-1", "node", kNow - kSecond, "PodFailurePolicy", "Pod ns/x has condition DisruptionTarget"},
      {"a-driver-0", "driver", kNow + kSecond, "DeadlineExceeded", "Job was active longer than specified deadline"}};
  struct Row {
    std::vector<FailureRule> rules;
    std::string matches;  // the rule and the Job
  };
  const std::vector<Row> rows = {
      {{}, ""},
      {{{"any", Rule::kFail, {}, {}, {}}}, "any a-node-1"},
      {{{"r", Rule::kFail, {"BackoffLimitExceeded"}, {}, {}}}, "r a-node-0"},
      {{{"r", Rule::kFail, {"FailedIndexes"}, {}, {}}}, ""},
      {{{"r", Rule::kFail, {"FailedIndexes", "DeadlineExceeded"}, {}, {}}}, "r a-driver-0"},
      {{{"r", Rule::kFail, {}, {"^Pod .* has condition (Ready|DisruptionTarget)"}, {}}}, "r a-node-1"},
      {{{"r", Rule::kFail, {}, {"nothing", "longer than"}, {}}}, "r a-driver-0"},
      {{{"r", Rule::kFail, {}, {"^reached"}, {}}}, ""},
      {{{"r", Rule::kFail, {}, {}, {"driver"}}}, "r a-driver-0"},
      {{{"r", Rule::kFail, {"DeadlineExceeded"}, {}, {"node"}}}, ""},
      {{{"no", Rule::kFail, {"FailedIndexes"}, {}, {}},
        {"late", Rule::kFail, {"DeadlineExceeded"}, {}, {}},
        {"any", Rule::kRestart, {}, {}, {}}},
       "late a-driver-0"},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto match = MatchRule(rows[i].rules, jobs);
    EXPECT_EQ(match ? fmt::format("{} {}", match->rule->name, match->job->name) : "", rows[i].matches) << "row " << i;
  }
  EXPECT_FALSE(MatchRule({{"any", Rule::kFail, {}, {}, {}}}, {}));
}

// A job with one step of one pod. One of its two restarts is used.
struct Scene {
  TrainJob job;
  TrainJobPlan plan;
  Observed observed;

  explicit Scene(std::vector<FailureRule> rules, bool agent = true) {
    job.meta.ns = "ns";
    job.meta.name = "a";
    job.meta.uid = "uid";
    job.meta.created = kNow - 100 * kSecond;
    job.status.start_time = job.meta.created;
    job.status.restarts = 1;
    plan.max_restarts = 2;
    plan.jobs = {Planned("node", Step::kTrainer, 1, agent)};
    plan.failure_rules = std::move(rules);
    ObservedJob there;
    there.meta.name = "a-node-0";
    there.meta.uid = "uid-job";
    there.meta.annotations["muster.dev/restarts-left"] = "1";
    observed.jobs = {there};
  }

  void PodFails(int code) {
    ObservedPod pod;
    pod.meta.name = "a-node-0-0-x";
    pod.meta.owners = {{"batch/v1", "Job", "a-node-0", "uid-job", true}};
    pod.job = "a-node-0";
    pod.index = 0;
    pod.phase = "Failed";
    pod.ran = true;
    pod.ends.emplace_back();
    pod.ends[0].container = "node";
    pod.ends[0].exit_code = code;
    pod.ends[0].finished = kNow;
    observed.pods = {pod};
  }

  void JobFails(const std::string& reason) {
    observed.jobs[0].failed_at = kNow;
    observed.jobs[0].failed_reason = reason;
    observed.jobs[0].failed_message = "why";
  }
};

TEST(FailureRules, WhatIsDecided) {
  struct Row {
    std::string name;
    std::vector<FailureRule> rules;
    bool agent;
    int code;            // of the pod; 0: it has not failed
    std::string reason;  // of the Job's failure; empty: the Job has not failed yet
    std::string failed;  // the reason of condition Failed; empty: the step is restarted
    int restarts;
  };
  const FailureRule fail = {"r", Rule::kFail, {}, {}, {}}, again = {"r", Rule::kRestart, {}, {}, {}},
                    free = {"r", Rule::kRestartUncounted, {}, {}, {}};
  const std::string fatal = "exit code 3 matching FailJob rule";
  const std::vector<Row> rows = {
      {"no rule: a fatal code is the end", {}, true, 3, "", "FailedJobs", 1},
      {"a rule goes before a fatal code", {again}, true, 3, "", "", 2},
      {"also when the Job has failed", {again}, true, 3, "PodFailurePolicy", "", 2},
      {"by the message", {{"r", Rule::kRestart, {"PodFailurePolicy"}, {fatal}, {}}}, true, 3, "", "", 2},
      {"another rule", {{"r", Rule::kRestart, {"BackoffLimitExceeded"}, {}, {}}}, true, 3, "", "FailedJobs", 1},
      {"FailJobSet", {fail}, true, 3, "", "FailJobSetFailurePolicyAction", 1},
      {"FailJobSet of a Job that could begin anew",
       {fail},
       false,
       0,
       "DeadlineExceeded",
       "FailJobSetFailurePolicyAction",
       1},
      {"not counted", {free}, true, 3, "", "", 1},
      {"not counted, without the agent", {free}, false, 0, "BackoffLimitExceeded", "", 1},
      {"counted, without the agent", {again}, false, 0, "BackoffLimitExceeded", "", 2},
      {"a pod that may be replaced is not a failed Job", {fail}, true, 137, "", "-", 2},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Scene scene(row.rules, row.agent);
    if (row.code != 0) scene.PodFails(row.code);
    if (!row.reason.empty()) scene.JobFails(row.reason);
    const TrainJobDecision decision = Decide(scene.job, scene.plan, scene.observed, kNow);
    const Condition* failed = decision.status.Find("Failed");
    EXPECT_EQ(failed == nullptr ? "" : failed->reason, row.failed == "-" ? "" : row.failed);
    EXPECT_EQ(decision.status.attempt, row.failed.empty() ? 1 : 0);
    EXPECT_EQ(decision.status.restarts, row.restarts);
  }
}

TEST(FailureRules, TheBudgetHolds) {
  for (const auto action : {Rule::kRestart, Rule::kRestartUncounted}) {
    Scene scene({{"again", action, {}, {}, {}}});
    scene.job.status.restarts = 2;
    scene.observed.jobs[0].meta.annotations["muster.dev/restarts-left"] = "0";
    scene.PodFails(137);  // the third failure
    const TrainJobDecision decision = Decide(scene.job, scene.plan, scene.observed, kNow);
    if (action == Rule::kRestart) {
      const Condition* failed = decision.status.Find("Failed");
      ASSERT_NE(failed, nullptr);
      EXPECT_EQ(failed->reason, "ReachedMaxRestarts");
      EXPECT_THAT(failed->message, HasSubstr("jobset failed due to reaching max number of restarts (first failed job: "
                                             "a-node-0): "));
      EXPECT_THAT(failed->message, HasSubstr("(rule again of the failurePolicy)"));
    } else {
      EXPECT_FALSE(decision.status.Finished());
      EXPECT_EQ(decision.status.attempt, 1);
      EXPECT_EQ(decision.status.restarts, 2) << "what the last attempt used up is given back";
    }
  }
}

TEST(FailureRules, AnInitializerIsRecreatedWhereARuleSaysSo) {
  Scene scene({{"again", Rule::kRestart, {}, {}, {"dataset-initializer"}}});
  scene.plan.jobs = {Planned("dataset-initializer", Step::kDatasetInitializer, 1, false)};
  scene.observed.jobs[0].meta.name = "a-dataset-initializer-0";
  scene.JobFails("BackoffLimitExceeded");
  const TrainJobDecision decision = Decide(scene.job, scene.plan, scene.observed, kNow);
  EXPECT_EQ(decision.status.attempt, 1);
  ASSERT_EQ(decision.actions.size(), 2U);
  EXPECT_EQ(decision.actions[0].kind, Action::Kind::kDeleteJob);
  EXPECT_EQ(decision.actions[1].kind, Action::Kind::kCreateJob);
  scene.job.status = decision.status;
  scene.observed.jobs.clear();
  EXPECT_EQ(Decide(scene.job, scene.plan, scene.observed, kNow).status.attempt, 1);
}

TEST(FailureRules, BlockingRecreateWaitsForTheOldPods) {
  Scene scene({});
  scene.plan.waits_for_old_pods = true;
  scene.job.status.attempt = 1;
  scene.PodFails(137);
  ObservedPod& pod = scene.observed.pods[0];
  pod.phase = "Running";
  pod.meta.deleted = kNow + 5 * kSecond;
  scene.observed.jobs.clear();
  TrainJobDecision decision = Decide(scene.job, scene.plan, scene.observed, kNow);
  EXPECT_TRUE(decision.actions.empty());
  EXPECT_EQ(decision.again, kNow + 35 * kSecond);
  EXPECT_EQ(Decide(scene.job, scene.plan, scene.observed, kNow + 35 * kSecond).actions.size(), 1U) << "not for ever";
  scene.plan.waits_for_old_pods = false;
  EXPECT_EQ(Decide(scene.job, scene.plan, scene.observed, kNow).actions.size(), 1U);
  scene.plan.waits_for_old_pods = true;
  pod.phase = "Failed";
  EXPECT_EQ(Decide(scene.job, scene.plan, scene.observed, kNow).actions.size(), 1U);
}

}  // namespace
}  // namespace muster::controller
