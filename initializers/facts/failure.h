// SPDX-License-Identifier: Apache-2.0
// The message and the exit code of a failure. Pure, except that WithUser reads the user id of this process.
#pragma once

#include <string_view>

#include "base/status.h"

namespace muster::initializers {

// 0 for OK; 1 or 78 if another try would fail in the same way; kExitSourceUnreachable if another try may help.
int ExitCodeOf(const Status& status);

// ErrnoStatus of an operation on the target; adds the remedy where there is a known one.
Status DiskStatus(int error, std::string_view what);

// Adds to a "permission denied" error which user this process is, and what to do. Returns any other status unchanged.
Status WithUser(Status status);

// Adds to a NotFound error of a source whose URI has a `*` where patterns go. Returns any other status unchanged.
Status WithPlaceOfPatterns(Status status, std::string_view uri);

}  // namespace muster::initializers
