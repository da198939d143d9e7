// SPDX-License-Identifier: Apache-2.0
// Where the files of a run go: --log-dir, or a folder of the run's own below TMPDIR, /tmp or /var/tmp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "agent/old_logs.h"
#include "agent/workers/run_options.h"
#include "base/status.h"

namespace muster::agent {

struct LogPlace {
  std::string root;               // "<log-dir>/<run id>", absolute; empty: no files are kept
  std::string temporary;          // the folder that was made because no --log-dir was given
  std::shared_ptr<LogMark> mark;  // of `temporary`
  bool holds_output = false;      // the workers' output goes there: `temporary` is kept after a success, too
};

// Makes the folder of --log-dir. InvalidArgument (ResourceExhausted if the disk is full) names the flag or variable.
Status MakeLogFolder(const RunOptions::Logs& logs);

// Call it after MakeLogFolder(). If no --log-dir was given, makes a folder in the first place of temporary_folder.h
// that takes one, and removes old ones there (old_logs.h). Warns if that is not TMPDIR, though it is set. If no place
// takes a folder, warns and returns an empty LogPlace.
LogPlace FindLogPlace(const RunOptions& options);

// Call it after the last write. Removes a temporary folder that is empty or, after a success, holds no workers' output.
void LeaveLogPlace(const LogPlace& place, bool success);

// The name of a run's folder: `run_id`, changed where it would not be a single part of a path. Pure.
std::string RunFolder(std::string_view run_id);
// True if some worker's output is redirected or tee'd into a file. Pure.
bool HoldsOutput(const RunOptions& options);

}  // namespace muster::agent
