// SPDX-License-Identifier: Apache-2.0
// Which certificates to trust in addition to those of the system. For each kind of source these are the variables that
// its usual clients read, in their order; SSL_CERT_DIR is read for all. Pure.
//
//   s3     AWS_CA_BUNDLE, the profile's ca_bundle, KServe's, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE
//   hf     REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE, KServe's
//   gs     the same as hf
//   https  CURL_CA_BUNDLE, SSL_CERT_FILE, REQUESTS_CA_BUNDLE, AWS_CA_BUNDLE, KServe's
//
// "KServe's" is the file CA_BUNDLE_VOLUME_MOUNT_POINT/cabundle.crt if CA_BUNDLE_CONFIGMAP_NAME is set.
// docs/initializers.md has the order of each source for users.
#pragma once

#include <string>
#include <string_view>

#include "initializers/facts/settings.h"
#include "initializers/facts/source.h"

namespace muster::initializers {

// A file or a folder (http/ca_places.h); empty: only the system's. `profile`: ca_bundle of the chosen AWS profile.
std::string FindCaBundle(Scheme scheme, const Environment& environment, std::string_view profile = "");

// The folders of SSL_CERT_DIR, with ':' between. An image may set it for all its programs: they may be empty.
std::string FindCaFolders(const Environment& environment);

// "AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE": the variables of that kind of source, for messages.
std::string CaVariables(Scheme scheme);

}  // namespace muster::initializers
