#include "controller/kube/client/protobuf_object.h"

#include <algorithm>
#include <utility>

#include "base/iso_time.h"
#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"
#include "controller/kube/client/protobuf_fields.h"

namespace muster::controller {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);
constexpr size_t kValueMemory = 192;              // bytes that a value takes, about, without its text
constexpr int64_t kLastSecond = 253'402'300'799;  // the end of the year 9999
constexpr int kLongestVarint = 10;                // bytes

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// A field of a message as it is on the wire.
struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      // of kVarint
  std::string_view bytes;  // of kBytes
  bool whole = true;       // false: `bytes` is a beginning
};

// Takes the fields off the front of a message. `whole`: false: it may end anywhere.
class WireReader {
 public:
  WireReader(std::string_view message, bool whole) : rest_(message), whole_(whole) {}

  // False: there is no further field.
  bool Next(WireField* field) {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    if (!Varint(&tag)) return Stop();
    field->number = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<WireType>(tag & 7);
    field->whole = true;
    switch (tag & 7) {
      case 0:
        return Varint(&field->value) || Stop();
      case 1:
        return Take(8, &field->bytes) || Stop();
      case 2:
        return (Varint(&field->value) && TakeText(field)) || Stop();
      case 5:
        return Take(4, &field->bytes) || Stop();
    }
    return Stop();
  }
  // False: a field was malformed, or the message ends inside one.
  bool ok() const { return whole_ ? !stopped_ : true; }

 private:
  bool Stop() {
    stopped_ = true;
    rest_ = {};
    return false;
  }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int at = 0; at < kLongestVarint && !rest_.empty(); ++at) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * at);
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Take(uint64_t size, std::string_view* bytes) {
    if (size > rest_.size()) return false;
    *bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool TakeText(WireField* field) {
    field->whole = field->value <= rest_.size();
    return Take(whole_ ? field->value : std::min<uint64_t>(field->value, rest_.size()), &field->bytes);
  }

  std::string_view rest_;
  const bool whole_;
  bool stopped_ = false;
};

// Builds the JSON of messages. Each function returns false if the bytes are malformed or the memory is used up.
class Builder {
 public:
  explicit Builder(size_t most_memory) : left_(most_memory) {}

  // Adds the declared fields to `object`. The depth is that of the declarations.
  bool Add(std::string_view bytes, bool whole, const ProtobufMessage& message, Json::object_t* object) {
    WireReader reader(bytes, whole);
    for (WireField wire; reader.Next(&wire);) {
      const auto field = std::find_if(message.fields.begin(), message.fields.end(),
                                      [&wire](const ProtobufField& each) { return each.number == wire.number; });
      if (field != message.fields.end() && !Add(wire, *field, object)) return false;
    }
    return reader.ok();
  }
  bool exhausted() const { return exhausted_; }

 private:
  using Kind = ProtobufField::Kind;

  bool Spend(size_t text) {
    const size_t memory = kValueMemory + text;
    exhausted_ = exhausted_ || memory > left_;
    if (!exhausted_) left_ -= memory;
    return !exhausted_;
  }

  // A field of another wire type than the declared one is skipped, as protobuf does.
  bool Add(const WireField& wire, const ProtobufField& field, Json::object_t* object) {
    switch (field.kind) {
      case Kind::kNumber:
        if (wire.type != WireType::kVarint) return true;
        (*object)[field.name] = static_cast<int64_t>(wire.value);
        return Spend(0);
      case Kind::kFlag:
        if (wire.type != WireType::kVarint) return true;
        (*object)[field.name] = wire.value != 0;
        return Spend(0);
      case Kind::kText:
        if (wire.type != WireType::kBytes || !wire.whole) return true;
        (*object)[field.name] = Text(wire.bytes);
        return Spend(wire.bytes.size());
      case Kind::kTexts:
        if (wire.type != WireType::kBytes || !wire.whole) return true;
        ListIn(field.name, object).emplace_back(Text(wire.bytes));
        return Spend(wire.bytes.size());
      case Kind::kTime:
        return wire.type != WireType::kBytes || AddTime(wire, field.name, object);
      case Kind::kMessage:
        if (wire.type != WireType::kBytes) return true;
        return Spend(0) && Add(wire.bytes, wire.whole, *field.message, &ObjectIn(field.name, object));
      case Kind::kMessages: {
        if (wire.type != WireType::kBytes) return true;
        Json& item = ListIn(field.name, object).emplace_back(Json::value_t::object);
        return Spend(0) && Add(wire.bytes, wire.whole, *field.message, &item.get_ref<Json::object_t&>());
      }
      case Kind::kTextMap:
      case Kind::kQuantities:
        return wire.type != WireType::kBytes || !wire.whole ||
               AddEntry(wire.bytes, field.kind == Kind::kQuantities, &ObjectIn(field.name, object));
    }
    return false;
  }

  bool AddTime(const WireField& wire, const char* name, Json::object_t* object) {
    int64_t seconds = 0;
    WireReader reader(wire.bytes, wire.whole);
    for (WireField part; reader.Next(&part);) {
      if (part.number == 1 && part.type == WireType::kVarint) seconds = static_cast<int64_t>(part.value);
    }
    if (!reader.ok()) return false;
    if (seconds <= 0 || seconds > kLastSecond) return true;
    (*object)[name] = IsoTime(WallTime(std::chrono::seconds(seconds)));
    return Spend(0);
  }

  // An entry of a map: {key, value}. The value of a quantity is a message {string}.
  bool AddEntry(std::string_view bytes, bool quantity, Json::object_t* map) {
    std::string_view key, value;
    WireReader reader(bytes, true);
    for (WireField part; reader.Next(&part);) {
      if (part.type != WireType::kBytes) continue;
      if (part.number == 1) key = part.bytes;
      if (part.number == 2) value = part.bytes;
    }
    if (!reader.ok()) return false;
    if (quantity) {
      WireReader inner(std::exchange(value, {}), true);
      for (WireField part; inner.Next(&part);) {
        if (part.number == 1 && part.type == WireType::kBytes) value = part.bytes;
      }
      if (!inner.ok()) return false;
    }
    (*map)[Text(key)] = Text(value);
    return Spend(key.size() + value.size());
  }

  // UTF-8: each byte that is not part of a character becomes U+FFFD.
  static std::string Text(std::string_view bytes) {
    if (IsUtf8(bytes)) return std::string(bytes);
    std::string text;
    while (!bytes.empty()) {
      const Utf8Character character = FirstCharacter(bytes);
      text += character.valid ? bytes.substr(0, character.size) : kReplacementCharacter;
      bytes.remove_prefix(character.size);
    }
    return text;
  }

  // The member `name`, which is made if it is missing.
  static Json::array_t& ListIn(const char* name, Json::object_t* object) {
    Json& list = (*object)[name];
    if (!list.is_array()) list = Json::array();
    return list.get_ref<Json::array_t&>();
  }
  static Json::object_t& ObjectIn(const char* name, Json::object_t* object) {
    Json& inner = (*object)[name];
    if (!inner.is_object()) inner = Json::object();
    return inner.get_ref<Json::object_t&>();
  }

  size_t left_;
  bool exhausted_ = false;
};

Status Malformed() { return absl::InvalidArgumentError("it is not an object in Kubernetes' protobuf"); }

StatusOr<Json> ReadObject(std::string_view bytes, bool whole, size_t most_memory) {
  if (!bytes.starts_with(kMagic)) return Malformed();
  std::string api_version, kind;
  WireField raw;
  WireReader unknown(bytes.substr(kMagic.size()), whole);
  for (WireField field; unknown.Next(&field);) {
    if (field.type != WireType::kBytes) continue;
    if (field.number == 2) raw = field;
    if (field.number == 3 && !field.bytes.empty()) return Malformed();  // contentEncoding: compressed
    if (field.number != 1) continue;
    WireReader type(field.bytes, whole);
    for (WireField part; type.Next(&part);) {
      if (part.type == WireType::kBytes) (part.number == 1 ? api_version : kind) = part.bytes;
    }
  }
  if (!unknown.ok()) return Malformed();
  const ProtobufMessage* message = ProtobufOf(api_version, kind);
  if (message == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("it is of kind {} of {}, which is not read from protobuf", Quoted(kind), Quoted(api_version)));
  }
  Json::object_t object;
  Builder builder(most_memory);
  const bool read = builder.Add(raw.bytes, raw.whole, *message, &object);
  if (builder.exhausted()) {
    return absl::ResourceExhaustedError(
        fmt::format("it has too many values: they would take more than {} MiB of memory", most_memory >> 20));
  }
  if (!read) return Malformed();
  object["apiVersion"] = std::move(api_version);
  object["kind"] = std::move(kind);
  return Json(std::move(object));
}

}  // namespace

Encoding EncodingOf(std::string_view content_type) {
  return Strip(content_type.substr(0, content_type.find(';'))) == kProtobufType ? Encoding::kProtobuf : Encoding::kJson;
}

StatusOr<Json> ReadProtobufObject(std::string_view bytes, size_t most_memory) {
  return ReadObject(bytes, true, most_memory);
}

StatusOr<Json> ReadProtobufEvent(std::string_view bytes, bool whole) {
  std::string_view type;
  WireField object, raw;
  WireReader event(bytes, whole);
  for (WireField field; event.Next(&field);) {
    if (field.type != WireType::kBytes) continue;
    if (field.number == 1) type = field.bytes;
    if (field.number == 2) object = field;
  }
  WireReader extension(object.bytes, object.whole);
  for (WireField field; extension.Next(&field);) {
    if (field.number == 1 && field.type == WireType::kBytes) raw = field;
  }
  if (!event.ok() || !extension.ok() || !IsUtf8(type)) return Malformed();
  MUSTER_ASSIGN_OR_RETURN(Json read, ReadObject(raw.bytes, raw.whole, kMostJsonMemory));
  Json::object_t told;
  told["type"] = std::string(type);
  told["object"] = std::move(read);
  return Json(std::move(told));
}

}  // namespace muster::controller
