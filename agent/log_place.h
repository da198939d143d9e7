// Where the files of a run go: --log-dir, or a folder of this run's own below TMPDIR.
#pragma once

#include <string>
#include <string_view>

#include "agent/run_options.h"
#include "base/status.h"

namespace muster::agent {

struct LogPlace {
  std::string root;           // "<log-dir>/<run id>", absolute; empty: no files are kept
  std::string temporary;      // the folder that was made because no --log-dir was given
  bool holds_output = false;  // the workers' output goes there: it is kept after a success too
};

// Makes the log folder that was asked for. InvalidArgument names the flag or variable: it cannot be made, or is none;
// ResourceExhausted does where the disk is full.
Status MakeLogFolder(const RunOptions& options);

// After MakeLogFolder(). Where none was asked for and none can be made it says so and gives an empty place.
LogPlace FindLogPlace(const RunOptions& options);

// After the last write: a temporary folder that holds nothing of worth goes.
void LeaveLogPlace(const LogPlace& place, bool success);

// The folder of a run, one part of a path whatever the id is. Pure.
std::string RunFolder(std::string_view run_id);
// Some worker's output is redirected or tee'd into a file. Pure.
bool HoldsOutput(const RunOptions& options);

}  // namespace muster::agent
