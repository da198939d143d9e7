// The names in a folder: all of them, or why not. What is cut short by an error would pass for all there is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster {

// Without "." and "..", in no order. `path` is below the open folder `at` (AT_FDCWD: as open() takes it) and opened
// anew: a network file system looks at its server then. Errors name `shown`.
StatusOr<std::vector<std::string>> NamesIn(int at, const std::string& path, std::string_view shown);

}  // namespace muster
