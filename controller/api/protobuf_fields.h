// SPDX-License-Identifier: Apache-2.0
// Which fields of which objects are read from Kubernetes' protobuf. Numbers and names are upstream's: k8s.io/api
// core/v1 and batch/v1 (generated.proto), k8s.io/apimachinery meta/v1. Pure.
//
// A field that is not declared here is skipped. Its bytes cost nothing but a look at their length.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace muster::controller {

struct ProtobufMessage;

struct ProtobufField {
  enum class Kind {
    kText,
    kTexts,       // repeated
    kNumber,      // int32 or int64
    kFlag,        // bool
    kTime,        // meta/v1.Time, to the second
    kMessage,     // `message`
    kMessages,    // repeated
    kTextMap,     // map<string, string>
    kQuantities,  // map<string, resource.Quantity>
  };
  uint32_t number;
  std::string_view name;  // in JSON
  Kind kind = Kind::kText;
  const ProtobufMessage* message = nullptr;  // of kMessage and kMessages
};

struct ProtobufMessage {
  std::span<const ProtobufField> fields;
};

// The declared fields of an object, or of a list of objects ("PodList"). Null: objects of that kind are read from JSON
// only.
const ProtobufMessage* ProtobufOf(std::string_view api_version, std::string_view kind);

}  // namespace muster::controller
