// The annotation muster.dev/restart-policy on a job template: what a failure of a pod of that job means. Pure.
// docs/restarts.md has the policies.
#pragma once

#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/plan/plan.h"

namespace muster::controller {

inline constexpr char kRestartPolicyAnnotation[] = "muster.dev/restart-policy";

// kOwn: the annotation is not there. InvalidArgument: it is none of the policies.
StatusOr<RestartPolicy> ReadRestartPolicy(const Runtime& runtime, const ReplicatedJob& of);

// "exit-code", as the annotation and the agent write it.
std::string_view RestartPolicyName(RestartPolicy policy);

// podFailurePolicy of a Job: under exit-code a fatal code of `container` (empty: of any) fails the Job at once; a pod
// that lost its node is replaced and not counted.
Json PodFailurePolicyOf(RestartPolicy policy, std::string_view container);

// The fields of a Job that make `policy` hold. InvalidArgument: the runtime says otherwise there, or the policy needs
// the agent and the pods have none.
Status ApplyRestartPolicy(const Runtime& runtime, RestartPolicy policy, bool agent, ReplicatedJob* of);

}  // namespace muster::controller
