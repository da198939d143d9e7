// Fields of a TrainJob that nobody reads: most often a name with a letter that is wrong. Pure; outside bytes.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"

namespace muster::controller {

// "spec.trainer.numNode: is no field of a TrainJob: it counts for nothing; 'numNodes' is one". Of spec and of what is
// below it, as deep as the TrainJob's own fields go; either shape. An API server drops such fields.
std::vector<std::string> UnknownTrainJobFields(const Json& job);

}  // namespace muster::controller
