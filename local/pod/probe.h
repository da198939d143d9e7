// SPDX-License-Identifier: Apache-2.0
// Reads startupProbe, livenessProbe and readinessProbe of a container. Pure; untrusted input.
#pragma once

#include <optional>

#include "local/pod/input.h"
#include "local/pod/paths.h"

namespace muster::local {

// The probe in field `name` of `container`; nullopt: the field is missing, or its kind is not supported here, which is
// noted as ignored. Paths in a command are those on this machine. Defaults are the API server's.
std::optional<Probe> ProbeOf(controller::Fields container, const char* name, const PodPaths& paths,
                             const PodInput& input);

}  // namespace muster::local
