// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/job_rules.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/reconcile/observed.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int kMostPods = 100'000;  // Kubernetes' limit for parallelism of Indexed Jobs
constexpr int kDefaultBackoffLimit = 6;

std::set<int> ReadCodes(Fields exit_codes) {
  std::set<int> codes;
  const Json values = exit_codes.Copy("values");
  if (!values.is_array()) {
    exit_codes.Wrong("values", "it is not a list of exit codes");
    return codes;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto code = WholeNumber(values[i]);
    if (code && *code >= 0 && *code <= std::numeric_limits<int>::max()) {
      codes.insert(static_cast<int>(*code));
    } else {
      exit_codes.complaints()->Wrong(PathOf(exit_codes.PathOf("values"), i), values[i], "is not an exit code");
    }
  }
  return codes;
}

PodFailureRule ReadPodFailureRule(Fields fields) {
  PodFailureRule rule;
  fields.NeedText("action");
  rule.action = fields.Word("action", {"FailJob", "FailIndex", "Ignore", "Count"});
  if (Fields exit_codes = fields.Object("onExitCodes")) {
    rule.by_exit_codes = true;
    rule.container = exit_codes.Text("containerName");
    exit_codes.NeedText("operator");
    rule.in = exit_codes.Word("operator", {"In", "NotIn"}) != "NotIn";
    rule.codes = ReadCodes(exit_codes);
  }
  for (Fields& pattern : fields.Objects("onPodConditions")) {
    const std::string status = pattern.Text("status");
    rule.conditions.emplace_back(pattern.NeedText("type"), status.empty() ? "True" : status);
  }
  return rule;
}

void ReadPolicies(Fields spec, JobRules* rules) {
  if (Fields policy = spec.Object("podFailurePolicy")) {
    rules->has_failure_policy = true;
    for (Fields& rule : policy.Objects("rules")) rules->failure_rules.push_back(ReadPodFailureRule(rule));
  }
  for (Fields& fields : spec.Object("successPolicy").Objects("rules")) {
    SuccessRule rule;
    if (fields.Find("succeededIndexes") != nullptr) {
      rule.indexes = ReadIndexes(fields.Text("succeededIndexes"), rules->completions);
    }
    rule.count = fields.Int("succeededCount", 0);
    rules->success_rules.push_back(std::move(rule));
  }
}

// The first container whose exit code matches the rule; null: none.
const Json* MatchExitCodes(const PodFailureRule& rule, const Json& status) {
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& container : ListField(status, list)) {
      const Json* ended = FindField(PartOf(container, "state"), "terminated");
      if (ended == nullptr) continue;
      if (!rule.container.empty() && TextField(container, "name") != rule.container) continue;
      const int code = CountField(*ended, "exitCode");
      if (code != 0 && rule.codes.contains(code) == rule.in) return &container;
    }
  }
  return nullptr;
}

const Json* MatchConditions(const PodFailureRule& rule, const Json& status) {
  for (const Json& condition : ListField(status, "conditions")) {
    const std::pair is{TextField(condition, "type"), TextField(condition, "status")};
    if (std::find(rule.conditions.begin(), rule.conditions.end(), is) != rule.conditions.end()) return &condition;
  }
  return nullptr;
}

// Why the pod matches the rule, as Kubernetes words it; empty: it does not.
std::string WhyMatched(const PodFailureRule& rule, size_t number, const Json& pod) {
  const Json& metadata = PartOf(pod, "metadata");
  const std::string name = fmt::format("{}/{}", TextField(metadata, "namespace"), TextField(metadata, "name"));
  const Json& status = PartOf(pod, "status");
  if (rule.by_exit_codes) {
    const Json* container = MatchExitCodes(rule, status);
    if (container == nullptr) return "";
    return fmt::format("Container {} for pod {} failed with exit code {} matching {} rule at index {}",
                       TextField(*container, "name"), name,
                       CountField(PartOf(*container, "state", "terminated"), "exitCode"), rule.action, number);
  }
  const Json* condition = MatchConditions(rule, status);
  if (condition == nullptr) return "";
  return fmt::format("Pod {} has condition {} matching {} rule at index {}", name, TextField(*condition, "type"),
                     rule.action, number);
}

bool Holds(const SuccessRule& rule, const Indexes& succeeded) {
  if (!rule.indexes) return rule.count && std::ssize(succeeded) >= *rule.count;
  if (rule.indexes->empty()) return false;
  const auto of_rule =
      std::count_if(rule.indexes->begin(), rule.indexes->end(), [&](int index) { return succeeded.contains(index); });
  return of_rule == std::ssize(*rule.indexes) || (rule.count && of_rule >= *rule.count);
}

}  // namespace

Indexes ReadIndexes(const std::string& text, int completions) {
  Indexes indexes;
  for (const auto& [from, to] : ReadIndexRanges(text)) {
    for (int index = from; index <= to && index < completions; ++index) indexes.insert(index);
  }
  return indexes;
}

StatusOr<JobRules> ReadJobRules(const Json& job) {
  Complaints complaints;
  Fields spec(FindField(job, "spec"), "spec", &complaints);
  const std::string mode = spec.Text("completionMode");
  if (mode != "Indexed") {
    spec.Wrong("completionMode", mode.empty() ? "NonIndexed" : mode,
               "is not supported by muster local; use Indexed, or remove the Job from the runtime");
  }
  JobRules rules;
  const auto completions = spec.Int("completions", 0, kMostPods);
  const auto parallelism = spec.Int("parallelism", 0, kMostPods);
  if (!completions && parallelism && complaints.ok()) spec.Wrong("completions", "it is missing");
  rules.completions = completions.value_or(1);
  rules.parallelism = parallelism.value_or(1);
  rules.suspended = spec.Flag("suspend", false);
  rules.backoff_limit_per_index = spec.Int("backoffLimitPerIndex", 0);
  rules.max_failed_indexes = spec.Int("maxFailedIndexes", 0);
  rules.backoff_limit =
      spec.Int("backoffLimit", 0)
          .value_or(rules.backoff_limit_per_index ? std::numeric_limits<int>::max() : kDefaultBackoffLimit);
  rules.deadline_seconds = spec.Int("activeDeadlineSeconds", 0);
  rules.restarts_on_failure = TextField(PartOf(job, "spec", "template", "spec"), "restartPolicy") == "OnFailure";
  ReadPolicies(spec, &rules);
  rules.only_replace_failed =
      spec.Word("podReplacementPolicy", {"Failed", "TerminatingOrFailed"}) == "Failed" || rules.has_failure_policy;
  if (!complaints.ok()) return complaints.status();
  return rules;
}

FailureMatch MatchFailure(const JobRules& rules, const Json& pod) {
  FailureMatch match;
  for (size_t i = 0; i < rules.failure_rules.size(); ++i) {
    const PodFailureRule& rule = rules.failure_rules[i];
    std::string why = WhyMatched(rule, i, pod);
    if (why.empty()) continue;
    if (rule.action == "FailJob") match.fails_job = std::move(why);
    match.fails_index = rule.action == "FailIndex";
    match.counts = rule.action != "Ignore";
    break;
  }
  return match;
}

std::optional<std::string> MatchSuccess(const JobRules& rules, const Indexes& succeeded) {
  if (succeeded.empty()) return std::nullopt;
  for (size_t i = 0; i < rules.success_rules.size(); ++i) {
    if (Holds(rules.success_rules[i], succeeded)) return fmt::format("Matched rules at index {}", i);
  }
  return std::nullopt;
}

}  // namespace muster::local
