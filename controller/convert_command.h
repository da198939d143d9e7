// `muster-controller convert -f pytorchjob.yaml [-o yaml|json]`: prints a PyTorchJob as a TrainJob with its runtime.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Adds the subcommand. If it is given, *run afterwards carries it out and returns the exit code: 0, or 78 if the input
// is wrong or cannot be read.
void AddConvertCommand(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
