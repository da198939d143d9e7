// SPDX-License-Identifier: Apache-2.0
// The values of fieldRef and resourceFieldRef. Pure; untrusted input.
// Source: Kubernetes, pkg/fieldpath/fieldpath.go, pkg/api/v1/resource/helpers.go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "local/pod/input.h"

namespace muster::local {

// The value of a `fieldRef`. Complains if its field is not available to variables, or to files of volumes.
enum class FieldUse { kVariable, kFile };
std::string FieldValue(controller::Fields ref, FieldUse use, const PodInput& input);

// The value of a `resourceFieldRef`. `own`: the container to use if `ref` names none; null: `ref` has to name one.
std::string ResourceValue(controller::Fields ref, const Json* own, const PodInput& input);

// The limits of a container, or of a pod's spec. A limit of 0 is not a limit.
ResourceLimits LimitsOf(controller::Fields object);

}  // namespace muster::local
