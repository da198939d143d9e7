// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/plain_flags.h"

#include <algorithm>

#include "agent/flags/flag_values.h"
#include "agent/flags/pod_facts.h"
#include "agent/flags/rdzv_conf.h"
#include "agent/flags/wire_mpi.h"
#include "base/host_names.h"
#include "base/text.h"

namespace muster::agent {
namespace {

Status ReadWire(const FlagReader& flags, const Environment& environment, RunOptions* options) {
  constexpr std::string_view kMeaningful[] = {
      "max-restarts", "log-dir", "redirects", "tee", "role", "log-line-prefix-template", "shutdown-timeout"};
  constexpr std::pair<std::string_view, Wire> kWires[] = {
      {"plain", Wire::kPlain}, {"jax", Wire::kJax}, {"mpi", Wire::kMpi}, {"xgboost", Wire::kXgboost}};
  FlagValue wire = flags.Get("wire");
  if (!wire.given() && FirstOf(environment, "MUSTER_MPI_HOSTS")) wire = {"mpi", "MUSTER_MPI_HOSTS"};
  auto chosen = std::find_if(std::begin(kWires), std::end(kWires), [&](auto& row) { return row.first == wire.text; });
  if (chosen == std::end(kWires)) return Bad(wire, "choose one of plain, torch, jax, mpi, xgboost");
  options->wire = chosen->second;
  for (const Flag& flag : FlagTable()) {
    const bool for_torch = flag.owner == FlagOwner::kTorchrun || flag.name == "nodes-on-this-machine";
    if (!for_torch || !flags.line().values.contains(flag.name)) continue;
    if (flags.MeetsBy(flag.name)) continue;
    if (options->wire == Wire::kXgboost && flag.name == "nproc-per-node") continue;
    if (std::find(std::begin(kMeaningful), std::end(kMeaningful), flag.name) != std::end(kMeaningful)) continue;
    return absl::InvalidArgumentError(
        fmt::format("--{} means nothing with --wire={}; use --wire=torch, or leave it out", flag.name, wire.text));
  }
  return absl::OkStatus();
}

// Reads where the agents of several pods meet: node 0's host, at a port that the framework does not use.
Status ReadEndpoint(const FlagReader& flags, const PodPlace& place, RunOptions::Job* job) {
  const int after = place.framework_port + place.framework_ports;
  auto taken = [&](int port) { return port >= place.framework_port && port < after; };
  const int beside = taken(kC10dPort) ? after : kC10dPort;
  FlagValue given = flags.Get("rdzv-endpoint");
  const bool told = !Strip(given.text).empty();
  if (!told) given = {JoinHostPort(place.first_node, beside), "the first node"};
  MUSTER_ASSIGN_OR_RETURN(job->endpoint, Of(given, ParseEndpoint(given.text, beside)));
  if (job->endpoint.host == place.first_node && taken(job->endpoint.port)) {
    return Bad(given, fmt::format("the command itself listens there; the agents want a port of their own, such as {}",
                                  beside));
  }
  return absl::OkStatus();
}

Status ReadMeeting(const FlagReader& flags, const Environment& environment, const PodPlace& place,
                   RunOptions* options) {
  options->workers.nproc = static_cast<int>(place.workers.size());
  options->workers.framework_env = place.workers;
  options->workers.tracker_ports = place.framework_ports;
  if (!place.warning.empty()) options->warnings.push_back(place.warning);
  if (place.nodes == 1) return absl::OkStatus();
  RunOptions::Job& job = options->job;
  job.standalone = false;
  job.shared.min_nodes = job.shared.max_nodes = place.nodes;
  job.shared.indexed = true;
  job.node_rank = place.node_rank;
  if (FlagValue id = flags.Get("rdzv-id"); id.given() && !id.text.empty()) job.run_id = id.text;
  MUSTER_RETURN_IF_ERROR(ReadEndpoint(flags, place, &job));
  FlagValue conf = flags.Get("rdzv-conf");
  MUSTER_ASSIGN_OR_RETURN(const auto keys, Of(conf, ParseRdzvConf(conf.text)));
  MUSTER_RETURN_IF_ERROR(ReadRdzvConf(conf, keys, environment, options));
  if (!job.is_host) job.is_host = place.node_rank == 0;
  return absl::OkStatus();
}

Status ReadPods(const FlagReader& flags, const Environment& environment, const HostFacts& facts, RunOptions* options) {
  if (options->wire == Wire::kJax) {
    MUSTER_ASSIGN_OR_RETURN(PodPlace place, JaxPlace(flags, environment));
    return ReadMeeting(flags, environment, place, options);
  }
  if (options->wire == Wire::kXgboost) {
    MUSTER_ASSIGN_OR_RETURN(WorkerCount processes,
                            ResolveNproc(options->workers.nproc_per_node, facts, options->workers.nproc_origin));
    MUSTER_ASSIGN_OR_RETURN(PodPlace place, XgboostPlace(flags, environment, processes.count, facts.gpus()));
    return ReadMeeting(flags, environment, place, options);
  }
  return options->wire == Wire::kMpi ? CheckMpi(environment) : absl::OkStatus();
}

}  // namespace

StatusOr<RunOptions> ReadPlain(const FlagReader& flags, const Environment& environment, const HostFacts& facts) {
  RunOptions options;
  MUSTER_RETURN_IF_ERROR(ReadWire(flags, environment, &options));
  MUSTER_ASSIGN_OR_RETURN(options.rsh.serve, flags.Switch("serve-rsh"));
  const bool command = flags.line().script && !flags.line().script->empty();
  if (options.rsh.serve && command) {
    return absl::InvalidArgumentError(
        fmt::format("--serve-rsh takes no command, but '{}' was given: the launcher's remote shell says what runs here",
                    *flags.line().script));
  }
  if (!options.rsh.serve && !command) return MissingScript(CalledAs::kExec);
  if (FlagValue listen = flags.Get("rsh-listen"); !listen.text.empty()) {
    MUSTER_ASSIGN_OR_RETURN(options.rsh.listen, Of(listen, ParseListen(listen.text, kNoPort)));
    options.rsh.listen_origin = listen.origin;
  }
  options.job.standalone = true;
  options.job.backend = Backend::kC10d;
  options.job.run_id = "exec";
  options.command.no_python = true;
  options.command.script = flags.line().script.value_or("");
  options.command.script_args = flags.line().script_args;
  options.workers.role = flags.Get("role").text;
  MUSTER_RETURN_IF_ERROR(flags.ReadNproc(&options.workers));
  MUSTER_RETURN_IF_ERROR(ReadPods(flags, environment, facts, &options));
  MUSTER_RETURN_IF_ERROR(flags.ReadLogs(&options.logs));
  MUSTER_RETURN_IF_ERROR(flags.ReadSignals(&options.signals));
  MUSTER_RETURN_IF_ERROR(flags.ReadCommon(&options));
  bool files = options.logs.redirects.all != 0 || options.logs.tee.all != 0 || options.hang.on();
  if (!options.logs.dir && !files) options.logs.dir = "/dev/null";
  return options;
}

}  // namespace muster::agent
