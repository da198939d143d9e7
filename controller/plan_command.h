// `muster-controller plan -f job.yaml -f runtime.yaml [-o yaml|json]`: prints the objects that Muster would create for
// a TrainJob or a PyTorchJob, without a cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Adds the subcommand. If it is given, *run afterwards carries it out and returns the exit code: 0, or 78 if the input
// is wrong or cannot be read.
void AddPlanCommand(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
