// Compares what an API server sends of the same objects in protobuf and in JSON.
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/kube/client/protobuf_object.h"
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
    const bool is_default = *member == "" || *member == 0 || *member == false;
    member = is_default ? json->erase(member) : std::next(member);
  }
}

inline std::string FileAt(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Empty: the declared fields of each object of the list in the file `protobuf` are those of the object of the same
// resourceVersion in the file `json`. An object of which the other file has another version is left out.
inline std::string Difference(const std::string& protobuf, const std::string& json) {
  auto read = ReadProtobufObject(FileAt(protobuf));
  if (!read.ok()) return std::string(Message(read.status()));
  const auto list = ReadJson(FileAt(json), 200);
  if (!list.ok()) return std::string(Message(list.status()));
  auto wanted = ReadProtobufObject(protobuf::Object(*list));
  if (!wanted.ok()) return std::string(Message(wanted.status()));
  std::map<std::string, Json*> by_version;
  for (Json& item : (*wanted)["items"]) by_version[item["metadata"]["resourceVersion"]] = &item;
  size_t compared = 0;
  for (Json& item : (*read)["items"]) {
    const auto same = by_version.find(item["metadata"]["resourceVersion"]);
    if (same == by_version.end()) continue;
    ++compared;
    DropDefaults(&item);
    DropDefaults(same->second);
    if (item == *same->second) continue;
    return fmt::format("{}: {}", NameOf(item), WriteJson(Json::diff(*same->second, item)));
  }
  return compared * 2 > by_version.size() ? "" : fmt::format("only {} objects have the same version", compared);
}

}  // namespace muster::controller
