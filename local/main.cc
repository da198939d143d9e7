// SPDX-License-Identifier: Apache-2.0
// The `muster-local` binary: `muster-local -f job.yaml` runs a job. A first argument of kWords chooses another command.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptors.h"
#include "base/environment.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "base/version.h"
#include "controller/command_line.h"
#include "local/commands.h"
#include "local/container/enter_container.h"
#include "local/state/job_folders.h"
#include "usage/app_command.h"

namespace muster::local {

using namespace controller;

namespace {

void AddCompletionFlags(CLI::App* app, std::function<int()>* run);
void AddManFlags(CLI::App* app, std::function<int()>* run);

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
    {"completion", AddCompletionFlags, usage::kCompletionSummary},
    {"man", AddManFlags, usage::kManSummary},
};

void AddFlags(const Word& word, CLI::App* app, std::function<int()>* run) {
  app->set_version_flag("--version", fmt::format("muster-local {} (commit {})", Version(), Commit()));
  word.add(app, run);
}

std::string NameOf(const Word& word) { return fmt::format("muster {}", word.name); }

usage::Command Describe(const Word& word) {
  CLI::App app{word.summary, NameOf(word)};
  std::function<int()> run;
  AddFlags(word, &app, &run);
  return usage::Describe(app);
}

// `muster-local`, which is `muster-local local`, with all words.
usage::Command DescribeAll() {
  usage::Command program = Describe(kWords[0]);
  program.name = "muster-local";
  for (const Word& word : kWords) program.commands.push_back(Describe(word));
  return program;
}

void AddJobNames(usage::Command* program) {
  const auto state = StateFolder(Environment::OfProcess());
  const auto jobs = state.ok() ? FindJobs(*state) : state.status();
  if (!jobs.ok()) return;
  for (usage::Command& command : program->commands) {
    for (usage::Flag& operand : command.operands) {
      if (operand.metavar != "JOB") continue;
      for (const FoundJob& job : *jobs) operand.choices.push_back(job.name);
    }
  }
}

void AddCompletionFlags(CLI::App* app, std::function<int()>* run) {
  auto words = std::make_shared<usage::CompletionWords>();
  usage::AddCompletionArguments(app, words.get());
  app->callback([words, run] {
    *run = [words] {
      usage::Command program = DescribeAll();
      AddJobNames(&program);
      return usage::PrintCompletion(program, *words);
    };
  });
}

void AddManFlags(CLI::App* app, std::function<int()>* run) {
  auto subcommand = std::make_shared<std::string>();
  usage::AddManArguments(app, subcommand.get());
  app->callback([subcommand, run] { *run = [subcommand] { return usage::PrintManual(DescribeAll(), *subcommand); }; });
}

int Main(int argc, char** argv) {
  const Word* word = &kWords[0];
  for (const Word& known : kWords) {
    if (argc < 2 || known.name != argv[1]) continue;
    word = &known;
    --argc, ++argv;
    break;
  }
  CLI::App app{word->summary, NameOf(*word)};
  std::function<int()> run;
  AddFlags(*word, &app, &run);
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
