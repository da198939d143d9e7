// The error file of the agent itself: whoever starts torchrun with TORCHELASTIC_ERROR_FILE set finds there why it
// failed, in torchelastic's form (torch/distributed/elastic/multiprocessing/errors: @record around torchrun's main).
//
//   the root cause's worker ran on this host and left an error file   its content, with the worker's exit code
//   any other failure                                                 its message, else the reason of the end
//   success, or a command that is not wired as torch                  nothing: a plain command writes its own
//
// Beyond torchrun: a worker without an error file, or on another node, is told too; torchrun writes nothing then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/last_words.h"
#include "agent/torch/run_options.h"

namespace muster::agent {

// What to write; nullopt: nothing. `worker_file`: what the root cause's error file holds, where it can be read here.
// Pure.
std::optional<std::string> ErrorFileText(const JobEnd& end, const std::optional<std::string>& worker_file,
                                         int64_t unix_ms);

// Writes it to the file that TORCHELASTIC_ERROR_FILE names in this process's environment, where it names one. What
// goes wrong is a warning.
void LeaveErrorFile(const JobEnd& end, const RunOptions& options);

}  // namespace muster::agent
