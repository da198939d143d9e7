// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/config.h"

#include "base/quoted.h"
#include "base/text.h"

namespace muster::initializers {
namespace {

// A section's name: "profile dev", "profile\tdev" -> dev; "profile 'my dev'" -> my dev. Nullopt: other kind, no name.
std::optional<std::string_view> NameOf(std::string_view section, std::string_view kind) {
  if (!section.starts_with(kind)) return std::nullopt;
  const std::string_view rest = section.substr(kind.size());
  std::string_view name = Strip(rest);
  if (name.empty() || name.data() == rest.data()) return std::nullopt;
  if (name.size() > 2 && (name[0] == '"' || name[0] == '\'') && name.back() == name[0]) {
    name = name.substr(1, name.size() - 2);
  }
  return name;
}

const IniSection* Named(const IniFile& file, std::string_view kind, std::string_view name) {
  for (const auto& [section, values] : file) {
    if (NameOf(section, kind) == name) return &values;
  }
  return nullptr;
}

const IniSection* ProfileIn(const IniFile& config, std::string_view name) {
  if (const IniSection* found = Named(config, "profile", name)) return found;
  auto bare = config.find(name);
  return name == "default" && bare != config.end() ? &bare->second : nullptr;
}

std::optional<std::string> ValueIn(const IniSection& section, std::string_view key) {
  auto found = section.find(key);
  if (found == section.end() || Strip(found->second).empty()) return std::nullopt;
  return std::string(Strip(found->second));
}

}  // namespace

std::optional<AwsSetting> AwsProfile::Get(std::string_view key) const {
  const std::pair<const IniSection&, const std::string&> files[] = {{credentials, credentials_path},
                                                                    {config, config_path}};
  for (const auto& [section, path] : files) {
    if (auto value = ValueIn(section, key)) {
      return AwsSetting{*std::move(value), fmt::format("{} in profile {} of {}", key, name, path)};
    }
  }
  return std::nullopt;
}

StatusOr<IniFile> AwsConfig::ReadFile(const ReadText& read, std::string_view variable, std::string_view otherwise,
                                      std::string* path) {
  const auto named = Env({variable});
  if (named) {
    *path = named->value.starts_with("~/") && !home_.empty() ? home_ + named->value.substr(1) : named->value;
  } else if (!home_.empty()) {
    *path = home_ + std::string(otherwise);
  } else {
    return IniFile();
  }
  auto text = read(*path);
  if (absl::IsNotFound(text.status())) {
    if (named) missing_.push_back(fmt::format("{} names {}, which is not there", variable, *path));
    return IniFile();
  }
  if (!text.ok()) return Annotate(text.status(), fmt::format("the AWS settings in {} cannot be read", *path));
  return ParseIni(*text, *path);
}

StatusOr<AwsConfig> AwsConfig::Read(const Environment& environment, const ReadText& read, const std::string& home,
                                    const NameVariable& name_of) {
  AwsConfig config;
  config.environment_ = environment;
  config.name_of_ = name_of;
  config.home_ = home;
  MUSTER_ASSIGN_OR_RETURN(config.config_,
                          config.ReadFile(read, "AWS_CONFIG_FILE", "/.aws/config", &config.config_path_));
  MUSTER_ASSIGN_OR_RETURN(config.credentials_, config.ReadFile(read, "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials",
                                                               &config.credentials_path_));
  const auto chosen = config.Env({"AWS_DEFAULT_PROFILE", "AWS_PROFILE"});
  const std::string name = chosen ? chosen->value : "default";
  if (auto profile = config.FindProfile(name)) {
    config.profile_ = *std::move(profile);
  } else if (chosen) {
    return absl::FailedPreconditionError(
        fmt::format("{} names the profile {}, which is in neither {} nor {}{}", chosen->origin, Quoted(name),
                    config.config_path_.empty() ? "~/.aws/config" : config.config_path_,
                    config.credentials_path_.empty() ? "~/.aws/credentials" : config.credentials_path_,
                    config.missing_.empty() ? "" : fmt::format(" ({})", Join(config.missing_, "; "))));
  } else {
    config.profile_.name = name;
  }
  return config;
}

std::string AwsConfig::NameOfVariable(std::string_view variable) const {
  return name_of_ ? name_of_(variable) : std::string(variable);
}

std::optional<AwsSetting> AwsConfig::Env(std::initializer_list<std::string_view> names) const {
  for (std::string_view name : names) {
    if (auto value = environment_.NonBlank(name)) return AwsSetting{*std::move(value), NameOfVariable(name)};
  }
  return std::nullopt;
}

std::optional<AwsSetting> AwsConfig::Find(std::initializer_list<std::string_view> names,
                                          std::initializer_list<std::string_view> keys) const {
  if (auto found = Env(names)) return found;
  for (std::string_view key : keys) {
    if (auto found = profile_.Get(key)) return found;
  }
  return std::nullopt;
}

StatusOr<bool> AwsConfig::Flag(std::initializer_list<std::string_view> names,
                               std::initializer_list<std::string_view> keys, bool otherwise) const {
  const auto found = Find(names, keys);
  if (!found) return otherwise;
  if (auto flag = ParseFlag(found->value)) return *flag;
  return absl::InvalidArgumentError(
      fmt::format("{} is {}; it must be true or false", found->origin, Quoted(found->value)));
}

std::optional<AwsProfile> AwsConfig::FindProfile(std::string_view name) const {
  const IniSection* in_config = ProfileIn(config_, name);
  auto in_credentials = credentials_.find(name);
  if (!in_config && in_credentials == credentials_.end()) return std::nullopt;
  AwsProfile profile{.name = std::string(name), .config_path = config_path_, .credentials_path = credentials_path_};
  if (in_config) profile.config = *in_config;
  if (in_credentials != credentials_.end()) profile.credentials = in_credentials->second;
  return profile;
}

const IniSection* AwsConfig::FindSection(std::string_view kind, std::string_view name) const {
  return Named(config_, kind, name);
}

}  // namespace muster::initializers
