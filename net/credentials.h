// Who may speak on the control port: a per-job bearer token and mutual TLS, both optional, both from files.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::net {

struct Credentials {
  std::string token;     // empty: none asked for
  std::string tls_cert;  // PEM text; all three or none
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

// Reads them. InvalidArgument names the file that is missing, empty, larger than 1 MiB, or lacks its partners, or is no
// PEM.
StatusOr<Credentials> ReadCredentials(const CredentialFiles& files);

// InvalidArgument names the part that is no PEM, or a key that is not the certificate's. gRPC would only fail later,
// and without a word.
Status CheckTls(const Credentials& credentials);

// Equality in a time that does not depend on where the texts differ.
bool SameToken(std::string_view expected, std::string_view given);

}  // namespace muster::net
