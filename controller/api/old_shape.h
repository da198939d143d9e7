// SPDX-License-Identifier: Apache-2.0
// Converts TrainJobs from the shape of Kubeflow Trainer v2.0 and v2.1 to the newest shape. Pure; untrusted input.
//
//   spec.trainer.numProcPerNode: "4"                 4
//   spec.trainer.numProcPerNode: auto | cpu | gpu    annotation muster.dev/num-proc-per-node; the field is dropped
//   spec.labels, spec.annotations                    template.metadata of a runtime patch
//   spec.podSpecOverrides, spec.podTemplateOverrides replicatedJobs of that patch; later entries win
//
// A TrainJob has one such patch, of manager muster.dev/v21. The old fields stay, since older clients read and write
// them. If one of them is there, the patch is recreated from all of them: an empty list removes its part of the patch.
// If none is there, the patch stays as it is, since newer clients drop fields that they do not know. A new patch goes
// first in the list, so that patches of other managers win.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

inline constexpr char kOldShapeManager[] = "muster.dev/v21";
// The fields of spec that make up that patch.
inline constexpr const char* kOldPatchFields[] = {"labels", "annotations", "podSpecOverrides", "podTemplateOverrides"};

struct NewShape {
  Json object;
  std::vector<std::string> warnings;  // for the user: each names an old field, and the newest form of it
};

// Whether a TrainJob has one of kOldPatchFields, or a text in numProcPerNode.
bool HasOldShape(const Json& object);

// Idempotent. InvalidArgument names the path, the value and the right form.
StatusOr<NewShape> NewestShape(const Json& object);

}  // namespace muster::controller
