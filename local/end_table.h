// SPDX-License-Identifier: Apache-2.0
// The table at the end of a run. Pure.
#pragma once

#include <string>
#include <vector>

#include "local/run.h"

namespace muster::local {

// A line for each host: the ends of its pods, one after the other.
std::string EndTable(const std::vector<PodEnd>& ends);

}  // namespace muster::local
