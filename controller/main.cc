// SPDX-License-Identifier: Apache-2.0
// The `muster-controller` binary: one file per subcommand.
#include <CLI/CLI.hpp>
#include <functional>

#include "base/descriptors.h"
#include "base/text.h"
#include "base/version.h"
#include "controller/command_line.h"
#include "controller/commands.h"
#include "usage/app_command.h"

namespace muster::controller {
namespace {

int Main(int argc, char** argv) {
  CLI::App app{"Runs TrainJobs and PyTorchJobs on Kubernetes", "muster-controller"};
  app.set_version_flag("--version", fmt::format("muster-controller {} (commit {})", Version(), Commit()));
  app.require_subcommand(1);
  std::function<int()> run;
  // One line per subcommand.
  AddConvertCommand(&app, &run);
  AddPlanCommand(&app, &run);
  AddRunCommand(&app, &run);
  usage::AddUsageCommands(&app, &run);
  return ParseAndRun(argc, argv, &app, run);
}

}  // namespace
}  // namespace muster::controller

int main(int argc, char** argv) {
  muster::FillStandardStreams();
  return muster::controller::Main(argc, argv);
}
