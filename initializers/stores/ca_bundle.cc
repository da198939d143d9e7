// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/ca_bundle.h"

#include <vector>

#include "base/text.h"

namespace muster::initializers {
namespace {

constexpr std::string_view kAws = "AWS_CA_BUNDLE", kRequests = "REQUESTS_CA_BUNDLE", kCurl = "CURL_CA_BUNDLE",
                           kOpenSsl = "SSL_CERT_FILE", kOpenSslFolders = "SSL_CERT_DIR",
                           kFolder = "CA_BUNDLE_VOLUME_MOUNT_POINT", kConfigMap = "CA_BUNDLE_CONFIGMAP_NAME";

// kFolder stands for the pair kFolder and kConfigMap (KServe).
std::vector<std::string_view> InOrder(Scheme scheme) {
  switch (scheme) {
    case Scheme::kS3:
      return {kAws, kFolder, kRequests, kCurl, kOpenSsl};
    case Scheme::kHttp:
      return {kCurl, kOpenSsl, kRequests, kAws, kFolder};
    case Scheme::kGcs:
    case Scheme::kHuggingFace:
    case Scheme::kPvc:
    case Scheme::kFile:
      break;
  }
  return {kRequests, kCurl, kOpenSsl, kFolder};
}

std::string Value(const Environment& environment, std::string_view name) {
  return environment.NonBlank(name).value_or("");
}

}  // namespace

std::string FindCaBundle(Scheme scheme, const Environment& environment, std::string_view profile) {
  for (std::string_view name : InOrder(scheme)) {
    std::string value = Value(environment, name);
    if (name == kFolder) {
      if (!value.empty() && !Value(environment, kConfigMap).empty()) return value + "/cabundle.crt";
    } else if (!value.empty()) {
      return value;
    }
    if (name == kAws && !profile.empty()) return std::string(profile);
  }
  return "";
}

std::string FindCaFolders(const Environment& environment) { return Value(environment, kOpenSslFolders); }

std::string CaVariables(Scheme scheme) {
  std::vector<std::string> names;
  for (std::string_view name : InOrder(scheme)) names.emplace_back(name);
  names.emplace_back(kOpenSslFolders);
  return Join(names, ", ");
}

}  // namespace muster::initializers
