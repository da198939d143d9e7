// The ssh layout of an MPI job, where its image insists on sshd: a key pair in a Secret of the job, mounted where ssh
// and sshd look. Pure.
#pragma once

#include <string>

#include "base/json_fields.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/plan.h"

namespace muster::controller {

struct SshKeys {
  std::string private_key;  // PEM
  std::string public_key;   // a line of authorized_keys
};

// <job>-mpi-ssh-auth-<the first letters of the job's uid>, without the keys. It cannot be changed.
PlannedObject SshSecret(const TrainJob& job);

// The Secret of a plan, with the keys in it.
Json WithSshKeys(Json secret, const SshKeys& keys);

// Mounts the keys at `path` in the container `node` of `of`, with modes that ssh and sshd of its user accept.
void MountSshKeys(const TrainJob& job, const std::string& path, ReplicatedJob* of);

}  // namespace muster::controller
