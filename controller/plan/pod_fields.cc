// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/pod_fields.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/list_index.h"
#include "controller/api/pod_template.h"

namespace muster::controller {
namespace {

Json& ObjectIn(const char* name, Json* object) {
  Json& part = (*object)[name];
  if (part.is_null()) part = Json::object();
  return part;
}

template <class List>
auto FindIn(List& list, std::string_view name) {
  return std::find_if(list.begin(), list.end(), [&](const Json& entry) { return TextField(entry, "name") == name; });
}

Json& ListOf(const char* field, Json* object) {
  Json& list = (*object)[field];
  if (list.is_null()) list = Json::array();
  return list;
}

// Replaces the entries of `list` that have the name of one of `entries`. Returns the others of `entries`; of several
// with one name, the last.
Json ReplaceKnown(const Json& entries, Json* list) {
  ListIndex known(*list, "name");
  Json fresh = Json::array();
  fresh.get_ref<Json::array_t&>().reserve(entries.size());  // `known` points to its elements, too
  for (const Json& entry : entries) {
    if (Json* found = known.Find(TextField(entry, "name")); found != nullptr) {
      *found = entry;
    } else {
      fresh.push_back(entry);
      known.Add(&fresh.back());
    }
  }
  return fresh;
}

}  // namespace

Status TidyJobTemplate(std::string_view path, Json* job_template) {
  DropNulls(job_template);
  MUSTER_RETURN_IF_ERROR(CheckedJobTemplate(*job_template, path));
  ObjectIn("metadata", job_template);
  ObjectIn("metadata", &PodTemplate(*job_template));
  return absl::OkStatus();
}

Json& PodTemplate(Json& job_template) { return job_template["spec"]["template"]; }
Json& PodSpec(Json& job_template) { return PodTemplate(job_template)["spec"]; }
const Json& PodSpec(const Json& job_template) { return PartOf(job_template, "spec", "template", "spec"); }

const Json* FindNamed(const Json& object, const char* field, std::string_view name) {
  const Json& list = ListField(object, field);
  const auto found = FindIn(list, name);
  return found == list.end() ? nullptr : &*found;
}

Json* FindNamed(Json& object, const char* field, std::string_view name) {
  return const_cast<Json*>(FindNamed(std::as_const(object), field, name));
}

std::string NamesIn(const ObjectView& object, const char* field) {
  std::vector<std::string> names;
  for (const ObjectView& entry : object.List(field)) names.push_back(entry.Text("name"));
  return names.empty() ? "none" : Join(names, ", ");
}

void UpsertNamed(const Json& entry, const char* field, Json* object, bool first) {
  Json& list = ListOf(field, object);
  if (const auto found = FindIn(list, TextField(entry, "name")); found != list.end()) {
    *found = entry;
  } else {
    list.insert(first ? list.begin() : list.end(), entry);
  }
}

void UpsertEnv(const Json& variable, Json* container) { UpsertNamed(variable, "env", container); }

void UpsertAllNamed(const Json& entries, const char* field, Json* object) {
  if (entries.empty()) return;
  Json& list = ListOf(field, object);
  Json fresh = ReplaceKnown(entries, &list);
  list.insert(list.end(), fresh.begin(), fresh.end());
}

void UpsertEnvLast(const Json& variables, Json* container) { UpsertAllNamed(variables, "env", container); }

void UpsertEnvFirst(const Json& variables, Json* container) {
  Json& list = ListOf("env", container);
  Json fresh = ReplaceKnown(variables, &list);
  list.insert(list.begin(), fresh.begin(), fresh.end());
}

void AddMissingEnv(const Json& variables, Json* container) {
  Json missing = Json::array();
  std::set<std::string> known;
  for (const Json& variable : ListField(*container, "env")) known.insert(TextField(variable, "name"));
  for (const Json& variable : variables) {
    if (!known.contains(TextField(variable, "name"))) missing.push_back(variable);
  }
  UpsertEnvFirst(missing, container);
}

Json EnvValue(std::string_view name, std::string_view value) { return {{"name", name}, {"value", value}}; }

const Json* EnvText(const Json& container, std::string_view name) {
  const Json* variable = FindNamed(container, "env", name);
  if (variable == nullptr) return nullptr;
  const Json* value = FindField(*variable, "value");
  return value != nullptr && value->is_string() ? value : nullptr;
}

std::vector<std::string> CommandWords(const Json& container) {
  std::vector<std::string> words;
  for (const char* field : {"command", "args"}) {
    for (const Json& word : ListField(container, field)) {
      if (word.is_string()) words.push_back(word.get<std::string>());
    }
  }
  return words;
}

void MountVolume(const char* name, Json source, const std::string& folder, MountMode mode, Json* pod, Json* container) {
  source["name"] = name;
  UpsertNamed(source, "volumes", pod);
  if (container == nullptr) return;
  Json mount = {{"name", name}, {"mountPath", folder}};
  if (mode == MountMode::kReadOnly) mount["readOnly"] = true;
  Json& mounts = ListOf("volumeMounts", container);
  const auto found = std::find_if(mounts.begin(), mounts.end(),
                                  [&](const Json& known) { return TextField(known, "mountPath") == folder; });
  if (found == mounts.end()) {
    mounts.push_back(std::move(mount));
  } else {
    *found = std::move(mount);
  }
}

void UpsertPort(int port, Json* container) {
  Json& ports = ListOf("ports", container);
  for (const Json& known : ports) {
    const Json* number = FindField(known, "containerPort");
    const std::string protocol = TextField(known, "protocol");
    if (number != nullptr && *number == port && (protocol.empty() || protocol == "TCP")) return;
  }
  ports.push_back({{"containerPort", port}});
}

const Json* SecurityField(const Json& pod, const Json& container, const char* name) {
  for (const Json* object : {&container, &pod}) {
    if (const Json* found = FindField(PartOf(*object, "securityContext"), name)) return found;
  }
  return nullptr;
}

std::string_view ImageName(std::string_view image) {
  image = BaseName(image.substr(0, image.find('@')));
  return image.substr(0, image.find(':'));
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::set<std::string> SidecarsOf(const ObjectView& pod) {
  std::set<std::string> names;
  for (const ObjectView& container : pod.Part("spec").List("initContainers")) {
    if (container.Is("restartPolicy", "Always")) names.insert(container.Text("name"));
  }
  return names;
}

}  // namespace muster::controller
