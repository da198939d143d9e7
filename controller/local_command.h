// `muster local`: a job file runs on this machine.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Reads flags into `app`; after its parse, `run` runs the job and gives the process's exit code: the job's. 64 and 78
// as in base/exit_codes.h; 143 and 130 where a signal has ended it.
void AddLocalFlags(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
