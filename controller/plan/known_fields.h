// Finds fields that a job or a runtime does not have, most often misspelt names. An API server drops them. Pure;
// untrusted input.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"

namespace muster::controller {

// "spec.trainer.numNode: is not a field of a TrainJob: it is ignored; the nearest is 'numNodes'". Looks at spec,
// runtimeRef, trainer, initializer and its two parts, in either shape.
std::vector<std::string> UnknownTrainJobFields(const Json& job);

// The same for a TrainingRuntime or a ClusterTrainingRuntime, from spec down to each container.
std::vector<std::string> UnknownRuntimeFields(const Json& runtime);

// The same for a PyTorchJob: those of UnknownFieldsOf() and those of its pods down to each container.
std::vector<std::string> UnknownPyTorchJobFields(const Json& job);

}  // namespace muster::controller
