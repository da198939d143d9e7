// What a credential plugin is told and what it answers (client.authentication.k8s.io/v1 and v1beta1). Pure; outside
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "controller/kube/cluster_access.h"

namespace muster::controller {

inline constexpr char kExecInfoVariable[] = "KUBERNETES_EXEC_INFO";

struct ExecCredential {
  std::string token;                           // empty: none
  std::string client_certificate, client_key;  // PEM, both or neither
  std::optional<int64_t> expires;              // s since 1970; nothing: it holds until it is refused
};

// An ExecCredential without status, for kExecInfoVariable: JSON of one line.
std::string ExecInfo(const ClusterAccess::Exec& plugin);

// `text`: stdout of the plugin. InvalidArgument: it is no ExecCredential of `api_version`, has neither a token nor a
// certificate with its key, or one that no header can hold. No message shows a secret.
StatusOr<ExecCredential> ReadExecCredential(std::string_view text, std::string_view api_version);

}  // namespace muster::controller
