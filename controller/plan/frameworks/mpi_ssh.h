// SPDX-License-Identifier: Apache-2.0
// ssh for an MPI job whose image needs sshd: a key pair in a Secret of the job, mounted where ssh and sshd look for it.
// Pure.
#pragma once

#include <string>

#include "base/json_fields.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/plan.h"

namespace muster::controller {

inline constexpr char kSshFolderOfRoot[] = "/root/.ssh";

struct SshKeys {
  std::string private_key;  // PEM
  std::string public_key;   // a line of authorized_keys
};

// The Secret <job>-mpi-ssh-auth-<the first letters of the job's uid>, without the keys. It is immutable.
PlannedObject SshSecret(const TrainJob& job);

// SshSecret() with the keys in it.
Json WithSshKeys(Json secret, const SshKeys& keys);

// Whether a container of the pod mounts the volume of the keys by its name, for example to copy them.
bool MountsSshKeys(const Json& pod);

// Mounts the keys at `path` in the container `node` of `of`, if it has one, with file modes that ssh and sshd accept
// for its user.
void MountSshKeys(const TrainJob& job, const std::string& path, ReplicatedJob* of);

}  // namespace muster::controller
