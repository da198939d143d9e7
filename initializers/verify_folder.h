// Whether a folder still is what its manifest says: every file that is named is read and hashed, by several threads.
//
// Files that the manifest does not name are not looked at. No link is followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::initializers {

struct FolderCheck {
  std::string source;  // that the manifest names
  uint64_t files = 0, bytes = 0;
  uint64_t unhashed = 0;  // whose hash was not taken down (--verify=size): only their size was checked
  uint64_t wrong = 0;
  std::vector<std::string> problems;  // what is wrong with which file, by path; kMostProblems at most
  double seconds = 0;
};

inline constexpr size_t kMostProblems = 1000;

// FailedPrecondition: there is no manifest, or one that cannot be read. Cancelled: `stop` was set. Blocks; reads with
// `threads` threads, each with a buffer of kBlockBytes.
StatusOr<FolderCheck> VerifyFolder(const std::string& folder, int threads, const std::atomic<bool>& stop);

}  // namespace muster::initializers
