// SPDX-License-Identifier: Apache-2.0
#include "local/pod/environment.h"

#include "base/args_from_env.h"
#include "base/quoted.h"
#include "base/text.h"
#include "local/pod/objects.h"
#include "local/pod/values.h"

namespace muster::local {

using namespace controller;

namespace {

// Sets a variable. Complains if no program can get such a variable.
void Put(const std::string& path, const std::string& name, std::string value, Complaints* complaints,
         Variables* variables) {
  const bool good = !name.empty() && name.find('=') == std::string::npos && IsForPrograms(name, path, complaints);
  if (!good)
    return complaints->Wrong(path, std::string_view(name), "is not a name of a variable: it is empty or has a '='");
  if (IsForPrograms(value, path, complaints)) (*variables)[name] = std::move(value);
}

Status TakeAllOf(Fields source, const PodPaths& paths, const PodInput& input, Variables* variables) {
  const std::string prefix = source.Text("prefix");
  struct Kind {
    const char *field, *kind;
  };
  for (const Kind& kind : {Kind{"configMapRef", "ConfigMap"}, Kind{"secretRef", "Secret"}}) {
    Fields use = source.Object(kind.field);
    if (!use) continue;
    MUSTER_ASSIGN_OR_RETURN(const auto data, DataOf(use, "name", kind.kind, input.find));
    if (!data) return absl::OkStatus();
    for (const auto& [key, value] : data->texts) {
      Put(source.path(), prefix + key, paths.In(value), input.complaints, variables);
    }
    return absl::OkStatus();
  }
  input.complaints->Wrong(source.path(), "it has neither configMapRef nor secretRef");
  return absl::OkStatus();
}

// nullopt: the object or the key is missing, and optional.
StatusOr<std::optional<std::string>> KeyValue(Fields ref, std::string_view kind, const PodInput& input) {
  const std::string key = ref.NeedText("key");
  MUSTER_ASSIGN_OR_RETURN(const auto data, DataOf(ref, "name", kind, input.find));
  if (!data) return std::optional<std::string>();
  if (const auto found = data->texts.find(key); found != data->texts.end()) return std::optional(found->second);
  if (ref.Flag("optional", false)) return std::optional<std::string>();
  return NoSuchKey(ref.PathOf("key"), key, *data);
}

StatusOr<std::optional<std::string>> ValueFrom(Fields from, const Json* container, const PodInput& input) {
  if (Fields ref = from.Object("fieldRef")) return std::optional(FieldValue(ref, FieldUse::kVariable, input));
  if (Fields ref = from.Object("resourceFieldRef")) return std::optional(ResourceValue(ref, container, input));
  if (Fields ref = from.Object("configMapKeyRef")) return KeyValue(ref, "ConfigMap", input);
  if (Fields ref = from.Object("secretKeyRef")) return KeyValue(ref, "Secret", input);
  input.complaints->Wrong(
      from.path(), "it has none of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef; no other is served");
  return std::optional<std::string>();
}

Status TakeOne(Fields variable, const Json* container, const PodPaths& paths, const PodInput& input,
               Variables* variables) {
  const std::string name = variable.Text("name");
  std::string value = variable.Text("value");
  Fields from = variable.Object("valueFrom");
  if (!value.empty() && from) variable.Wrong("valueFrom", "there is a value, too; take one of them out");
  if (from) {
    MUSTER_ASSIGN_OR_RETURN(auto found, ValueFrom(from, container, input));
    if (!found) return absl::OkStatus();
    value = paths.In(*found);
  } else {
    value = Expand(paths.In(value), *variables);
  }
  Put(variable.PathOf("name"), name, std::move(value), input.complaints, variables);
  return absl::OkStatus();
}

}  // namespace

std::string Expand(std::string_view text, const Variables& variables) {
  return ExpandReferences(text, [&](std::string_view name) {
    const auto found = variables.find(name);
    return found == variables.end() ? fmt::format("$({})", name) : found->second;
  });
}

StatusOr<Variables> VariablesOf(Fields container, const PodPaths& paths, const PodInput& input) {
  Variables variables;
  for (const Fields& source : container.Objects("envFrom")) {
    MUSTER_RETURN_IF_ERROR(TakeAllOf(source, paths, input, &variables));
  }
  for (const Fields& variable : container.Objects("env")) {
    MUSTER_RETURN_IF_ERROR(TakeOne(variable, container.Whole(), paths, input, &variables));
  }
  MUSTER_RETURN_IF_ERROR(input.complaints->status());
  return variables;
}

bool IsForPrograms(const std::string& text, const std::string& path, Complaints* complaints) {
  if (text.find('\0') != std::string::npos) {
    complaints->Wrong(path, "it has a byte 0, which no argument or variable can hold");
  } else if (text.size() > kLongestForPrograms) {
    complaints->Wrong(path,
                      fmt::format("it has more than {} bytes, the most that Linux takes in one argument or variable",
                                  kLongestForPrograms));
  } else {
    return true;
  }
  return false;
}

}  // namespace muster::local
