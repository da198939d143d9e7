// SPDX-License-Identifier: Apache-2.0
// The annotation muster.dev/restart-policy.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

Runtime WithRestartPolicy(const std::string& policy, const RuntimeParts& parts) {
  Runtime runtime = TrainerRuntime(parts);
  if (!policy.empty()) runtime.jobs[0].job_template["metadata"]["annotations"]["muster.dev/restart-policy"] = policy;
  return runtime;
}

TEST(RestartPolicy, WhatBecomesOfIt) {
  struct Row {
    std::string policy;
    bool agent;
    RestartPolicy planned;
    std::string variable, pods;  // MUSTER_RESTART_POLICY, and restartPolicy of the pods
    Json backoff;
    size_t rules;
  };
  for (const Row& row : std::vector<Row>{
           {"", true, RestartPolicy::kExitCode, "exit-code", "Never", 6, 2},
           {"exit-code", true, RestartPolicy::kExitCode, "exit-code", "Never", 6, 2},
           {"on-failure", true, RestartPolicy::kOnFailure, "on-failure", "Never", 6, 1},
           {"always", true, RestartPolicy::kAlways, "always", "Never", 6, 1},
           {"never", true, RestartPolicy::kNever, "never", "Never", 0, 0},
           {"", false, RestartPolicy::kOwn, "-", "OnFailure", Json(), 0},
           {"exit-code", false, RestartPolicy::kExitCode, "-", "Never", Json(), 2},
           {"on-failure", false, RestartPolicy::kOnFailure, "-", "OnFailure", Json(), 0},
           {"never", false, RestartPolicy::kNever, "-", "Never", 0, 0},
       }) {
    SCOPED_TRACE(row.policy + (row.agent ? " with the agent" : ""));
    const std::string command = row.agent ? "{command: [train]}" : "{}";
    const TrainJobPlan plan = PlanOf(JobWith(), WithRestartPolicy(row.policy, {.container = command}));
    const Json& job = plan.jobs[0].Object();
    EXPECT_EQ(plan.jobs[0].agent, row.agent);
    EXPECT_EQ(plan.jobs[0].restart, row.planned);
    EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "MUSTER_RESTART_POLICY"), row.variable);
    EXPECT_EQ(At(job, "/spec/template/spec/restartPolicy"), row.pods);
    EXPECT_EQ(At(job, "/spec/backoffLimit"), row.backoff);
    EXPECT_EQ(At(job, "/spec/podFailurePolicy/rules").size(), row.rules);
  }
}

// As JobSet: a number of restarts without rules is for any failure.
TEST(RestartPolicy, ANumberOfRestartsWithoutRulesIsForAnyFailure) {
  const std::string rule = "rules: [{action: FailJobSet, onJobFailureReasons: [PodFailurePolicy]}]";
  struct Row {
    std::string name, failure_policy, annotation;
    bool agent;
    RestartPolicy planned;
    std::string variable, limit;  // MUSTER_RESTART_POLICY, MUSTER_NO_PROGRESS_LIMIT
    bool noticed;
  };
  for (const Row& row : std::vector<Row>{
           {"a number", "{maxRestarts: 3}", "", true, RestartPolicy::kOnFailure, "on-failure", "3", true},
           {"the annotation", "{maxRestarts: 3}", "exit-code", true, RestartPolicy::kExitCode, "exit-code", "-", false},
           {"rules", "{maxRestarts: 3, " + rule + "}", "", true, RestartPolicy::kExitCode, "exit-code", "-", false},
           {"0", "{maxRestarts: 0}", "", true, RestartPolicy::kExitCode, "exit-code", "-", false},
           {"no number", "{}", "", true, RestartPolicy::kExitCode, "exit-code", "-", false},
           {"without the agent", "{maxRestarts: 3}", "", false, RestartPolicy::kOwn, "-", "-", false},
       }) {
    SCOPED_TRACE(row.name);
    const Runtime runtime = WithRestartPolicy(row.annotation, {.container = row.agent ? "{command: [train]}" : "{}",
                                                               .set = "{failurePolicy: " + row.failure_policy + "}"});
    const TrainJobPlan plan = PlanOf(JobWith(), runtime);
    EXPECT_EQ(plan.jobs[0].restart, row.planned);
    EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "MUSTER_RESTART_POLICY"), row.variable);
    EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "MUSTER_NO_PROGRESS_LIMIT"), row.limit);
    const auto notice = std::find_if(plan.notices.begin(), plan.notices.end(),
                                     [](const Notice& one) { return one.reason == "AnyFailureRestarts"; });
    ASSERT_EQ(notice != plan.notices.end(), row.noticed);
    if (!row.noticed) continue;
    EXPECT_THAT(notice->message, HasSubstr("until its 3 restarts are used up"));
  }
}

TEST(RestartPolicy, WhatIsRefused) {
  struct Row {
    std::string policy;
    RuntimeParts parts;
    std::string message;
  };
  for (const Row& row : std::vector<Row>{
           {"sometimes",
            {},
            "runtime 'runtime': job 'node': annotation muster.dev/restart-policy: 'sometimes' is not one of exit-code, "
            "on-failure, never, always"},
           {"always", {}, "without the agent, Kubernetes restarts no command that has succeeded"},
           {"never", {.job = "{backoffLimit: 2}"}, "never: its backoffLimit says otherwise; leave one of them out"},
           {"never",
            {.pod = "{restartPolicy: OnFailure}", .container = "{command: [x]}"},
            "its restartPolicy says otherwise"},
           {"exit-code", {.job = "{podFailurePolicy: {rules: []}}"}, "its podFailurePolicy says otherwise"},
       }) {
    EXPECT_THAT(Refusal(JobWith(), WithRestartPolicy(row.policy, row.parts)), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace muster::controller
