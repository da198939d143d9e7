// The `muster-local` binary: `muster-local -f job.yaml` runs a job. A first argument of kWords chooses another command.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptors.h"
#include "base/text.h"
#include "base/version.h"
#include "controller/command_line.h"
#include "local/commands.h"
#include "local/container/enter_container.h"

namespace muster::local {

using namespace controller;

namespace {

struct Word {
  std::string_view name;
  void (*add)(CLI::App* app, std::function<int()>* run);
  const char* summary;
};

// agent/commands/main.cc has the same names, so that `muster NAME` starts this binary.
constexpr Word kWords[] = {
    {"local", AddLocalFlags, "runs a TrainJob or a PyTorchJob on this machine, as a cluster would"},
    {"init", AddInitFlags, "writes a job file to begin with"},
    {"logs", AddLogsFlags, "prints the output of a job's containers"},
    {"ps", AddPsFlags, "lists the jobs that run or have run on this machine"},
    {"stop", AddStopFlags, "ends jobs that run on this machine, and waits for their end"},
    {"rm", AddRmFlags, "removes what jobs that have ended on this machine have left"},
    {"prune", AddPruneFlags, "removes what all jobs that have ended on this machine have left"},
};

int Main(int argc, char** argv) {
  const Word* word = &kWords[0];
  for (const Word& known : kWords) {
    if (argc < 2 || known.name != argv[1]) continue;
    word = &known;
    --argc, ++argv;
    break;
  }
  CLI::App app{word->summary, fmt::format("muster {}", word->name)};
  app.set_version_flag("--version", fmt::format("muster-local {} (commit {})", Version(), Commit()));
  std::function<int()> run;
  word->add(&app, &run);
  return ParseAndRun(argc, argv, &app, run);
}

}  // namespace
}  // namespace muster::local

int main(int argc, char** argv) {
  muster::FillStandardStreams();
  if (argc > 1 && std::string_view(argv[1]) == muster::local::kEnterWord) {
    return muster::local::EnterContainer({argv + 2, argv + argc});
  }
  if (argc > 1 && std::string_view(argv[1]) == muster::local::kCgroupWord) {
    return muster::local::BecomeInCgroup({argv + 2, argv + argc});
  }
  return muster::local::Main(argc, argv);
}
