// A key pair that OpenSSH takes: ECDSA on the curve P-521, as upstream makes it.
#pragma once

#include "base/status.h"
#include "controller/plan/mpi_ssh.h"

namespace muster::controller {

// "-----BEGIN EC PRIVATE KEY-----" and "ecdsa-sha2-nistp521 AAAA...", each with its line end. Unavailable: OpenSSL has
// no random bytes.
StatusOr<SshKeys> MakeSshKeys();

}  // namespace muster::controller
