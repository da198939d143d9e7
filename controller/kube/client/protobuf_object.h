// Reads objects in Kubernetes' protobuf (application/vnd.kubernetes.protobuf) as the JSON that the API server would
// send of them, with the declared fields only (protobuf_fields.h). A pod of 9 KB of JSON takes a fifth of the time.
// Pure; untrusted input. The time is linear in the length of the bytes.
//
// An object on the wire is "k8s\0" and a runtime.Unknown {typeMeta, raw}, where `raw` is the object's own message. A
// watch's event is a meta/v1.WatchEvent {type, object {raw}}, where `raw` is an object in that form.
//
// What protobuf always sends and JSON leaves out, such as an empty text, 0 and false, is there. A time is left out if
// it is not set.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

enum class Encoding { kJson, kProtobuf };

inline constexpr char kProtobufType[] = "application/vnd.kubernetes.protobuf";

// The encoding of an answer with this Content-Type, which may have parameters (";stream=watch").
Encoding EncodingOf(std::string_view content_type);

// InvalidArgument: the bytes are not an object of a declared kind; ResourceExhausted: its values take more than
// `most_memory` bytes, about.
StatusOr<Json> ReadProtobufObject(std::string_view bytes, size_t most_memory = kMostJsonMemory);

// {type, object}. `whole`: false: the bytes are the beginning of a longer event, of which only what is complete is
// read.
StatusOr<Json> ReadProtobufEvent(std::string_view bytes, bool whole = true);

}  // namespace muster::controller
