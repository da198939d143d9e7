// SPDX-License-Identifier: Apache-2.0
// The rules of one Indexed batch/v1 Job: its spec with Kubernetes' defaults, and what its policies decide about pods
// and indexes. Pure; untrusted input.
// Source: Kubernetes 1.36, pkg/controller/job: pod_failure_policy.go, success_policy.go, indexed_job_utils.go;
// pkg/apis/batch/v1/defaults.go.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::local {

using Indexes = std::set<int>;

// Reads a text like "0-2,5". Indexes of `completions` and more are left out.
Indexes ReadIndexes(const std::string& text, int completions);

// A rule of podFailurePolicy. It matches the exit code of a container, or a condition of the pod.
struct PodFailureRule {
  std::string action;  // FailJob, FailIndex, Ignore, Count
  bool by_exit_codes = false;
  std::string container;  // empty: any
  bool in = true;         // true: the code is one of `codes`; false: it is none of them
  std::set<int> codes;
  std::vector<std::pair<std::string, std::string>> conditions;  // type and status
};

// A rule of successPolicy. It holds if all of `indexes`, or `count` of them, have succeeded; without `indexes`: if
// `count` of all have.
struct SuccessRule {
  std::optional<Indexes> indexes;
  std::optional<int> count;
};

struct JobRules {
  int completions = 1, parallelism = 1;
  bool suspended = false;
  int backoff_limit = 6;
  std::optional<int> backoff_limit_per_index, max_failed_indexes;
  std::optional<int> deadline_seconds;  // activeDeadlineSeconds
  bool only_replace_failed = false;     // a pod counts as failed, and is replaced, only once it has ended
  bool restarts_on_failure = false;     // the pods' restartPolicy is OnFailure
  bool has_failure_policy = false;
  std::vector<PodFailureRule> failure_rules;
  std::vector<SuccessRule> success_rules;
};

// InvalidArgument: the spec cannot be read, or is not of an Indexed Job; names the path.
StatusOr<JobRules> ReadJobRules(const Json& job);

// The decision of podFailurePolicy about a failed pod.
struct FailureMatch {
  std::string fails_job;  // the message, if the Job fails because of this pod; else empty
  bool fails_index = false;
  bool counts = true;  // the failure counts towards the limits
};
FailureMatch MatchFailure(const JobRules& rules, const Json& pod);

// The message of the first rule of successPolicy that holds; nullopt: none holds.
std::optional<std::string> MatchSuccess(const JobRules& rules, const Indexes& succeeded);

}  // namespace muster::local
