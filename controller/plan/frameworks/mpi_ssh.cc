// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/frameworks/mpi_ssh.h"

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/token.h"

namespace muster::controller {
namespace {

constexpr char kVolume[] = "mpi-ssh-auth";
constexpr char kPrivate[] = "ssh-privatekey", kPublic[] = "ssh-publickey";

// ssh refuses a private key that its user owns and others can read. The kubelet makes root the owner of the files. So
// another user needs a key that the pod's fsGroup can read, or all users if there is none.
int ModeOfKey(const std::string& path, const Json& pod, const Json& container) {
  const Json* user = SecurityField(pod, container, "runAsUser");
  if (user == nullptr ? path == kSshFolderOfRoot : *user == 0) return 0600;
  return PartOf(pod, "securityContext", "fsGroup").is_null() ? 0644 : 0640;
}

Json Item(const char* key, const char* path, int mode) { return {{"key", key}, {"path", path}, {"mode", mode}}; }

std::string SecretName(const TrainJob& job) { return OwnSecretName(job.meta, kVolume); }

}  // namespace

PlannedObject SshSecret(const TrainJob& job) {
  PlannedObject planned = OwnSecret(SecretName(job), PlannedObject::Fill::kSshKeys);
  planned.object["type"] = "kubernetes.io/ssh-auth";
  return planned;
}

Json WithSshKeys(Json secret, const SshKeys& keys) {
  secret["stringData"] = {{kPrivate, keys.private_key}, {kPublic, keys.public_key}};
  return secret;
}

bool MountsSshKeys(const Json& pod) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : ListField(pod, list)) {
      for (const Json& mount : ListField(container, "volumeMounts")) {
        if (TextField(mount, "name") == kVolume) return true;
      }
    }
  }
  return false;
}

void MountSshKeys(const TrainJob& job, const std::string& path, ReplicatedJob* of) {
  Json& pod = PodSpec(of->job_template);
  Json* container = FindNamed(pod, "containers", kTrainerContainer);
  const int mode = ModeOfKey(path, pod, container == nullptr ? Json() : *container);
  const Json items = Json::array(
      {Item(kPrivate, "id_rsa", mode), Item(kPublic, "id_rsa.pub", 0644), Item(kPublic, "authorized_keys", 0644)});
  MountVolume(kVolume, {{"secret", {{"secretName", SecretName(job)}, {"defaultMode", 0400}, {"items", items}}}}, path,
              MountMode::kWritable, &pod, container);
}

}  // namespace muster::controller
