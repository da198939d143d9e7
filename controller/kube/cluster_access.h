// How to reach an API server, and who one is there: a kubeconfig file, or a pod's ServiceAccount. Any thread.
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
  std::string token_file;                      // read anew when it is a minute old: kubelets replace it
  struct Exec {                                // a credential plugin (client.authentication.k8s.io/v1 or v1beta1)
    std::string command, api_version, install_hint;
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> environment;
    std::string cluster_info;  // JSON, spec.cluster of what it is told; empty: it does not want it
  };
  std::optional<Exec> exec;
  std::string user, password;  // basic
  http::Proxies proxies;       // the kubeconfig's proxy-url, else the environment's
  std::string ns = "default";  // of the context, or of the pod
};

// `text` of a kubeconfig file; relative paths in it are relative to `folder`, and files are read now. `context`: empty:
// the current one. InvalidArgument and NotFound name the file's field and the remedy; Unimplemented names a field whose
// meaning would be lost (auth-provider, tls-server-name, impersonation, a plugin that needs a terminal).
StatusOr<ClusterAccess> ReadKubeconfig(std::string_view text, const std::string& folder, const std::string& context);

// The pod's: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, and the files token, ca.crt and namespace in
// `folder`.
inline constexpr char kServiceAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";
StatusOr<ClusterAccess> ReadServiceAccount(const Environment& environment,
                                           const std::string& folder = kServiceAccountFolder);

// `path`: --kubeconfig; empty: the first of $KUBECONFIG that is there, else the pod's ServiceAccount
// (KUBERNETES_SERVICE_HOST and /var/run/secrets/kubernetes.io/serviceaccount), else ~/.kube/config.
StatusOr<ClusterAccess> FindCluster(const std::string& path, const std::string& context,
                                    const Environment& environment);

}  // namespace muster::controller
