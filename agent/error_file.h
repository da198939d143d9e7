// SPDX-License-Identifier: Apache-2.0
// The agent's own error file: like torchrun, it writes why it failed into the file of TORCHELASTIC_ERROR_FILE, in
// torchelastic's form. Source: torch/distributed/elastic/multiprocessing/errors (@record around torchrun's main).
//
//   how the job ended                                                 what the file gets
//   the root cause's worker ran on this host and left an error file   its content, with the worker's exit code
//   any other failure                                                 its message, else the reason of the end
//   success, or a command that is not wired as torch                  nothing: a plain command writes its own
//
// Beyond torchrun: the agent also writes the file if the failed worker left no error file or ran on another node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/termination_report.h"
#include "agent/workers/run_options.h"

namespace muster::agent {

// The text to write; nullopt: none. `worker_file`: the root cause's error file, if it can be read on this host. Pure.
std::optional<std::string> ErrorFileText(const JobEnd& end, const std::optional<std::string>& worker_file,
                                         int64_t unix_ms);

// Writes it to the file that TORCHELASTIC_ERROR_FILE of this process names, if it is set. Logs an error as a warning.
void LeaveErrorFile(const JobEnd& end, Wire wire);

}  // namespace muster::agent
