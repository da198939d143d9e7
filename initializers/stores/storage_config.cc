// SPDX-License-Identifier: Apache-2.0
#include "initializers/stores/storage_config.h"

#include <map>
#include <memory>

#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster::initializers {
namespace {

constexpr char kAccessKey[] = "AWS_ACCESS_KEY_ID", kSecretKey[] = "AWS_SECRET_ACCESS_KEY";
constexpr char kConfig[] = "STORAGE_CONFIG", kOverride[] = "STORAGE_OVERRIDE_CONFIG";

// Field -> the variable that it sets: of those with its meaning, the first that is read.
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"endpoint_url", "AWS_ENDPOINT_URL_S3"}, {"access_key_id", kAccessKey},
    {"secret_access_key", kSecretKey},       {"region", "AWS_REGION"},
    {"ca_bundle", "AWS_CA_BUNDLE"},          {"verify_ssl", "S3_VERIFY_SSL"},
    {"anonymous", "awsAnonymousCredential"},
};

// The value that replaces a variable, and the name of its field.
struct Said {
  std::string value, name;
};
using SaidInstead = std::map<std::string, Said, std::less<>>;

StatusOr<Json> ReadObject(const Environment& environment, const char* name) {
  const auto text = environment.NonBlank(name);
  if (!text) return Json::object();
  StatusOr<Json> object = ReadJson(*text, kFieldLevels);
  if (!object.ok()) return absl::InvalidArgumentError(fmt::format("{} {}", name, Message(object.status())));
  if (object->is_object()) return object;
  return absl::InvalidArgumentError(fmt::format("{} is not a JSON object", name));  // its text may hold keys
}

StatusOr<std::string> TextOf(const Json& value, const std::string& name) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number_integer()) return WriteJson(value);
  return absl::InvalidArgumentError(fmt::format("{} is not text", name));
}

}  // namespace

StatusOr<S3Variables> WithStorageConfig(const Environment& environment, std::string_view uri) {
  MUSTER_ASSIGN_OR_RETURN(Json config, ReadObject(environment, kConfig));
  MUSTER_ASSIGN_OR_RETURN(const Json over, ReadObject(environment, kOverride));
  const char* typed = over.contains("type") || config.empty() ? kOverride : kConfig;
  config.update(over);
  auto said = std::make_shared<SaidInstead>();
  if (!config.empty()) {
    if (const std::string type = TextField(config, "type"); type != "s3") {
      return absl::InvalidArgumentError(fmt::format("{} is of the type {}, but {} needs s3", typed, Quoted(type), uri));
    }
    for (const auto& [field, variable] : kVariables) {
      const Json* value = FindField(config, field);
      if (value == nullptr) continue;
      std::string name = fmt::format("{} of {}", field, over.contains(field) ? kOverride : kConfig);
      MUSTER_ASSIGN_OR_RETURN(std::string text, TextOf(*value, name));
      (*said)[variable] = {std::move(text), std::move(name)};
    }
  }
  // The pod's other key and its token belong to other credentials.
  if (said->contains(kAccessKey) || said->contains(kSecretKey)) {
    said->try_emplace(kAccessKey, Said{"", fmt::format("access_key_id of {}", kConfig)});
    said->try_emplace(kSecretKey, Said{"", fmt::format("secret_access_key of {}", kConfig)});
    for (const char* token : {"AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"}) (*said)[token] = {"", token};
  }
  S3Variables variables{.environment = environment, .name_of = [said](std::string_view variable) {
                          const auto found = said->find(variable);
                          return found == said->end() ? std::string(variable) : found->second.name;
                        }};
  for (const auto& [variable, instead] : *said) variables.environment.Set(variable, instead.value);
  return variables;
}

}  // namespace muster::initializers
