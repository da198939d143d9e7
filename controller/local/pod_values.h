// What fieldRef and resourceFieldRef stand for. Pure; outside bytes.
// Source: Kubernetes, pkg/fieldpath/fieldpath.go, pkg/api/v1/resource/helpers.go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/local/pod_input.h"

namespace muster::controller {

// The value of a `fieldRef`. Complains where a variable, or a file of a volume, cannot have it.
enum class FieldUse { kVariable, kFile };
std::string FieldValue(Fields ref, FieldUse use, const PodInput& input);

// The value of a `resourceFieldRef`. `own`: the container whose resources are meant where `ref` names none; null: it
// has to name one.
std::string ResourceValue(Fields ref, const Json* own, const PodInput& input);

// Of a container, or of a pod's spec. 0 is none.
ResourceLimits LimitsOf(Fields object);

}  // namespace muster::controller
