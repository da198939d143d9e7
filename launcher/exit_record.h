// SPDX-License-Identifier: Apache-2.0
// How one worker ended (passive data), and a parser of torchelastic's error file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::launcher {

struct ExitRecord {
  int local_rank = 0;
  int64_t pid = 0;
  int exit_code = 0;  // 0..255; 128 + n when killed by signal n
  int signal = 0;     // 0: the worker exited by itself
  bool core_dumped = false;
  // The cgroup's oom_kill counter rose while the worker ran, and no other worker's end explains that. Either the kernel
  // killed the worker for memory (137: SIGKILL, or a shell that reports its child), or the worker failed by itself
  // after a process that it had started was killed.
  bool oom_killed = false;
  bool after_stop = false;  // the worker ended after WorkerGroup::Stop, so this is not a failure of its own
  int64_t max_rss_bytes = 0;
  Duration cpu_time{};  // user + system, with its waited-for children
  Duration lived{};
  int64_t ended_unix_millis = 0;
  std::string error_file;                // path, when the file exists
  std::string error_message;             // its message; "" if there is none
  std::string error_callstack;           // its traceback
  std::vector<std::string> stdout_tail;  // as stderr_tail
  std::vector<std::string> stderr_tail;  // last lines of stderr, at most 20, each cut at 2 KiB; empty if not captured
  std::string stderr_reason;  // the line of stderr that explains a failure (base/reason_line.h); empty if none does
};

// Whether a signal comes from another process, so that the worker's last lines do not explain its end. False for 0 and
// for the signals that a worker causes itself (SIGSEGV, SIGABRT ...).
bool IsFromOutside(int signal);

// torchelastic's error file (torch/distributed/elastic/multiprocessing/errors):
// {"message": {"message": "...", "extraInfo": {"py_callstack": "...", "timestamp": "1700000000"}}} or
// {"message": "...", "timestamp": ...}. At most 1 MiB is read. InvalidArgument: any other content.
struct ErrorFile {
  std::string message;
  std::string callstack;
  int64_t unix_seconds = 0;
};
StatusOr<ErrorFile> ParseErrorFile(const std::string& json);

}  // namespace muster::launcher
