// SPDX-License-Identifier: Apache-2.0
// The settings of the AWS SDKs: the environment and the chosen profile of the shared files. aws/settings.h and
// aws/identity.h read from here. Pure, except for the functions passed in.
//
// Files: AWS_CONFIG_FILE (~/.aws/config) and AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials); a missing one: empty.
// The profile: AWS_DEFAULT_PROFILE, AWS_PROFILE, "default", in botocore's order. For a key in both, the credentials
// file wins.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "initializers/facts/ini_file.h"
#include "initializers/facts/settings.h"

namespace muster::initializers {

struct AwsSetting {
  std::string value;   // without surrounding white space; never empty
  std::string origin;  // for messages: "AWS_REGION", "region in profile dev of ~/.aws/config"
};

struct AwsProfile {
  std::string name;
  IniSection config, credentials;             // of each file; keys and nested keys in the form of ini_file.h
  std::string config_path, credentials_path;  // for messages

  std::optional<AwsSetting> Get(std::string_view key) const;
  bool Has(std::string_view key) const { return Get(key).has_value(); }
};

class AwsConfig {
 public:
  // InvalidArgument: a file that cannot be parsed. FailedPrecondition: the named profile is in neither file. Errors of
  // `read` other than NotFound are passed on. `name_of`: for origins, the name of what gives a variable its value.
  static StatusOr<AwsConfig> Read(const Environment& environment, const ReadText& read, const std::string& home,
                                  const NameVariable& name_of = nullptr);

  std::string NameOfVariable(std::string_view variable) const;  // for messages

  // The first variable that is set to more than white space.
  std::optional<AwsSetting> Env(std::initializer_list<std::string_view> names) const;
  // The first variable that is set, else the first key of the profile.
  std::optional<AwsSetting> Find(std::initializer_list<std::string_view> names,
                                 std::initializer_list<std::string_view> keys) const;
  // The same for a boolean (true, false, 1, 0, yes, no, on, off). InvalidArgument: any other text.
  StatusOr<bool> Flag(std::initializer_list<std::string_view> names, std::initializer_list<std::string_view> keys,
                      bool otherwise) const;

  const AwsProfile& profile() const { return profile_; }  // the chosen one; empty: there is no "default"
  std::optional<AwsProfile> FindProfile(std::string_view name) const;
  // The section [sso-session NAME] or [services NAME]; null: there is none.
  const IniSection* FindSection(std::string_view kind, std::string_view name) const;
  const std::string& config_path() const { return config_path_; }
  // A sentence for each missing file that a variable names: "AWS_CONFIG_FILE names /x, which is not there".
  const std::vector<std::string>& missing() const { return missing_; }
  const std::string& home() const { return home_; }
  const Environment& environment() const { return environment_; }

 private:
  AwsConfig() = default;

  StatusOr<IniFile> ReadFile(const ReadText& read, std::string_view variable, std::string_view otherwise,
                             std::string* path);

  Environment environment_;
  NameVariable name_of_;
  std::string home_;
  IniFile config_, credentials_;
  std::string config_path_, credentials_path_;
  std::vector<std::string> missing_;
  AwsProfile profile_;
};

}  // namespace muster::initializers
