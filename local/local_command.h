// `muster local`: runs a job file on this machine.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::local {

// Adds the flags to `app`. After the parse, `run` runs the job and returns the exit code of the process: the job's; 64
// and 78 as in base/exit_codes.h; 143 or 130 if SIGTERM or SIGINT ended the run.
void AddLocalFlags(CLI::App* app, std::function<int()>* run);

}  // namespace muster::local
