// SPDX-License-Identifier: Apache-2.0
// The webhooks' certificates: Muster's own certificate authority and the server certificate that it signs (ECDSA
// P-256). Pure, except for the random numbers of keys; untrusted input.
//
// A renewed authority keeps its key and its name. So a client that knows its old or its new certificate trusts all that
// it has signed, before and after the renewal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// PEM texts; empty: absent.
struct CertificateSet {
  std::string ca, ca_key;        // the authority
  std::string certificate, key;  // the server's, signed by the authority
  bool operator==(const CertificateSet&) const = default;
};

// Reads ca.crt, ca.key, tls.crt and tls.key of a Secret. A key that is absent or no Base64 gives an empty text.
CertificateSet ReadCertificateSecret(const Json& secret);
// A new Secret of type kubernetes.io/tls.
Json NewCertificateSecret(std::string_view ns, std::string_view name, const CertificateSet& set);
// A merge patch for `secret`, with its resourceVersion. The type stays: it is immutable, and others may have chosen it.
Json CertificateSecretPatch(const Json& secret, const CertificateSet& set);

struct CertificateStep {
  CertificateSet set;    // to serve with
  bool changed = false;  // `set` differs from the given one, so it has to be stored before it is served
  WallTime renew;        // when to call NextCertificates again
};
// Keeps what is usable of `given` and makes the rest: an authority (life 10 years) and a certificate (1 year) can be
// used for two thirds of their lives, if the authority has signed the certificate and that names `names`.front().
// `names`: DNS names or addresses of the server.
StatusOr<CertificateStep> NextCertificates(const CertificateSet& given, const std::vector<std::string>& names,
                                           WallTime now);

// A caBundle (PEM) with `ca`: `bundle` itself, if it has it; else `ca` and the certificates of `bundle` that are still
// valid, so that replicas with another authority are trusted.
std::string BundleWith(std::string_view bundle, const std::string& ca, WallTime now);

// A merge patch that puts such a caBundle (Base64) into each clientConfig of `configuration`, a webhook configuration.
// It contains the resourceVersion. Null: nothing has to change.
Json BundlePatch(const Json& configuration, const std::string& ca, WallTime now);

}  // namespace muster::controller
