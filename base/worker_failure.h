// What is known about one worker that failed: made by the node that ran it, carried by the rendezvous to every node,
// shown to the user. Passive data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

struct WorkerFailure {
  std::string node;  // stable node name
  std::string host;  // host name of that node
  int rank = -1;     // global rank; -1: it is no rank's (WhoFailed)
  int local_rank = -1;
  int64_t pid = 0;    // 0: it was never started
  int exit_code = 0;  // 1..255; 128 + n for signal n
  int signal = 0;     // 0: it exited by itself
  bool core_dumped = false;
  // The cgroup's oom_kill counter rose in its time: it was killed for memory itself (137), or something it had started.
  bool oom_killed = false;
  // It says of itself that a peer went away (connection reset by peer, remote process exited): a consequence, not a
  // cause.
  bool consequence = false;
  // It failed by itself after another failure had ended the round: a consequence too, as far as anybody can know.
  bool late = false;
  std::string message;                   // from the error file, else empty
  std::string error_file;                // path on its node, else empty
  std::vector<std::string> stderr_tail;  // its last lines, at most 20
  std::string stderr_reason;             // the line of its stderr that explains the end (reason_line.h), else empty
  int64_t unix_millis = 0;               // when it ended, for people's eyes
  bool operator==(const WorkerFailure&) const = default;
};

// No worker of the job has written anything for the limit: a hang that is no rank's and no process's.
bool IsSilence(const WorkerFailure& failure);

// "worker rank 3"; "all workers" of a silence, which knows no rank; "the command" of a `muster exec`.
std::string WhoFailed(const WorkerFailure& failure);

}  // namespace muster
