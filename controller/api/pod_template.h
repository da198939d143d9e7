// The parts of Kubernetes' own types that Muster reads or changes: Job and pod templates, env, resources. They stay
// JSON as they stand; these functions make sure that each field which a plan looks at has its kind. Pure; outside
// bytes.
#pragma once

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/fields.h"

namespace muster::controller {

// A whole template has containers; a part of one, in a patch, may lack anything but names.
enum class Extent { kWhole, kPart };

// batch/v1 JobTemplateSpec {metadata, spec}. Complains unless, where they are there: labels and annotations are maps of
// texts; containers, initContainers, volumes, schedulingGates have names, each once; env, ports, volumeMounts, command,
// args, resources have their kinds; counts are whole numbers.
void CheckJobTemplate(Fields job_template, Extent extent);

// core/v1 PodTemplateSpec {metadata, spec}: its part of the above.
void CheckPodTemplate(Fields pod_template, Extent extent);

// []EnvVar: objects with names, each once, and texts as values.
void CheckEnv(Fields& object, const char* name);

// ResourceRequirements: requests and limits are quantities.
void CheckResources(Fields resources);

// A map of quantities, none below 0.
void CheckQuantities(Fields& object, const char* name);

// The same for a template that patches have changed. InvalidArgument begins with a path below `path`.
Status CheckedJobTemplate(const Json& job_template, std::string_view path);

}  // namespace muster::controller
