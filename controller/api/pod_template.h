// SPDX-License-Identifier: Apache-2.0
// Checks parts of Kubernetes' own types: Job and pod templates, env, resources. The parts stay JSON as they stand.
// After a check without complaint, each field that a plan reads has the right kind. Pure; untrusted input.
#pragma once

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/fields.h"

namespace muster::controller {

// kWhole: the template must have containers. kPart, in a patch: it may lack anything but names.
enum class Extent { kWhole, kPart };

// Checks a batch/v1 JobTemplateSpec {metadata, spec}. Labels and annotations must be maps of texts. Items of
// containers, initContainers, volumes and schedulingGates must have names, each once in its list. env, ports,
// volumeMounts, command, args and resources must have their kinds. Counts must be whole numbers.
void CheckJobTemplate(Fields job_template, Extent extent);

// The same for a core/v1 PodTemplateSpec {metadata, spec}.
void CheckPodTemplate(Fields pod_template, Extent extent);

// []EnvVar: objects with names, each once. A value must be a text.
void CheckEnv(Fields& object, const char* name);

// ResourceRequirements: requests and limits must be quantities, claims must have names.
void CheckResources(Fields resources);

// Field `name` must be a map of quantities, none below 0.
void CheckQuantities(Fields& object, const char* name);

// CheckJobTemplate (kWhole) of a template that patches have changed. InvalidArgument begins with a path below `path`.
Status CheckedJobTemplate(const Json& job_template, std::string_view path);

}  // namespace muster::controller
