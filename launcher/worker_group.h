// SPDX-License-Identifier: Apache-2.0
// The workers of one attempt on this node: started together, stopped together, gone when no process of them is left.
//
// It knows no network, no rank and no framework: it gets command lines, environments and places for output. Loop thread
// only; callbacks come on the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/console.h"
#include "launcher/exit_record.h"
#include "launcher/oom_counter.h"
#include "launcher/output_spec.h"
#include "launcher/process.h"

namespace muster::launcher {

class Reaper;

struct WorkerSpec {
  int local_rank = 0;
  std::vector<std::string> argv;         // argv[0] is looked up in PATH of `environment` if it has no '/'
  std::vector<std::string> environment;  // "KEY=VALUE", complete
  std::string working_directory;         // empty: the agent's
  bool own_session = true;               // as in process.h
  bool foreground = false;  // shares the terminal on this process's stdin (foreground.h); needs own_session = false
  OutputSpec output;        // output_spec.h: files, console, prefix, filters
  // Descriptors of the caller to use instead of `output`; borrowed until Start has returned. -1: not given.
  int in = -1;
  int out = -1;
  int err = -1;
  std::vector<int> kept;  // as in process.h
  // Makes the process in place of StartProcess, with the same meaning and errors. Empty: StartProcess.
  std::function<StatusOr<pid_t>(const ProcessSpec&)> start;
  // Entries that every descendant's environment has, by which strays are known; empty: those of `environment`.
  std::vector<std::string> marks;
  std::string error_file;  // path where the worker may write torchelastic's JSON; empty: none
};

struct WorkerGroupEvents {
  // The first output of any worker came through a pipe (StreamSpec::observed), on `stream`, so long after the start of
  // the first worker. At most once, before worker_exited of its writer. It must not destroy the group.
  std::function<void(Duration after, Console::Stream stream)> first_output;
  // What a worker has written into a pipe, in the pieces in which it comes. It must not destroy the group.
  std::function<void(int local_rank, Console::Stream stream, std::string_view bytes)> output;
  // A worker ended by itself (not after Stop). All its output has been read, including the last line before _exit.
  std::function<void(const ExitRecord&)> worker_exited;
  // No process of any worker's group is left, the console has all output, and the files are written or given up, which
  // the log says: a hanging disk delays this event by 5 s, a slow one by a minute at most. Once; also without Stop,
  // when all workers have ended.
  std::function<void()> all_gone;
};

class WorkerGroup {
 public:
  WorkerGroup(boost::asio::io_context& loop, Reaper& reaper, Console& console, WorkerGroupEvents events,
              OomCounter oom = OomCounter());
  ~WorkerGroup();  // kills (SIGKILL) the processes that are left
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Starts all workers, each in its own process group (and session, see WorkerSpec). Makes log files and their folders.
  // Call it once. After an error no worker is left running (SIGKILL has been sent) and no event follows. Unavailable: a
  // log file cannot be made. Other codes are those of process.h: NotFound and PermissionDenied name the command (the
  // agent maps them to 127 and 126).
  Status Start(const std::vector<WorkerSpec>& specs);

  // Sends `signal` and SIGCONT to every group that has a process left, also if its leader has ended, and SIGKILL after
  // `grace`. Also stops descendants that left their group, lost their parents and so became children of this process. A
  // second call with a shorter grace shortens it and sends the signal again. all_gone follows when no process is left,
  // or 5 s after SIGKILL at the latest. The log then names those left: stuck in the kernel, or another user's, which
  // may not be signalled (EPERM; logged at once if a whole group may not).
  void Stop(int signal, Duration grace);

  // Forwards a signal to every group. Before SIGCONT, gives the terminal's foreground back to a foreground worker if
  // this process's group has it.
  void Signal(int signal);

  bool running() const;                            // whether a process of a group is left
  const std::vector<ExitRecord>& records() const;  // of the ended workers, in the order of their ends
  std::vector<int64_t> pids() const;               // of the started workers, in the order of `specs`
  // The errors that running workers have written to stderr within kReasonFreshAge (base/reason_line.h), by local rank.
  // A worker that has printed its traceback may be busy with its teardown for a while.
  std::map<int, std::string> ErrorsSoFar();
  // When the last byte of output of any worker came through a pipe (StreamSpec::observed).
  std::optional<TimePoint> LastOutput() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::launcher
