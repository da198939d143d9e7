// SPDX-License-Identifier: Apache-2.0
// The input and the output of a credential plugin (client.authentication.k8s.io/v1 and v1beta1). Pure; untrusted input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "controller/kube/client/cluster_access.h"

namespace muster::controller {

inline constexpr char kExecInfoVariable[] = "KUBERNETES_EXEC_INFO";

struct ExecCredential {
  std::string token;                           // empty: none
  std::string client_certificate, client_key;  // PEM, both or neither
  std::optional<int64_t> expires;              // s since 1970; nullopt: valid until the server refuses it
};

// The value of kExecInfoVariable: an ExecCredential without status, as one line of JSON.
std::string ExecInfo(const ClusterAccess::Exec& plugin);

// Reads stdout of the plugin. InvalidArgument: `text` is not an ExecCredential of `api_version`, it has neither a token
// nor a certificate with its key, or its token cannot be sent in a header. No error message shows a secret.
StatusOr<ExecCredential> ReadExecCredential(std::string_view text, std::string_view api_version);

}  // namespace muster::controller
