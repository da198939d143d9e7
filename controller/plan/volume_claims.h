// SPDX-License-Identifier: Apache-2.0
// volumeClaimPolicies of a runtime: PersistentVolumeClaims named <claim>-<job>, created before the initializers. Pure.
// Source: JobSet v0.12, jobset_controller.go.
#pragma once

#include "base/status.h"
#include "controller/plan/draft.h"

namespace muster::controller {

// Adds the claims. A pod that mounts a volume of a claim's name gets the volume. An existing claim is used, whoever
// made it. A claim with whenDeleted Retain has no owner. InvalidArgument names the path, the value and the remedy.
Status AddVolumeClaims(Draft* draft);

}  // namespace muster::controller
