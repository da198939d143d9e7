// SPDX-License-Identifier: Apache-2.0
// Kubernetes' protobuf on the wire (application/vnd.kubernetes.protobuf). Pure; untrusted input. Nothing is copied: the
// bytes must outlive what is returned. The time is linear in their length.
//
// An object is "k8s\0" and a runtime.Unknown {typeMeta, raw}, where `raw` is the object's own message. A watch's event
// is a meta/v1.WatchEvent {type, object {raw}}, where `raw` is an object in that form.
#pragma once

#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/object_view.h"

namespace muster::controller {

enum class Encoding { kJson, kProtobuf };

inline constexpr char kProtobufType[] = "application/vnd.kubernetes.protobuf";

// The encoding of an answer with this Content-Type, which may have parameters (";stream=watch").
Encoding EncodingOf(std::string_view content_type);

// InvalidArgument: the bytes are not an object of a declared kind (protobuf_fields.h), or are malformed. `whole`:
// false: they are the beginning of a longer object, of which only what is complete is there.
StatusOr<ObjectView> ReadProtobufObject(std::string_view bytes, bool whole = true);

struct ProtobufEvent {
  std::string_view type;  // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
  ObjectView object;
};
StatusOr<ProtobufEvent> ReadProtobufEvent(std::string_view bytes, bool whole = true);

// All declared fields as the JSON that the API server would send, with apiVersion and kind, for lists. InvalidArgument,
// ResourceExhausted: as above, and as ObjectView::ToJson.
StatusOr<Json> ProtobufAsJson(std::string_view bytes, size_t most_memory = kMostJsonMemory);

}  // namespace muster::controller
