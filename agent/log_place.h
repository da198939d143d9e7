// Where the files of a run go: --log-dir, or a folder of this run's own below TMPDIR.
#pragma once

#include <string>

#include "agent/run_options.h"
#include "base/status.h"

namespace muster::agent {

struct LogPlace {
  std::string root;       // "<log-dir>/<run id>", absolute; empty: no files are kept
  std::string temporary;  // the folder that was made because no --log-dir was given; to be removed after success
};

// Makes the log folder. InvalidArgument where the one that was asked for cannot be made; where none was asked for and
// none can be made it says so and gives an empty place.
StatusOr<LogPlace> FindLogPlace(const RunOptions& options);

}  // namespace muster::agent
