// Where files go that nobody named a place for: TMPDIR, else /tmp, else /var/tmp, as Python's tempfile does, but never
// the current directory.
//
// Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster {

// In the order in which they are tried. A relative TMPDIR counts from the current directory; an empty one is none.
std::vector<std::string> TemporaryFolders(const std::optional<std::string>& tmpdir);

struct TemporaryFolder {
  std::string path;         // 0700, empty
  std::string passed_over;  // why it is not in the first of the folders; empty: it is
};

// "<folder>/<prefix>XXXXXX" in the first of `folders` that takes one. An error says why none does.
StatusOr<TemporaryFolder> MakeTemporaryFolder(std::string_view prefix, const std::vector<std::string>& folders);

}  // namespace muster
