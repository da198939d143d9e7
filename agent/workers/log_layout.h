// SPDX-License-Identifier: Apache-2.0
// Where the files of an attempt are, and where each worker's output goes. Pure, except for isatty(2).
//
//   <log-dir>/<run id>/attempt_N/<local rank>/{stdout.log,stderr.log,error.json,heartbeat}
//   <log-dir>/<run id>/attempt_N/{filtered_stdout.log,filtered_stderr.log,attempt.json}
//
// Rules of torchrun (DefaultLogsSpecs.reify):
//   tee                     file and console, console lines with the prefix; wins over redirect
//   redirect                file only
//   neither                 console only
//   not in the rank filter  nothing on the console nor among the filtered lines; its own files are written as before
//   --log-dir /dev/null     no files: a redirected stream stays on the console
// Beyond torchrun: the last lines of stderr are kept for the failure summary, unless stderr is the terminal itself.
// With --hang-log-timeout all output goes through pipes, so that silence can be seen.
#pragma once

#include <unistd.h>

#include <string>

#include "agent/workers/run_options.h"
#include "launcher/output_spec.h"
#include "rendezvous/round.h"

namespace muster::agent {

struct AttemptPaths {
  std::string folder;           // "<log-dir>/<run id>/attempt_N"; empty: no files
  std::string flight_recorder;  // for PyTorch's dumps (flight_recorder.h); empty: no dumps

  // Each is empty if `folder` is empty.
  std::string WorkerFolder(int local_rank) const;
  std::string StdoutFile(int local_rank) const;
  std::string StderrFile(int local_rank) const;
  std::string ErrorFile(int local_rank) const;
  std::string HeartbeatFile(int local_rank) const;
  std::string FilteredStdoutFile() const;
  std::string FilteredStderrFile() const;
};

// The prefix of a worker's console lines: the template, or "[<role><local rank>]:".
std::string LinePrefix(const RunOptions& options, const rendezvous::Assignment& assignment, int local_rank);

// Which streams of the agent are terminals.
struct Terminals {
  bool out = isatty(STDOUT_FILENO) == 1;
  bool err = isatty(STDERR_FILENO) == 1;
};

launcher::OutputSpec WorkerOutput(const RunOptions& options, const rendezvous::Assignment& assignment, int local_rank,
                                  const AttemptPaths& paths, const Terminals& terminals = {});

}  // namespace muster::agent
