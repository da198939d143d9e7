// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/cluster_access.h"

#include <unistd.h>

#include "base/base64.h"
#include "base/host_names.h"
#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/settings_file.h"
#include "base/text.h"
#include "controller/api/yaml.h"
#include "http/endpoint_url.h"

namespace muster::controller {
namespace {

constexpr size_t kMostNodes = 100'000;  // of a kubeconfig's YAML
constexpr char kExecExtension[] = "client.authentication.k8s.io/exec";

Status Wrong(std::string_view where, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", where, what));
}
Status Unable(std::string_view where, std::string_view what) {
  return absl::UnimplementedError(fmt::format("{}: {}", where, what));
}

bool IsSet(const Json& object, const char* name) {
  const Json* value = FindField(object, name);
  return value != nullptr && !(value->is_string() && value->get_ref<const std::string&>().empty());
}

// One cluster, user or context, and its place for messages: "users 'admin'".
struct Named {
  Json fields = Json::object();
  std::string where;
};

// The entry {name: `name`, `kind`: {...}} of `list`. `named_by`: the place that names it, for the error.
StatusOr<Named> FindNamed(const Json& config, const char* list, const char* kind, const std::string& name,
                          std::string_view named_by) {
  const std::string where = fmt::format("{} {}", list, Quoted(name));
  const Json* entries = FindField(config, list);
  if (entries != nullptr && !entries->is_array()) return Wrong(list, "it is not a list");
  std::vector<std::string> names;
  for (const Json& entry : entries == nullptr ? Json::array() : *entries) {
    if (TextField(entry, "name") != name) {
      names.push_back(Quoted(TextField(entry, "name")));
      continue;
    }
    const Json* fields = FindField(entry, kind);
    if (fields == nullptr) return Named{Json::object(), where};
    if (!fields->is_object()) return Wrong(where, fmt::format("'{}' is not a map", kind));
    return Named{*fields, where};
  }
  return absl::NotFoundError(fmt::format(
      "{}, which {} names, is not there; {}", where, named_by,
      names.empty() ? fmt::format("the list {} is empty", list) : fmt::format("there are {}", Join(names, ", "))));
}

std::string PathIn(const std::string& folder, const std::string& path) {
  return path.empty() || path.starts_with('/') || folder.empty() ? path : fmt::format("{}/{}", folder, path);
}

// The value of `NAME-data` (base64), else the content of the file that `NAME` names. Empty: neither is set.
StatusOr<std::string> Material(const Named& from, const std::string& name, const std::string& folder) {
  JsonFields fields(from.fields, from.where + ": ");
  const std::string data_name = name + "-data";
  std::string data = fields.Text(data_name.c_str());
  const std::string file = fields.Text(name.c_str());
  MUSTER_RETURN_IF_ERROR(fields.status());
  std::erase_if(data, [](char c) { return c == '\n' || c == '\r' || c == ' '; });  // a folded block of YAML
  if (!data.empty()) {
    auto raw = FromBase64(data);  // its error is not used: it would show a key
    if (raw.ok()) return raw;
    return Wrong(from.where,
                 fmt::format("'{}' is not base64; give the PEM file encoded, or its path as '{}'", data_name, name));
  }
  if (file.empty()) return std::string();
  auto text = ReadSettingsFile(PathIn(folder, file));
  return text.ok() ? text : Annotate(text.status(), fmt::format("{}: '{}'", from.where, name));
}

Status ReadCluster(const Named& cluster, const std::string& folder, ClusterAccess* access) {
  JsonFields fields(cluster.fields, cluster.where + ": ");
  const std::string server = fields.Text("server"), proxy = fields.Text("proxy-url");
  access->verify_tls = !fields.Flag("insecure-skip-tls-verify");
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (server.empty()) return Wrong(cluster.where, "'server' is missing; give the API server's https://HOST:PORT");
  auto url = http::ParseEndpointUrl(server);
  if (!url.ok()) return Annotate(url.status(), fmt::format("{}: 'server' {}", cluster.where, Quoted(server)));
  access->server = http::UrlText(*url);
  if (IsSet(cluster.fields, "tls-server-name")) {
    return Unable(cluster.where, "'tls-server-name' is not supported; use a 'server' whose name its certificate has");
  }
  MUSTER_ASSIGN_OR_RETURN(access->ca_pem, Material(cluster, "certificate-authority", folder));
  if (!access->verify_tls && !access->ca_pem.empty()) {
    return Wrong(cluster.where,
                 "a certificate-authority and 'insecure-skip-tls-verify' contradict each other; drop one of them");
  }
  if (!proxy.empty()) {
    auto proxies = http::Proxies::Read(Environment{{"all_proxy", proxy}});
    if (!proxies.ok()) return Annotate(proxies.status(), fmt::format("{}: 'proxy-url'", cluster.where));
    access->proxies = *std::move(proxies);
  }
  return absl::OkStatus();
}

// What a credential plugin gets to know about the cluster, if provideClusterInfo is set.
std::string ClusterInfo(const Named& cluster, const ClusterAccess& access) {
  Json info = {{"server", access.server}};
  if (!access.ca_pem.empty()) info["certificate-authority-data"] = ToBase64(access.ca_pem);
  if (!access.verify_tls) info["insecure-skip-tls-verify"] = true;
  if (IsSet(cluster.fields, "proxy-url")) info["proxy-url"] = cluster.fields["proxy-url"];
  if (const Json* extensions = FindField(cluster.fields, "extensions"); extensions && extensions->is_array()) {
    for (const Json& extension : *extensions) {
      const Json* config = FindField(extension, "extension");
      if (TextField(extension, "name") == kExecExtension && config != nullptr) info["config"] = *config;
    }
  }
  return WriteJson(info);
}

Status ReadExec(const Named& user, const Json& exec, const Named& cluster, const std::string& folder,
                ClusterAccess* access) {
  const std::string where = fmt::format("{}: exec", user.where);
  if (!exec.is_object()) return Wrong(where, "it is not a map");
  JsonFields fields(exec, where + ": ");
  ClusterAccess::Exec plugin;
  plugin.command = fields.Text("command");
  plugin.api_version = fields.Text("apiVersion");
  plugin.install_hint = fields.Text("installHint");
  plugin.arguments = fields.Texts("args");
  const std::string interactive = fields.Text("interactiveMode");
  const bool informed = fields.Flag("provideClusterInfo");
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (plugin.command.empty()) return Wrong(where, "'command' is missing");
  if (plugin.command.find('/') != std::string::npos) plugin.command = PathIn(folder, plugin.command);
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Unable(where, fmt::format("'apiVersion' {} is none of client.authentication.k8s.io/v1 and v1beta1; update "
                                     "the plugin, or write the kubeconfig anew with its tool",
                                     Quoted(plugin.api_version)));
  }
  if (interactive == "Always") {
    return Unable(where,
                  "'interactiveMode' Always needs a terminal, which a controller does not have; use a user with "
                  "a token or a certificate");
  }
  if (const Json* variables = FindField(exec, "env"); variables != nullptr) {
    if (!variables->is_array()) return Wrong(where, "'env' is not a list");
    for (const Json& variable : *variables) {
      const std::string name = TextField(variable, "name");
      if (name.empty() || name.find('=') != std::string::npos) {
        return Wrong(where, "an entry of 'env' has no 'name', or one with '='");
      }
      plugin.environment.emplace_back(name, TextField(variable, "value"));
    }
  }
  if (informed) plugin.cluster_info = ClusterInfo(cluster, *access);
  access->exec = std::move(plugin);
  return absl::OkStatus();
}

Status ReadUser(const Named& user, const Named& cluster, const std::string& folder, ClusterAccess* access) {
  for (const char* name : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (IsSet(user.fields, name)) {
      return Unable(user.where, fmt::format("'{}' (impersonation) is not supported; use a user of its own", name));
    }
  }
  if (const Json* provider = FindField(user.fields, "auth-provider"); provider != nullptr) {
    return Unable(user.where, fmt::format("auth-provider {} was removed from Kubernetes' clients; use its exec plugin "
                                          "(gke-gcloud-auth-plugin, kubelogin ...) or a token",
                                          Quoted(TextField(*provider, "name"))));
  }
  JsonFields fields(user.fields, user.where + ": ");
  access->token = fields.Text("token");
  access->token_file = PathIn(folder, fields.Text("tokenFile"));
  access->user = fields.Text("username");
  access->password = fields.Text("password");
  MUSTER_RETURN_IF_ERROR(fields.status());
  MUSTER_ASSIGN_OR_RETURN(access->client_certificate, Material(user, "client-certificate", folder));
  MUSTER_ASSIGN_OR_RETURN(access->client_key, Material(user, "client-key", folder));
  if (access->client_certificate.empty() != access->client_key.empty()) {
    return Wrong(user.where, fmt::format("'{}' is missing; a client's certificate and its key belong together",
                                         access->client_key.empty() ? "client-key" : "client-certificate"));
  }
  const bool bearer = !access->token.empty() || !access->token_file.empty();
  if (bearer && !access->user.empty()) return Wrong(user.where, "it has a token and a 'username'; drop one of them");
  if (!access->token.empty() && !IsVisible(access->token)) {
    return Wrong(user.where, "'token' has white space or control characters in it");
  }
  const Json* exec = FindField(user.fields, "exec");
  if (exec == nullptr || bearer || !access->user.empty()) return absl::OkStatus();  // these go before the plugin
  return ReadExec(user, *exec, cluster, folder, access);
}

StatusOr<ClusterAccess> ReadKubeconfigFile(const std::string& path, const std::string& context,
                                           const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadSettingsFile(path));
  const size_t slash = path.rfind('/');
  auto access = ReadKubeconfig(text, slash == std::string::npos ? "." : path.substr(0, slash), context);
  if (!access.ok()) return Annotate(access.status(), path);
  const auto url = http::ParseEndpointUrl(access->server);
  const bool own_proxy = !access->proxies.For(access->server).empty();
  if (own_proxy || (url.ok() && http::IsThisMachine(*url))) return access;
  MUSTER_ASSIGN_OR_RETURN(access->proxies, http::Proxies::Read(environment));
  return access;
}

}  // namespace

StatusOr<ClusterAccess> ReadKubeconfig(std::string_view text, const std::string& folder, const std::string& context) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<YamlDocument> documents, ReadYaml(text, kMostNodes));
  if (documents.empty()) return absl::InvalidArgumentError("the kubeconfig is empty");
  if (documents.size() > 1) return absl::InvalidArgumentError("the kubeconfig has several YAML documents; one is read");
  const Json& config = documents.front().object;
  if (!config.is_object()) return absl::InvalidArgumentError("it is not a kubeconfig: its top is not a map");
  const std::string name = context.empty() ? TextField(config, "current-context") : context;
  if (name.empty()) {
    return absl::NotFoundError(
        "'current-context' is not set; choose one: kubectl config use-context NAME, or --context NAME");
  }
  MUSTER_ASSIGN_OR_RETURN(const Named chosen, FindNamed(config, "contexts", "context", name,
                                                        context.empty() ? "'current-context'" : "--context"));
  JsonFields fields(chosen.fields, chosen.where + ": ");
  const std::string cluster_name = fields.Text("cluster"), user_name = fields.Text("user");
  const std::string ns = fields.Text("namespace");
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (cluster_name.empty()) return Wrong(chosen.where, "'cluster' is missing");

  ClusterAccess access;
  if (!ns.empty()) access.ns = ns;
  MUSTER_ASSIGN_OR_RETURN(const Named cluster, FindNamed(config, "clusters", "cluster", cluster_name, chosen.where));
  MUSTER_RETURN_IF_ERROR(ReadCluster(cluster, folder, &access));
  if (user_name.empty()) return access;  // kubectl proxy needs none
  MUSTER_ASSIGN_OR_RETURN(const Named user, FindNamed(config, "users", "user", user_name, chosen.where));
  MUSTER_RETURN_IF_ERROR(ReadUser(user, cluster, folder, &access));
  return access;
}

StatusOr<ClusterAccess> ReadServiceAccount(const Environment& environment, const std::string& folder) {
  const auto host = environment.NonBlank("KUBERNETES_SERVICE_HOST");
  const auto port_text = environment.NonBlank("KUBERNETES_SERVICE_PORT");
  const auto port = ParseInt(port_text.value_or("443"));
  if (!host) return absl::NotFoundError("KUBERNETES_SERVICE_HOST is not set: this is not a pod");
  if (!port || *port < 1 || *port > 65535) {
    return absl::InvalidArgumentError(
        fmt::format("KUBERNETES_SERVICE_PORT is not a port: {}; unset it for 443", Quoted(*port_text)));
  }
  ClusterAccess access;
  access.server = fmt::format("https://{}", JoinHostPort(*host, static_cast<int>(*port)));
  if (auto url = http::ParseEndpointUrl(access.server); !url.ok()) {
    return Annotate(url.status(), fmt::format("KUBERNETES_SERVICE_HOST {}", Quoted(*host)));
  }
  access.token_file = folder + "/token";
  constexpr char kRemedy[] = "the pod needs a ServiceAccount whose token is mounted (automountServiceAccountToken)";
  auto token = ReadSettingsFile(access.token_file);
  if (!token.ok()) return WithRemedy(token.status(), kRemedy);
  auto ca = ReadSettingsFile(folder + "/ca.crt");
  if (!ca.ok()) return WithRemedy(ca.status(), kRemedy);
  access.ca_pem = *std::move(ca);
  if (auto ns = ReadSettingsFile(folder + "/namespace"); ns.ok() && !Strip(*ns).empty()) access.ns = Strip(*ns);
  MUSTER_ASSIGN_OR_RETURN(access.proxies, http::Proxies::Read(environment));
  return access;
}

StatusOr<ClusterAccess> FindCluster(const std::string& path, const std::string& context,
                                    const Environment& environment) {
  if (!path.empty()) return ReadKubeconfigFile(path, context, environment);
  const std::string listed = environment.NonBlank("KUBECONFIG").value_or("");
  for (std::string_view one : Split(listed, ':')) {
    const std::string file(one);
    if (!file.empty() && access(file.c_str(), F_OK) == 0) return ReadKubeconfigFile(file, context, environment);
  }
  if (!listed.empty()) {
    return absl::NotFoundError(fmt::format("KUBECONFIG names no file that is there: {}; correct or unset it", listed));
  }
  const std::string token = fmt::format("{}/token", kServiceAccountFolder);
  const bool pod = environment.NonBlank("KUBERNETES_SERVICE_HOST") && access(token.c_str(), F_OK) == 0;
  const std::string home = environment.NonBlank("HOME").value_or("");
  const std::string own = home + "/.kube/config";
  const bool has_own = !home.empty() && access(own.c_str(), F_OK) == 0;
  if (pod && context.empty()) return ReadServiceAccount(environment);
  if (has_own) return ReadKubeconfigFile(own, context, environment);
  return absl::NotFoundError(
      "no cluster is known: this is not a pod with a ServiceAccount, and there is no ~/.kube/config; give --kubeconfig "
      "FILE, or set KUBECONFIG");
}

}  // namespace muster::controller
