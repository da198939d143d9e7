// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/protobuf_object.h"

#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"
#include "controller/api/wire_reader.h"

namespace muster::controller {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);

Status Malformed() { return absl::InvalidArgumentError("it is not an object in Kubernetes' protobuf"); }

// runtime.Unknown
struct Envelope {
  std::string_view api_version, kind;
  WireField raw;
};

StatusOr<Envelope> ReadEnvelope(std::string_view bytes, bool whole) {
  if (!bytes.starts_with(kMagic)) return Malformed();
  Envelope envelope;
  WireReader unknown(bytes.substr(kMagic.size()), whole);
  for (WireField field; unknown.Next(&field);) {
    if (field.type != WireType::kBytes) continue;
    if (field.number == 2) envelope.raw = field;
    if (field.number == 3 && !field.bytes.empty()) return Malformed();  // contentEncoding: it is compressed
    if (field.number != 1) continue;
    WireReader type(field.bytes, whole);
    for (WireField part; type.Next(&part);) {
      if (part.type == WireType::kBytes) (part.number == 1 ? envelope.api_version : envelope.kind) = part.bytes;
    }
  }
  if (!unknown.ok()) return Malformed();
  return envelope;
}

StatusOr<ObjectView> ViewOf(const Envelope& envelope) {
  const ProtobufMessage* message = ProtobufOf(envelope.api_version, envelope.kind);
  if (message == nullptr) {
    return absl::InvalidArgumentError(fmt::format("it is of kind {} of {}, which is not read from protobuf",
                                                  Quoted(envelope.kind), Quoted(envelope.api_version)));
  }
  const ObjectView object(envelope.raw.bytes, *message, envelope.raw.whole);
  if (!object.IsWellFormed()) return Malformed();
  return object;
}

}  // namespace

Encoding EncodingOf(std::string_view content_type) {
  return Strip(content_type.substr(0, content_type.find(';'))) == kProtobufType ? Encoding::kProtobuf : Encoding::kJson;
}

StatusOr<ObjectView> ReadProtobufObject(std::string_view bytes, bool whole) {
  MUSTER_ASSIGN_OR_RETURN(const Envelope envelope, ReadEnvelope(bytes, whole));
  return ViewOf(envelope);
}

StatusOr<ProtobufEvent> ReadProtobufEvent(std::string_view bytes, bool whole) {
  ProtobufEvent read;
  WireField object, raw;
  WireReader event(bytes, whole);
  for (WireField field; event.Next(&field);) {
    if (field.type != WireType::kBytes) continue;
    if (field.number == 1) read.type = field.bytes;
    if (field.number == 2) object = field;
  }
  WireReader extension(object.bytes, object.whole);
  for (WireField field; extension.Next(&field);) {
    if (field.number == 1 && field.type == WireType::kBytes) raw = field;
  }
  if (!event.ok() || !extension.ok()) return Malformed();
  MUSTER_ASSIGN_OR_RETURN(read.object, ReadProtobufObject(raw.bytes, raw.whole));
  return read;
}

StatusOr<Json> ProtobufAsJson(std::string_view bytes, size_t most_memory) {
  MUSTER_ASSIGN_OR_RETURN(const Envelope envelope, ReadEnvelope(bytes, true));
  MUSTER_ASSIGN_OR_RETURN(const ObjectView object, ViewOf(envelope));
  MUSTER_ASSIGN_OR_RETURN(Json json, object.ToJson(most_memory));
  json["apiVersion"] = envelope.api_version;
  json["kind"] = envelope.kind;
  return json;
}

}  // namespace muster::controller
