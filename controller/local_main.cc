// The `muster-local` binary.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/text.h"
#include "base/version.h"
#include "controller/command_line.h"
#include "controller/local/enter_container.h"
#include "controller/local_command.h"

namespace muster::controller {
namespace {

int Main(int argc, char** argv) {
  CLI::App app{"runs a TrainJob or a PyTorchJob on this machine, as a cluster would", "muster local"};
  app.set_version_flag("--version", fmt::format("muster-local {} (commit {})", Version(), Commit()));
  std::function<int()> run;
  AddLocalFlags(&app, &run);
  return ParseAndRun(argc, argv, &app, run);
}

}  // namespace
}  // namespace muster::controller

int main(int argc, char** argv) {
  muster::FillStandardStreams();
  if (argc > 1 && std::string_view(argv[1]) == muster::controller::kEnterWord) {
    return muster::controller::EnterContainer({argv + 2, argv + argc});
  }
  if (argc > 1 && std::string_view(argv[1]) == muster::controller::kCgroupWord) {
    return muster::controller::BecomeInCgroup({argv + 2, argv + argc});
  }
  return muster::controller::Main(argc, argv);
}
