// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/token.h"

#include "base/text.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr char kKey[] = "token";
constexpr char kVolume[] = "muster-token";
constexpr char kFolder[] = "/muster-token";
constexpr char kVariable[] = "MUSTER_TOKEN_FILE";
constexpr size_t kUidLetters = 8;

}  // namespace

std::string OwnSecretName(const Meta& job, std::string_view purpose) {
  std::string name = fmt::format("{}-{}", job.name, purpose);
  if (!job.uid.empty()) name += fmt::format("-{}", job.uid.substr(0, kUidLetters));
  return name;
}

PlannedObject OwnSecret(const std::string& name, PlannedObject::Fill fill) {
  PlannedObject planned;
  planned.object = {{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", name}}}, {"immutable", true}};
  // An existing Secret has the job's uid in its name, so an earlier call made it. The controller does not read Secrets.
  planned.if_there = PlannedObject::IfThere::kUse;
  planned.fill = fill;
  return planned;
}

std::string TokenSecretName(const Meta& job) { return OwnSecretName(job, kKey); }

PlannedObject TokenSecret(const Meta& job) { return OwnSecret(TokenSecretName(job), PlannedObject::Fill::kToken); }

bool HasOwnToken(const Json& container) { return FindNamed(container, "env", kVariable) != nullptr; }

void MountToken(const std::string& secret, Json* pod, Json* container) {
  UpsertEnvFirst(Json::array({EnvValue(kVariable, fmt::format("{}/{}", kFolder, kKey))}), container);
  MountVolume(kVolume, {{"secret", {{"secretName", secret}}}}, kFolder, MountMode::kReadOnly, pod, container);
}

Json WithToken(Json secret, const std::string& token) {
  secret["stringData"][kKey] = token;
  return secret;
}

}  // namespace muster::controller
