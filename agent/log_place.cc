#include "agent/log_place.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "agent/flag_reader.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {

Status MakeLogFolder(const RunOptions& options) {
  if (!options.log_dir || options.log_dir == "/dev/null") return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(*options.log_dir, error);
  if (!error && std::filesystem::is_directory(*options.log_dir, error)) return absl::OkStatus();
  if (!error) error = std::make_error_code(std::errc::not_a_directory);
  return Bad({*options.log_dir, options.log_dir_origin},
             fmt::format("not a folder, and none can be made there ({}); name another one", error.message()));
}

LogPlace FindLogPlace(const RunOptions& options) {
  LogPlace place;
  if (options.log_dir == "/dev/null") return place;
  std::error_code error;
  std::string log_dir = options.log_dir.value_or("");
  if (!options.log_dir) {
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
