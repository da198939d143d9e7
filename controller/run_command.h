// `muster-controller run`: watches TrainJobs of a cluster, and does what they ask for, until SIGTERM.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Adds the subcommand. When it is the one that was given, *run afterwards does it and gives the exit code: 0 after
// SIGTERM or SIGINT, 64 a wrong value, 78 the settings lead to no cluster, 200 the leadership was lost.
void AddRunCommand(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
