// Which certificates to trust beside the system's: the variables that the clients of each kind of source read, in their
// order, and SSL_CERT_DIR beside them. Pure.
//
//   s3     AWS_CA_BUNDLE, the profile's ca_bundle, KServe's, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE
//   hf     REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE, KServe's
//   gs     the same
//   https  CURL_CA_BUNDLE, SSL_CERT_FILE, REQUESTS_CA_BUNDLE, AWS_CA_BUNDLE, KServe's
//
// KServe's is CA_BUNDLE_VOLUME_MOUNT_POINT/cabundle.crt where CA_BUNDLE_CONFIGMAP_NAME is set.
// docs/initializers.md has the order of each source for users.
#pragma once

#include <string>
#include <string_view>

#include "initializers/settings.h"
#include "initializers/source.h"

namespace muster::initializers {

// A file, or a folder (ca_places.h); empty: the system's. `profile`: ca_bundle of the chosen AWS profile.
std::string FindCaBundle(Scheme scheme, const Environment& environment, std::string_view profile = "");

// Those of SSL_CERT_DIR, with ':' between. An image may set it for all its programs: they may hold nothing.
std::string FindCaFolders(const Environment& environment);

// "AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE": for people.
std::string CaVariables(Scheme scheme);

}  // namespace muster::initializers
