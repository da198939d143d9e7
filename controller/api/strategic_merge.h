// Kubernetes' strategic merge patch, for JobSet specs and what is in them. Pure; outside bytes.
#pragma once

#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// `original` with `patch` over it:
//   objects          merged field by field; null deletes a field
//   lists with keys  merged by key; the order of `original` stays, and what is new comes behind it
//   other lists      replaced (tolerations, command, args)
// Keys: name for replicatedJobs, containers, initContainers, env, volumes, imagePullSecrets, schedulingGates, claims;
// mountPath for volumeMounts, devicePath for volumeDevices, containerPort and protocol for ports, topologyKey and
// whenUnsatisfiable for topologySpreadConstraints.
// A variable's value replaces its valueFrom, and a volume's source another source: both have one of them.
// Directives: `$patch: delete | replace | merge` in an object or as an item of a list, `$retainKeys`;
// `$setElementOrder` changes nothing. `field` is the name of the field that both stand in, which tells the keys of a
// list. InvalidArgument: an item without its key, or a directive of another kind; it names the path below `field`.
StatusOr<Json> StrategicMerge(Json original, const Json& patch, std::string_view field = "");

}  // namespace muster::controller
