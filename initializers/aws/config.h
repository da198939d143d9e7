// The settings of the AWS SDKs as one: the environment and the chosen profile of the shared files. What aws/settings.h
// reads its answers from. Pure but for the seams it is given.
//
// Files: AWS_CONFIG_FILE (~/.aws/config) and AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials); one that is not there is
// empty. The profile: AWS_DEFAULT_PROFILE, AWS_PROFILE, "default", in botocore's order. A key that both files give a
// profile is that of the credentials file.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "initializers/ini_file.h"
#include "initializers/settings.h"

namespace muster::initializers {

struct AwsSetting {
  std::string value;   // without white space around it, never empty
  std::string origin;  // for people: "AWS_REGION", "region in profile dev of ~/.aws/config"
};

struct AwsProfile {
  std::string name;
  IniSection config, credentials;             // either file's; keys and nested keys as ini_file.h has them
  std::string config_path, credentials_path;  // for messages

  std::optional<AwsSetting> Get(std::string_view key) const;
  bool Has(std::string_view key) const { return Get(key).has_value(); }
};

class AwsConfig {
 public:
  // InvalidArgument: a file that cannot be parsed. FailedPrecondition: a profile is named that is in neither file.
  // Errors of `read` but NotFound are passed on.
  // `name_of`: of variables that something else stands for; origins have it.
  static StatusOr<AwsConfig> Read(const Environment& environment, const ReadText& read, const std::string& home,
                                  const NameVariable& name_of = nullptr);

  std::string NameOfVariable(std::string_view variable) const;  // for people

  // The first variable that is set, and not to white space alone.
  std::optional<AwsSetting> Env(std::initializer_list<std::string_view> names) const;
  // The first variable, or key of the profile.
  std::optional<AwsSetting> Find(std::initializer_list<std::string_view> names,
                                 std::initializer_list<std::string_view> keys) const;
  // The same for true and false (also 1, 0, yes, no, on, off). InvalidArgument: none of them.
  StatusOr<bool> Flag(std::initializer_list<std::string_view> names, std::initializer_list<std::string_view> keys,
                      bool otherwise) const;

  const AwsProfile& profile() const { return profile_; }  // the chosen one; empty where "default" is not there
  std::optional<AwsProfile> FindProfile(std::string_view name) const;
  // [sso-session NAME], [services NAME]; null: there is none.
  const IniSection* FindSection(std::string_view kind, std::string_view name) const;
  const std::string& config_path() const { return config_path_; }
  // A file that a variable names and that is not there: "AWS_CONFIG_FILE names /x, which is not there".
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
