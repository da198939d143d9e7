// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/job_rules.h"

#include "controller/reconcile/observed.h"
#include "tests/local/jobs.h"

namespace muster::local {

using namespace controller;

namespace {

TEST(Indexes, AreWrittenAsKubernetesDoes) {
  struct Row {
    Indexes indexes;
    const char* text;
  };
  const Row rows[] = {{{}, ""}, {{4}, "4"}, {{0, 1}, "0,1"}, {{0, 1, 2, 5, 7, 8}, "0-2,5,7,8"}};
  for (const auto& [indexes, text] : rows) {
    EXPECT_EQ(WriteIndexes(indexes), text);
    EXPECT_EQ(ReadIndexes(text, 9), indexes) << text;
  }
  EXPECT_EQ(ReadIndexes("0-1000000000,7", 3), (Indexes{0, 1, 2}));
  EXPECT_EQ(ReadIndexes("x,1,3-2", 9), (Indexes{1}));
}

TEST(JobRules, HaveKubernetesDefaults) {
  const auto rules = ReadJobRules(LocalJob("{}"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->backoff_limit, 6);
  EXPECT_FALSE(rules->only_replace_failed);
  EXPECT_FALSE(rules->suspended);
  EXPECT_EQ(ReadJobRules(LocalJob("{completions: null, parallelism: null}"))->completions, 1);
  EXPECT_EQ(ReadJobRules(LocalJob("{parallelism: null}"))->parallelism, 1);
  EXPECT_EQ(ReadJobRules(LocalJob("{backoffLimitPerIndex: 1}"))->backoff_limit, std::numeric_limits<int>::max());
  EXPECT_TRUE(ReadJobRules(LocalJob("{podFailurePolicy: {rules: []}}"))->only_replace_failed);
  EXPECT_TRUE(ReadJobRules(LocalJob("{podReplacementPolicy: Failed}"))->only_replace_failed);
}

TEST(JobRules, NameWhatIsWrong) {
  struct Row {
    const char *spec, *message;
  };
  const Row rows[] = {
      {"{completionMode: NonIndexed}",
       "spec.completionMode: 'NonIndexed' is not supported by muster local; use Indexed, or remove the Job from the "
       "runtime"},
      {"{completions: null}", "spec.completions: it is missing"},
      {"{completions: many}", "spec.completions: 'many' is not a whole number"},
      {"{parallelism: -1}", "spec.parallelism: -1 is less than 0"},
      {"{podReplacementPolicy: Never}", "spec.podReplacementPolicy: 'Never' is not one of Failed, TerminatingOrFailed"},
      {"{podFailurePolicy: {rules: [{action: Fail}]}}",
       "spec.podFailurePolicy.rules[0].action: 'Fail' is not one of FailJob, FailIndex, Ignore, Count"},
      {"{podFailurePolicy: {rules: [{action: Count, onExitCodes: {operator: In}}]}}",
       "spec.podFailurePolicy.rules[0].onExitCodes.values: it is not a list of exit codes"},
      {"{podFailurePolicy: {rules: [{action: Count, onExitCodes: {operator: In, values: [1, x]}}]}}",
       "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: 'x' is not an exit code"},
      {"{successPolicy: {rules: [{succeededCount: all}]}}",
       "spec.successPolicy.rules[0].succeededCount: 'all' is not a whole number"},
  };
  for (const auto& [spec, message] : rows) {
    const auto rules = ReadJobRules(LocalJob(spec));
    EXPECT_TRUE(absl::IsInvalidArgument(rules.status())) << spec;
    EXPECT_EQ(Message(rules.status()), message);
  }
}

TEST(PodFailurePolicy, TakesTheFirstRuleThatMatches) {
  struct Row {
    const char *rules, *pod;  // pod: traits
    const char* fails_job = "";
    bool fails_index = false, counts = true;
  };
  const Row rows[] = {
      {"[]", "{exit: 3}"},
      {"[{action: FailJob, onExitCodes: {operator: In, values: [3]}}]", "{exit: 3}",
       "Container node for pod ns/p0 failed with exit code 3 matching FailJob rule at index 0"},
      {"[{action: FailJob, onExitCodes: {operator: In, values: [4]}}]", "{exit: 3}"},
      {"[{action: FailJob, onExitCodes: {operator: NotIn, values: [4]}}]", "{exit: 3}",
       "Container node for pod ns/p0 failed with exit code 3 matching FailJob rule at index 0"},
      {"[{action: FailJob, onExitCodes: {operator: NotIn, values: [4]}}]", "{exit: 0}"},
      {"[{action: FailJob, onExitCodes: {containerName: side, operator: In, values: [3]}}]", "{exit: 3}"},
      {"[{action: FailIndex, onExitCodes: {containerName: node, operator: In, values: [3]}}]", "{exit: 3}", "", true},
      {"[{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]", "{condition: DisruptionTarget}", "", false,
       false},
      {"[{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'False'}]}]",
       "{condition: DisruptionTarget}"},
      {"[{action: Count, onExitCodes: {operator: In, values: [3]}},"
       " {action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]",
       "{exit: 3, condition: DisruptionTarget}"},
      {"[{action: Count, onExitCodes: {operator: In, values: [4]}},"
       " {action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]",
       "{exit: 3, condition: DisruptionTarget}",
       "Pod ns/p0 has condition DisruptionTarget matching FailJob rule at index 1"},
  };
  for (const Row& row : rows) {
    const auto rules = ReadJobRules(LocalJob(fmt::format("{{podFailurePolicy: {{rules: {}}}}}", row.rules)));
    ASSERT_TRUE(rules.ok()) << rules.status();
    const FailureMatch match = MatchFailure(*rules, LocalPod(0, "Failed", row.pod));
    EXPECT_EQ(match.fails_job, row.fails_job) << row.rules;
    EXPECT_EQ(match.fails_index, row.fails_index) << row.rules;
    EXPECT_EQ(match.counts, row.counts) << row.rules;
  }
}

TEST(PodFailurePolicy, LooksAtInitContainersToo) {
  const auto rules =
      ReadJobRules(LocalJob("{podFailurePolicy: {rules: [{action: Ignore, onExitCodes: {containerName: data, operator: "
                            "In, values: [7]}}]}}"));
  Json pod = LocalPod(0, "Failed", "{exit: 1}");
  EXPECT_TRUE(MatchFailure(*rules, pod).counts);
  pod["status"]["initContainerStatuses"] = ListOf("[{name: data, state: {terminated: {exitCode: 7}}}]");
  EXPECT_FALSE(MatchFailure(*rules, pod).counts);
}

TEST(SuccessPolicy, HoldsByItsFirstRule) {
  struct Row {
    const char* rules;
    Indexes succeeded;
    const char* message;  // empty: none holds
  };
  const Row rows[] = {
      {"[{succeededIndexes: '0,2'}]", {0, 2}, "Matched rules at index 0"},
      {"[{succeededIndexes: '0,2'}]", {0, 1}, ""},
      {"[{succeededIndexes: '0-2', succeededCount: 2}]", {0, 2}, "Matched rules at index 0"},
      {"[{succeededIndexes: '1-2', succeededCount: 2}]", {0, 2}, ""},
      {"[{succeededCount: 3}, {succeededIndexes: '0'}]", {0}, "Matched rules at index 1"},
      {"[{succeededCount: 2}]", {0, 1}, "Matched rules at index 0"},
      {"[{succeededIndexes: '7'}]", {0}, ""},
      {"[{succeededCount: 0}]", {}, ""},
  };
  for (const auto& [text, succeeded, message] : rows) {
    const auto rules = ReadJobRules(LocalJob(fmt::format("{{successPolicy: {{rules: {}}}}}", text)));
    ASSERT_TRUE(rules.ok()) << rules.status();
    EXPECT_EQ(MatchSuccess(*rules, succeeded).value_or(""), message) << text;
  }
}

}  // namespace
}  // namespace muster::local
