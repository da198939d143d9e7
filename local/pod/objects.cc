// SPDX-License-Identifier: Apache-2.0
#include "local/pod/objects.h"

#include "base/base64.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster::local {

using namespace controller;

namespace {

// The remedy for an object that is not there.
std::string HowToGive(std::string_view kind, std::string_view name) {
  return fmt::format("give it by {} {}=DIR, or as a file by -f", kind == "Secret" ? "--secret" : "--config-map", name);
}

// The decoded values of `field`. Complaints do not show the values, which may be secret.
std::map<std::string, std::string> Decoded(Fields object, const char* field, std::string_view field_of_texts) {
  std::map<std::string, std::string> values = object.TextMap(field);
  for (auto& [key, value] : values) {
    if (auto raw = FromBase64(value); raw.ok()) {
      value = *std::move(raw);
    } else {
      object.complaints()->Wrong(
          PathOf(field, key), fmt::format("it is not Base64; encode it, or put it into {} as it is", field_of_texts));
    }
  }
  return values;
}

Status Read(const Json& object, ObjectData* data) {
  Complaints complaints;
  Fields fields(&object, "", &complaints);
  if (data->kind == "Secret") {
    data->texts = Decoded(fields, "data", "stringData");
    for (auto& [key, value] : fields.TextMap("stringData")) data->texts[key] = value;
  } else {
    data->texts = fields.TextMap("data");
    data->bytes = Decoded(fields, "binaryData", "data");
  }
  return complaints.status();
}

}  // namespace

const std::string* ObjectData::Find(const std::string& key) const {
  for (const auto* values : {&texts, &bytes}) {
    if (const auto found = values->find(key); found != values->end()) return &found->second;
  }
  return nullptr;
}

StatusOr<std::optional<ObjectData>> DataOf(Fields use, const char* name_field, std::string_view kind,
                                           const FindObject& find) {
  ObjectData data{.kind = std::string(kind), .name = use.NeedText(name_field), .texts = {}, .bytes = {}};
  const bool optional = use.Flag("optional", false);
  MUSTER_RETURN_IF_ERROR(use.complaints()->status());
  const Json* object = find(kind, data.name);
  if (object == nullptr && optional) return std::optional<ObjectData>();
  if (object == nullptr) {
    return absl::NotFoundError(fmt::format("{}: there is no {} {}: {}", use.PathOf(name_field), kind, Quoted(data.name),
                                           HowToGive(kind, data.name)));
  }
  MUSTER_RETURN_IF_ERROR(
      Annotate(Read(*object, &data), fmt::format("{}: {} {}", use.PathOf(name_field), kind, Quoted(data.name))));
  return std::optional(std::move(data));
}

Status NoSuchKey(std::string_view path, std::string_view key, const ObjectData& data) {
  std::vector<std::string> keys;
  for (const auto* values : {&data.texts, &data.bytes}) {
    for (const auto& [known, value] : *values) keys.push_back(known);
  }
  return absl::NotFoundError(fmt::format("{}: {} {} has no key {}; it has {}", path, data.kind, Quoted(data.name),
                                         Quoted(key), keys.empty() ? "none" : Quoted(Join(keys, ", "))));
}

}  // namespace muster::local
