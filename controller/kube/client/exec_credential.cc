// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/exec_credential.h"

#include "base/iso_time.h"
#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster::controller {

std::string ExecInfo(const ClusterAccess::Exec& plugin) {
  Json spec = {{"interactive", false}};
  if (!plugin.cluster_info.empty()) spec["cluster"] = ReadJsonTop(plugin.cluster_info, kFieldLevels);
  return WriteJson(Json{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", spec}});
}

StatusOr<ExecCredential> ReadExecCredential(std::string_view text, std::string_view api_version) {
  const Json json = ReadJsonTop(text, kFieldLevels);
  if (!json.is_object()) return absl::InvalidArgumentError("its stdout is not a JSON object");
  if (TextField(json, "kind") != "ExecCredential" || TextField(json, "apiVersion") != api_version) {
    return absl::InvalidArgumentError(
        fmt::format("its answer is {} of {}, not ExecCredential of {}; let the kubeconfig's apiVersion be the plugin's",
                    Quoted(TextField(json, "kind")), Quoted(TextField(json, "apiVersion")), api_version));
  }
  const Json* status = FindField(json, "status");
  if (status == nullptr || !status->is_object()) return absl::InvalidArgumentError("its answer has no 'status'");
  JsonFields fields(*status, "status: ");
  ExecCredential credential;
  credential.token = fields.Text("token");
  credential.client_certificate = fields.Text("clientCertificateData");
  credential.client_key = fields.Text("clientKeyData");
  const std::string expires = fields.Text("expirationTimestamp");
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (!IsVisible(credential.token)) {
    return absl::InvalidArgumentError("status: 'token' has white space or control characters in it");
  }
  if (credential.client_certificate.empty() != credential.client_key.empty()) {
    return absl::InvalidArgumentError("status: of 'clientCertificateData' and 'clientKeyData' one is missing");
  }
  if (credential.token.empty() && credential.client_key.empty()) {
    return absl::InvalidArgumentError("status: it has neither 'token' nor 'clientCertificateData'");
  }
  if (!expires.empty()) {
    auto time = ParseIsoTime(expires);
    if (!time.ok()) return Annotate(time.status(), "status: 'expirationTimestamp'");
    credential.expires = *time;
  }
  return credential;
}

}  // namespace muster::controller
