// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/torch_command.h"

#include <algorithm>

#include "agent/workers/numa_binding.h"
#include "agent/workers/script_head.h"
#include "agent/workers/text_template.h"
#include "base/host_facts.h"
#include "base/path_search.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// sys.argv begins as ["-c", script, args...]; the script must see its own name as argv[0]. As under torchrun, an
// exception goes into the error file, if torch is installed.
constexpr std::string_view kRunPath =
    "import runpy, sys\n"
    "del sys.argv[0]\n"
    "def run_script_path(): runpy.run_path(sys.argv[0], run_name='__main__')\n"
    "try: from torch.distributed.elastic.multiprocessing.errors import record\n"
    "except ImportError: record = lambda run: run\n"
    "record(run_script_path)()";

std::string FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "." : std::string(path.substr(0, slash));
}

// The python named in the head of a torchrun script; empty if there is none, or it cannot be executed.
std::string InterpreterOf(const std::string& script, std::string_view path, const HostFs& fs) {
  const ScriptHead head = ReadScriptHead(fs.Read(script).value_or(""));
  std::string python;
  switch (head.place) {
    case ScriptHead::Place::kNone:
      return "";
    case ScriptHead::Place::kPath:
      python = head.python;
      break;
    case ScriptHead::Place::kOnPath:
      return FindOnPath(head.python, path, fs);
    case ScriptHead::Place::kBesideLink:
      python = fmt::format("{}/{}", FolderOf(script), head.python);
      break;
    case ScriptHead::Place::kBesideScript:
      python = fmt::format("{}/{}", FolderOf(fs.RealPath(script).value_or(script)), head.python);
      break;
  }
  return fs.IsExecutable(python) ? python : "";
}

}  // namespace

CommandSurroundings RealSurroundings() {
  CommandSurroundings real;
  real.environment = Environment::OfProcess();
  real.usable_cpus = UsableCpus();
  return real;
}

std::string FindRealTorchrun(const CommandSurroundings& surroundings) {
  return FindOnPath("torchrun", surroundings.environment.Get("PATH").value_or(""), surroundings.fs,
                    {surroundings.self});
}

StatusOr<std::string> FindPython(const CommandSurroundings& surroundings, std::string_view launcher) {
  if (auto chosen = surroundings.environment.Get("PYTHON_EXEC"); chosen && !chosen->empty()) return *chosen;
  std::string path = surroundings.environment.Get("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  const std::string found = FindOnPath(launcher, path, surroundings.fs, {surroundings.self});
  if (launcher.substr(launcher.rfind('/') + 1).starts_with("python")) {
    if (!found.empty()) return found;
    return absl::NotFoundError(fmt::format("{}: no such python; PATH is {}", launcher, path));
  }
  if (!found.empty()) {
    if (std::string python = InterpreterOf(found, path, surroundings.fs); !python.empty()) return python;
  }
  for (std::string_view name : {"python3", "python"}) {
    if (std::string python = FindOnPath(name, path, surroundings.fs); !python.empty()) return python;
  }
  return absl::NotFoundError(
      fmt::format("neither python3 nor python is on PATH ({}); set PYTHON_EXEC, or use --no-python", path));
}

StatusOr<std::vector<std::string>> WorkerCommand(const RunOptions& options, int local_rank,
                                                 const CommandSurroundings& surroundings) {
  const RunOptions::Command& wanted = options.command;
  std::vector<std::string> command, arguments;
  bool python = wanted.run_path || !wanted.no_python;
  if (python) {
    MUSTER_ASSIGN_OR_RETURN(std::string interpreter, FindPython(surroundings, wanted.launcher));
    command = {interpreter, "-u"};
    if (wanted.run_path) {
      command.insert(command.end(), {"-c", std::string(kRunPath)});
    } else if (wanted.module) {
      command.push_back("-m");
    }
    arguments.push_back(wanted.script);
  } else {
    command.push_back(wanted.script);
  }
  if (wanted.local_rank_argument) arguments.push_back("--local-rank=${local_rank}");
  arguments.insert(arguments.end(), wanted.script_args.begin(), wanted.script_args.end());
  for (const std::string& argument : arguments) {
    command.push_back(SafeSubstitute(argument, {{"local_rank", std::to_string(local_rank)}}));
  }
  if (wanted.numa_binding.empty()) return command;

  std::string numactl = FindOnPath("numactl", surroundings.environment.Get("PATH").value_or(""), surroundings.fs);
  if (numactl.empty()) {
    return absl::NotFoundError(
        fmt::format("--numa-binding={}: numactl is not on PATH; install the package numactl or leave the flag out",
                    wanted.numa_binding));
  }
  MUSTER_ASSIGN_OR_RETURN(std::vector<int> cpus,
                          NumaCpus(wanted.numa_binding, local_rank, options.workers.nproc, surroundings.usable_cpus,
                                   surroundings.environment.Get("CUDA_VISIBLE_DEVICES"), surroundings.fs));
  command.insert(command.begin(), {numactl, fmt::format("--physcpubind={}", FormatCpuList(cpus))});
  return command;
}

}  // namespace muster::agent
