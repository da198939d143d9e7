#include "agent/torchrun_flags.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <tuple>

#include "agent/flag_reader.h"
#include "agent/flag_values.h"
#include "agent/handover.h"
#include "agent/inner_torchrun.h"
#include "agent/pod_facts.h"
#include "agent/torchrun_flag_table.h"
#include "agent/wire_mpi.h"
#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;
using Value = FlagValue;

constexpr int kC10dPort = 29400;
constexpr int kNoPort = -1;
constexpr int kMostWorkers = 100'000;
constexpr int kStaticTimeoutSeconds = 900;  // torchrun's "legacy total timeout" (torchrun.md 1.4 rule 5)

// A random identifier as uuid.uuid4() writes it.
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

// Everything a command can have a use for: not what only the sender's own faults raise, not job control, not our own.
std::vector<int> ForwardedSignals() {
  std::vector<int> signals = {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGCONT, SIGWINCH, SIGIO};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) signals.push_back(number);
  return signals;
}

class Reader {
 public:
  Reader(const Getenv& getenv, CommandLine line, CalledAs called_as)
      : getenv_(getenv), flags_(getenv, std::move(line), called_as), called_as_(called_as), written_for_(called_as) {}
  // `line`: the flags of `command` over those of the `muster exec` around it.
  Reader(const Getenv& getenv, CommandLine line, const InnerTorchrun& command)
      : Reader(getenv, std::move(line), CalledAs::kExec) {
    written_for_ = command.called_as;
    options_.launcher = command.launcher;
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
  Status ReadRdzvConf();
  Status ReadWorkers();
  Status ReadLogs();
  Status ReadSignals();
  Status ReadPlain();
  Status MissingScript() const;
  void Warn(std::string text) { options_.warnings.push_back(std::move(text)); }

  const Getenv& getenv_;
  const FlagReader flags_;
  const CalledAs called_as_;  // whose defaults
  CalledAs written_for_;      // who would read the script: not called_as_ where `muster exec` was given a torchrun
  std::map<std::string, std::string> conf_;  // --rdzv-conf
  RunOptions options_;
};

Status Reader::ReadNodes() {
  Value nodes = Get("nnodes");
  auto range = ParseNodeRange(nodes.text);
  if (!range.ok()) return Bad(nodes, range.status());
  std::tie(options_.min_nodes, options_.max_nodes) = *range;
  MUSTER_ASSIGN_OR_RETURN(options_.nodes_on_this_machine, Number("nodes-on-this-machine", 0, 4096));
  if (options_.nodes_on_this_machine > 0 && !nodes.given()) {
    options_.min_nodes = options_.max_nodes = options_.nodes_on_this_machine;
  }

  Value nproc = Get("nproc-per-node");
  options_.nproc_per_node = std::string(Strip(nproc.text));
  if (nproc.given()) options_.nproc_origin = nproc.origin;
  if (auto number = ParsePythonInt(nproc.text)) {
    if (*number < 1 || *number > kMostWorkers) {
      return Bad(nproc, fmt::format("want a number of workers from 1 to {}, auto, cpu, gpu or xpu", kMostWorkers));
    }
    options_.nproc = static_cast<int>(*number);
  } else if (nproc.text != "auto" && nproc.text != "cpu" && nproc.text != "gpu" && nproc.text != "xpu") {
    return Bad(nproc, "want a number of workers, auto, cpu, gpu or xpu");
  }
  return absl::OkStatus();
}

Status Reader::ReadRendezvous() {
  Value backend = Get("rdzv-backend"), endpoint = Get("rdzv-endpoint"), port = Get("master-port");
  // Under exec a range of nodes is elastic by itself; torchrun wants --rdzv-backend=c10d too.
  const bool range = options_.min_nodes < options_.max_nodes;
  if (called_as_ == CalledAs::kExec && range && !backend.given() && !options_.standalone) {
    backend.text = "c10d";
    Value address = Get("master-addr");
    if (!endpoint.given() && (address.given() || port.given())) {
      endpoint = {fmt::format("{}:{}", Strip(address.text), Strip(port.text)), address.origin};
    }
  }
  options_.backend = backend.text == "c10d" ? Backend::kC10d : Backend::kStatic;
  options_.run_id = Get("rdzv-id").text;
  const bool is_static = options_.backend == Backend::kStatic;
  const bool unplaced = Strip(endpoint.text).empty() && !(is_static && port.given());
  // Torchrun's implicit standalone (torchrun.md 1.4 rule 2), and simulated nodes, which need no port chosen by hand.
  const bool simulated = options_.nodes_on_this_machine > 0;
  if (options_.standalone || (unplaced && (simulated || (is_static && options_.max_nodes == 1)))) {
    options_.standalone = !simulated;
    options_.backend = Backend::kC10d;
    options_.endpoint_host = "localhost";
    options_.endpoint_port = 0;
    if (!simulated || !Get("rdzv-id").given()) options_.run_id = RandomId();
    if (options_.standalone && options_.max_nodes > 1) {
      Warn(fmt::format("--standalone with {}={}: no other node can find this one", Get("nnodes").origin,
                       Get("nnodes").text));
    }
  } else if (options_.backend == Backend::kStatic) {
    MUSTER_RETURN_IF_ERROR(ReadStatic(endpoint));
  } else {
    auto parsed = ParseEndpoint(endpoint.text, kC10dPort);
    if (!parsed.ok()) return Bad(endpoint, parsed.status());
    options_.endpoint_host = parsed->host;
    options_.endpoint_port = parsed->port;
    if (Value address = Get("master-addr"); address.given() && !endpoint.given()) {
      Warn(fmt::format("{}={} is only used by the static backend; the endpoint is {}:{}", address.origin, address.text,
                       parsed->host, parsed->port));
    }
  }
  if (options_.run_id.empty()) {
    options_.run_id = RandomId();
    Warn(fmt::format("the run id is empty; this node uses {}, which no other node knows", options_.run_id));
  }

  Value rank = Get("node-rank");
  if (options_.backend == Backend::kStatic && options_.max_nodes > 1 && !rank.given()) {
    // The pod of an Indexed Job knows its place.
    if (auto index = getenv_("JOB_COMPLETION_INDEX")) rank = {*index, "JOB_COMPLETION_INDEX"};
  }
  MUSTER_ASSIGN_OR_RETURN(options_.node_rank, ReadNumber(rank, 0, FlagReader::kMost));
  if (options_.backend == Backend::kStatic) {
    if (options_.node_rank >= options_.max_nodes) {
      return Bad(rank,
                 fmt::format("node ranks go from 0 to {} with {} nodes", options_.max_nodes - 1, options_.max_nodes));
    }
  } else if (options_.node_rank != 0 && !options_.standalone) {
    Warn(fmt::format("{}={} is only used by the static backend; ranks are given by order of arrival", rank.origin,
                     rank.text));
  }
  Value local = Get("local-addr");
  if (Status status = CheckHost(local.text); !status.ok()) return Bad(local, status);
  options_.local_addr = Strip(local.text);
  return ReadRdzvConf();
}

Status Reader::ReadStatic(const Value& endpoint) {
  Value address = Get("master-addr"), port = Get("master-port");
  MUSTER_RETURN_IF_ERROR(Number("master-port", 0, 65535).status());
  bool from_endpoint = !Strip(endpoint.text).empty();
  Value source = from_endpoint ? endpoint
                               : Value{fmt::format("{}:{}", Strip(address.text), Strip(port.text)),
                                       address.given() ? address.origin : port.origin};
  auto parsed = ParseEndpoint(source.text, kNoPort);
  if (!parsed.ok()) return Bad(source, parsed.status());
  if (parsed->port == kNoPort) return Bad(source, "the static backend needs a port: want HOST:PORT");
  options_.endpoint_host = options_.master_addr = parsed->host;
  options_.endpoint_port = options_.master_port = parsed->port;
  options_.min_nodes = options_.max_nodes;  // the static world is max nodes
  return absl::OkStatus();
}

Status Reader::ReadRdzvConf() {
  Value source = Get("rdzv-conf");
  auto bad = [&](std::string_view key, std::string_view wanted) {
    return Bad(source, fmt::format("{}={}: {}", key, conf_[std::string(key)], wanted));
  };
  auto duration = [&](std::string_view key, Duration lowest, std::optional<Duration>& into) -> Status {
    auto found = conf_.find(std::string(key));
    if (found == conf_.end()) return absl::OkStatus();
    auto value = ParseDuration(found->second);
    if (!value.ok()) return bad(key, Message(value.status()));
    if (*value < lowest) return bad(key, fmt::format("want at least {} s", lowest / seconds(1)));
    into = *value;
    return absl::OkStatus();
  };
  std::optional<Duration> join, last_call, heartbeat, interval, total, unused;
  MUSTER_RETURN_IF_ERROR(duration("join_timeout", seconds(1), join));
  MUSTER_RETURN_IF_ERROR(duration("last_call_timeout", seconds(0), last_call));
  MUSTER_RETURN_IF_ERROR(duration("heartbeat_timeout", seconds(1), heartbeat));
  MUSTER_RETURN_IF_ERROR(duration("keep_alive_interval", seconds(0), interval));
  MUSTER_RETURN_IF_ERROR(duration("timeout", seconds(1), total));
  MUSTER_RETURN_IF_ERROR(duration("close_timeout", seconds(0), unused));
  MUSTER_RETURN_IF_ERROR(duration("read_timeout", seconds(0), unused));

  int64_t attempts = 3;  // torchrun's default: dead after 3 silent intervals
  if (auto text = conf_.find("keep_alive_max_attempt"); text != conf_.end()) {
    auto number = ParsePythonInt(text->second);
    if (!number || *number < 1 || *number > 1'000'000)
      return bad("keep_alive_max_attempt", "want a whole number, at least 1");
    attempts = *number;
  }
  bool kept_alive = interval || conf_.contains("keep_alive_max_attempt");
  if (!heartbeat && kept_alive) heartbeat = std::max<Duration>(interval.value_or(seconds(5)) * attempts, seconds(1));

  rendezvous::JobOptions& job = options_.job;
  if (options_.backend == Backend::kStatic) job.join_timeout = total.value_or(seconds(kStaticTimeoutSeconds));
  if (join) job.join_timeout = *join;
  if (last_call) job.last_call = *last_call;
  if (heartbeat) job.heartbeat_timeout = *heartbeat;

  if (auto text = conf_.find("is_host"); text != conf_.end()) {
    auto host = ParseBool(text->second);
    if (!host.ok()) return bad("is_host", Message(host.status()));
    options_.is_host = *host;
  }
  if (auto text = conf_.find("store_type"); text != conf_.end() && Lower(text->second) != "tcp") {
    if (Lower(text->second) != "file") return bad("store_type", "want tcp or file");
    Warn("--rdzv-conf store_type=file has no meaning here; nodes meet over TCP");
  }
  struct {
    std::string_view key, variable;
    std::string& into;
  } const files[] = {{"token_file", "MUSTER_TOKEN_FILE", options_.credentials.token},
                     {"tls_cert", "MUSTER_TLS_CERT", options_.credentials.tls_cert},
                     {"tls_key", "MUSTER_TLS_KEY", options_.credentials.tls_key},
                     {"tls_ca", "MUSTER_TLS_CA", options_.credentials.tls_ca}};
  for (const auto& file : files) {
    auto text = conf_.find(std::string(file.key));
    file.into = text != conf_.end() ? text->second : getenv_(file.variable).value_or("");
  }
  constexpr std::string_view kKnown[] = {"join_timeout",
                                         "last_call_timeout",
                                         "close_timeout",
                                         "heartbeat_timeout",
                                         "keep_alive_interval",
                                         "keep_alive_max_attempt",
                                         "read_timeout",
                                         "timeout",
                                         "is_host",
                                         "store_type",
                                         "token_file",
                                         "tls_cert",
                                         "tls_key",
                                         "tls_ca",
                                         "rank"};
  for (const auto& [key, value] : conf_) {
    if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown)) {
      Warn(fmt::format("{}: {}={} is not understood and has no effect", source.origin, key, value));
    }
  }
  return absl::OkStatus();
}

Status Reader::ReadWorkers() {
  MUSTER_ASSIGN_OR_RETURN(options_.module, Switch("module"));
  MUSTER_ASSIGN_OR_RETURN(options_.no_python, Switch("no-python"));
  MUSTER_ASSIGN_OR_RETURN(options_.run_path, Switch("run-path"));
  MUSTER_ASSIGN_OR_RETURN(options_.virtual_local_rank, Switch("virtual-local-rank"));
  if (written_for_ == CalledAs::kExec) options_.no_python = true;
  if (options_.no_python && options_.module && !options_.run_path) {
    return absl::InvalidArgumentError("--no-python and --module contradict each other: give one of them");
  }
  const bool launch = written_for_ == CalledAs::kLaunch;
  options_.legacy_launch = launch;
  options_.use_env = !launch;
  if (launch) {
    options_.use_env = flags_.line().values.contains("use-env");
    if (options_.no_python && !options_.use_env) {
      return absl::InvalidArgumentError("--no-python needs --use-env: only a python script is given --local-rank");
    }
    Warn(
        "torch.distributed.launch is deprecated: use torchrun (or muster run) and read LOCAL_RANK from the "
        "environment");
  }
  if (getenv_("TORCHELASTIC_ENABLE_FILE_TIMER") == "1") {
    Warn("TORCHELASTIC_ENABLE_FILE_TIMER=1 has no effect: muster has no watchdog timer for workers");
  }
  Value interval = Get("monitor-interval");
  auto monitor = ParseDouble(Strip(interval.text));
  if (!monitor || *monitor <= 0) return Bad(interval, "want seconds, more than 0");
  options_.monitor_interval = *monitor;
  options_.start_method = Get("start-method").text;
  Value events = Get("event-log-handler");
  options_.event_log_handler = events.text;
  if (events.text == "console") {
    Warn(
        fmt::format("{}=console: muster prints no events; attempt.json in the log folder and the termination message "
                    "say what happened",
                    events.origin));
  }
  options_.role = Get("role").text;
  options_.numa_binding = Get("numa-binding").text;
  options_.script = *flags_.line().script;
  options_.script_args = flags_.line().script_args;
  if (options_.script.empty()) return absl::InvalidArgumentError("the script's name is empty");
  return absl::OkStatus();
}

Status Reader::ReadLogs() {
  if (Value folder = Get("log-dir"); !folder.text.empty()) {  // empty: as torchrun, none is asked for
    options_.log_dir = folder.text;
    options_.log_dir_origin = folder.origin;
  }
  struct {
    std::string_view name;
    StdStreams& into;
  } const streams[] = {{"redirects", options_.redirects}, {"tee", options_.tee}};
  for (const auto& stream : streams) {
    Value value = Get(stream.name);
    auto parsed = ParseStdStreams(value.text);
    if (!parsed.ok()) return Bad(value, parsed.status());
    stream.into = *parsed;
  }
  options_.log_line_prefix_template = Get("log-line-prefix-template").text;
  if (options_.log_line_prefix_template.empty()) {
    options_.log_line_prefix_template = getenv_("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE").value_or("");
  }
  Value filter = Get("local-ranks-filter");
  auto ranks = ParseRankList(filter.text);
  if (!ranks.ok()) return Bad(filter, ranks.status());
  options_.local_ranks_filter = *ranks;
  options_.duplicate_stdout_filters = ParseFilters(Get("duplicate-stdout-filters").text);
  options_.duplicate_stderr_filters = ParseFilters(Get("duplicate-stderr-filters").text);
  return absl::OkStatus();
}

Status Reader::ReadSignals() {
  Value signals = Get("signals-to-handle");
  auto parsed = ParseSignalList(signals.text);
  if (!parsed.ok()) return Bad(signals, parsed.status());
  options_.signals_to_handle = *parsed;
  options_.signals_to_handle_text = signals.text;

  Value timeout = Get("shutdown-timeout");
  if (!timeout.given() && !flags_.plain()) {
    if (auto text = getenv_("TORCH_ELASTIC_SHUTDOWN_TIMEOUT")) timeout = {*text, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"};
  }
  auto wait = ParsePythonInt(timeout.text);
  if (!wait || *wait < 0 || *wait > 31'536'000) return Bad(timeout, "want whole seconds, at least 0");
  options_.shutdown_timeout = seconds(*wait);
  return absl::OkStatus();
}

Status Reader::MissingScript() const {
  return absl::InvalidArgumentError(
      written_for_ == CalledAs::kExec
          ? "the command is missing: muster exec [flags] -- COMMAND [arguments]; see --help"
          : "the script (training_script) is missing: muster run [flags] script [arguments]; see --help");
}

// A command that is only supervised: one process, its own streams, nobody to meet.
Status Reader::ReadPlain() {
  constexpr std::string_view kMeaningful[] = {
      "max-restarts", "log-dir", "redirects", "tee", "role", "log-line-prefix-template", "shutdown-timeout"};
  constexpr std::pair<std::string_view, Wire> kWires[] = {
      {"plain", Wire::kPlain}, {"jax", Wire::kJax}, {"mpi", Wire::kMpi}, {"xgboost", Wire::kXgboost}};
  Value wire = Get("wire");
  if (!wire.given() && FirstOf(getenv_, "MUSTER_MPI_HOSTS")) wire = {"mpi", "MUSTER_MPI_HOSTS"};
  auto chosen = std::find_if(std::begin(kWires), std::end(kWires), [&](auto& row) { return row.first == wire.text; });
  if (chosen == std::end(kWires)) return Bad(wire, "choose one of plain, torch, jax, mpi, xgboost");
  options_.wire = chosen->second;
  for (const Flag& flag : FlagTable()) {
    const bool for_torch = flag.owner == FlagOwner::kTorchrun || flag.name == "nodes-on-this-machine";
    if (!for_torch || !flags_.line().values.contains(flag.name)) continue;
    if (options_.wire == Wire::kXgboost && flag.name == "nproc-per-node") continue;
    if (std::find(std::begin(kMeaningful), std::end(kMeaningful), flag.name) != std::end(kMeaningful)) continue;
    return absl::InvalidArgumentError(
        fmt::format("--{} means nothing with --wire={}; use --wire=torch, or leave it out", flag.name, wire.text));
  }
  MUSTER_ASSIGN_OR_RETURN(options_.serve_rsh, Switch("serve-rsh"));
  const bool command = flags_.line().script && !flags_.line().script->empty();
  if (options_.serve_rsh && command) {
    return absl::InvalidArgumentError(
        fmt::format("--serve-rsh takes no command, but '{}' was given: the launcher's remote shell says what runs here",
                    *flags_.line().script));
  }
  if (!options_.serve_rsh && !command) return MissingScript();
  options_.rsh_listen = Get("rsh-listen").text;
  options_.standalone = true;
  options_.backend = Backend::kC10d;
  options_.run_id = "exec";
  options_.no_python = true;
  options_.script = flags_.line().script.value_or("");
  options_.script_args = flags_.line().script_args;
  options_.role = Get("role").text;
  MUSTER_RETURN_IF_ERROR(ReadNodes());
  if (options_.wire == Wire::kJax) MUSTER_RETURN_IF_ERROR(JaxVariables(getenv_).status());
  if (options_.wire == Wire::kMpi) MUSTER_RETURN_IF_ERROR(CheckMpi(getenv_));
  if (options_.wire == Wire::kXgboost) {
    MUSTER_RETURN_IF_ERROR(XgboostVariables(getenv_, options_.nproc - 1, options_.nproc).status());
  }
  MUSTER_RETURN_IF_ERROR(ReadLogs());
  MUSTER_RETURN_IF_ERROR(ReadSignals());
  options_.signals_to_handle = {SIGTERM, SIGINT};
  options_.signals_to_forward = ForwardedSignals();
  MUSTER_RETURN_IF_ERROR(flags_.ReadCommon(&options_));
  bool files = options_.redirects.all != 0 || options_.tee.all != 0 || options_.hang.on();
  if (!options_.log_dir && !files) options_.log_dir = "/dev/null";
  return absl::OkStatus();
}

StatusOr<ParsedRun> Reader::Run() {
  ParsedRun run;
  if (flags_.line().help) {
    run.outcome = ParsedRun::Outcome::kHelp;
    run.text = HelpText(written_for_);
    return run;
  }
  if (flags_.plain()) {
    MUSTER_RETURN_IF_ERROR(ReadPlain());
    run.overruled = flags_.OverruledVariables(options_.wire);
    run.options = std::move(options_);
    return run;
  }
  MUSTER_ASSIGN_OR_RETURN(options_.standalone, Switch("standalone"));
  Value conf = Get("rdzv-conf");
  auto parsed = ParseRdzvConf(conf.text);
  if (!parsed.ok()) return Bad(conf, parsed.status());
  conf_ = *std::move(parsed);
  options_.rdzv_conf = conf.text;
  MUSTER_ASSIGN_OR_RETURN(std::optional<std::string> reason, HandOverReason(flags_, options_.standalone, conf_));
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
  if (!flags_.line().script) return MissingScript();
  MUSTER_RETURN_IF_ERROR(ReadNodes());
  MUSTER_RETURN_IF_ERROR(ReadRendezvous());
  MUSTER_RETURN_IF_ERROR(ReadWorkers());
  MUSTER_RETURN_IF_ERROR(ReadLogs());
  MUSTER_RETURN_IF_ERROR(ReadSignals());
  options_.job.min_nodes = options_.min_nodes;
  options_.job.max_nodes = options_.max_nodes;
  options_.job.indexed = options_.backend == Backend::kStatic;
  MUSTER_RETURN_IF_ERROR(flags_.ReadCommon(&options_));
  run.overruled = flags_.OverruledVariables(options_.wire);
  run.script_at = flags_.line().script_at;
  run.options = std::move(options_);
  return run;
}

}  // namespace

StatusOr<ParsedRun> ParseRun(const std::vector<std::string>& arguments, const Getenv& getenv, CalledAs called_as) {
  MUSTER_ASSIGN_OR_RETURN(CommandLine line, SplitCommandLine(arguments, called_as));
  if (called_as == CalledAs::kExec && !FlagReader(getenv, line, called_as).plain()) {
    if (auto command = FindInnerTorchrun(line)) {
      MUSTER_ASSIGN_OR_RETURN(CommandLine inner, SplitCommandLine(command->arguments, command->called_as));
      inner.values.merge(line.values);  // of a flag that both have, the later one stays
      inner.script_at += arguments.size() - command->arguments.size();
      return Reader(getenv, std::move(inner), *command).Run();
    }
  }
  TorchrunsPart torchruns = WithoutOwnFlags(arguments, line);
  auto run = Reader(getenv, std::move(line), called_as).Run();
  if (run.ok()) run->torchruns = std::move(torchruns);
  return run;
}

}  // namespace muster::agent
