// SPDX-License-Identifier: Apache-2.0
// Address and credentials of an API server, from a kubeconfig file or a pod's ServiceAccount. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"
#include "base/status.h"
#include "http/proxies.h"

namespace muster::controller {

struct ClusterAccess {
  std::string server;  // "https://host:port", without a slash at its end
  std::string ca_pem;  // empty: the system's authorities
  bool verify_tls = true;
  std::string client_certificate, client_key;  // PEM, both or neither
  std::string token;                           // static; empty: none
  std::string token_file;                      // read again when the token is a minute old: kubelets replace it
  struct Exec {                                // a credential plugin (client.authentication.k8s.io/v1 or v1beta1)
    std::string command, api_version, install_hint;
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> environment;
    std::string cluster_info;  // JSON for spec.cluster of the plugin's input; empty: provideClusterInfo is not set
  };
  std::optional<Exec> exec;
  std::string user, password;  // basic
  http::Proxies proxies;       // the kubeconfig's proxy-url, else the environment's
  std::string ns = "default";  // of the context, or of the pod
};

// Reads `text` of a kubeconfig file, and the files that it names. Relative paths start at `folder`. `context`: empty:
// the current context. InvalidArgument and NotFound name the field and the remedy. Unimplemented names a field that
// Muster does not support (auth-provider, tls-server-name, impersonation, a plugin that needs a terminal).
StatusOr<ClusterAccess> ReadKubeconfig(std::string_view text, const std::string& folder, const std::string& context);

// Reads a pod's ServiceAccount: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT, and the files token, ca.crt and
// namespace in `folder`.
inline constexpr char kServiceAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";
StatusOr<ClusterAccess> ReadServiceAccount(const Environment& environment,
                                           const std::string& folder = kServiceAccountFolder);

// `path`: --kubeconfig. If empty: the first existing file of $KUBECONFIG (NotFound if none exists); if that is not set,
// the pod's ServiceAccount, if there is one and no `context` is given; else ~/.kube/config.
StatusOr<ClusterAccess> FindCluster(const std::string& path, const std::string& context,
                                    const Environment& environment);

}  // namespace muster::controller
