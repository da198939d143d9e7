// SPDX-License-Identifier: Apache-2.0
// Access control for the control port: a bearer token per job, and mutual TLS. Both are optional and read from files.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::net {

struct Credentials {
  std::string token;     // empty: no token is required
  std::string tls_cert;  // PEM text; all three of cert, key and CA are set, or none
  std::string tls_key;
  std::string tls_ca;
  bool tls() const { return !tls_ca.empty(); }
};

// Paths of the files; empty: not given. From --rdzv-conf (token_file, tls_cert, tls_key, tls_ca) or MUSTER_TOKEN_FILE,
// MUSTER_TLS_CERT, MUSTER_TLS_KEY, MUSTER_TLS_CA.
struct CredentialFiles {
  std::string token;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
};

// Reads the files. InvalidArgument names the file that is missing, empty or larger than 1 MiB, the token file that is
// not one word of printable ASCII, the TLS file that is missing beside others, or the fault that CheckTls finds.
StatusOr<Credentials> ReadCredentials(const CredentialFiles& files);

// InvalidArgument names the part that is not a PEM, or says that the key does not belong to the certificate. gRPC would
// fail later, without an explanation.
Status CheckTls(const Credentials& credentials);

// Compares in a time that does not depend on where the texts differ.
bool SameToken(std::string_view expected, std::string_view given);

}  // namespace muster::net
