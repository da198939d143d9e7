// SPDX-License-Identifier: Apache-2.0
// Reads the argument of `muster top`. Pure.
#pragma once

#include <string_view>

#include "agent/live/top_target.h"
#include "base/status.h"

namespace muster::agent {

// InvalidArgument says what is wrong. A word that may be a host or the name of a job of `muster local` becomes a
// kCoordinator: the caller knows the jobs, and asks them first if IsJobName().
StatusOr<TopTarget> ParseTopTarget(std::string_view text);

}  // namespace muster::agent
