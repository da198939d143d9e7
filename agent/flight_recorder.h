// PyTorch's flight recorder: the last collectives of every rank, dumped on request while the worker hangs.
//
// Source: ProcessGroupNCCL.cpp (DumpPipe, HeartbeatMonitor::runLoop) and FlightRecorder.cpp of PyTorch 2.6 to 2.15. A
// worker with an NCCL process group makes the FIFO "<pipe prefix><global rank>.pipe" and, each second, looks whether
// something was written to it; then it dumps to "<dump prefix><global rank>" and goes on. That needs three settings:
//   TORCH_NCCL_DEBUG_INFO_PIPE_FILE   the pipe prefix; unset: no pipe
//   TORCH_FR_BUFFER_SIZE, before 2.9 TORCH_NCCL_TRACE_BUFFER_SIZE           0, an old default: no pipe either
//   TORCH_FR_DUMP_ON_TIMEOUT, before TORCH_NCCL_DUMP_ON_TIMEOUT             off: the pipe is read every 8 minutes only
// and TORCH_FR_DUMP_TEMP_FILE, before 2.9 TORCH_NCCL_DEBUG_INFO_TEMP_FILE, says where dumps go.
// What `torchfrtrace FOLDER` reads is such a folder of dumps, one per rank.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/status.h"

namespace muster::agent {

// "KEY", "value" pairs that turn it on, with dumps and pipes in `folder`. A setting that the user has made, by any of
// its names, stays as it is. Both names are given where PyTorch has renamed one: newer versions say once that the old
// one is deprecated. Empty for an empty folder. Pure.
std::vector<std::pair<std::string, std::string>> FlightRecorderVariables(const Environment& agent_environment,
                                                                         const std::string& folder);

// The folder for the dumps of an attempt, made; empty where FIFOs cannot be made in it (PyTorch would abort the
// worker).
std::string MakeFlightRecorderFolder(const std::string& attempt_folder);

// Of the worker with this environment; nullopt: it makes no pipe.
struct FlightRecorder {
  std::string pipe;
  std::string dump;  // empty: PyTorch's default place
  bool operator==(const FlightRecorder&) const = default;
};
std::optional<FlightRecorder> FlightRecorderOf(const Environment& environment);

// Asks for a dump. Never blocks: NotFound without a pipe, Unavailable when nobody reads it.
Status AskForDump(const std::string& pipe);

}  // namespace muster::agent
