// SPDX-License-Identifier: Apache-2.0
// The subcommands of `muster-controller`. docs/controller.md describes them for users.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::controller {

// Each adds its subcommand. If that is given, *run afterwards carries it out and returns the exit code.

// Serves the TrainJobs and, by a flag, the PyTorchJobs of a cluster. 0 after SIGTERM or SIGINT; 64 for a wrong value;
// 78 if no cluster, port or certificate can be used; 200 if the leadership was lost.
void AddRunCommand(CLI::App* app, std::function<int()>* run);
// Prints the objects that Muster would create for a TrainJob or a PyTorchJob, without a cluster. 0, or 78 if the input
// is wrong or cannot be read.
void AddPlanCommand(CLI::App* app, std::function<int()>* run);
// Prints a PyTorchJob as a TrainJob with its runtime. 0, or 78 as above.
void AddConvertCommand(CLI::App* app, std::function<int()>* run);

}  // namespace muster::controller
