// The node check (--node-check): a command that tells whether this node is fit to train. docs/node-check.md is for
// users.
//
// When: before the node joins; and again, before it says that it is ready for the next round, after its second failure
// of its own in a row. (A failing node check there takes the node out of the job; two failures in a row are what a
// broken GPU or disk looks like, and a bug of the job's looks like too: then the check passes and the job goes on.)
// Idea: NVIDIA's nvidia-resiliency-ext checks its nodes before each rendezvous; DLRover has its nodes check each other.
//
// What: a shell command, or, where the image has no shell, words between blanks. "builtin [flags]" is this binary's own
// `muster check --json [flags]`. Whatever the command is: if its last line on stdout is JSON as `muster check --json`
// prints it, its figures are kept and compared with the other nodes' (rendezvous/outliers.h).
//
// One deadline: TERM, and 5 s later KILL. What the command leaves in its process group ends with it. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/torch/run_options.h"
#include "base/clock.h"
#include "base/host_fs.h"
#include "base/worker_failure.h"
#include "launcher/console.h"
#include "launcher/reaper.h"

namespace muster::agent {

// Counts a node's failures of its own in a row. A consequence of a peer's failure neither counts nor ends the row; a
// round that ends without a failure here ends it. Pure.
class OwnFailures {
 public:
  void RoundBegins() { own_ = consequence_ = false; }
  void Failed(const std::vector<WorkerFailure>& failures);
  // No worker of the round is left: true from the second in a row on. Then the next row begins.
  bool RoundEnds();

 private:
  bool own_ = false;
  bool consequence_ = false;
  int in_a_row_ = 0;
};

// The command line of a check. `peers`: "host:port", for the builtin. Pure but for looking for /bin/sh.
std::vector<std::string> NodeCheckCommand(const std::string& check, const std::vector<std::string>& peers,
                                          const std::string& disk, const HostFs& fs = HostFs());

class NodeCheck {
 public:
  struct Host {  // all outlive it
    boost::asio::io_context& loop;
    launcher::Reaper& reaper;
    launcher::Console& console;
    const RunOptions& options;
  };
  // `failed`: called on the loop with "node check failed: `CMD` ended with 3: <last line>".
  NodeCheck(Host host, std::function<void(const std::string& reason)> failed);
  ~NodeCheck();  // kills what runs
  NodeCheck(const NodeCheck&) = delete;
  NodeCheck& operator=(const NodeCheck&) = delete;

  // Runs the check, if there is one; then calls `passed`. Without one: at once, from within this call.
  void Run(std::function<void()> passed);
  // What the last check that passed measured, by name (rendezvous/outliers.h).
  const std::map<std::string, double>& measured() const;

  // For the second failure in a row. BeforeReady may be called again for the same round.
  void RoundBegins();
  void WorkersFailed(const std::vector<WorkerFailure>& failures);
  void BeforeReady(std::function<void()> passed);

  // True: a check runs; it gets `signal`, KILL after `grace`, neither passes nor fails, and `gone` is called when
  // nothing of it is left.
  bool Stop(int signal, Duration grace, std::function<void()> gone);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// For a process that does nothing else yet (`--serve-rsh` before it serves): 0, 204, or 128 + the signal that came
// meanwhile; then `reason` says why. Blocks.
int RunNodeCheck(const RunOptions& options, std::string* reason);

}  // namespace muster::agent
