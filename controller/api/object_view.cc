// SPDX-License-Identifier: Apache-2.0
#include "controller/api/object_view.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/iso_time.h"
#include "base/text.h"
#include "base/utf8.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

using Kind = ProtobufField::Kind;

constexpr size_t kValueMemory = 192;              // bytes that a value of JSON takes, about, without its text
constexpr int64_t kLastSecond = 253'402'300'799;  // the end of the year 9999

// As UTF-8: each byte that is not part of a character becomes U+FFFD.
std::string AsText(std::string_view bytes) {
  if (IsUtf8(bytes)) return std::string(bytes);
  std::string text;
  while (!bytes.empty()) {
    const Utf8Character character = FirstCharacter(bytes);
    text += character.valid ? bytes.substr(0, character.size) : kReplacementCharacter;
    bytes.remove_prefix(character.size);
  }
  return text;
}

// meta/v1.Time {seconds}. nullopt: it is not set.
std::optional<WallTime> AsTime(std::string_view bytes) {
  int64_t seconds = 0;
  WireReader reader(bytes);
  for (WireField part; reader.Next(&part);) {
    if (part.number == 1 && part.type == WireType::kVarint) seconds = static_cast<int64_t>(part.value);
  }
  if (seconds <= 0 || seconds > kLastSecond) return std::nullopt;
  return WallTime(std::chrono::seconds(seconds));
}

// The bytes of field `number`.
std::string_view BytesOf(std::string_view message, uint32_t number) {
  std::string_view bytes;
  WireReader reader(message);
  for (WireField part; reader.Next(&part);) {
    if (part.number == number && part.type == WireType::kBytes) bytes = part.bytes;
  }
  return bytes;
}

// An entry of a map {key, value}. The value of a quantity is a message {string}.
std::pair<std::string_view, std::string_view> EntryOf(std::string_view bytes, Kind kind) {
  const std::string_view value = BytesOf(bytes, 2);
  return {BytesOf(bytes, 1), kind == Kind::kQuantities ? BytesOf(value, 1) : value};
}

bool IsMessage(Kind kind) { return kind == Kind::kMessage || kind == Kind::kMessages; }

WireType WireTypeOf(Kind kind) {
  return kind == Kind::kNumber || kind == Kind::kFlag ? WireType::kVarint : WireType::kBytes;
}

bool IsWellFormedMessage(std::string_view bytes) {
  WireReader reader(bytes);
  for (WireField part; reader.Next(&part);) {
  }
  return reader.ok();
}

// Builds the JSON of messages. Each function returns false if the memory is used up.
class Builder {
 public:
  explicit Builder(size_t most_memory) : left_(most_memory) {}

  // Adds the declared fields to `object`. The depth is that of the declarations.
  bool Add(std::string_view bytes, const ProtobufMessage& message, Json::object_t* object) {
    WireReader reader(bytes);
    for (WireField wire; reader.Next(&wire);) {
      const auto field = std::find_if(message.fields.begin(), message.fields.end(),
                                      [&wire](const ProtobufField& each) { return each.number == wire.number; });
      if (field == message.fields.end() || WireTypeOf(field->kind) != wire.type) continue;
      if (!Spend(wire.type == WireType::kBytes && !IsMessage(field->kind) ? wire.bytes.size() : 0)) return false;
      if (!Add(wire, *field, object)) return false;
    }
    return true;
  }

 private:
  bool Spend(size_t text) {
    const size_t memory = kValueMemory + text;
    if (memory > left_) return false;
    left_ -= memory;
    return true;
  }

  bool Add(const WireField& wire, const ProtobufField& field, Json::object_t* object) {
    Json& value = (*object)[std::string(field.name)];
    switch (field.kind) {
      case Kind::kNumber:
        value = static_cast<int64_t>(wire.value);
        return true;
      case Kind::kFlag:
        value = wire.value != 0;
        return true;
      case Kind::kText:
        value = AsText(wire.bytes);
        return true;
      case Kind::kTexts:
        value.push_back(AsText(wire.bytes));
        return true;
      case Kind::kTime: {
        const auto time = AsTime(wire.bytes);
        value = time ? Json(IsoTime(*time)) : Json();
        return true;
      }
      case Kind::kMessage:
        if (value.is_null()) value = Json::object();
        return Add(wire.bytes, *field.message, &value.get_ref<Json::object_t&>());
      case Kind::kMessages:
        value.push_back(Json::object());
        return Add(wire.bytes, *field.message, &value.back().get_ref<Json::object_t&>());
      case Kind::kTextMap:
      case Kind::kQuantities: {
        const auto [key, text] = EntryOf(wire.bytes, field.kind);
        value[AsText(key)] = AsText(text);
        return true;
      }
    }
    return true;
  }

  size_t left_;
};

bool Holds(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

const ProtobufField* ObjectView::Declared(std::string_view name) const {
  if (message_ == nullptr) return nullptr;
  for (const ProtobufField& field : message_->fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

template <class Visit>
void ObjectView::Each(const char* name, Visit visit) const {
  const ProtobufField* field = Declared(name);
  if (field == nullptr) return;
  WireReader reader(bytes_, whole_);
  for (WireField wire; reader.Next(&wire);) {
    if (wire.number == field->number && wire.type == WireTypeOf(field->kind)) visit(*field, wire);
  }
}

std::optional<WireField> ObjectView::Last(const char* name, WireType type) const {
  std::optional<WireField> last;
  Each(name, [&](const ProtobufField&, const WireField& wire) {
    if (wire.type == type) last = wire;
  });
  return last;
}

bool ObjectView::Has(const char* name) const {
  if (json_ != nullptr) {
    const Json* field = FindField(*json_, name);
    return field != nullptr && !(field->is_string() && field->get_ref<const std::string&>().empty());
  }
  bool any = false;
  Each(name, [&any](const ProtobufField& field, const WireField& wire) {
    any = field.kind != Kind::kText || !wire.bytes.empty();
  });
  return any;
}

ObjectView ObjectView::Part(const char* name) const {
  if (json_ != nullptr) return PartOf(*json_, name);
  ObjectView part;
  Each(name, [&part](const ProtobufField& field, const WireField& wire) {
    if (field.kind == Kind::kMessage) part = ObjectView(wire.bytes, *field.message, wire.whole);
  });
  return part;
}

std::vector<ObjectView> ObjectView::List(const char* name) const {
  std::vector<ObjectView> list;
  if (json_ != nullptr) {
    for (const Json& item : ListField(*json_, name)) list.emplace_back(item);
  }
  Each(name, [&list](const ProtobufField& field, const WireField& wire) {
    if (field.kind == Kind::kMessages) list.emplace_back(wire.bytes, *field.message, wire.whole);
  });
  return list;
}

size_t ObjectView::Count(const char* name) const {
  if (json_ != nullptr) return ListField(*json_, name).size();
  size_t count = 0;
  Each(name, [&count](const ProtobufField&, const WireField&) { ++count; });
  return count;
}

std::string ObjectView::Text(const char* name) const {
  if (json_ != nullptr) return TextField(*json_, name);
  const auto wire = Last(name, WireType::kBytes);
  return wire && wire->whole ? AsText(wire->bytes) : "";
}

bool ObjectView::Is(const char* name, std::string_view text) const {
  if (json_ != nullptr) return TextField(*json_, name) == text;
  const auto wire = Last(name, WireType::kBytes);
  return wire && wire->whole ? wire->bytes == text : text.empty();
}

bool ObjectView::HasText(const char* name, std::string_view text) const {
  bool found = false;
  if (json_ != nullptr) {
    for (const Json& item : ListField(*json_, name)) found = found || item == text;
  }
  Each(name, [&](const ProtobufField&, const WireField& wire) { found = found || wire.bytes == text; });
  return found;
}

std::string ObjectView::Entry(const char* name, std::string_view key) const {
  if (json_ != nullptr) return TextField(PartOf(*json_, name), std::string(key).c_str());
  std::string value;
  Each(name, [&](const ProtobufField& field, const WireField& wire) {
    const auto [its, text] = EntryOf(wire.bytes, field.kind);
    if (its == key) value = AsText(text);
  });
  return value;
}

std::optional<int> ObjectView::Int(const char* name, int least) const {
  if (json_ != nullptr) return IntField(*json_, name, least);
  const auto wire = Last(name, WireType::kVarint);
  if (!wire || !std::in_range<int>(static_cast<int64_t>(wire->value))) return std::nullopt;
  const int number = static_cast<int>(static_cast<int64_t>(wire->value));
  return number < least ? std::nullopt : std::optional(number);
}

bool ObjectView::Flag(const char* name) const {
  if (json_ != nullptr) return FlagField(*json_, name, false);
  const auto wire = Last(name, WireType::kVarint);
  return wire && wire->value != 0;
}

std::optional<WallTime> ObjectView::Time(const char* name) const {
  if (json_ != nullptr) return TimeField(*json_, name);
  const auto wire = Last(name, WireType::kBytes);
  return wire && wire->whole ? AsTime(wire->bytes) : std::nullopt;
}

StatusOr<Meta> ObjectView::Metadata(std::span<const std::string_view> keys) const {
  Meta meta;
  if (json_ != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(meta, ReadMeta(*json_));
    for (auto* texts : {&meta.labels, &meta.annotations}) {
      std::erase_if(*texts, [&keys](const auto& text) { return !Holds(keys, text.first); });
    }
    return meta;
  }
  const ObjectView metadata = Part("metadata");
  meta.name = metadata.Text("name");
  if (meta.name.empty()) return absl::InvalidArgumentError("metadata.name: it is missing");
  meta.ns = metadata.Text("namespace");
  meta.uid = metadata.Text("uid");
  meta.resource_version = metadata.Text("resourceVersion");
  if (const auto wire = metadata.Last("generation", WireType::kVarint)) {
    meta.generation = std::max<int64_t>(0, static_cast<int64_t>(wire->value));
  }
  meta.created = metadata.Time("creationTimestamp");
  meta.deleted = metadata.Time("deletionTimestamp");
  for (auto [name, texts] : {std::pair("labels", &meta.labels), std::pair("annotations", &meta.annotations)}) {
    metadata.Each(name, [&keys, texts = texts](const ProtobufField& field, const WireField& wire) {
      const auto [key, text] = EntryOf(wire.bytes, field.kind);
      if (Holds(keys, key)) (*texts)[std::string(key)] = AsText(text);
    });
  }
  for (const ObjectView& owner : metadata.List("ownerReferences")) {
    meta.owners.push_back({.api_version = owner.Text("apiVersion"),
                           .kind = owner.Text("kind"),
                           .name = owner.Text("name"),
                           .uid = owner.Text("uid"),
                           .controller = owner.Flag("controller")});
  }
  return meta;
}

StatusOr<Json> ObjectView::ToJson(size_t most_memory) const {
  if (json_ != nullptr) return *json_;
  Json::object_t object;
  if (message_ == nullptr || Builder(most_memory).Add(bytes_, *message_, &object)) return Json(std::move(object));
  return absl::ResourceExhaustedError(
      fmt::format("it has too many values: they would take more than {} MiB of memory", most_memory >> 20));
}

bool ObjectView::IsWellFormed() const {
  if (message_ == nullptr) return true;
  WireReader reader(bytes_, whole_);
  for (WireField wire; reader.Next(&wire);) {
    const auto field = std::find_if(message_->fields.begin(), message_->fields.end(),
                                    [&wire](const ProtobufField& each) { return each.number == wire.number; });
    if (field == message_->fields.end() || wire.type != WireType::kBytes || !wire.whole) continue;
    switch (field->kind) {
      case Kind::kText:
      case Kind::kTexts:
      case Kind::kNumber:
      case Kind::kFlag:
        break;
      case Kind::kTime:
      case Kind::kTextMap:
        if (!IsWellFormedMessage(wire.bytes)) return false;
        break;
      case Kind::kQuantities:
        if (!IsWellFormedMessage(wire.bytes) || !IsWellFormedMessage(BytesOf(wire.bytes, 2))) return false;
        break;
      case Kind::kMessage:
      case Kind::kMessages:
        if (!ObjectView(wire.bytes, *field->message).IsWellFormed()) return false;
        break;
    }
  }
  return reader.ok();
}

}  // namespace muster::controller
