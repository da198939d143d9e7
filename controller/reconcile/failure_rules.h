// SPDX-License-Identifier: Apache-2.0
// The rules of a runtime's failurePolicy, as JobSet applies them to Jobs that have failed. Pure. Source: JobSet v0.12,
// failure_policy.go.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/reconcile/failure.h"
#include "controller/reconcile/train_job_progress.h"

namespace muster::controller {

struct FailedJob {
  std::string name, replicated_job;
  WallTime at{};
  std::string reason, message;  // as the Job controller writes them
};

// The Jobs of `all` that have failed or will fail. A fatal failure of a pod makes its Job fail. Under the agent any
// failure does, once the restart budget is used up (`spent`). `ns`: the namespace of the TrainJob.
std::vector<FailedJob> FailedJobs(const std::vector<Placed>& all, const std::vector<PodFailure>& failures, bool spent,
                                  std::string_view ns);

struct RuleMatch {
  const FailureRule* rule;
  const FailedJob* job;  // of several that match, the one that failed first
};
// The first rule that matches one of `jobs`.
std::optional<RuleMatch> MatchRule(const std::vector<FailureRule>& rules, const std::vector<FailedJob>& jobs);

}  // namespace muster::controller
