#include "agent/log_place.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"

namespace muster::agent {

StatusOr<LogPlace> FindLogPlace(const RunOptions& options) {
  LogPlace place;
  if (options.log_dir == "/dev/null") return place;
  std::error_code error;
  std::string log_dir;
  if (options.log_dir) {
    log_dir = *options.log_dir;
    std::filesystem::create_directories(log_dir, error);
    if (error || !std::filesystem::is_directory(log_dir, error)) {
      return absl::InvalidArgumentError(
          fmt::format("--log-dir {}: not a directory that can be made ({})", log_dir, error.message()));
    }
  } else {
    std::string pattern = (std::filesystem::temp_directory_path(error) / "muster_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {  // a read-only image with nowhere to write still trains
      log::Warning(fmt::format("{}; no files of this run are kept, name a folder with --log-dir",
                               Message(ErrnoStatus(errno, fmt::format("cannot make {}", pattern)))));
      return place;
    }
    log_dir = place.temporary = pattern;
  }
  place.root = std::filesystem::absolute(log_dir, error) / RunFolder(options.run_id);
  place.holds_output = HoldsOutput(options);
  if (place.holds_output && !place.temporary.empty()) {
    log::Info(fmt::format("the workers' output goes to {}; --log-dir chooses another folder", place.root));
  }
  return place;
}

void LeaveLogPlace(const LogPlace& place, bool success) {
  if (place.temporary.empty()) return;
  std::error_code ignored;
  if (success && !place.holds_output) {
    std::filesystem::remove_all(place.temporary, ignored);
  } else {
    std::filesystem::remove(place.temporary, ignored);  // where it is empty
  }
}

std::string RunFolder(std::string_view run_id) {
  std::string folder(run_id);
  const bool no_name = folder == "." || folder == "..";
  for (char& c : folder) {
    if (c == '/' || (no_name && c == '.')) c = '_';
  }
  return folder;
}

bool HoldsOutput(const RunOptions& options) {
  for (int local_rank = 0; local_rank < options.nproc; ++local_rank) {
    if (options.redirects.For(local_rank) != 0 || options.tee.For(local_rank) != 0) return true;
  }
  return false;
}

}  // namespace muster::agent
