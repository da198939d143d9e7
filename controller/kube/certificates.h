// The webhooks' certificates: an authority of Muster's own and what it signs (ECDSA P-256). Pure but for the random
// numbers of keys; outside bytes.
//
// The authority keeps its key and its name when it is renewed. So what it has signed before and after is trusted by
// whom knows its old certificate, or its new one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// PEM texts; empty: not there.
struct CertificateSet {
  std::string ca, ca_key;        // the authority
  std::string certificate, key;  // the server's, signed by it
  bool operator==(const CertificateSet&) const = default;
};

// Of a Secret: keys ca.crt, ca.key, tls.crt, tls.key. Empty texts where it has none, or no Base64.
CertificateSet ReadCertificateSecret(const Json& secret);
// Of type kubernetes.io/tls, to be created.
Json NewCertificateSecret(std::string_view ns, std::string_view name, const CertificateSet& set);
// A merge patch of `secret` as it was seen. Its type, which cannot be changed, may be another one's choice.
Json CertificateSecretPatch(const Json& secret, const CertificateSet& set);

struct CertificateStep {
  CertificateSet set;    // to serve with; where it is not the given one, it has to be stored first
  bool changed = false;  // it is not
  WallTime renew;        // when to ask again
};
// What can be used of `given` is kept: an authority and a certificate within two thirds of their lives (10 years, 1
// year) that belong together and name `names`.front(). `names`: of the server, DNS names or addresses.
StatusOr<CertificateStep> NextCertificates(const CertificateSet& given, const std::vector<std::string>& names,
                                           WallTime now);

// A caBundle (PEM) in which `ca` is, too: of `bundle`, as it is where it has it; else with the others that are still
// valid: replicas with another authority go on being trusted.
std::string BundleWith(std::string_view bundle, const std::string& ca, WallTime now);

// The configuration `webhooks` with such a caBundle (Base64) in each clientConfig, as a merge patch with its
// resourceVersion; null: nothing is to be changed.
Json BundlePatch(const Json& configuration, const std::string& ca, WallTime now);

}  // namespace muster::controller
