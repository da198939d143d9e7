// startupProbe, livenessProbe and readinessProbe of a container. Pure; outside bytes.
#pragma once

#include <optional>

#include "controller/local/pod_input.h"
#include "controller/local/pod_paths.h"

namespace muster::controller {

// The field `name` of `container`; nullopt: it is not there, or is of a kind that is not asked here, which is noted as
// ignored. A command's paths are those on this machine. Defaults are the API server's.
std::optional<Probe> ProbeOf(Fields container, const char* name, const PodPaths& paths, const PodInput& input);

}  // namespace muster::controller
