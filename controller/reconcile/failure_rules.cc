// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/failure_rules.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"

namespace muster::controller {
namespace {

template <class Matches>
bool IsEmptyOrAny(const std::vector<std::string>& list, Matches matches) {
  return list.empty() || std::any_of(list.begin(), list.end(), matches);
}

bool Matches(const FailureRule& rule, const FailedJob& job) {
  return IsEmptyOrAny(rule.reasons, [&job](const std::string& reason) { return reason == job.reason; }) &&
         IsEmptyOrAny(rule.jobs, [&job](const std::string& name) { return name == job.replicated_job; }) &&
         IsEmptyOrAny(rule.patterns, [&job](const std::string& pattern) {
           return RE2::PartialMatch(job.message, RE2(pattern, RE2::Quiet));
         });
}

// The message that the Job controller writes about a pod with a code that its podFailurePolicy names.
std::string MessageOf(const PodFailure& found, std::string_view ns) {
  return fmt::format("Container {} for pod {}/{} failed with exit code {} matching FailJob rule at index 0",
                     found.failure.container, ns, found.pod, found.failure.exit_code);
}

}  // namespace

std::vector<FailedJob> FailedJobs(const std::vector<Placed>& all, const std::vector<PodFailure>& failures, bool spent,
                                  std::string_view ns) {
  std::vector<FailedJob> failed;
  for (const Placed& placed : all) {
    if (placed.job == nullptr || placed.complete()) continue;
    const std::string& name = placed.job->meta.name;
    if (placed.failure) {
      failed.push_back(
          {name, placed.planned->replicated_job, placed.failure->at, placed.failure->reason, placed.failure->message});
      continue;
    }
    std::vector<PodFailure> own;
    std::copy_if(failures.begin(), failures.end(), std::back_inserter(own),
                 [&name](const PodFailure& failure) { return failure.job == name; });
    const PodFailure* cause = RootCause(own);
    if (cause == nullptr) continue;
    if (!cause->fatal && (!placed.planned->agent || (!cause->spent && !spent))) continue;
    FailedJob job{name, placed.planned->replicated_job, cause->failure.time, kOverBudgetReason, kOverBudgetMessage};
    if (placed.planned->restart == RestartPolicy::kExitCode && cause->fatal) {
      job.reason = "PodFailurePolicy";
      job.message = MessageOf(*cause, ns);
    }
    failed.push_back(std::move(job));
  }
  return failed;
}

std::optional<RuleMatch> MatchRule(const std::vector<FailureRule>& rules, const std::vector<FailedJob>& jobs) {
  for (const FailureRule& rule : rules) {
    const FailedJob* first = nullptr;
    for (const FailedJob& job : jobs) {
      if ((first == nullptr || job.at < first->at) && Matches(rule, job)) first = &job;
    }
    if (first != nullptr) return RuleMatch{&rule, first};
  }
  return std::nullopt;
}

}  // namespace muster::controller
