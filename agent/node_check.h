// SPDX-License-Identifier: Apache-2.0
// The node check (--node-check): a command that tells whether this node is fit to train. For users: docs/node-check.md.
//
// When: before the node joins. Again after the node has failed by itself twice in a row, before it says that it is
// ready for the next round: this is what a broken GPU or disk looks like, and then the failing check takes the node out
// of the job. A bug of the job looks the same, but then the check passes and the job goes on.
// Idea: NVIDIA's nvidia-resiliency-ext checks its nodes before each rendezvous; DLRover has its nodes check each other.
//
// What: a shell command or, if the image has no shell, a command line that is split at blanks. "builtin [flags]" is
// this binary's own `muster check --json [flags]`. For any command: if its last line on stdout is JSON as `muster check
// --json` prints it, its figures are kept and compared with the other nodes' (rendezvous/outliers.h).
//
// At its deadline the check gets SIGTERM, and SIGKILL 5 s later. Processes that it leaves in its group are stopped when
// it ends. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/workers/run_options.h"
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
  // Call it when no worker of the round is left. True at the second failure in a row; then the count begins anew.
  bool RoundEnds();

 private:
  bool own_ = false;
  bool consequence_ = false;
  int in_a_row_ = 0;
};

// The command line of a check. `peers` ("host:port") and `disk` (a folder) are for the builtin. Looks for /bin/sh.
std::vector<std::string> NodeCheckCommand(const std::string& check, const std::vector<std::string>& peers,
                                          const std::string& disk, const HostFs& fs = HostFs());

class NodeCheck {
 public:
  struct Host {  // all must outlive the NodeCheck
    boost::asio::io_context& loop;
    launcher::Reaper& reaper;
    launcher::Console& console;
    const RunOptions& options;
  };
  // `failed`: called on the loop with "node check failed: `CMD` ended with 3: <last line>".
  NodeCheck(Host host, std::function<void(const std::string& reason)> failed);
  ~NodeCheck();  // kills a running check
  NodeCheck(const NodeCheck&) = delete;
  NodeCheck& operator=(const NodeCheck&) = delete;

  // Runs the check, then calls `passed`. If there is no check, calls `passed` at once, from within this call.
  void Run(std::function<void()> passed);
  // What the last check that passed measured, by name (rendezvous/outliers.h).
  const std::map<std::string, double>& measured() const;

  // For the second failure in a row. BeforeReady() runs a check that is due, then calls `passed`; may be called again.
  void RoundBegins();
  void WorkersFailed(const std::vector<WorkerFailure>& failures);
  void BeforeReady(std::function<void()> passed);

  // Stops a running check by `signal`, SIGKILL after `grace`: it neither passes nor fails; `gone` when no process of it
  // is left. False: no check runs.
  bool Stop(int signal, Duration grace, std::function<void()> gone);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Runs the check in a process that does nothing else yet (`--serve-rsh` before it serves). Returns 0, 204, or 128 + the
// signal that came meanwhile; if not 0, `reason` says why. Blocks.
int RunNodeCheck(const RunOptions& options, std::string* reason);

}  // namespace muster::agent
