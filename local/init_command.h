// `muster init`: writes a job file to begin with.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::local {

// Adds the flags to `app`. After the parse, `run` writes the file and returns the exit code of the process: 0; 64: the
// kind is unknown; 78: the file exists already, or cannot be written.
void AddInitFlags(CLI::App* app, std::function<int()>* run);

}  // namespace muster::local
