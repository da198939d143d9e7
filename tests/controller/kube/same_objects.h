// SPDX-License-Identifier: Apache-2.0
// Compares what an API server sends of the same objects in protobuf and in JSON.
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/kube/client/protobuf_object.h"
#include "controller/reconcile/observed.h"
#include "tests/controller/kube/protobuf_writer.h"

namespace muster::controller {

// Drops what protobuf always sends and JSON leaves out.
inline void DropDefaults(Json* json) {
  if (json->is_array()) {
    for (Json& item : *json) DropDefaults(&item);
  }
  if (!json->is_object()) return;
  for (auto member = json->begin(); member != json->end();) {
    DropDefaults(&*member);
    const bool is_default = member->is_null() || *member == "" || *member == 0 || *member == false;
    member = is_default ? json->erase(member) : std::next(member);
  }
}

inline std::string FileAt(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Whether the readers of a pod, or of a Job, read the same from both encodings.
template <class Object>
bool ReadsTheSame(StatusOr<Object> (*read)(const ObjectView& object), const ObjectView& a, const ObjectView& b) {
  const auto first = read(a), second = read(b);
  return first.ok() && second.ok() && *first == *second;
}

// Empty: each object of the list in the file `protobuf` has the same declared fields as the object of the same
// resourceVersion in the file `json`, and means the same. An object of which the other file has another version is left
// out.
inline std::string Difference(const std::string& protobuf, const std::string& json) {
  const std::string bytes = FileAt(protobuf);
  const auto read = ReadProtobufObject(bytes);
  if (!read.ok()) return std::string(Message(read.status()));
  const auto list = ReadJson(FileAt(json), 200);
  if (!list.ok()) return std::string(Message(list.status()));
  const bool pods = TextField(*list, "kind") == "PodList";
  const ProtobufMessage& declared = pods ? *ProtobufOf("v1", "Pod") : *ProtobufOf("batch/v1", "Job");
  std::map<std::string, const Json*> by_version;
  for (const Json& item : ListField(*list, "items")) {
    by_version[TextField(PartOf(item, "metadata"), "resourceVersion")] = &item;
  }
  size_t compared = 0;
  for (const ObjectView& item : read->List("items")) {
    const auto same = by_version.find(item.Part("metadata").Text("resourceVersion"));
    if (same == by_version.end()) continue;
    ++compared;
    const std::string name = NameOf(*same->second), written = protobuf::Message(*same->second, declared);
    Json wanted = *ObjectView(written, declared).ToJson(), found = *item.ToJson();
    DropDefaults(&wanted);
    DropDefaults(&found);
    if (found != wanted) return fmt::format("{}: {}", name, WriteJson(Json::diff(wanted, found)));
    if (!(pods ? ReadsTheSame(ReadPod, item, *same->second) : ReadsTheSame(ReadJob, item, *same->second))) {
      return fmt::format("{} is not read as the same from both", name);
    }
  }
  return compared * 2 > by_version.size() ? "" : fmt::format("only {} objects have the same version", compared);
}

}  // namespace muster::controller
