// TrainJobs in the shape of Kubeflow Trainer v2.0 and v2.1 become the newest shape. Pure; outside bytes.
//
//   spec.trainer.numProcPerNode: "4"                 4
//   spec.trainer.numProcPerNode: auto | cpu | gpu    annotation muster.dev/num-proc-per-node; the field is dropped
//   spec.labels, spec.annotations                    template.metadata of a runtime patch
//   spec.podSpecOverrides, spec.podTemplateOverrides replicatedJobs of that patch; later ones win
//
// There is one such patch, of manager muster.dev/v21. The fields that it is made of stay, since older clients read and
// write them, and it is made anew whenever one of them is there: an empty list takes its part of the patch away. Where
// none is there, the patch stays as it is, since newer clients drop fields that they do not know. The patch comes
// first, so that patches of other managers win.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

inline constexpr char kOldShapeManager[] = "muster.dev/v21";
// Of the spec: what that patch is made of.
inline constexpr const char* kOldPatchFields[] = {"labels", "annotations", "podSpecOverrides", "podTemplateOverrides"};

struct NewShape {
  Json object;
  std::vector<std::string> warnings;  // for the user, of fields where a newer one says the same
};

// Whether a TrainJob has one of these fields.
bool HasOldShape(const Json& object);

// Idempotent. InvalidArgument names the path, the value and what is wanted.
StatusOr<NewShape> NewestShape(const Json& object);

}  // namespace muster::controller
