// `muster-controller convert -f pytorchjob.yaml [-o yaml|json]`: prints a PyTorchJob as a TrainJob with its runtime.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Adds the subcommand. When it is the one that was given, *run afterwards does it and gives the exit code: 0; 78 what
// was read is wrong, or cannot be read.
void AddConvertCommand(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
