// SPDX-License-Identifier: Apache-2.0
// mlPolicy and podGroupPolicy of a runtime. Pure; untrusted input.
#pragma once

#include "controller/api/fields.h"
#include "controller/api/runtime.h"

namespace muster::controller {

// Both read `spec` of a runtime, and leave complaints in it.
MlPolicy ReadMlPolicy(Fields& spec);
// podGroupPolicy as it stands; null: none.
Json ReadPodGroupPolicy(Fields& spec);

}  // namespace muster::controller
