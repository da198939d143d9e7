// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the shared files of AWS SDKs, and the settings read from them. The input is a config file, NUL, a
// credentials file, NUL, then variables NAME=VALUE with NULs between.
#include <cstdlib>

#include "base/text.h"
#include "http/endpoint_url.h"
#include "initializers/aws/identity.h"
#include "initializers/aws/settings.h"
#include "tests/fuzz/input.h"

namespace muster::initializers {
namespace {

void Fuzz(std::string_view text) {
  const auto parts = Split(text, '\0');
  Environment environment;
  for (size_t i = 2; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals != std::string_view::npos) environment.Set(parts[i].substr(0, equals), parts[i].substr(equals + 1));
  }
  auto read = [&parts](const std::string& path) -> StatusOr<std::string> {
    const size_t part = path.ends_with("config") ? 0 : 1;
    if (part >= parts.size()) return absl::NotFoundError(path);
    return std::string(parts[part]);
  };
  auto config = AwsConfig::Read(environment, read, "/home/u");
  if (!config.ok()) return;
  auto identity = FindAwsIdentity(*config);
  if (identity.ok()) {
    if (const auto* keys = std::get_if<StaticKeys>(&identity->who)) {
      const std::string all = keys->keys.access_key + keys->keys.secret_key + keys->keys.session_token;
      Must(!keys->keys.access_key.empty() && all.find_first_of("\r\n ") == std::string::npos);
    }
    if (const auto* process = std::get_if<CredentialProcess>(&identity->who)) {
      Must(!process->words.empty() && !process->words.front().empty());
    }
  }
  auto place = FindS3Place(*config, "bucket");
  if (place.ok()) {
    const S3Address address = AddressOf(*place, "bucket", "a b");
    Must(http::ParseEndpointUrl(address.origin).ok() && address.path.starts_with('/'));
    Must(address.path.find(' ') == std::string::npos);
  }
  auto sts = FindStsPlace(*config);
  if (sts.ok()) Must(http::ParseEndpointUrl(sts->endpoint).ok() && !sts->region.empty());
}

}  // namespace
}  // namespace muster::initializers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::initializers::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
