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
  std::string run_folder = options.run_id;
  for (char& c : run_folder) {
    if (c == '/') c = '_';
  }
  place.root = std::filesystem::absolute(log_dir, error) / run_folder;
  return place;
}

}  // namespace muster::agent
