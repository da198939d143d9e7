// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/trainer_status.h"

#include "base/text.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

// Upstream's names. Callbacks of the SDK and of Transformers read these files.
constexpr char kVolume[] = "kubeflow-trainer-token";
constexpr char kFolder[] = "/var/run/secrets/kubeflow/trainer";
constexpr char kToken[] = "token", kAuthority[] = "ca.crt";
constexpr int kTokenSeconds = 3600;  // the kubelet renews the token after 80 % of this time

}  // namespace

std::string TrainerStatusPath(std::string_view ns, std::string_view name) {
  return fmt::format("{}{}/trainjobs/{}/status", kStatusPosts, ns, name);
}

std::string TrainerStatusAudience(std::string_view ns, std::string_view name) {
  return TrainerStatusPath(ns, name).substr(std::string_view("/apis/").size());
}

void AddStatusServer(const StatusServerAddress& server, Draft* draft) {
  const Meta& job = draft->job.meta;
  const std::string config_map = fmt::format("{}-tls-config", job.name);
  const Json variables = Json::array({
      EnvValue("KUBEFLOW_TRAINER_SERVER_URL", server.url + TrainerStatusPath(job.ns, job.name)),
      EnvValue("KUBEFLOW_TRAINER_SERVER_CA_CERT", fmt::format("{}/{}", kFolder, kAuthority)),
      EnvValue("KUBEFLOW_TRAINER_SERVER_TOKEN", fmt::format("{}/{}", kFolder, kToken)),
  });
  const Json token = {
      {"audience", TrainerStatusAudience(job.ns, job.name)}, {"expirationSeconds", kTokenSeconds}, {"path", kToken}};
  const Json item = {{"key", kAuthority}, {"path", kAuthority}};
  const Json sources = Json::array(
      {{{"serviceAccountToken", token}}, {{"configMap", {{"name", config_map}, {"items", Json::array({item})}}}}});
  bool any = false;
  for (ReplicatedJob& of : draft->jobs) {
    if (of.step != Step::kTrainer) continue;
    any = true;
    Json& pod = PodSpec(of.job_template);
    for (Json& container : pod["containers"]) {
      AddMissingEnv(variables, &container);
      MountVolume(kVolume, {{"projected", {{"sources", sources}}}}, kFolder, MountMode::kReadOnly, &pod, &container);
    }
  }
  if (!any) return;
  PlannedObject planned;
  planned.object = {{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", config_map}}},
                    {"data", {{kAuthority, server.ca}}}};
  planned.if_there = PlannedObject::IfThere::kUpdate;  // the authority may have changed before a resume
  draft->objects.push_back(std::move(planned));
}

}  // namespace muster::controller
