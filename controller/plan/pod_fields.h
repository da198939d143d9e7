// Parts of Job and pod templates, which stay JSON: what is in them by name, and putting in what has to be there. Pure.
//
// All but TidyJobTemplate want a template that it has passed, or a part of one.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

inline constexpr char kTrainerContainer[] = "node";

// Makes `job_template` (JobTemplateSpec) one that the planning can rely on: fields that are null go, both metadata are
// there. InvalidArgument as CheckedJobTemplate says it.
Status TidyJobTemplate(std::string_view path, Json* job_template);

Json& PodTemplate(Json& job_template);  // spec.template
Json& PodSpec(Json& job_template);      // spec.template.spec
const Json& PodSpec(const Json& job_template);

// The entry of the list `field` of `object` whose name is `name`; null: there is none.
Json* FindNamed(Json& object, const char* field, std::string_view name);
const Json* FindNamed(const Json& object, const char* field, std::string_view name);
// The names in that list, for messages: "node, exporter"; "none".
std::string NamesIn(const Json& object, const char* field);

// Puts a variable ({name, value} or {name, valueFrom}) into `container`, at the place of one of the same name, else
// last.
void UpsertEnv(const Json& variable, Json* container);
// The same for several. New ones go before all others, so that these may refer to them as $(NAME).
void UpsertEnvFirst(const Json& variables, Json* container);
// The same for variables that are not there yet; the others stay.
void AddMissingEnv(const Json& variables, Json* container);
// {name, value}
Json EnvValue(std::string_view name, std::string_view value);
// The value of a variable; null: it is not there, or comes from elsewhere (valueFrom).
const Json* EnvText(const Json& container, std::string_view name);

// "registry:5000/team/train:4@sha256:..." gives "train".
std::string_view ImageName(std::string_view image);
// What is behind the last '/' of a program's path.
std::string_view BaseName(std::string_view path);
// The init container `name` of `pod`, a Pod, runs beside the others.
bool IsSidecar(const Json& pod, std::string_view name);

// Puts `entry` into the list `field` at the place of one with the same name, else last (`first`: as the first).
void UpsertNamed(const Json& entry, const char* field, Json* object, bool first = false);
// The volume `name` of `pod`, which is `source` ({kind: how}), mounted at `folder` in `container`, a part of the pod.
// Both at the place of one that is there: a volume of the same name, a mount at the same path.
enum class MountMode { kReadOnly, kWritable };
void MountVolume(const char* name, Json source, const std::string& folder, MountMode mode, Json* pod, Json* container);
// A field of securityContext: the container's, else the pod's; null: neither has it.
const Json* SecurityField(const Json& pod, const Json& container, const char* name);

// A TCP port of the container; nothing where it is there.
void UpsertPort(int port, Json* container);

}  // namespace muster::controller
