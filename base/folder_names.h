// SPDX-License-Identifier: Apache-2.0
// Lists a folder: all names or an error. A list that an error cut short would look complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster {

// Names without "." and "..", in no order. `path` is relative to the open folder `at` (AT_FDCWD: as in open()). The
// folder is opened anew, so a network file system asks its server. Errors name `shown`.
StatusOr<std::vector<std::string>> NamesIn(int at, const std::string& path, std::string_view shown);

}  // namespace muster
