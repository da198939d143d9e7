// attempt.json read back: one file (pure), and all of them below a folder. What `muster report` is made from.
//
// Everything read here was written by other processes, some of them killed, on machines that may not be this one:
// nothing in it is trusted, and one bad file never hides the good ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/report/attempt_record.h"
#include "base/status.h"

namespace muster::agent {

struct AttemptFile {
  std::string folder;  // of its attempt.json: the workers' folders lie beside it
  AttemptRecord record;
};

struct HistoryProblem {
  std::string path;
  std::string what;  // one sentence
};

struct AttemptHistory {
  std::vector<AttemptFile> files;        // in the order of their paths
  std::vector<HistoryProblem> problems;  // what was found and could not be used
};

// Bounds of a search: what lies beyond them is named in `problems`.
struct HistoryLimits {
  int depth = 8;  // folders below the one that was named
  size_t folders = 200'000;
  size_t files = 20'000;
  size_t file_bytes = 4 << 20;
  size_t error_files = 1'000;    // the tracebacks of the workers that failed, from error.json
  size_t text_bytes = 64 << 20;  // last lines and messages kept, of failed workers only
};

// The text of one attempt.json (docs/attempt-json.md). Unknown fields are passed over; absent ones are empty, but for
// run_id, node, round and started_unix_ms. InvalidArgument says what is wrong: no JSON, cut off, a field of another
// type, a number no agent writes. Times are within the years 1970 to 9999, ranks and counts within 0 to 10^7.
StatusOr<AttemptRecord> ParseAttemptRecord(std::string_view json);

// All attempt.json in `folder` and below. Links to folders are followed, each folder is read once, so a loop of links
// ends. A folder with an attempt.json is not searched further. The tracebacks of failed workers come from their
// error.json beside it, where there is one; the last lines of workers that were stopped are not kept. Fails only when
// `folder` itself cannot be read.
StatusOr<AttemptHistory> ReadAttemptHistory(const std::string& folder, const HistoryLimits& limits = {});

}  // namespace muster::agent
