// SPDX-License-Identifier: Apache-2.0
// Kubernetes' strategic merge patch, for JobSet specs and the templates in them. Pure; untrusted input.
#pragma once

#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// `original` with `patch` over it:
//   objects          merged field by field; null deletes a field
//   lists with keys  merged by key; the order of `original` stays, new items come behind it
//   other lists      replaced (tolerations, command, args)
// Keys: name for replicatedJobs, containers, initContainers, env, volumes, imagePullSecrets, schedulingGates, claims;
// mountPath for volumeMounts, devicePath for volumeDevices, containerPort and protocol for ports, topologyKey and
// whenUnsatisfiable for topologySpreadConstraints.
// A variable has either value or valueFrom, and a volume one source: a new one replaces the old one.
// Directives: `$patch: delete | replace | merge` in an object or as an item of a list, `$retainKeys`;
// `$setElementOrder` changes nothing. `field` is the name of the field that holds both; a list's keys follow from it.
// InvalidArgument: an item without its key, an unknown directive, over 100 levels. It names the path below `field`.
StatusOr<Json> StrategicMerge(Json original, const Json& patch, std::string_view field = "");

}  // namespace muster::controller
