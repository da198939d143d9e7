// How the binaries of this room begin.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Parses the command line, by which `run` is set, and runs it. Gives the exit code of the process: 64 where the command
// line is wrong.
int ParseAndRun(int argc, char** argv, CLI::App* app, const std::function<int()>& run);

}  // namespace muster::controller
