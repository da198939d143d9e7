// SPDX-License-Identifier: Apache-2.0
// The launcher's side of an MPI job, beside mpirun itself: host files for each attempt; a connection to every worker
// pod, by which the pod hears how the job ended; the reports of remote shells that fail.
//
// mpirun says little about a failed remote shell: Open MPI ends with 1 whatever happened to a daemon, and MPICH waits
// for ever if a remote shell fails before its daemon has called back. So each `muster rsh` that fails writes one line
// into the launcher's pipe (MUSTER_RSH_REPORT), and its code and reason become those of the attempt.
//
// Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/flags/flag_reader.h"
#include "agent/flags/wire_mpi.h"
#include "base/exit_codes.h"
#include "base/status.h"

namespace muster::agent {

// The report of `muster rsh`, as one line: exit code, then the reason. Pure.
struct RshFailure {
  int exit_code = 0;  // 1..255
  std::string reason;
};
std::string FormatRshFailure(const RshFailure& failure);
StatusOr<RshFailure> ParseRshFailure(std::string_view line);

// Writes the report into the pipe that MUSTER_RSH_REPORT names, if it is set and the pipe has a reader. Never blocks.
void ReportRshFailure(const Environment& environment, const RshFailure& failure);

class MpiLauncher {
 public:
  // `failed` is called for each remote shell of this attempt that fails.
  MpiLauncher(boost::asio::io_context& loop, std::function<void(const RshFailure&)> failed);
  ~MpiLauncher();
  MpiLauncher(const MpiLauncher&) = delete;
  MpiLauncher& operator=(const MpiLauncher&) = delete;

  // Reads the hosts, and dials the worker pods if they are not those of the attempt before. Returns the variables for
  // mpirun. `other_folder` and errors: as of MpiHostFiles::Make().
  StatusOr<Variables> NewAttempt(const Environment& environment, const std::string& other_folder);

  // The job is over: tells every worker pod. Calls `done` once, never from within this call, after at most 10 s.
  void End(int exit_code, ExitClass exit_class, const std::string& reason, std::function<void()> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agent
