// SPDX-License-Identifier: Apache-2.0
// Reads attempt.json: one file (pure), or all files below a folder. `muster report` is made from them.
//
// Everything read here was written by other processes, some of them killed, maybe on other machines. Nothing in it is
// trusted, and one bad file never hides the good ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/report/attempt_record.h"
#include "base/status.h"

namespace muster::agent {

struct AttemptFile {
  std::string folder;  // where attempt.json is, and the workers' folders
  AttemptRecord record;
};

struct HistoryProblem {
  std::string path;
  std::string what;  // one sentence
};

struct AttemptHistory {
  std::vector<AttemptFile> files;        // in the order of their paths
  std::vector<HistoryProblem> problems;  // files that were found and could not be used
};

// Bounds of a search; `problems` names what is beyond them.
struct HistoryLimits {
  int depth = 8;  // levels of folders below the one that was named
  size_t folders = 200'000;
  size_t files = 20'000;
  size_t file_bytes = 4 << 20;
  size_t error_files = 1'000;    // files error.json that are read, for tracebacks of failed workers
  size_t text_bytes = 64 << 20;  // of last lines and messages that are kept, of failed workers only
};

// Parses one attempt.json (docs/attempt-json.md). Ignores unknown fields. Absent fields are empty; run_id, node, round
// and started_unix_ms must be there. InvalidArgument says why: no JSON, cut off, a field of another type, a number that
// no agent writes. Times are within the years 1970 to 9999, ranks and counts within 0 to 10^7.
StatusOr<AttemptRecord> ParseAttemptRecord(std::string_view json);

// Reads all attempt.json in `folder` and below. Follows links to folders, but reads each folder once, so a loop of
// links ends; does not search below a folder with attempt.json. Takes tracebacks of failed workers from their
// error.json there; drops the last lines of stopped workers. Fails only if `folder` itself cannot be read.
StatusOr<AttemptHistory> ReadAttemptHistory(const std::string& folder, const HistoryLimits& limits = {});

}  // namespace muster::agent
