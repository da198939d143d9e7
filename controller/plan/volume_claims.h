// The claims of a runtime's volumeClaimPolicies: PersistentVolumeClaims `<claim>-<job>`, made before the initializers.
// Pure. Source: JobSet v0.12, jobset_controller.go.
#pragma once

#include "base/status.h"
#include "controller/plan/framework.h"

namespace muster::controller {

// Adds the claims, and a volume of the claim's name to each pod that mounts one. A claim that is there is used, whoever
// made it. One that is retained has no owner. InvalidArgument names the path, the value and the remedy.
Status AddVolumeClaims(Draft* draft);

}  // namespace muster::controller
