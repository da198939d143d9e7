// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/flag_reader.h"

#include <algorithm>
#include <csignal>

#include "agent/flags/flag_values.h"
#include "agent/flags/inner_environment.h"
#include "agent/flags/pod_facts.h"
#include "agent/progress/progress_pattern.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kMostWorkers = 100'000;

// True: an agent around a torchrun leaves this to the torchrun, which knows the ranks; not both may judge hangs.
bool LeftToATorchrunInside(std::string_view name, Wire wire) {
  return wire == Wire::kPlain && (name == "hang-timeout" || name == "hang-log-timeout" || name == "hang-signal");
}

// All signals that a command may use: not those that only its own faults raise, and not those of job control.
std::vector<int> ForwardedSignals() {
  std::vector<int> signals = {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGCONT, SIGWINCH, SIGIO};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) signals.push_back(number);
  return signals;
}

bool MeansTheSame(const Flag& flag, std::string_view variable, std::string_view given) {
  if (flag.kind == FlagKind::kSwitch) return ParsePythonInt(variable).value_or(0) != 0;
  if (flag.name == "nnodes") {
    auto one = ParseNodeRange(variable), other = ParseNodeRange(given);  // 2 is 2:2
    if (one.ok() && other.ok()) return *one == *other;
  }
  return Strip(variable) == Strip(given);
}

}  // namespace

Status Bad(const FlagValue& value, std::string_view wanted) {
  return absl::InvalidArgumentError(
      fmt::format("{}={}: {}", value.origin.empty() ? "default" : value.origin, value.text, wanted));
}

Status Bad(const FlagValue& value, const Status& status) { return Bad(value, Message(status)); }

FlagReader::FlagReader(const Environment& environment, CommandLine line, CalledAs called_as)
    : environment_(environment), line_(std::move(line)), called_as_(called_as) {
  const std::string wire = Get("wire").text;
  plain_ = called_as == CalledAs::kExec && wire != "torch";
  meets_ = plain_ && (wire == "jax" || wire == "xgboost");
}

bool FlagReader::MeetsBy(std::string_view name) const {
  constexpr std::string_view kNames[] = {"nnodes",  "node-rank", "rdzv-endpoint",
                                         "rdzv-id", "rdzv-conf", "max-restarts"};
  return meets_ && std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::optional<FlagValue> FlagReader::FlagOr(std::string_view name, std::string_view variables) const {
  if (auto given = line_.values.find(name); given != line_.values.end())
    return FlagValue{given->second, fmt::format("--{}", name)};
  return FirstOf(environment_, variables);
}

FlagValue FlagReader::Get(std::string_view name) const {
  const std::span<const Flag> table = FlagTable();
  const Flag& row = *std::find_if(table.begin(), table.end(), [&](const Flag& flag) { return flag.name == name; });
  if (auto given = FlagOr(name, "")) return *std::move(given);
  if (Hears(row) && !row.variable.empty()) {
    if (auto text = environment_.Get(row.variable)) return {*text, std::string(row.variable)};
    if (auto told = FirstOf(environment_, row.pod_variable)) return *std::move(told);
  }
  return {std::string(Fallback(row, called_as_)), ""};
}

StatusOr<bool> FlagReader::Switch(std::string_view name) const {
  if (line_.values.contains(name)) return true;
  FlagValue value = Get(name);
  if (!value.given()) return false;
  auto number = ParsePythonInt(value.text);
  if (!number) return Bad(value, "want 1 (on) or 0 (off)");
  return *number != 0;
}

std::string Describe(const std::vector<Overruled>& overruled) {
  std::vector<std::string> parts;
  for (const Overruled& one : overruled) parts.push_back(one.what);
  return fmt::format("flags win over the environment: {}", Join(parts, ", "));
}

std::vector<Overruled> FlagReader::OverruledVariables(Wire wire) const {
  std::vector<Overruled> overruled;
  for (const Flag& flag : FlagTable()) {
    auto given = line_.values.find(flag.name);
    if (given == line_.values.end() || flag.variable.empty()) continue;
    if (!Hears(flag) || LeftToATorchrunInside(flag.name, wire)) continue;
    auto variable = environment_.Get(flag.variable);
    if (!variable || MeansTheSame(flag, *variable, given->second)) continue;
    if (IsFromOutside(environment_, flag.variable)) continue;
    std::string_view equals = flag.kind == FlagKind::kSwitch ? "" : "=";
    overruled.push_back({flag.variable, fmt::format("--{}{}{} over {}={}", flag.name, equals, given->second,
                                                    flag.variable, *variable)});
  }
  return overruled;
}

StatusOr<int> ReadNumber(const FlagValue& value, int lowest, int highest) {
  auto number = ParsePythonInt(value.text);
  if (!number || *number < lowest || *number > highest) {
    if (highest == FlagReader::kMost) return Bad(value, fmt::format("want a whole number, at least {}", lowest));
    return Bad(value, fmt::format("want a whole number from {} to {}", lowest, highest));
  }
  return static_cast<int>(*number);
}

Status FlagReader::ReadLog(RunOptions* options) const {
  options->job.node_name = std::string(Strip(Get("node-name").text));
  options->job.in_cluster = InCluster(environment_);
  options->job.name = JobNameOf(environment_);
  FlagValue format = Get("log-format");
  MUSTER_ASSIGN_OR_RETURN(options->log.format, Of(format, log::ParseFormat(format.text)));
  options->log.node = options->job.node_name;
  if (FlagValue level = Get("log-level"); level.given()) {
    MUSTER_ASSIGN_OR_RETURN(options->log.level, Of(level, log::ParseLevel(level.text)));
  } else if (auto text = environment_.Get("LOGLEVEL"); text && !text->empty()) {
    auto parsed = log::ParseLevel(*text);
    if (!parsed.ok()) {
      options->warnings.push_back(fmt::format("LOGLEVEL={} has no effect: {}", *text, Message(parsed.status())));
    }
    options->log.level = parsed.value_or(options->log.level);
  }
  options->termination_log = Get("termination-log").text;
  return absl::OkStatus();
}

Status FlagReader::ReadCommon(RunOptions* options) const {
  MUSTER_RETURN_IF_ERROR(ReadLog(options));
  MUSTER_RETURN_IF_ERROR(ReadHttpPort(&options->http));
  options->check.command = std::string(Strip(Get("node-check").text));
  FlagValue limit = Get("node-check-timeout");
  MUSTER_ASSIGN_OR_RETURN(options->check.timeout, Of(limit, ParseDuration(limit.text)));
  if (options->check.timeout <= Duration::zero()) return Bad(limit, "want more than 0");
  options->watched.nodes_file = Get("nodes-file").text;
  options->watched.preempt_file = Get("preempt-file").text;
  FlagValue interval = Get("preempt-interval");
  MUSTER_ASSIGN_OR_RETURN(options->watched.preempt_interval, Of(interval, ParseDuration(interval.text)));
  if (options->watched.preempt_interval < std::chrono::milliseconds(10)) return Bad(interval, "want at least 10ms");
  MUSTER_RETURN_IF_ERROR(ReadHangRules(options));
  MUSTER_RETURN_IF_ERROR(ReadStandby(&options->standby));
  MUSTER_RETURN_IF_ERROR(ReadProgress(&options->progress));
  return ReadRestartRules(&options->job.shared);
}

Status FlagReader::ReadNproc(RunOptions::Workers* workers) const {
  FlagValue nproc = Get("nproc-per-node");
  workers->nproc_per_node = std::string(Strip(nproc.text));
  if (nproc.given()) workers->nproc_origin = nproc.origin;
  if (auto number = ParsePythonInt(nproc.text)) {
    if (*number < 1 || *number > kMostWorkers) {
      return Bad(nproc, fmt::format("want a number of workers from 1 to {}, auto, cpu, gpu or xpu", kMostWorkers));
    }
    workers->nproc = static_cast<int>(*number);
    workers->nproc_per_node = fmt::format("{}", *number);  // only Python reads "+1"
  } else if (nproc.text != "auto" && nproc.text != "cpu" && nproc.text != "gpu" && nproc.text != "xpu") {
    return Bad(nproc, "want a number of workers, auto, cpu, gpu or xpu");
  }
  return absl::OkStatus();
}

Status FlagReader::ReadLogs(RunOptions::Logs* logs) const {
  if (FlagValue folder = Get("log-dir"); !folder.text.empty()) {  // empty means none, as under torchrun
    logs->dir = folder.text;
    logs->dir_origin = folder.origin;
  }
  struct {
    std::string_view name;
    StdStreams& into;
  } const streams[] = {{"redirects", logs->redirects}, {"tee", logs->tee}};
  for (const auto& stream : streams) {
    FlagValue value = Get(stream.name);
    MUSTER_ASSIGN_OR_RETURN(stream.into, Of(value, ParseStdStreams(value.text)));
  }
  logs->line_prefix_template = Get("log-line-prefix-template").text;
  if (logs->line_prefix_template.empty()) {
    logs->line_prefix_template = environment_.Get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE").value_or("");
  }
  FlagValue filter = Get("local-ranks-filter");
  MUSTER_ASSIGN_OR_RETURN(logs->local_ranks_filter, Of(filter, ParseRankList(filter.text)));
  logs->duplicate_stdout_filters = ParseFilters(Get("duplicate-stdout-filters").text);
  logs->duplicate_stderr_filters = ParseFilters(Get("duplicate-stderr-filters").text);
  return absl::OkStatus();
}

Status FlagReader::ReadSignals(RunOptions::Signals* signals) const {
  FlagValue listed = Get("signals-to-handle");
  MUSTER_ASSIGN_OR_RETURN(signals->to_handle, Of(listed, ParseSignalList(listed.text)));
  if (plain_) signals->to_handle = {SIGTERM, SIGINT};
  signals->to_handle_text = listed.text;
  signals->to_forward = ForwardedSignals();
  std::erase_if(signals->to_forward, [&](int signal) {
    const std::vector<int>& handled = signals->to_handle;
    return std::find(handled.begin(), handled.end(), signal) != handled.end();
  });

  FlagValue timeout = Get("shutdown-timeout");
  if (!timeout.given()) {
    if (auto told = FirstOf(environment_, "MUSTER_SHUTDOWN_TIMEOUT")) timeout = *std::move(told);
    // Wins: an agent outside sets it for the one inside, which gets the shorter grace.
    auto inside = plain_ ? std::nullopt : environment_.Get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
    if (inside) timeout = {*inside, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"};
  }
  auto wait = ParsePythonInt(timeout.text);
  if (!wait || *wait < 0 || *wait > 31'536'000) return Bad(timeout, "want whole seconds, at least 0");
  signals->shutdown_timeout = std::chrono::seconds(*wait);
  return absl::OkStatus();
}

Status FlagReader::ReadHttpPort(HttpListen* http) const {
  FlagValue port = Get("http-port");
  const auto chosen = port.given() ? std::optional(port.text) : std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(*http, Of(port, ChooseHttpListen(chosen, InCluster(environment_))));
  if (port.given()) http->origin = port.origin;
  const FlagValue token = Get("http-token-file");
  http->token_file = token.text;
  http->token_origin = token.origin;
  return absl::OkStatus();
}

Status FlagReader::ReadHangRules(RunOptions* options) const {
  auto heard = [&](std::string_view name) {
    return LeftToATorchrunInside(name, options->wire) && !line_.values.contains(name) ? FlagValue{} : Get(name);
  };
  struct {
    std::string_view name;
    std::optional<Duration>& into;
  } const limits[] = {{"hang-timeout", options->hang.step_timeout}, {"hang-log-timeout", options->hang.log_timeout}};
  for (const auto& limit : limits) {
    FlagValue value = heard(limit.name);
    if (value.text.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(const Duration duration, Of(value, ParseDuration(value.text)));
    if (duration > Duration::zero()) limit.into = duration;
  }
  if (FlagValue signal = heard("hang-signal"); !signal.text.empty()) {
    MUSTER_ASSIGN_OR_RETURN(options->hang.signal, Of(signal, ParseSignal(signal.text)));
  }
  if (options->hang.step_timeout && options->logs.dir == "/dev/null") {
    options->warnings.push_back(
        "--hang-timeout has no effect with --log-dir /dev/null: heartbeat files need a log folder");
  }
  return absl::OkStatus();
}

Status FlagReader::ReadStandby(RunOptions::Standby* standby) const {
  const FlagValue workers = Get("standby-workers"), delay = Get("standby-delay"), imports = Get("standby-imports");
  if (workers.text != "auto" && workers.text != "off") return Bad(workers, "choose one of auto, off");
  standby->wanted = workers.text == "auto";
  MUSTER_ASSIGN_OR_RETURN(standby->delay, Of(delay, ParseDuration(delay.text)));
  for (std::string_view name : Split(imports.text, ',')) {
    name = Strip(name);
    if (name.empty()) continue;
    const bool plain = name.find_first_of(" \t\n/\\-") == std::string_view::npos && name.front() != '.';
    if (!plain) return Bad(imports, fmt::format("'{}' is not the name of a module: torch,transformers", name));
    standby->imports.emplace_back(name);
  }
  return absl::OkStatus();
}

Status FlagReader::ReadProgress(RunOptions::Progress* progress) const {
  const FlagValue when = Get("progress"), pattern = Get("progress-pattern");
  if (when.text != "auto" && when.text != "off") return Bad(when, "choose one of auto, off");
  progress->read = when.text == "auto";
  progress->checkpoint_dir = Get("checkpoint-dir").text;
  if (pattern.text.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(progress->pattern, Of(pattern, ProgressPattern::Compile(pattern.text)));
  return absl::OkStatus();
}

Status FlagReader::ReadRestartRules(rendezvous::JobOptions* job) const {
  MUSTER_ASSIGN_OR_RETURN(job->max_restarts, Number("max-restarts", 0, kMost));
  MUSTER_ASSIGN_OR_RETURN(job->no_progress_limit, Number("no-progress-limit", 0, kMost));

  using rendezvous::RestartPolicy;
  constexpr std::pair<std::string_view, RestartPolicy> kPolicies[] = {{"never", RestartPolicy::kNever},
                                                                      {"on-failure", RestartPolicy::kOnFailure},
                                                                      {"always", RestartPolicy::kAlways},
                                                                      {"exit-code", RestartPolicy::kExitCode}};
  FlagValue policy = Get("restart-policy");
  auto row =
      std::find_if(std::begin(kPolicies), std::end(kPolicies), [&](auto& row) { return row.first == policy.text; });
  if (row == std::end(kPolicies)) return Bad(policy, "choose one of never, on-failure, always, exit-code");
  job->policy = row->second;
  FlagValue scale = Get("scale-up");
  if (scale.text != "now" && scale.text != "at-restart") return Bad(scale, "choose one of now, at-restart");
  job->scale_up = scale.text == "now" ? rendezvous::ScaleUp::kNow : rendezvous::ScaleUp::kAtRestart;

  FlagValue retry = Get("retry-codes"), fatal = Get("fatal-codes");
  MUSTER_ASSIGN_OR_RETURN(job->overrides.retry, Of(retry, ParseExitCodes(retry.text)));
  MUSTER_ASSIGN_OR_RETURN(job->overrides.fatal, Of(fatal, ParseExitCodes(fatal.text)));
  for (int code : job->overrides.retry) {
    if (job->overrides.fatal.contains(code))
      return Bad(retry, fmt::format("{} is in {} too; a code has one class", code, fatal.origin));
  }

  if (FlagValue window = Get("restart-window"); !window.text.empty()) {
    MUSTER_ASSIGN_OR_RETURN(job->restart_window, Of(window, ParseDuration(window.text)));
    if (*job->restart_window <= Duration::zero()) return Bad(window, "want more than 0");
  }
  return absl::OkStatus();
}

}  // namespace muster::agent
