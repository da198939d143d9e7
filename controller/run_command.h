// `muster-controller run`: serves the TrainJobs and, by a flag, the PyTorchJobs of a cluster until SIGTERM or SIGINT.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Adds the subcommand. If it is given, *run afterwards carries it out and returns the exit code: 0 after SIGTERM or
// SIGINT, 64 for a wrong value, 78 if no cluster, port or certificate can be used, 200 if the leadership was lost.
void AddRunCommand(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
