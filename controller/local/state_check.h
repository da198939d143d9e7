// Whether the folder with a run's logs and volumes can do what pods ask of it, and the folder that they run in.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace muster::controller {

inline constexpr uint64_t kLeastRoom = uint64_t{32} << 20;  // bytes: the agent's copy and the first logs

// `folder` is there. FailedPrecondition: nothing may be written there, its file system is read-only, is full, or runs
// no programs, which each pod's agent is; names the folder and the remedy.
Status CheckStateFolder(const std::string& folder);

// The absolute path of `folder`; empty: the current one. InvalidArgument names --workdir: it is not there, is no
// folder, or cannot be entered.
StatusOr<std::string> WorkFolder(const std::string& folder);

}  // namespace muster::controller
