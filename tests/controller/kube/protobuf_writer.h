// SPDX-License-Identifier: Apache-2.0
// Writes objects in Kubernetes' protobuf, by the same declarations as the reader. tests/controller/kube/data has what a
// real API server writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/iso_time.h"
#include "base/json_fields.h"
#include "controller/api/lenient.h"
#include "controller/api/protobuf_fields.h"

namespace muster::controller::protobuf {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string Number(uint32_t number, int64_t value) {
  return Varint(number << 3) + Varint(static_cast<uint64_t>(value));
}
inline std::string Text(uint32_t number, std::string_view text) {
  return Varint(number << 3 | 2) + Varint(text.size()) + std::string(text);
}

std::string Message(const Json& object, const ProtobufMessage& message);

inline std::string Field(const Json& value, const ProtobufField& field) {
  using Kind = ProtobufField::Kind;
  std::string bytes;
  switch (field.kind) {
    case Kind::kText:
      return Text(field.number, value.get<std::string>());
    case Kind::kTexts:
      for (const Json& text : value) bytes += text.is_string() ? Text(field.number, text.get<std::string>()) : "";
      return bytes;
    case Kind::kNumber:
      return Number(field.number, value.get<int64_t>());
    case Kind::kFlag:
      return Number(field.number, value.get<bool>() ? 1 : 0);
    case Kind::kTime:
      return Text(field.number, Number(1, *ParseIsoTime(value.get<std::string>())) + Number(2, 0));
    case Kind::kMessage:
      return Text(field.number, Message(value, *field.message));
    case Kind::kMessages:
      for (const Json& item : value) bytes += Text(field.number, Message(item, *field.message));
      return bytes;
    case Kind::kTextMap:
    case Kind::kQuantities:
      for (const auto& [key, entry] : value.items()) {
        const std::string text = entry.get<std::string>();
        const bool quantity = field.kind == Kind::kQuantities;
        bytes += Text(field.number, Text(1, key) + Text(2, quantity ? Text(1, text) : text));
      }
      return bytes;
  }
  return bytes;
}

// The declared fields of `object`. A field that is not declared is left out.
inline std::string Message(const Json& object, const ProtobufMessage& message) {
  std::string bytes;
  for (const ProtobufField& field : message.fields) {
    if (const Json* value = FindField(object, std::string(field.name).c_str())) bytes += Field(*value, field);
  }
  return bytes;
}

// "k8s\0" and an Unknown with `message`.
inline std::string Envelope(std::string_view api_version, std::string_view kind, std::string_view message) {
  return std::string("k8s\0", 4) + Text(1, Text(1, api_version) + Text(2, kind)) + Text(2, message) + Text(3, "") +
         Text(4, "");
}
// `object` has apiVersion and kind.
inline std::string Object(const Json& object) {
  const std::string api_version = TextField(object, "apiVersion"), kind = TextField(object, "kind");
  return Envelope(api_version, kind, Message(object, *ProtobufOf(api_version, kind)));
}
// {type, object}
inline std::string Event(std::string_view type, std::string_view object) {
  return Text(1, type) + Text(2, Text(1, object));
}
// With its length before it.
inline std::string Frame(std::string_view event) {
  std::string head;
  for (int shift = 24; shift >= 0; shift -= 8) head += static_cast<char>(event.size() >> shift);
  return head + std::string(event);
}

}  // namespace muster::controller::protobuf
