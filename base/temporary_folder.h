// SPDX-License-Identifier: Apache-2.0
// The folder for temporary files: TMPDIR, /tmp or /var/tmp. Unlike Python's tempfile, never the current directory.
//
// Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster {

// The folders in the order in which they are tried. An empty TMPDIR is ignored; a relative one is made absolute.
std::vector<std::string> TemporaryFolders(const std::optional<std::string>& tmpdir);

struct TemporaryFolder {
  std::string path;         // an empty folder of mode 0700
  std::string passed_over;  // why it is not in the first folder tried; empty if it is
};

// Makes "<folder>/<prefix>XXXXXX" in the first of `folders` where that succeeds. An error has the reason of each one.
StatusOr<TemporaryFolder> MakeTemporaryFolder(std::string_view prefix, const std::vector<std::string>& folders);

}  // namespace muster
