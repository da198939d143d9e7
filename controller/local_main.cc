// The `muster-local` binary.
#include <CLI/CLI.hpp>
#include <csignal>
#include <functional>

#include "base/descriptors.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "base/version.h"
#include "controller/local_command.h"

namespace muster::controller {
namespace {

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  CLI::App app{"runs a TrainJob or a PyTorchJob on this machine, as a cluster would", "muster local"};
  app.set_version_flag("--version", fmt::format("muster-local {} (commit {})", Version(), Commit()));
  std::function<int()> run;
  AddLocalFlags(&app, &run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return run();
}

}  // namespace
}  // namespace muster::controller

int main(int argc, char** argv) {
  muster::FillStandardStreams();
  return muster::controller::Main(argc, argv);
}
