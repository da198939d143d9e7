// SPDX-License-Identifier: Apache-2.0
// The tokens and SSH keys of jobs. They are derived from the controller's master key (HKDF with SHA-256, RFC 5869), so
// a Secret that was deleted is made again with the content that it had: pods that started with the deleted one and new
// pods can still talk to each other. The controller cannot read the Secrets of jobs. Pure but for NewMasterKey().
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "controller/plan/frameworks/mpi_ssh.h"

namespace muster::controller {

inline constexpr size_t kMasterKeyBytes = 32;

// Random bytes. Unavailable: OpenSSL has none.
StatusOr<std::string> NewMasterKey();

// The Secret that a value is for. Another job, or another Secret of the job, gets another value.
struct SecretOf {
  std::string_view uid;   // of the job
  std::string_view name;  // of the Secret
};

// 64 hexadecimal digits. Unavailable: OpenSSL fails.
StatusOr<std::string> DerivedToken(std::string_view master_key, const SecretOf& of);

// A key pair that OpenSSH accepts: ECDSA on the curve P-521, as Kubeflow Trainer makes. "-----BEGIN EC PRIVATE KEY..."
// and "ecdsa-sha2-nistp521 AAAA...", each with its newline. Unavailable: OpenSSL fails.
StatusOr<SshKeys> DerivedSshKeys(std::string_view master_key, const SecretOf& of);

}  // namespace muster::controller
