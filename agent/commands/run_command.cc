// SPDX-License-Identifier: Apache-2.0
// `muster run`, `muster launch` and `muster exec`: read the command line, then run one node or several simulated ones.
#include <cstdlib>

#include "agent/args_from_env.h"
#include "agent/commands/commands.h"
#include "agent/error_file.h"
#include "agent/flags/flag_reader.h"
#include "agent/flags/flag_usage.h"
#include "agent/flags/handover.h"
#include "agent/flags/service_links.h"
#include "agent/flags/torchrun_flags.h"
#include "agent/local_nodes.h"
#include "agent/log_place.h"
#include "agent/node_agent.h"
#include "agent/node_check.h"
#include "agent/serve_rsh.h"
#include "agent/start_check.h"
#include "agent/termination_report.h"
#include "agent/workers/python_facts.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_facts.h"
#include "base/log.h"
#include "base/print.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// Ends before there is an agent, but leaves the files of one, since the pod's controller reads them.
int LeaveFiles(int code, const Status& status, const RunOptions& options) {
  const JobEnd end{.exit_code = code, .reason = std::string(Message(status))};
  ForgetTerminationMessage(options.termination_log);
  LeaveErrorFile(end, options.wire);
  LeaveTerminationMessage(end, options);
  return code;
}

int Refuse(int code, const Status& status, const RunOptions& options) {
  log::Error(Message(status));
  return LeaveFiles(code, status, options);
}

void LookAtPython(RunOptions* options) {
  const CommandSurroundings surroundings = RealSurroundings();
  if (auto python = FindPython(surroundings, options->command.launcher); python.ok() && options->hang.on()) {
    options->workers.recorder_names = RecorderNamesOf(surroundings, *python);
  }
  if ((options->command.no_python && !options->command.run_path) || options->job.nodes_on_this_machine > 0) return;
  if (auto note = OtherPythonNote(surroundings, options->command.launcher)) log::Info(*note);
}

// Does what the command line asks for; returns the exit code.
int Begin(const ParsedRun& parsed, const HostFacts& facts, const std::vector<std::string>& arguments,
          CalledAs called_as) {
  RunOptions options = parsed.options;
  if (!parsed.overruled.empty() && options.job.nodes_on_this_machine == 0) {
    options.warnings.push_back(Describe(parsed.overruled));
  }
  if (options.rsh.serve) {
    std::string reason;
    const int code = RunNodeCheck(options, &reason);
    return code == 0 ? ServeRsh(options) : Refuse(code, absl::UnavailableError(reason), options);
  }
  auto workers = ResolveNproc(options.workers.nproc_per_node, facts, options.workers.nproc_origin);
  if (!workers.ok()) return Refuse(kExitUsage, workers.status(), options);
  options.workers.nproc = workers->count;
  if (!workers->warning.empty()) options.warnings.push_back(workers->warning);
  if (Status status = options.wire == Wire::kTorch ? CheckStart(options) : absl::OkStatus(); !status.ok()) {
    return Refuse(StartExitCode(status), status, options);
  }
  if (options.wire == Wire::kTorch) LookAtPython(&options);
  if (Status status = MakeLogFolder(options.logs); !status.ok()) {
    return Refuse(absl::IsResourceExhausted(status) ? kExitNodeUnhealthy : kExitUsage, status, options);
  }
  if (options.job.nodes_on_this_machine > 0) {
    if (!parsed.overruled.empty()) log::Warning(Describe(parsed.overruled));
    return RunLocalNodes(parsed, arguments, called_as);
  }
  return NodeAgent(options).Run();
}

// `readable`: an error says why the arguments cannot be read.
int Run(const Call& call, CalledAs called_as, std::string_view name, const Status& readable = absl::OkStatus()) {
  if (call.description != nullptr) {
    *call.description = DescribeFlags(called_as);
    return 0;
  }
  const std::vector<std::string>& arguments = call.arguments;
  const Environment environment = Environment::OfProcess();
  HostFacts facts = ReadHostFacts();
  if (called_as == CalledAs::kExec) facts.cpus = ContainerCpus(facts);  // under torchrun "cpu" counts the machine's
  auto parsed = readable.ok() ? ParseRun(arguments, environment, called_as, facts) : StatusOr<ParsedRun>(readable);
  if (!parsed.ok()) {
    RunOptions unread;
    FlagReader read(environment, SplitWhatCanBeRead(arguments, called_as), called_as);
    unread.termination_log = read.Get("termination-log").text;
    if (read.plain()) unread.wire = Wire::kPlain;
    const int code = LeaveFiles(kExitUsage, parsed.status(), unread);  // first: a stderr without a reader may end us
    PrintTo(stderr, "muster {}: {}\n", name, Message(parsed.status()));
    return code;
  }
  if (parsed->outcome == ParsedRun::Outcome::kHelp) {
    PrintTo(stdout, "{}", parsed->text);
    return 0;
  }
  log::Configure(parsed->options.log);
  for (const ServiceLink& link : LinksAmongSettings(environment)) log::Warning(Describe(link));
  if (parsed->outcome == ParsedRun::Outcome::kHandOver) {
    ForgetTerminationMessage(parsed->options.termination_log);
    Status failed = HandOver(parsed->torchruns, parsed->text, called_as == CalledAs::kLaunch);
    return Refuse(StartExitCode(failed), failed, parsed->options);
  }
  auto code = RunOrSay([&] { return Begin(*parsed, facts, arguments, called_as); });
  if (code.ok()) return *code;
  return Refuse(StartExitCode(code.status()), code.status(), parsed->options);
}

}  // namespace

int RunCommand(const Call& call) { return Run(call, CalledAs::kRun, "run"); }
int LaunchCommand(const Call& call) { return Run(call, CalledAs::kLaunch, "launch"); }
int ExecCommand(const Call& call) {
  auto whole = ReadArgsFromEnv(call.arguments, Environment::OfProcess());
  if (!whole.ok()) return Run(call, CalledAs::kExec, "exec", whole.status());
  for (const std::string& variable : whole->variables) unsetenv(variable.c_str());
  return Run({whole->arguments, call.description}, CalledAs::kExec, "exec");
}

}  // namespace muster::agent
