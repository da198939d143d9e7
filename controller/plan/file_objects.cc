// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/file_objects.h"

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"

namespace muster::controller {
namespace {

// Turns "line 3, column 5: ..." into "file:3:5: ...".
Status WrongYaml(const InputFile& file, std::string_view message) {
  constexpr std::string_view kLine = "line ", kColumn = ", column ";
  const size_t column = message.find(kColumn), end = message.find(": ");
  if (!message.starts_with(kLine) || column == std::string_view::npos || end == std::string_view::npos ||
      end < column) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", file.name, message));
  }
  const std::string_view line_number = message.substr(kLine.size(), column - kLine.size());
  const std::string_view column_number = message.substr(column + kColumn.size(), end - column - kColumn.size());
  return absl::InvalidArgumentError(
      fmt::format("{}:{}:{}: {}", file.name, line_number, column_number, message.substr(end + 2)));
}

// Kinds of a definition: the API server drops their fields that are null.
bool IsOfDefinition(std::string_view kind) {
  return kind == "TrainJob" || kind == "TrainingRuntime" || kind == "ClusterTrainingRuntime" || kind == kPyTorchJobKind;
}

}  // namespace

std::string FileObject::Place(std::string_view path) const {
  return fmt::format("{}:{}", file->name, document.LineOf(path));
}

std::string FileObject::Say(std::string_view message) const {
  std::string_view path = message.substr(0, message.find(' '));
  if (path.ends_with(':')) path.remove_suffix(1);
  return fmt::format("{}: {}", Place(path), message);
}

Status FileObject::Wrong(std::string_view message) const { return absl::InvalidArgumentError(Say(message)); }

void GiveName(std::string_view letters, FileObject* object) {
  const std::string prefix = TextField(PartOf(object->document.object, "metadata"), "generateName");
  if (!object->name.empty() || prefix.empty()) return;
  object->name = fmt::format("{}{}", prefix, letters);
  object->document.object["metadata"]["name"] = object->name;
}

StatusOr<std::vector<FileObject>> ReadFileObjects(const std::vector<InputFile>& files) {
  std::vector<FileObject> objects;
  for (const InputFile& file : files) {
    auto documents = ReadYaml(file.text);
    if (!documents.ok()) return WrongYaml(file, Message(documents.status()));
    for (YamlDocument& document : *documents) {
      FileObject object{.file = &file, .document = std::move(document)};
      object.kind = TextField(object.document.object, "kind");
      if (IsOfDefinition(object.kind)) DropNulls(&object.document.object);
      if (const Json* metadata = FindField(object.document.object, "metadata")) {
        object.name = TextField(*metadata, "name");
      }
      if (object.kind.empty()) {
        return object.Wrong(
            "kind: it is missing; TrainJob, TrainingRuntime, ClusterTrainingRuntime or PyTorchJob are read");
      }
      objects.push_back(std::move(object));
    }
  }
  return objects;
}

std::string NamesOf(const std::vector<InputFile>& files) {
  std::vector<std::string> names;
  for (const InputFile& file : files) {
    if (file.is_own) names.push_back(file.name);
  }
  return Join(names, ", ");
}

std::string ObjectsAsYaml(const std::vector<Json>& objects) {
  std::string text;
  for (const Json& object : objects) {
    if (!text.empty()) text += "---\n";
    text += WriteYaml(object);
  }
  return text;
}

std::string ObjectsAsJson(const std::vector<Json>& objects) {
  const Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json(objects)}};
  return WriteJson(list, 2) + "\n";
}

}  // namespace muster::controller
