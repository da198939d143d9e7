// mlPolicy and podGroupPolicy of a runtime. Pure; outside bytes.
#pragma once

#include "controller/api/fields.h"
#include "controller/api/runtime.h"

namespace muster::controller {

// `spec` is a runtime's. Complaints name the path.
MlPolicy ReadMlPolicy(Fields& spec);
// Null: none.
Json ReadPodGroupPolicy(Fields& spec);

}  // namespace muster::controller
