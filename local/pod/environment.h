// SPDX-License-Identifier: Apache-2.0
// The variables of a container, and texts that refer to variables. Pure; untrusted input.
// Source: Kubernetes, kubelet_pods.go (makeEnvironmentVariables).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "local/pod/input.h"
#include "local/pod/paths.h"

namespace muster::local {

using Variables = std::map<std::string, std::string, std::less<>>;

// ExpandReferences() with `variables`. A reference to a missing variable stays as it is.
std::string Expand(std::string_view text, const Variables& variables);

// The variables of envFrom and env. Container paths in values become this machine's (`paths`) before $(NAME) inserts
// other values. NotFound: a ConfigMap, a Secret or a key is missing and not optional.
StatusOr<Variables> VariablesOf(controller::Fields container, const PodPaths& paths, const PodInput& input);

// False, with a complaint, if `text` cannot be an argument or a variable: it contains a byte 0, or it is too long.
bool IsForPrograms(const std::string& text, const std::string& path, controller::Complaints* complaints);

}  // namespace muster::local
