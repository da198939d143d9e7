// SPDX-License-Identifier: Apache-2.0
#include "agent/log_place.h"

#include <filesystem>

#include "agent/flags/flag_reader.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/temporary_folder.h"
#include "base/text.h"

namespace muster::agent {

Status MakeLogFolder(const RunOptions::Logs& logs) {
  const std::string folder = logs.Folder();
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  if (!error) error = std::make_error_code(std::errc::not_a_directory);
  Status status = Bad({folder, logs.dir_origin},
                      fmt::format("not a folder, and none can be made there ({}); name another one", error.message()));
  // A full disk is not a wrong setting: another machine, or this one tomorrow, may have room.
  if (absl::IsResourceExhausted(ErrnoStatus(error.value(), ""))) return absl::ResourceExhaustedError(status.message());
  return status;
}

LogPlace FindLogPlace(const RunOptions& options) {
  LogPlace place;
  if (options.logs.dir == "/dev/null") return place;
  std::error_code error;
  std::string log_dir = options.logs.dir.value_or("");
  if (!options.logs.dir) {
    auto made = MakeTemporaryFolder(kLogFolderPrefix, TemporaryFolders(Environment::OfProcess().Get("TMPDIR")));
    if (!made.ok()) {  // a read-only image with nowhere to write still trains
      log::Warning(
          fmt::format("cannot make a folder for the files of this run ({}): its workers have no heartbeat and "
                      "error files, and no logs are kept; name a folder with --log-dir",
                      Message(made.status())));
      return place;
    }
    log_dir = place.temporary = made->path;
    const std::string above = made->path.substr(0, made->path.rfind('/'));
    if (!made->passed_over.empty()) {
      log::Warning(
          fmt::format("cannot make a folder in TMPDIR ({}): the files of this run go to {}", made->passed_over, above));
    }
    place.mark = std::make_shared<LogMark>(log_dir);
    RemoveOldLogs(above, *place.mark);
  }
  place.root = std::filesystem::absolute(log_dir, error) / RunFolder(options.job.run_id);
  place.holds_output = HoldsOutput(options);
  if (place.holds_output && !place.temporary.empty()) {
    log::Info(fmt::format("the workers' output goes to {}; --log-dir chooses another folder", place.root));
  }
  return place;
}

void LeaveLogPlace(const LogPlace& place, bool success) {
  if (place.temporary.empty()) return;
  std::error_code ignored;
  const bool empty = !std::filesystem::exists(place.root, ignored);
  const bool goes = empty || (success && !place.holds_output);
  place.mark->End(goes);
  if (goes) std::filesystem::remove_all(place.temporary, ignored);
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
  for (int local_rank = 0; local_rank < options.workers.nproc; ++local_rank) {
    if (options.logs.redirects.For(local_rank) != 0 || options.logs.tee.For(local_rank) != 0) return true;
  }
  return false;
}

}  // namespace muster::agent
