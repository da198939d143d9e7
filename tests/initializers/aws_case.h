// SPDX-License-Identifier: Apache-2.0
// A made-up environment and home folder for tests of the AWS settings.
#pragma once

#include <map>
#include <string>

#include "initializers/aws/config.h"

namespace muster::initializers {

inline constexpr char kHome[] = "/home/u";
inline constexpr char kConfigPath[] = "/home/u/.aws/config";
inline constexpr char kCredentialsPath[] = "/home/u/.aws/credentials";

struct AwsCase {
  std::map<std::string, std::string, std::less<>> variables;
  std::string config, credentials;           // empty: no such file
  std::map<std::string, std::string> files;  // others, by path

  Environment Variables() const {
    Environment environment;
    for (const auto& [name, value] : variables) environment.Set(name, value);
    return environment;
  }
  ReadText Files() const {
    return [this](const std::string& path) -> StatusOr<std::string> {
      if (path == kConfigPath && !config.empty()) return config;
      if (path == kCredentialsPath && !credentials.empty()) return credentials;
      auto found = files.find(path);
      if (found == files.end()) return absl::NotFoundError(path);
      if (found->second == "denied") return absl::PermissionDeniedError("permission denied");
      return found->second;
    };
  }
};

}  // namespace muster::initializers
