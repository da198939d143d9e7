// SPDX-License-Identifier: Apache-2.0
// PyTorch's flight recorder: the last collectives of every rank, dumped on request while the worker hangs.
//
// Source: ProcessGroupNCCL.cpp (DumpPipe, HeartbeatMonitor::runLoop) and FlightRecorder.cpp of PyTorch 2.6 to 2.15. A
// worker with an NCCL process group makes the FIFO "<pipe prefix><global rank>.pipe". Each second it looks whether
// something was written into the FIFO; if so, it dumps to "<dump prefix><global rank>" and goes on. That needs three
// settings:
//   TORCH_NCCL_DEBUG_INFO_PIPE_FILE   the pipe prefix; unset: no pipe
//   TORCH_FR_BUFFER_SIZE              0, an old default: no pipe either. Before 2.8 TORCH_NCCL_TRACE_BUFFER_SIZE
//   TORCH_NCCL_DUMP_ON_TIMEOUT        off: the pipe is read only every 8 minutes. Parts of newer versions read
//                                     TORCH_FR_DUMP_ON_TIMEOUT instead, other parts still read the old name
// TORCH_FR_DUMP_TEMP_FILE, before 2.8 TORCH_NCCL_DEBUG_INFO_TEMP_FILE, says where dumps go. From 2.8 on PyTorch warns
// of the old names of the buffer and of the file, whether the new ones are set or not (seen with 2.15; both names are
// in 2.8.0). `torchfrtrace FOLDER` reads a folder of such dumps, one per rank.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/status.h"

namespace muster::agent {

// The names for the settings that were renamed in 2.8. kBoth, with a warning of PyTorch, if the version is not known.
enum class RecorderNames { kBoth, kOld, kNew };

// Pairs of variable and value that turn the recorder on, with dumps and pipes in `folder`. A setting that the user has
// made, by any of its names, stays as it is. Empty for an empty folder. Pure.
std::vector<std::pair<std::string, std::string>> FlightRecorderVariables(const Environment& agent_environment,
                                                                         const std::string& folder,
                                                                         RecorderNames names = RecorderNames::kBoth);

// Makes the folder for the dumps of an attempt; returns "" if it takes no FIFOs (PyTorch would abort the worker).
std::string MakeFlightRecorderFolder(const std::string& attempt_folder);

// The recorder of the worker with this environment; nullopt: the worker makes no pipe.
struct FlightRecorder {
  std::string pipe;
  std::string dump;  // empty: PyTorch's default place
  bool operator==(const FlightRecorder&) const = default;
};
std::optional<FlightRecorder> FlightRecorderOf(const Environment& environment);

// Asks for a dump. Never blocks: NotFound if there is no pipe, Unavailable if the pipe has no reader.
Status AskForDump(const std::string& pipe);

}  // namespace muster::agent
