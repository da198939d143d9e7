// SPDX-License-Identifier: Apache-2.0
// Checks whether a folder is as its manifest says: several threads read and hash every file that it names.
//
// Other files are not examined. No link is followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::initializers {

struct FolderCheck {
  std::string source;  // as in the manifest
  uint64_t files = 0, bytes = 0;
  uint64_t unhashed = 0;  // files without a hash in the manifest (--verify=size): only the size was checked
  uint64_t wrong = 0;
  std::vector<std::string> problems;  // a sentence for each faulty file, by path; kMostProblems at most
  double seconds = 0;
};

inline constexpr size_t kMostProblems = 1000;

// Blocks; `threads` threads, each with kBlockBytes, read. FailedPrecondition: no readable manifest. Cancelled: `stop`.
StatusOr<FolderCheck> VerifyFolder(const std::string& folder, int threads, const std::atomic<bool>& stop);

}  // namespace muster::initializers
