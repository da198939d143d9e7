// `muster-controller plan -f job.yaml -f runtime.yaml [-o yaml|json]`: prints what a TrainJob or a
// PyTorchJob comes to, without a cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Adds the subcommand. When it is the one that was given, *run afterwards does it and gives the exit code: 0; 78 what
// was read is wrong, or cannot be read.
void AddPlanCommand(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
