// SPDX-License-Identifier: Apache-2.0
// Programs in the folders of PATH.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/host_fs.h"

namespace muster {

// The first executable `name` in the folders of `path` ("a:b") that is not one of `skip` (compared by device and inode,
// so a link counts as the file it leads to); empty: none. A name with '/' is taken as it is.
std::string FindOnPath(std::string_view name, std::string_view path, const HostFs& fs,
                       const std::vector<std::string>& skip = {});

}  // namespace muster
