// SPDX-License-Identifier: Apache-2.0
// Facts about one failed worker, from the node that ran it. The rendezvous sends them to every node, for the user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

struct WorkerFailure {
  std::string node;  // stable node name
  std::string host;  // host name of that node
  int rank = -1;     // global rank; -1: the failure belongs to no rank (WhoFailed)
  int local_rank = -1;
  int64_t pid = 0;    // 0: the worker was never started
  int exit_code = 0;  // 1..255; 128 + n for signal n
  int signal = 0;     // 0: the worker exited by itself
  bool core_dumped = false;
  // The cgroup's oom_kill counter rose while it ran: the kernel killed the worker (137) or a process it had started.
  bool oom_killed = false;
  // The worker reports that a peer went away (connection reset by peer, remote process exited). So this failure is a
  // consequence, not a cause.
  bool consequence = false;
  // The worker failed after another failure had ended the round. It is a consequence too, unless it had written an
  // error of its own before.
  bool late = false;
  std::string message;                   // from the error file, else empty
  std::string error_file;                // path on its node, else empty
  std::vector<std::string> stderr_tail;  // last lines of stderr, at most 20
  std::string stderr_reason;             // the line of stderr that explains the end (reason_line.h), else empty
  int64_t unix_millis = 0;               // when it ended; for people only, not for decisions
  bool operator==(const WorkerFailure&) const = default;
};

// Whether the whole job hangs, not one rank or process: no worker wrote anything for the hang timeout.
bool IsSilence(const WorkerFailure& failure);

// "worker rank 3"; "all workers" if IsSilence(); "the command" of a `muster exec`.
std::string WhoFailed(const WorkerFailure& failure);

// The line of the worker's own message that explains its end: the exception of a traceback, else the first line. "":
// there is no message.
std::string MessageLine(const WorkerFailure& failure);

// The one line that explains the worker's end: MessageLine(), else `stderr_reason`. "": no line explains it. All that
// names a cause to a user shows this line, so that no two places show different ones.
std::string OwnLine(const WorkerFailure& failure);

}  // namespace muster
