// SPDX-License-Identifier: Apache-2.0
// Reads the Kubernetes objects in a user's files, each with its place for messages, and writes objects as text. Pure;
// untrusted input.
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
  bool is_own = true;  // the user's; false: it comes with Muster
};

struct FileObject {
  const InputFile* file;
  YamlDocument document;
  std::string kind, name;  // empty: absent

  // "job.yaml:12"
  std::string Place(std::string_view path) const;
  // "job.yaml:12: " and `message`. The line is that of the path at the beginning of `message`, if there is one.
  std::string Say(std::string_view message) const;
  Status Wrong(std::string_view message) const;  // InvalidArgument
};

// Names an object that has only a generateName, as the API server does: `letters` are appended.
inline constexpr char kSomeLetters[] = "xxxxx";  // for names that are only shown
void GiveName(std::string_view letters, FileObject* object);

// The objects of all files, in their order; they point into `files`. In jobs and runtimes a field that is null is
// absent, as for the API server. InvalidArgument: "file:line:column: what is wrong", or "file:line: ..." for an object
// without a kind.
StatusOr<std::vector<FileObject>> ReadFileObjects(const std::vector<InputFile>& files);

// The user's own files: "a.yaml, b.yaml"
std::string NamesOf(const std::vector<InputFile>& files);

std::string ObjectsAsYaml(const std::vector<Json>& objects);  // documents, "---" between them
std::string ObjectsAsJson(const std::vector<Json>& objects);  // a v1 List

}  // namespace muster::controller
