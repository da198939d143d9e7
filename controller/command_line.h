// SPDX-License-Identifier: Apache-2.0
// Parses the command line for the binaries of this room.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace muster::controller {

// Parses the command line, by which a subcommand sets `run`, and calls `run`. Ignores SIGPIPE. Returns the exit code of
// the process: 64 if the command line is wrong.
int ParseAndRun(int argc, char** argv, CLI::App* app, const std::function<int()>& run);

// The agent's image unless a flag names one: that of this version, as `make images` names it.
std::string UsualAgentImage();

}  // namespace muster::controller
