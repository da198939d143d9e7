// SPDX-License-Identifier: Apache-2.0
// Finds and adds parts of Job and pod templates, which stay JSON. Pure.
//
// All but TidyJobTemplate need a template that TidyJobTemplate has passed, or a part of one.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/object_view.h"

namespace muster::controller {

inline constexpr char kTrainerContainer[] = "node";
inline constexpr char kDatasetContainer[] = "dataset-initializer";
inline constexpr char kModelContainer[] = "model-initializer";

// Checks `job_template` (JobTemplateSpec), removes null fields, and adds metadata of Job and pod if they are absent.
// InvalidArgument: as CheckedJobTemplate.
Status TidyJobTemplate(std::string_view path, Json* job_template);

Json& PodTemplate(Json& job_template);  // spec.template
Json& PodSpec(Json& job_template);      // spec.template.spec
const Json& PodSpec(const Json& job_template);

// The entry named `name` in list `field` of `object`; null: there is none.
Json* FindNamed(Json& object, const char* field, std::string_view name);
const Json* FindNamed(const Json& object, const char* field, std::string_view name);
// The names in list `field`, for messages: "node, exporter", or "none".
std::string NamesIn(const ObjectView& object, const char* field);

// Puts a variable ({name, value} or {name, valueFrom}) into `container`: replaces one of the same name, else appends.
void UpsertEnv(const Json& variable, Json* container);
// The same for several variables. UpsertEnvFirst puts new ones to the front, so that the container's own can refer to
// them as $(NAME).
void UpsertEnvLast(const Json& variables, Json* container);
void UpsertEnvFirst(const Json& variables, Json* container);
// Puts only those variables to the front that the container does not have.
void AddMissingEnv(const Json& variables, Json* container);
Json EnvValue(std::string_view name, std::string_view value);  // {name, value}
// The value of a variable; null: it is absent, or has a valueFrom.
const Json* EnvText(const Json& container, std::string_view name);

// "registry:5000/team/train:4@sha256:..." gives "train".
std::string_view ImageName(std::string_view image);
// The part of `path` behind the last '/'.
std::string_view BaseName(std::string_view path);
// The names of the sidecars of `pod`, a Pod: init containers with restartPolicy Always.
std::set<std::string> SidecarsOf(const ObjectView& pod);

// Puts `entry` into list `field`: replaces an entry of the same name, else appends (`first`: prepends).
void UpsertNamed(const Json& entry, const char* field, Json* object, bool first = false);
// The same for several entries, in linear time. New ones are appended.
void UpsertAllNamed(const Json& entries, const char* field, Json* object);
// The texts of a container's command, then those of its args.
std::vector<std::string> CommandWords(const Json& container);
// Adds the volume `name` with `source` ({kind: how}) to `pod`, and mounts it at `folder` in `container`, a part of the
// pod (null: in none). Replaces a volume of the same name and a mount at the same path.
enum class MountMode { kReadOnly, kWritable };
void MountVolume(const char* name, Json source, const std::string& folder, MountMode mode, Json* pod, Json* container);
// A field of securityContext, the container's, else the pod's; null: neither has it.
const Json* SecurityField(const Json& pod, const Json& container, const char* name);

// Adds a TCP port to the container, unless it has the port.
void UpsertPort(int port, Json* container);

}  // namespace muster::controller
