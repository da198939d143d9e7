#include "agent/plain_flags.h"

#include <algorithm>
#include <csignal>

#include "agent/pod_facts.h"
#include "agent/wire_mpi.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// Everything a command can have a use for: not what only the sender's own faults raise, not job control, not our own.
std::vector<int> ForwardedSignals() {
  std::vector<int> signals = {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGCONT, SIGWINCH, SIGIO};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) signals.push_back(number);
  return signals;
}

}  // namespace

StatusOr<RunOptions> ReadPlain(const FlagReader& flags, const Getenv& getenv) {
  RunOptions options;
  constexpr std::string_view kMeaningful[] = {
      "max-restarts", "log-dir", "redirects", "tee", "role", "log-line-prefix-template", "shutdown-timeout"};
  constexpr std::pair<std::string_view, Wire> kWires[] = {
      {"plain", Wire::kPlain}, {"jax", Wire::kJax}, {"mpi", Wire::kMpi}, {"xgboost", Wire::kXgboost}};
  FlagValue wire = flags.Get("wire");
  if (!wire.given() && FirstOf(getenv, "MUSTER_MPI_HOSTS")) wire = {"mpi", "MUSTER_MPI_HOSTS"};
  auto chosen = std::find_if(std::begin(kWires), std::end(kWires), [&](auto& row) { return row.first == wire.text; });
  if (chosen == std::end(kWires)) return Bad(wire, "choose one of plain, torch, jax, mpi, xgboost");
  options.wire = chosen->second;
  for (const Flag& flag : FlagTable()) {
    const bool for_torch = flag.owner == FlagOwner::kTorchrun || flag.name == "nodes-on-this-machine";
    if (!for_torch || !flags.line().values.contains(flag.name)) continue;
    if (options.wire == Wire::kXgboost && flag.name == "nproc-per-node") continue;
    if (std::find(std::begin(kMeaningful), std::end(kMeaningful), flag.name) != std::end(kMeaningful)) continue;
    return absl::InvalidArgumentError(
        fmt::format("--{} means nothing with --wire={}; use --wire=torch, or leave it out", flag.name, wire.text));
  }
  MUSTER_ASSIGN_OR_RETURN(options.serve_rsh, flags.Switch("serve-rsh"));
  const bool command = flags.line().script && !flags.line().script->empty();
  if (options.serve_rsh && command) {
    return absl::InvalidArgumentError(
        fmt::format("--serve-rsh takes no command, but '{}' was given: the launcher's remote shell says what runs here",
                    *flags.line().script));
  }
  if (!options.serve_rsh && !command) return MissingScript(CalledAs::kExec);
  options.rsh_listen = flags.Get("rsh-listen").text;
  options.standalone = true;
  options.backend = Backend::kC10d;
  options.run_id = "exec";
  options.no_python = true;
  options.script = flags.line().script.value_or("");
  options.script_args = flags.line().script_args;
  options.role = flags.Get("role").text;
  MUSTER_RETURN_IF_ERROR(flags.ReadNproc(&options));
  if (options.wire == Wire::kJax) MUSTER_RETURN_IF_ERROR(JaxVariables(getenv).status());
  if (options.wire == Wire::kMpi) MUSTER_RETURN_IF_ERROR(CheckMpi(getenv));
  if (options.wire == Wire::kXgboost) {
    MUSTER_RETURN_IF_ERROR(XgboostVariables(getenv, options.nproc - 1, options.nproc).status());
  }
  MUSTER_RETURN_IF_ERROR(flags.ReadLogs(&options));
  MUSTER_RETURN_IF_ERROR(flags.ReadSignals(&options));
  options.signals_to_handle = {SIGTERM, SIGINT};
  options.signals_to_forward = ForwardedSignals();
  MUSTER_RETURN_IF_ERROR(flags.ReadCommon(&options));
  bool files = options.redirects.all != 0 || options.tee.all != 0 || options.hang.on();
  if (!options.log_dir && !files) options.log_dir = "/dev/null";
  return options;
}

}  // namespace muster::agent
