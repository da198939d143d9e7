// The Kubernetes objects of a user's files, each with its place for messages; and objects as text again. Pure; outside
// bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/yaml.h"

namespace muster::controller {

struct InputFile {
  std::string name;  // for messages: "job.yaml", "-"
  std::string text;
  bool is_own = true;  // of the user; else it comes with Muster
};

struct FileObject {
  const InputFile* file;
  YamlDocument document;
  std::string kind, name;  // empty: the object says none

  // "job.yaml:12"
  std::string Place(std::string_view path) const;
  // The place, then `message`, which begins with a path of this object where it has one.
  std::string Say(std::string_view message) const;
  Status Wrong(std::string_view message) const;  // InvalidArgument
};

// The objects of all files, in their order; they point into `files`. InvalidArgument: "file:line:column: what is
// wrong", also of an object without a kind.
StatusOr<std::vector<FileObject>> ReadFileObjects(const std::vector<InputFile>& files);

// Of the user's own: "a.yaml, b.yaml"
std::string NamesOf(const std::vector<InputFile>& files);

std::string ObjectsAsYaml(const std::vector<Json>& objects);  // documents, "---" between them
std::string ObjectsAsJson(const std::vector<Json>& objects);  // a v1 List

}  // namespace muster::controller
