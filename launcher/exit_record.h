// How one worker ended. Passive data plus the reading of torchelastic's error file.
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
  int signal = 0;     // 0: it exited by itself
  bool core_dumped = false;
  // The cgroup's oom_kill counter rose in its life time, which no other death explains: it was killed for memory (137:
  // SIGKILL, or a shell's word for its child's), or it failed by itself after something it had started was.
  bool oom_killed = false;
  bool after_stop = false;  // it ended after Stop was called: a consequence of ours
  int64_t max_rss_bytes = 0;
  Duration cpu_time{};  // user + system, with its waited-for children
  Duration lived{};
  int64_t ended_unix_millis = 0;
  std::string error_file;                // path, when the file exists
  std::string error_message;             // its message, "" where there is none
  std::string error_callstack;           // its traceback
  std::vector<std::string> stdout_tail;  // as stderr_tail
  std::vector<std::string>
      stderr_tail;  // last lines of stderr, at most 20, each cut at 2 KiB; empty where not captured
  std::string stderr_reason;  // the line of stderr that explains a failure (base/reason_line.h); empty where none does
};

// Killed by a signal that somebody sends, so that what the worker wrote last is not why. The others are of its own
// making (SIGSEGV, SIGABRT ...). False for 0.
bool IsFromOutside(int signal);

// torchelastic's error file (torch/distributed/elastic/multiprocessing/errors):
// {"message": {"message": "...", "extraInfo": {"py_callstack": "...", "timestamp": "1700000000"}}} or
// {"message": "...", "timestamp": ...}. At most 1 MiB is read. Any other content: InvalidArgument.
struct ErrorFile {
  std::string message;
  std::string callstack;
  int64_t unix_seconds = 0;
};
StatusOr<ErrorFile> ParseErrorFile(const std::string& json);

}  // namespace muster::launcher
