// Parses the command line for the binaries of this room.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Parses the command line, by which a subcommand sets `run`, and calls `run`. Ignores SIGPIPE. Returns the exit code of
// the process: 64 if the command line is wrong.
int ParseAndRun(int argc, char** argv, CLI::App* app, const std::function<int()>& run);

}  // namespace muster::controller
