// SPDX-License-Identifier: Apache-2.0
// The annotation muster.dev/restart-policy on a job template: what a failure of that job's pods leads to. Pure.
// docs/restarts.md has the policies.
#pragma once

#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/plan/plan.h"

namespace muster::controller {

inline constexpr char kRestartPolicyAnnotation[] = "muster.dev/restart-policy";

// kOwn: the annotation is absent. InvalidArgument: it is not a policy.
StatusOr<RestartPolicy> ReadRestartPolicy(const Runtime& runtime, const ReplicatedJob& of);

// "exit-code", as in the annotation and in MUSTER_RESTART_POLICY; empty: kOwn.
std::string_view RestartPolicyName(RestartPolicy policy);

// podFailurePolicy of a Job. Under exit-code a fatal code of `container` (empty: of any container) fails the Job at
// once. Under every policy a disrupted pod (condition DisruptionTarget) is replaced and not counted.
Json PodFailurePolicyOf(RestartPolicy policy, std::string_view container);

// Sets the fields of a Job that enforce `policy`. InvalidArgument: the runtime has another value in one of them, or the
// policy needs the agent and `agent` is false.
Status ApplyRestartPolicy(const Runtime& runtime, RestartPolicy policy, bool agent, ReplicatedJob* of);

}  // namespace muster::controller
