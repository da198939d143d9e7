#include "initializers/storage_config.h"

#include <map>
#include <memory>

#include "base/json_fields.h"
#include "base/text.h"
#include "initializers/quoted.h"

namespace muster::initializers {
namespace {

constexpr char kConfig[] = "STORAGE_CONFIG", kOverride[] = "STORAGE_OVERRIDE_CONFIG";

// Of the variables that mean the same, the one that is looked at first.
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"endpoint_url", "AWS_ENDPOINT_URL_S3"},
    {"access_key_id", "AWS_ACCESS_KEY_ID"},
    {"secret_access_key", "AWS_SECRET_ACCESS_KEY"},
    {"region", "AWS_REGION"},
    {"ca_bundle", "AWS_CA_BUNDLE"},
    {"verify_ssl", "S3_VERIFY_SSL"},
    {"anonymous", "awsAnonymousCredential"},
};

using Variables = std::map<std::string, std::string, std::less<>>;

StatusOr<Json> ReadObject(const Getenv& getenv, const char* name) {
  const auto text = GetVariable(getenv, name);
  if (!text) return Json::object();
  Json object = ReadJson(*text);
  if (object.is_object()) return object;
  return absl::InvalidArgumentError(fmt::format("{} is no JSON object", name));  // which holds keys: it is not shown
}

StatusOr<std::string> TextOf(const Json& value, const char* name) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number_integer()) return WriteJson(value);
  return absl::InvalidArgumentError(fmt::format("{}: '{}' is no text", kConfig, name));
}

}  // namespace

StatusOr<Getenv> WithStorageConfig(const Getenv& getenv, std::string_view uri) {
  MUSTER_ASSIGN_OR_RETURN(Json config, ReadObject(getenv, kConfig));
  MUSTER_ASSIGN_OR_RETURN(const Json over, ReadObject(getenv, kOverride));
  config.update(over);
  if (config.empty()) return getenv;
  if (const std::string type = TextField(config, "type"); type != "s3") {
    return absl::InvalidArgumentError(fmt::format("{} is of the type {}, and {} of s3", kConfig, Quoted(type), uri));
  }
  auto said = std::make_shared<Variables>();
  for (const auto& [name, variable] : kVariables) {
    const Json* value = FindField(config, name);
    if (value == nullptr) continue;
    MUSTER_ASSIGN_OR_RETURN((*said)[variable], TextOf(*value, name));
  }
  if (said->contains("AWS_ACCESS_KEY_ID")) {  // a token is of other keys
    for (const char* token : {"AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"}) (*said)[token] = "";
  }
  return Getenv([getenv, said](std::string_view name) -> std::optional<std::string> {
    const auto found = said->find(name);
    return found == said->end() ? getenv(name) : found->second;
  });
}

}  // namespace muster::initializers
