// `muster run`, `muster launch` and `muster exec`: a command line, then one node or several simulated ones.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "agent/commands.h"
#include "agent/handover.h"
#include "agent/local_nodes.h"
#include "agent/node_agent.h"
#include "agent/torchrun_flags.h"
#include "base/exit_codes.h"
#include "base/host_facts.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {
namespace {

std::optional<std::string> Environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

// Known before anybody is kept waiting: 127 for a script that is not there, 126 for one that cannot be read or run.
int CheckScript(const RunOptions& options) {
  if (options.module) return 0;
  if (options.no_python && !options.run_path && options.script.find('/') == std::string::npos) return 0;
  struct stat facts {};
  if (stat(options.script.c_str(), &facts) != 0) {
    log::Error(fmt::format("{}: {}", options.script, ErrnoStatus(errno, "cannot run it").message().data()));
    return errno == EACCES ? kExitNotExecutable : kExitNotFound;
  }
  bool command = options.no_python && !options.run_path;
  if (command && S_ISDIR(facts.st_mode)) {
    log::Error(fmt::format("{} is a directory, not a command", options.script));
    return kExitNotExecutable;
  }
  if (access(options.script.c_str(), command ? X_OK : R_OK) != 0) {
    log::Error(fmt::format("{} is not {}; check its mode", options.script, command ? "executable" : "readable"));
    return kExitNotExecutable;
  }
  return 0;
}

int Run(const std::vector<std::string>& arguments, CalledAs called_as, std::string_view name) {
  auto parsed = ParseRun(arguments, Environment, called_as);
  if (!parsed.ok()) {
    fmt::print(stderr, "muster {}: {}\n", name, Message(parsed.status()));
    return kExitUsage;
  }
  switch (parsed->outcome) {
    case ParsedRun::Outcome::kHelp:
      fmt::print("{}", parsed->text);
      return 0;
    case ParsedRun::Outcome::kHandOver:
      return HandOver(arguments, parsed->text, called_as == CalledAs::kLaunch);
    case ParsedRun::Outcome::kRun:
      break;
  }
  RunOptions& options = parsed->options;
  log::Configure(options.log);
  auto workers = ResolveNproc(options.nproc_per_node, ReadHostFacts());
  if (!workers.ok()) {
    log::Error(Message(workers.status()));
    return kExitUsage;
  }
  options.nproc = workers->count;
  if (!workers->warning.empty()) options.warnings.push_back(workers->warning);
  if (int code = options.wire == Wire::kTorch ? CheckScript(options) : 0; code != 0) return code;
  if (options.nodes_on_this_machine > 0) return RunLocalNodes(options, arguments);
  return NodeAgent(std::move(options)).Run();
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments) { return Run(arguments, CalledAs::kRun, "run"); }
int LaunchCommand(const std::vector<std::string>& arguments) { return Run(arguments, CalledAs::kLaunch, "launch"); }
int ExecCommand(const std::vector<std::string>& arguments) { return Run(arguments, CalledAs::kExec, "exec"); }

}  // namespace muster::agent
