// SPDX-License-Identifier: Apache-2.0
// Opens paths with a folder as their root: symbolic links, also absolute ones, and ".." do not lead out of it.
#pragma once

#include <string>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::local {

// Like open(2) with the folder `root` as the root of `path`. Errors: as of open(2); names the path. FailedPrecondition:
// the kernel is older than 5.6.
StatusOr<Descriptor> OpenInRoot(int root, const std::string& path, int flags, mode_t mode = 0);

// Whether `path` exists inside of the folder `root`. An empty `root` is this machine's root.
bool IsThere(const std::string& root, const std::string& path);

}  // namespace muster::local
