// SPDX-License-Identifier: Apache-2.0
// What a run needs of this machine: a folder for logs and volumes, one to run in, descriptors for the pods' output.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace muster::local {

inline constexpr uint64_t kLeastRoom = uint64_t{32} << 20;  // bytes, for the agent's copy and the first logs

// `folder` must exist. FailedPrecondition: nothing may be written there, or its file system is read-only, has less than
// kLeastRoom, or is noexec (each pod's agent is a program there), or it is in /dev/shm, of which each container has its
// own; names the folder and the remedy.
Status CheckStateFolder(const std::string& folder);

// The absolute path of `folder`; empty: of the current folder. InvalidArgument: it does not exist, is not a folder, or
// cannot be entered and read; names --workdir.
StatusOr<std::string> WorkFolder(const std::string& folder);

// Raises the limit of open files, which pods inherit, up to 65,536: a job of 200 pods needs a thousand here.
void RaiseOpenFiles();

}  // namespace muster::local
