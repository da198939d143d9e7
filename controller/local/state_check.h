// What a run needs of this machine: a folder for logs and volumes, one to run in, descriptors for the pods' output.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace muster::controller {

inline constexpr uint64_t kLeastRoom = uint64_t{32} << 20;  // bytes: the agent's copy and the first logs

// `folder` is there. FailedPrecondition: nothing may be written there, its file system is read-only, is full, or runs
// no programs, which each pod's agent is, or it is in /dev/shm, where containers see another one; names the folder and
// the remedy.
Status CheckStateFolder(const std::string& folder);

// The absolute path of `folder`; empty: the current one. InvalidArgument names --workdir: it is not there, is no
// folder, or cannot be entered.
StatusOr<std::string> WorkFolder(const std::string& folder);

// As many open files as the user may have, for pods as well: a job of 200 pods needs a thousand here.
void RaiseOpenFiles();

}  // namespace muster::controller
