// The launcher's side of an MPI job, beside mpirun itself: host files for each attempt, one conversation with every
// worker pod so that it hears how the job ended, and what a remote shell has to say when it fails.
//
// mpirun tells little of that: Open MPI ends with 1 whatever became of a daemon, and MPICH waits for ever when a
// remote shell fails before its daemon has called back. So each `muster rsh` that fails writes one line into a pipe of
// ours (MUSTER_RSH_REPORT), and its code and reason become the attempt's.
//
// Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/torch/flag_reader.h"
#include "agent/torch/wire_mpi.h"
#include "base/exit_codes.h"
#include "base/status.h"

namespace muster::agent {

// What `muster rsh` reports, as one line: exit code, then the reason. Pure.
struct RshFailure {
  int exit_code = 0;  // 1..255
  std::string reason;
};
std::string FormatRshFailure(const RshFailure& failure);
StatusOr<RshFailure> ParseRshFailure(std::string_view line);

// Writes it to where MUSTER_RSH_REPORT leads, if anywhere; never blocks.
void ReportRshFailure(const Environment& environment, const RshFailure& failure);

class MpiLauncher {
 public:
  // `failed`: a remote shell of this attempt failed. Any number of times.
  MpiLauncher(boost::asio::io_context& loop, std::function<void(const RshFailure&)> failed);
  ~MpiLauncher();
  MpiLauncher(const MpiLauncher&) = delete;
  MpiLauncher& operator=(const MpiLauncher&) = delete;

  // Reads the hosts (mpi_host_files.h; its errors) and dials those that are new. `other_folder` as there.
  StatusOr<Variables> NewAttempt(const Environment& environment, const std::string& other_folder);

  // The job is over: tells every worker pod. `done` is called once, not from within, after a bounded time.
  void End(int exit_code, ExitClass exit_class, const std::string& reason, std::function<void()> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agent
