// Finds fields that a TrainJob does not have, most often misspelt names. Pure; untrusted input.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"

namespace muster::controller {

// "spec.trainer.numNode: is no field of a TrainJob: it is ignored; the nearest is 'numNodes'". Looks at spec,
// runtimeRef, trainer, initializer and its two parts, in either shape. An API server drops such fields.
std::vector<std::string> UnknownTrainJobFields(const Json& job);

}  // namespace muster::controller
