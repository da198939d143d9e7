// Variables of a container, and texts that refer to them. Pure; outside bytes.
// Source: Kubernetes, kubelet_pods.go (makeEnvironmentVariables), third_party/forked/golang/expansion.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "controller/local/pod_input.h"
#include "controller/local/pod_paths.h"

namespace muster::controller {

using Variables = std::map<std::string, std::string, std::less<>>;

// `text` with $(NAME) replaced by what `value_of` gives for it, and $$ by $; a reference without an end stays.
std::string Expand(std::string_view text, const std::function<std::string(std::string_view name)>& value_of);
// The same; a reference to a variable that is not there stays as it is.
std::string Expand(std::string_view text, const Variables& variables);

// What envFrom and env of `container` come to. A value with one of `paths` gets that path on this machine; one that is
// made of others gets it through these. NotFound: a ConfigMap, a Secret or a key is missing that is not optional.
StatusOr<Variables> VariablesOf(Fields container, const PodPaths& paths, const PodInput& input);

// Complains about a byte 0 in a text that a program is to be given.
bool IsForPrograms(const std::string& text, const std::string& path, Complaints* complaints);

}  // namespace muster::controller
