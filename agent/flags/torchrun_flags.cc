// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/torchrun_flags.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "agent/flags/flag_reader.h"
#include "agent/flags/flag_usage.h"
#include "agent/flags/flag_values.h"
#include "agent/flags/handover.h"
#include "agent/flags/inner_torchrun.h"
#include "agent/flags/plain_flags.h"
#include "agent/flags/rdzv_conf.h"
#include "agent/flags/torchrun_flag_table.h"
#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using Value = FlagValue;

// A random identifier in the form of uuid.uuid4().
std::string RandomId() {
  std::array<unsigned char, 16> bytes{};
  if (getentropy(bytes.data(), bytes.size()) != 0) return fmt::format("muster-{}-{}", getpid(), UnixMillis());
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  std::string id;
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) id += '-';
    id += fmt::format("{:02x}", bytes[at]);
  }
  return id;
}

class Reader {
 public:
  Reader(const Environment& environment, CommandLine line, CalledAs called_as)
      : environment_(environment),
        flags_(environment, std::move(line), called_as),
        called_as_(called_as),
        written_for_(called_as) {}
  // `line`: the flags of `command`, which win over those of the `muster exec` around it.
  Reader(const Environment& environment, CommandLine line, const InnerTorchrun& command)
      : Reader(environment, std::move(line), CalledAs::kExec) {
    written_for_ = command.called_as;
    options_.command.launcher = command.launcher;
  }

  StatusOr<ParsedRun> Run();

 private:
  Value Get(std::string_view name) const { return flags_.Get(name); }
  StatusOr<bool> Switch(std::string_view name) const { return flags_.Switch(name); }
  StatusOr<int> Number(std::string_view name, int lowest, int highest) const {
    return flags_.Number(name, lowest, highest);
  }

  Status ReadNodes();
  Status ReadRendezvous();
  Status ReadStatic(const Value& endpoint);
  Status ReadWorkers();
  void Warn(std::string text) { options_.warnings.push_back(std::move(text)); }

  const Environment& environment_;
  const FlagReader flags_;
  const CalledAs called_as_;  // whose defaults count
  CalledAs written_for_;      // which program the script is for: the torchrun, if `muster exec` was given one
  std::map<std::string, std::string> conf_;  // --rdzv-conf
  RunOptions options_;
};

Status Reader::ReadNodes() {
  Value nodes = Get("nnodes");
  RunOptions::Job& job = options_.job;
  MUSTER_ASSIGN_OR_RETURN(std::tie(job.shared.min_nodes, job.shared.max_nodes), Of(nodes, ParseNodeRange(nodes.text)));
  MUSTER_ASSIGN_OR_RETURN(job.nodes_on_this_machine, Number("nodes-on-this-machine", 0, 4096));
  if (job.nodes_on_this_machine > 0 && !nodes.given()) {
    job.shared.min_nodes = job.shared.max_nodes = job.nodes_on_this_machine;
  }
  return flags_.ReadNproc(&options_.workers);
}

Status Reader::ReadRendezvous() {
  RunOptions::Job& job = options_.job;
  Value backend = Get("rdzv-backend"), endpoint = Get("rdzv-endpoint"), port = Get("master-port");
  // Under exec a range of nodes means elastic; torchrun needs --rdzv-backend=c10d, too.
  const bool range = job.shared.min_nodes < job.shared.max_nodes;
  if (called_as_ == CalledAs::kExec && range && !backend.given() && !job.standalone) {
    backend.text = "c10d";
    Value address = Get("master-addr");
    if (!endpoint.given() && (address.given() || port.given())) {
      endpoint = {fmt::format("{}:{}", Strip(address.text), Strip(port.text)), address.origin};
    }
  }
  job.backend = backend.text == "c10d" ? Backend::kC10d : Backend::kStatic;
  job.run_id = Get("rdzv-id").text;
  const bool is_static = job.backend == Backend::kStatic;
  const bool unplaced = Strip(endpoint.text).empty() && !(is_static && port.given());
  // torchrun's implicit standalone (static, one node, no endpoint or --master-port), and simulated nodes (any port).
  const bool simulated = job.nodes_on_this_machine > 0;
  if (job.standalone || (unplaced && (simulated || (is_static && job.shared.max_nodes == 1)))) {
    job.standalone = !simulated;
    job.backend = Backend::kC10d;
    job.endpoint = {"localhost", 0};
    if (!simulated || !Get("rdzv-id").given()) job.run_id = RandomId();
    if (job.standalone && job.shared.max_nodes > 1) {
      Warn(fmt::format("--standalone with {}={}: no other node can find this one", Get("nnodes").origin,
                       Get("nnodes").text));
    }
  } else if (job.backend == Backend::kStatic) {
    MUSTER_RETURN_IF_ERROR(ReadStatic(endpoint));
  } else {
    MUSTER_ASSIGN_OR_RETURN(job.endpoint, Of(endpoint, ParseEndpoint(endpoint.text, kC10dPort)));
    if (Value address = Get("master-addr"); address.given() && !endpoint.given()) {
      Warn(fmt::format("{}={} is only used by the static backend; the endpoint is {}:{}", address.origin, address.text,
                       job.endpoint.host, job.endpoint.port));
    }
  }
  if (job.run_id.empty()) {
    job.run_id = RandomId();
    Warn(fmt::format("the run id is empty; this node uses {}, which no other node knows", job.run_id));
  }

  Value rank = Get("node-rank");
  if (job.shared.max_nodes > 1 && !rank.given()) {
    // In the pod of an Indexed Job, Kubernetes sets the rank.
    if (auto index = environment_.Get("JOB_COMPLETION_INDEX")) rank = {*index, "JOB_COMPLETION_INDEX"};
  }
  MUSTER_ASSIGN_OR_RETURN(const int node_rank, ReadNumber(rank, 0, FlagReader::kMost));
  job.shared.indexed = job.backend == Backend::kStatic;
  if (const int nodes = job.shared.max_nodes; job.shared.indexed && node_rank >= nodes) {
    return Bad(rank, fmt::format("node ranks go from 0 to {} with {} nodes", nodes - 1, nodes));
  }
  if (job.shared.indexed || rank.given()) job.node_rank = node_rank;
  Value local = Get("local-addr");
  if (Status status = CheckHost(local.text); !status.ok()) return Bad(local, status);
  job.local_addr = Strip(local.text);
  return ReadRdzvConf(Get("rdzv-conf"), conf_, environment_, &options_);
}

Status Reader::ReadStatic(const Value& endpoint) {
  Value address = Get("master-addr"), port = Get("master-port");
  MUSTER_RETURN_IF_ERROR(Number("master-port", 0, 65535).status());
  bool from_endpoint = !Strip(endpoint.text).empty();
  Value source = from_endpoint ? endpoint
                               : Value{fmt::format("{}:{}", Strip(address.text), Strip(port.text)),
                                       address.given() ? address.origin : port.origin};
  RunOptions::Job& job = options_.job;
  MUSTER_ASSIGN_OR_RETURN(job.endpoint, Of(source, ParseEndpoint(source.text, kNoPort)));
  if (job.endpoint.port == kNoPort) return Bad(source, "the static backend needs a port: want HOST:PORT");
  if (from_endpoint || port.given()) job.port_origin = from_endpoint ? source.origin : port.origin;
  job.shared.min_nodes = job.shared.max_nodes;  // the static backend always waits for the maximum
  return absl::OkStatus();
}

Status Reader::ReadWorkers() {
  RunOptions::Command& command = options_.command;
  MUSTER_ASSIGN_OR_RETURN(command.module, Switch("module"));
  MUSTER_ASSIGN_OR_RETURN(command.no_python, Switch("no-python"));
  MUSTER_ASSIGN_OR_RETURN(command.run_path, Switch("run-path"));
  MUSTER_ASSIGN_OR_RETURN(options_.workers.virtual_local_rank, Switch("virtual-local-rank"));
  if (written_for_ == CalledAs::kExec) command.no_python = true;
  if (command.no_python && command.module && !command.run_path) {
    return absl::InvalidArgumentError("--no-python and --module contradict each other: give one of them");
  }
  const bool launch = written_for_ == CalledAs::kLaunch;
  command.local_rank_argument = launch && !flags_.line().values.contains("use-env");
  if (launch) {
    if (command.no_python && command.local_rank_argument) {
      return absl::InvalidArgumentError("--no-python needs --use-env: only a python script is given --local-rank");
    }
    Warn(
        "torch.distributed.launch is deprecated: use torchrun (or muster run) and read LOCAL_RANK from the "
        "environment");
  }
  if (environment_.Get("TORCHELASTIC_ENABLE_FILE_TIMER") == "1") {
    Warn("TORCHELASTIC_ENABLE_FILE_TIMER=1 has no effect: muster has no watchdog timer for workers");
  }
  Value interval = Get("monitor-interval");
  auto monitor = ParseDouble(Strip(interval.text));
  if (!monitor || *monitor <= 0) return Bad(interval, "want seconds, more than 0");
  Value events = Get("event-log-handler");
  if (events.text == "console") {
    Warn(
        fmt::format("{}=console: muster prints no events; attempt.json in the log folder and the termination message "
                    "say what happened",
                    events.origin));
  }
  options_.workers.role = Get("role").text;
  command.numa_binding = Get("numa-binding").text;
  command.script = *flags_.line().script;
  command.script_args = flags_.line().script_args;
  if (command.script.empty()) return absl::InvalidArgumentError("the script's name is empty");
  return absl::OkStatus();
}

StatusOr<ParsedRun> Reader::Run() {
  ParsedRun run;
  if (flags_.line().help) {
    run.outcome = ParsedRun::Outcome::kHelp;
    run.text = HelpText(written_for_);
    return run;
  }
  MUSTER_ASSIGN_OR_RETURN(options_.job.standalone, Switch("standalone"));
  Value conf = Get("rdzv-conf");
  MUSTER_ASSIGN_OR_RETURN(conf_, Of(conf, ParseRdzvConf(conf.text)));
  options_.job.rdzv_conf = conf.text;
  MUSTER_ASSIGN_OR_RETURN(std::optional<std::string> reason, HandOverReason(flags_, options_.job.standalone, conf_));
  if (reason && called_as_ == CalledAs::kExec) {
    return absl::InvalidArgumentError(fmt::format(
        "{}, and --wire=torch has no place for that one; use --wire=plain with that torchrun as the command", *reason));
  }
  if (reason) {
    if (Value nodes = Get("nodes-on-this-machine"); nodes.given()) {
      return Bad(nodes, fmt::format("{}, and that one simulates no nodes; start one on each machine", *reason));
    }
    MUSTER_RETURN_IF_ERROR(flags_.ReadLog(&options_));
    run.outcome = ParsedRun::Outcome::kHandOver;
    run.text = *std::move(reason);
    run.options = std::move(options_);
    return run;
  }
  if (!flags_.line().script) return MissingScript(written_for_);
  MUSTER_RETURN_IF_ERROR(ReadNodes());
  MUSTER_RETURN_IF_ERROR(ReadRendezvous());
  MUSTER_RETURN_IF_ERROR(ReadWorkers());
  MUSTER_RETURN_IF_ERROR(flags_.ReadLogs(&options_.logs));
  MUSTER_RETURN_IF_ERROR(flags_.ReadSignals(&options_.signals));
  MUSTER_RETURN_IF_ERROR(flags_.ReadCommon(&options_));
  run.overruled = flags_.OverruledVariables(options_.wire);
  run.script_at = flags_.line().script_at;
  run.options = std::move(options_);
  return run;
}

}  // namespace

StatusOr<ParsedRun> ParseRun(const std::vector<std::string>& arguments, const Environment& environment,
                             CalledAs called_as, const HostFacts& facts) {
  MUSTER_ASSIGN_OR_RETURN(CommandLine line, SplitCommandLine(arguments, called_as));
  if (FlagReader flags(environment, line, called_as); flags.plain() && !line.help) {
    ParsedRun run;
    MUSTER_ASSIGN_OR_RETURN(run.options, ReadPlain(flags, environment, facts));
    run.overruled = flags.OverruledVariables(run.options.wire);
    return run;
  }
  if (called_as == CalledAs::kExec && !line.help) {
    if (auto command = FindInnerTorchrun(line)) {
      MUSTER_ASSIGN_OR_RETURN(CommandLine inner, SplitCommandLine(command->arguments, command->called_as));
      inner.values.merge(line.values);  // if both have a flag, the inner one stays
      inner.script_at += arguments.size() - command->arguments.size();
      return Reader(environment, std::move(inner), *command).Run();
    }
  }
  const bool many = called_as == CalledAs::kExec && NamesTorchrun(line);
  TorchrunsPart torchruns = WithoutOwnFlags(arguments, line);
  auto run = Reader(environment, std::move(line), called_as).Run();
  if (run.ok()) run->torchruns = std::move(torchruns);
  if (run.ok() && many) {
    run->options.warnings.emplace_back(
        "--wire=torch starts the command once per worker, and it names a torchrun: each worker would start one of its "
        "own; use --wire=plain, whose torchrun inside is Muster too, or give torchrun itself as the command");
  }
  return run;
}

}  // namespace muster::agent
