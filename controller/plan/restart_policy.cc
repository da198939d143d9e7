// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/restart_policy.h"

#include <algorithm>
#include <iterator>

#include "base/exit_codes.h"
#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr std::pair<RestartPolicy, std::string_view> kNames[] = {{RestartPolicy::kExitCode, "exit-code"},
                                                                 {RestartPolicy::kOnFailure, "on-failure"},
                                                                 {RestartPolicy::kNever, "never"},
                                                                 {RestartPolicy::kAlways, "always"}};

Status Wrong(const Runtime& runtime, const ReplicatedJob& of, RestartPolicy policy, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("runtime '{}': job '{}': annotation {}: {}: {}", runtime.meta.name,
                                                of.name, kRestartPolicyAnnotation, RestartPolicyName(policy), what));
}

}  // namespace

StatusOr<RestartPolicy> ReadRestartPolicy(const Runtime& runtime, const ReplicatedJob& of) {
  const std::string said = TextField(PartOf(of.job_template, "metadata", "annotations"), kRestartPolicyAnnotation);
  if (said.empty()) return RestartPolicy::kOwn;
  for (const auto& [policy, name] : kNames) {
    if (said == name) return policy;
  }
  return absl::InvalidArgumentError(
      fmt::format("runtime '{}': job '{}': annotation {}: {} is not one of exit-code, on-failure, never, always",
                  runtime.meta.name, of.name, kRestartPolicyAnnotation, Quoted(said)));
}

std::string_view RestartPolicyName(RestartPolicy policy) {
  const auto found =
      std::find_if(std::begin(kNames), std::end(kNames), [policy](const auto& row) { return row.first == policy; });
  return found == std::end(kNames) ? "" : found->second;
}

Json PodFailurePolicyOf(RestartPolicy policy, std::string_view container) {
  Json rules = Json::array();
  if (policy == RestartPolicy::kExitCode) {
    Json codes = Json::array();
    for (int code = 1; code <= 255; ++code) {
      if (Classify(code) == ExitClass::kFatal) codes.push_back(code);
    }
    Json fatal = {{"action", "FailJob"}, {"onExitCodes", {{"operator", "In"}, {"values", std::move(codes)}}}};
    if (!container.empty()) fatal["onExitCodes"]["containerName"] = container;
    rules.push_back(std::move(fatal));
  }
  const Json condition = {{"type", "DisruptionTarget"}, {"status", "True"}};
  rules.push_back({{"action", "Ignore"}, {"onPodConditions", Json::array({condition})}});
  return {{"rules", std::move(rules)}};
}

Status ApplyRestartPolicy(const Runtime& runtime, RestartPolicy policy, bool agent, ReplicatedJob* of) {
  Json& spec = of->job_template["spec"];
  const auto put = [&](Json& object, const char* field, const Json& value) {
    const Json* given = FindField(object, field);
    if (given != nullptr && *given != value) {
      return Wrong(runtime, *of, policy, fmt::format("its {} says otherwise; leave one of them out", field));
    }
    object[field] = value;
    return absl::OkStatus();
  };
  switch (policy) {
    case RestartPolicy::kOwn:
    case RestartPolicy::kOnFailure:
      return absl::OkStatus();
    case RestartPolicy::kAlways:
      return agent ? absl::OkStatus()
                   : Wrong(runtime, *of, policy,
                           "without the agent, Kubernetes restarts no command that has succeeded; use on-failure");
    case RestartPolicy::kNever:
      MUSTER_RETURN_IF_ERROR(put(spec, "backoffLimit", 0));
      return put(PodSpec(of->job_template), "restartPolicy", "Never");
    case RestartPolicy::kExitCode:
      MUSTER_RETURN_IF_ERROR(put(spec, "podFailurePolicy", PodFailurePolicyOf(policy, "")));
      return put(PodSpec(of->job_template), "restartPolicy", "Never");
  }
  return absl::OkStatus();
}

}  // namespace muster::controller
