// What a run needs to know of a Pod as the API has it. Pure.
#pragma once

#include "base/json_fields.h"

namespace muster::controller {

// The first exit code of its containers that is not 0; 0: there is none.
int ExitCodeOf(const Json& pod);
bool IsReady(const Json& pod);

}  // namespace muster::controller
