// Paths of a root that is not this machine's: symbolic links, absolute ones too, and ".." lead nowhere out of it.
#pragma once

#include <string>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::controller {

// As open() with `path` seen from inside of the folder `root`. Errors as of open(), names the path. FailedPrecondition:
// the kernel is older than 5.6.
StatusOr<Descriptor> OpenInRoot(int root, const std::string& path, int flags, mode_t mode = 0);

// Whether something is at `path` inside of the folder `root`; empty: on this machine.
bool IsThere(const std::string& root, const std::string& path);

}  // namespace muster::controller
