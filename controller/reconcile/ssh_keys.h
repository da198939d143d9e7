// Makes a key pair that OpenSSH accepts: ECDSA on the curve P-521, as Kubeflow Trainer does.
#pragma once

#include "base/status.h"
#include "controller/plan/frameworks/mpi_ssh.h"

namespace muster::controller {

// "-----BEGIN EC PRIVATE KEY-----..." and "ecdsa-sha2-nistp521 AAAA...", each with its newline. Unavailable: OpenSSL
// fails, for example without random bytes.
StatusOr<SshKeys> MakeSshKeys();

}  // namespace muster::controller
