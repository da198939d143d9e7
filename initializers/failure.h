// What is said of a failure, and how a run ends by it. Pure, but for asking who this process is.
#pragma once

#include <string_view>

#include "base/status.h"

namespace muster::initializers {

// 0 for OK; 1 or 78 where trying again gives the same; kExitSourceUnreachable where it may help.
int ExitCodeOf(const Status& status);

// ErrnoStatus of what was done to the target, with what to do, where that is known.
Status DiskStatus(int error, std::string_view what);

// What the system denies, it denies to a user: says to whom, and what to do. Anything else stays as it is.
Status WithUser(Status status);

}  // namespace muster::initializers
