// Where the files of a run go: --log-dir, or a folder of this run's own below TMPDIR, /tmp or /var/tmp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "agent/old_logs.h"
#include "agent/torch/run_options.h"
#include "base/status.h"

namespace muster::agent {

struct LogPlace {
  std::string root;               // "<log-dir>/<run id>", absolute; empty: no files are kept
  std::string temporary;          // the folder that was made because no --log-dir was given
  std::shared_ptr<LogMark> mark;  // of that folder
  bool holds_output = false;      // the workers' output goes there: it is kept after a success too
};

// Makes the log folder that was asked for. InvalidArgument names the flag or variable: it cannot be made, or is none;
// ResourceExhausted does where the disk is full.
Status MakeLogFolder(const RunOptions& options);

// After MakeLogFolder(). Where none was asked for one is made in the first place of temporary_folder.h that takes it,
// and old ones there are removed (old_logs.h); a warning says that TMPDIR did not take it, or that none did: the place
// is empty then.
LogPlace FindLogPlace(const RunOptions& options);

// After the last write: a temporary folder that holds nothing of worth goes.
void LeaveLogPlace(const LogPlace& place, bool success);

// The folder of a run, one part of a path whatever the id is. Pure.
std::string RunFolder(std::string_view run_id);
// Some worker's output is redirected or tee'd into a file. Pure.
bool HoldsOutput(const RunOptions& options);

}  // namespace muster::agent
