// SPDX-License-Identifier: Apache-2.0
// The `muster` binary: chooses the subcommand by the name that it was called by, or by its first argument.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "agent/commands/arguments.h"
#include "agent/commands/commands.h"
#include "agent/flags/early_signals.h"
#include "agent/installation.h"
#include "agent/start_check.h"
#include "base/descriptors.h"
#include "base/exit_codes.h"
#include "base/inherited.h"
#include "base/print.h"
#include "base/status.h"
#include "base/text.h"
#include "usage/print_usage.h"

namespace muster::agent {
namespace {

// Runs before every other constructor: 101 is the first priority that is not reserved for the implementation.
__attribute__((constructor(101))) void BeforeAllElse() {
  FillStandardStreams();
  NoteInheritedDescriptors();
  HoldSignals();
}

int CompletionCommand(const Call& call);
int ManCommand(const Call& call);

struct Subcommand {
  std::string_view name;
  int (*main)(const Call& call);
  std::string_view summary;
  bool supervises = false;  // releases the held signals itself, once its handlers stand
};

constexpr Subcommand kSubcommands[] = {
    {"exec", ExecCommand, "run a command as the main process of a container: signals, zombies, exit codes, reasons",
     true},
    {"run", RunCommand, "run a script on one or several nodes; takes torchrun's flags", true},
    {"launch", LaunchCommand, "the same with torch.distributed.launch's --local-rank argument", true},
    {"check", CheckCommand, "measure this machine: memory, loopback, disk, the round trip to peers"},
    {"coordinator", CoordinatorCommand, "serve the rendezvous alone, for any number of runs"},
    {"status", StatusCommand, "show roster, round and restarts of a run"},
    {"top", TopCommand, "follow a run on the terminal: progress, restarts, every rank"},
    {"report", ReportCommand, "make an HTML page about a run, from its logs"},
    {"stacks", StacksCommand, "print what processes are doing, thread by thread"},
    {"store", StoreCommand, "serve a c10d TCPStore alone"},
    {"install", InstallCommand, "copy this binary and its links into a folder, for other images"},
    {"wait", WaitCommand, "wait until names resolve, ports are open or a coordinator answers"},
    {"rsh", RshCommand, "run a command in another pod of an MPI job: mpirun's remote shell"},
    {"completion", CompletionCommand, usage::kCompletionSummary},
    {"man", ManCommand, usage::kManSummary},
    {"version", VersionCommand, "print version, commit and protocol versions"},
};

// A subcommand of another binary, which images do not have. The subcommand's name becomes its first argument.
struct OthersSubcommand {
  std::string_view name, program, summary;
};

constexpr OthersSubcommand kOthersSubcommands[] = {
    {"local", "muster-local", "run a TrainJob or a PyTorchJob on this machine, without a cluster"},
    {"init", "muster-local", "write a job file to begin with"},
    {"logs", "muster-local", "print what a job of this machine has written"},
    {"ps", "muster-local", "list the jobs of this machine"},
    {"stop", "muster-local", "end jobs of this machine"},
    {"rm", "muster-local", "remove what jobs of this machine have left"},
    {"prune", "muster-local", "remove what all jobs of this machine that have ended have left"},
};

std::string Usage() {
  std::string usage = "usage: muster SUBCOMMAND [arguments]\n\n";
  for (const Subcommand& subcommand : kSubcommands) {
    usage += fmt::format("  {:<12} {}\n", subcommand.name, subcommand.summary);
  }
  usage += "\nWith muster-local beside this binary or on PATH:\n";
  for (const OthersSubcommand& subcommand : kOthersSubcommands) {
    usage += fmt::format("  {:<12} {}\n", subcommand.name, subcommand.summary);
  }
  usage += "\n`muster SUBCOMMAND --help` says more. `muster NAME` runs muster-NAME found beside it or on PATH.\n";
  return usage;
}

// Executes a program from this binary's folder, else from PATH. Returns why it cannot: the reason, with the path of a
// program that is there.
std::string Become(std::string program, std::vector<std::string> arguments) {
  std::vector<char*> forwarded = {program.data()};
  for (std::string& argument : arguments) forwarded.push_back(argument.data());
  forwarded.push_back(nullptr);
  std::string why = fmt::format("no {} is beside this binary or on PATH", program);
  if (const std::string self = OwnPath(); !self.empty()) {
    const std::string beside = self.substr(0, self.rfind('/') + 1) + program;
    execv(beside.c_str(), forwarded.data());
    const int error = errno;
    if (access(beside.c_str(), F_OK) == 0) {
      why = fmt::format(
          "{} cannot be executed: {}", beside,
          error == ENOENT ? "this machine lacks its loader; it was built for another distribution" : strerror(error));
    }
  }
  execvp(program.c_str(), forwarded.data());
  return why;
}

const OthersSubcommand* FindOthers(std::string_view name) {
  for (const OthersSubcommand& subcommand : kOthersSubcommands) {
    if (subcommand.name == name) return &subcommand;
  }
  return nullptr;
}

// This binary with all its subcommands. Those of other binaries have only a summary.
usage::Command Describe() {
  usage::Command program{.name = "muster", .summary = "run training on the machines and pods of a job"};
  for (const Subcommand& subcommand : kSubcommands) {
    usage::Command& described = program.commands.emplace_back();
    subcommand.main({{}, &described});
    if (described.description.empty()) described.description.swap(described.summary);
    described.summary = subcommand.summary;
  }
  for (const OthersSubcommand& subcommand : kOthersSubcommands) {
    program.commands.push_back(
        {.name = fmt::format("muster {}", subcommand.name), .summary = std::string(subcommand.summary)});
  }
  return program;
}

int CompletionCommand(const Call& call) {
  Arguments arguments(usage::kCompletionSummary, "muster completion");
  usage::CompletionWords asked;
  arguments.Text("SHELL", &asked.shell, usage::kShellHelp, {.metavar = usage::kShells, .required = true});
  arguments.Texts("WORD", &asked.words, usage::kWordHelp, false);
  if (auto end = arguments.Parse(call)) return *end;
  if (asked.words.size() > 1) {
    if (const OthersSubcommand* others = FindOthers(asked.words[0]); others != nullptr) {
      asked.words.insert(asked.words.begin(), {"completion", asked.shell, "--"});
      Become(std::string(others->program), asked.words);
      return 0;  // without that program nothing is known about its flags
    }
  }
  return usage::PrintCompletion(Describe(), asked);
}

int ManCommand(const Call& call) {
  Arguments arguments(usage::kManSummary, "muster man");
  std::string subcommand;
  arguments.Text("SUBCOMMAND", &subcommand, usage::kSubcommandHelp);
  if (auto end = arguments.Parse(call)) return *end;
  if (const OthersSubcommand* others = FindOthers(subcommand); others != nullptr) {
    PrintTo(stderr, "muster man: {}\n", Become(std::string(others->program), {"man", subcommand}));
    return kExitNotFound;
  }
  return usage::PrintManual(Describe(), subcommand);
}

// As git does: `muster NAME` runs `muster-NAME`.
int RunExternal(const std::string& name, std::vector<std::string> arguments) {
  std::string program = "muster-" + name;
  if (const OthersSubcommand* others = FindOthers(name); others != nullptr) {
    program = others->program;
    arguments.insert(arguments.begin(), name);
  }
  const bool is_name = name.find('/') == std::string::npos && !name.starts_with("-");
  const std::string why = is_name ? Become(program, std::move(arguments)) : "it is not a name of another program";
  PrintTo(stderr, "muster: '{}' is not a subcommand of this binary, and {}\n\n{}", name, why, Usage());
  return kExitUsage;
}

int Main(int argc, char** argv) {
  std::string_view called = argc > 0 ? argv[0] : "muster";
  called.remove_prefix(std::min(called.size(), called.rfind('/') + 1));
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (called == "torchrun") return RunCommand({arguments});
  if (called == "muster-rsh") {
    ReleaseSignals();
    return RshCommand({arguments});
  }
  if (arguments.empty()) {
    PrintTo(stderr, "{}", Usage());
    return kExitUsage;
  }
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "help" || name == "--help" || name == "-h") {
    PrintTo(stdout, "{}", Usage());
    return 0;
  }
  if (name == "--version") name = "version";
  for (const Subcommand& subcommand : kSubcommands) {
    if (subcommand.name != name) continue;
    if (!subcommand.supervises) ReleaseSignals();
    return subcommand.main({arguments});
  }
  ReleaseSignals();
  return RunExternal(name, arguments);
}

}  // namespace
}  // namespace muster::agent

int main(int argc, char** argv) {
  const auto code = muster::agent::RunOrSay([&] { return muster::agent::Main(argc, argv); });
  if (code.ok()) return *code;
  muster::PrintTo(stderr, "muster: {}\n", muster::Message(code.status()));
  return muster::agent::StartExitCode(code.status());
}
