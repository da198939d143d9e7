// SPDX-License-Identifier: Apache-2.0
// An object of the cluster, or a part of one, as a server has sent it: JSON, or a message of Kubernetes' protobuf. One
// code reads both. Nothing is copied: the JSON or the bytes must outlive the view. Pure; untrusted input.
//
// A field of a wrong kind counts as absent. In protobuf a field is only there if protobuf_fields.h declares it. What
// protobuf always sends and JSON leaves out reads the same: an empty text, 0, false, a time that is not set.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "controller/api/meta.h"
#include "controller/api/protobuf_fields.h"
#include "controller/api/wire_reader.h"

namespace muster::controller {

class ObjectView {
 public:
  ObjectView() = default;                         // absent: it has no fields
  ObjectView(const Json& json) : json_(&json) {}  // NOLINT(google-explicit-constructor): any JSON can be viewed
  // `whole`: false: the bytes are the beginning of a longer message.
  ObjectView(std::string_view bytes, const ProtobufMessage& message, bool whole = true)
      : bytes_(bytes), message_(&message), whole_(whole) {}

  const Json* json() const { return json_; }  // null: it is absent, or protobuf
  bool Has(const char* name) const;           // JSON's null and an empty text count as absent
  ObjectView Part(const char* name) const;    // absent: has no fields either
  std::vector<ObjectView> List(const char* name) const;
  size_t Count(const char* name) const;  // of a list

  std::string Text(const char* name) const;  // UTF-8; empty: absent
  bool Is(const char* name, std::string_view text) const;
  bool HasText(const char* name, std::string_view text) const;      // in a list of texts
  std::string Entry(const char* name, std::string_view key) const;  // of a map of texts or quantities; empty: absent
  std::optional<int> Int(const char* name, int least = 0) const;    // nullopt: also one that does not fit
  int Number(const char* name) const { return Int(name).value_or(0); }
  bool Flag(const char* name) const;
  std::optional<WallTime> Time(const char* name) const;

  // `metadata`, as ReadMeta of JSON. Of labels and annotations only those with `keys`.
  StatusOr<Meta> Metadata(std::span<const std::string_view> keys) const;

  // All declared fields, for lists, which stay JSON. ResourceExhausted: the values take more than `most_memory` bytes,
  // about. Of a view of JSON: that.
  StatusOr<Json> ToJson(size_t most_memory = kMostJsonMemory) const;

  // False: a message inside is malformed: a field ends behind the end.
  bool IsWellFormed() const;

 private:
  const ProtobufField* Declared(std::string_view name) const;  // null: the view is of JSON, or has no such field
  // The last field of that name and wire type; nullopt: there is none.
  std::optional<WireField> Last(const char* name, WireType type) const;
  template <class Visit>
  void Each(const char* name, Visit visit) const;

  const Json* json_ = nullptr;
  std::string_view bytes_;
  const ProtobufMessage* message_ = nullptr;
  bool whole_ = true;
};

}  // namespace muster::controller
