// `muster init`: writes a job file to begin with.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Reads flags into `app`; after its parse, `run` writes the file and gives the process's exit code: 0; 64 where the
// kind is not known; 78 where the file is there already, or cannot be written.
void AddInitFlags(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
