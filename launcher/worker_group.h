// The workers of one attempt on this node: started together, stopped together, gone when no process of theirs is left.
//
// Knows no network, no rank, no framework: it gets command lines, environments and where output goes.
// One loop: everything runs on the io_context given; no method from another thread; callbacks come on the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/console.h"
#include "launcher/exit_record.h"
#include "launcher/oom_counter.h"
#include "launcher/output_spec.h"

namespace muster::launcher {

class Reaper;

struct WorkerSpec {
  int local_rank = 0;
  std::vector<std::string> argv;         // argv[0] is looked up in PATH of `environment` if it has no '/'
  std::vector<std::string> environment;  // "KEY=VALUE", complete
  std::string working_directory;         // empty: the agent's
  bool own_session = true;               // as in process.h
  bool foreground = false;  // it shares the terminal on our stdin with us (foreground.h); needs own_session = false
  OutputSpec output;        // output_spec.h: files, console, prefix, filters
  // The caller's descriptors in place of all that; borrowed until Start has returned. -1: not given.
  int in = -1;
  int out = -1;
  int err = -1;
  std::vector<int> kept;   // as in process.h
  std::string error_file;  // where torchelastic's JSON may appear; empty: none
};

struct WorkerGroupEvents {
  // A worker ended by itself (not after Stop). Its output has been read by then, with the last line before _exit.
  std::function<void(const ExitRecord&)> worker_exited;
  // No process of any worker's group is left, and all output is handed to the console and in its files (or given up on
  // and said so: a disk that hangs delays this by 5 s, one that is slow by a minute at most). Once; also without Stop,
  // when all have ended.
  std::function<void()> all_gone;
};

class WorkerGroup {
 public:
  WorkerGroup(boost::asio::io_context& loop, Reaper& reaper, Console& console, WorkerGroupEvents events,
              OomCounter oom = OomCounter());
  ~WorkerGroup();  // kills (SIGKILL) what is left
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Starts all workers, each in a session and process group of its own. Once. On an error none is left running (SIGKILL
  // has been sent) and no event follows; the codes are those of process.h: NotFound and PermissionDenied name the
  // command (the agent maps them to 127 and 126). Log files and their folders are made here; Unavailable: they cannot
  // be.
  Status Start(const std::vector<WorkerSpec>& specs);

  // Sends `signal` to every group that has a process left, and SIGCONT; SIGKILL after `grace`. Also sweeps groups whose
  // leader has died already (grandchildren), and descendants that left their group, lost their parents and so became
  // ours. Calling it again with a shorter grace shortens it and sends the signal again. all_gone follows: at the latest
  // 5 s after SIGKILL, when what is left is named in the log: stuck in the kernel, or another user's, which may not be
  // signalled (EPERM; that is also said at once where it is so for a whole group).
  void Stop(int signal, Duration grace);

  // Sends a signal to every group (forwarding); after SIGCONT a worker of the foreground has it again, where we have
  // it.
  void Signal(int signal);

  bool running() const;                            // a process of a group is left
  const std::vector<ExitRecord>& records() const;  // of the workers that have ended, in order of ending
  std::vector<int64_t> pids() const;               // of the workers started, by position in `specs`
  // When any worker's last byte of output came, of what goes through a pipe (StreamSpec::observed).
  std::optional<TimePoint> LastOutput() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::launcher
