// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/torchrun_flag_table.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace muster::agent {
namespace {

constexpr FlagKind kV = FlagKind::kValue;
constexpr FlagKind kS = FlagKind::kSwitch;
constexpr FlagOwner kT = FlagOwner::kTorchrun;
constexpr FlagOwner kM = FlagOwner::kMuster;
constexpr FlagOwner kE = FlagOwner::kExec;

// name, letter, kind, owner, variable, default, metavar, choices, help, default of exec, variable of Kubeflow's pods
constexpr Flag kTable[] = {
    {"help", 'h', FlagKind::kHelp, kT, "", "", "", "", "show this text and end"},
    {"nnodes", 0, kV, kT, "PET_NNODES", "1:1", "N|MIN:MAX", "", "number of nodes, or their range", "",
     "TRAINER_NNODES"},
    {"nproc-per-node", 0, kV, kT, "PET_NPROC_PER_NODE", "1", "N|auto|cpu|gpu|xpu", "", "workers on each node", "",
     "TRAINER_NPROC_PER_NODE"},
    {"rdzv-backend", 0, kV, kT, "PET_RDZV_BACKEND", "static", "static|c10d|NAME", "",
     "how the nodes meet; other names are handed to the real torchrun"},
    {"rdzv-endpoint", 0, kV, kT, "PET_RDZV_ENDPOINT", "", "HOST[:PORT]", "", "where the nodes meet"},
    {"rdzv-id", 0, kV, kT, "PET_RDZV_ID", "none", "ID", "", "name of the run, the same on every node", "",
     "TRAINER_JOB_ID"},
    {"rdzv-conf", 0, kV, kT, "PET_RDZV_CONF", "", "K=V,K=V", "",
     "join_timeout, last_call_timeout, heartbeat_timeout, is_host, token_file, tls_cert, tls_key, tls_ca ..."},
    {"standalone", 0, kS, kT, "PET_STANDALONE", "", "", "",
     "one node, its own rendezvous: rdzv-backend, rdzv-endpoint and rdzv-id are ignored"},
    {"max-restarts", 0, kV, kT, "PET_MAX_RESTARTS", "0", "N", "", "restarts of the worker group before giving up"},
    {"monitor-interval", 0, kV, kT, "PET_MONITOR_INTERVAL", "0.1", "SECONDS", "",
     "accepted and not needed: workers are watched by events"},
    {"start-method", 0, kV, kT, "PET_START_METHOD", "spawn", "METHOD", "spawn,fork,forkserver",
     "accepted: workers are always started as new processes"},
    {"event-log-handler", 0, kV, kT, "PET_EVENT_LOG_HANDLER", "null", "NAME", "",
     "null; console: accepted, no events are printed"},
    {"role", 0, kV, kT, "PET_ROLE", "default", "NAME", "", "role of the workers"},
    {"module", 'm', kS, kT, "PET_MODULE", "", "", "", "the script is a module: python -m"},
    {"no-python", 0, kS, kT, "PET_NO_PYTHON", "", "", "", "run the script itself, without python"},
    {"run-path", 0, kS, kT, "PET_RUN_PATH", "", "", "", "run the script with runpy.run_path"},
    {"log-dir", 0, kV, kT, "PET_LOG_DIR", "", "DIR", "", "folder for logs and error files; /dev/null: none"},
    {"redirects", 'r', kV, kT, "PET_REDIRECTS", "0", "STREAMS", "",
     "streams that go to files: 0 none, 1 stdout, 2 stderr, 3 both, or per local rank 0:3,1:1"},
    {"tee", 't', kV, kT, "PET_TEE", "0", "STREAMS", "", "streams that go to files and to the console"},
    {"log-line-prefix-template", 0, kV, kT, "PET_LOG_LINE_PREFIX_TEMPLATE", "", "TEXT", "",
     "prefix of console lines: ${role_name} ${local_rank} ${rank} ${hostname}"},
    {"local-ranks-filter", 0, kV, kT, "PET_LOCAL_RANKS_FILTER", "", "N,N", "",
     "only these local ranks write to the console"},
    {"duplicate-stdout-filters", 0, kV, kT, "PET_DUPLICATE_STDOUT_FILTERS", "", "TEXT,TEXT", "",
     "tee'd stdout lines with any of these also go to filtered_stdout.log (,, is a comma)"},
    {"duplicate-stderr-filters", 0, kV, kT, "PET_DUPLICATE_STDERR_FILTERS", "", "TEXT,TEXT", "",
     "the same for stderr and filtered_stderr.log"},
    {"node-rank", 0, kV, kT, "PET_NODE_RANK", "0", "N", "", "rank of this node, for the static backend"},
    {"master-addr", 0, kV, kT, "PET_MASTER_ADDR", "127.0.0.1", "HOST", "", "address of node 0, for the static backend",
     "", "TRAINER_NODE_0_HOSTNAME"},
    {"master-port", 0, kV, kT, "PET_MASTER_PORT", "29500", "PORT", "", "port on node 0, for the static backend"},
    {"local-addr", 0, kV, kT, "PET_LOCAL_ADDR", "", "HOST", "", "address by which other nodes reach this one"},
    {"logs-specs", 0, kV, kT, "", "", "NAME", "", "handed to the real torchrun (a Python entry point)"},
    {"numa-binding", 0, kV, kT, "", "", "MODE", "node,socket,exclusive,core-complex",
     "bind each worker to the CPUs near its GPU, with numactl"},
    {"signals-to-handle", 0, kV, kT, "PET_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "NAMES", "",
     "signals that are passed on to the workers"},
    {"shutdown-timeout", 0, kV, kT, "PET_SHUTDOWN_TIMEOUT", "30", "SECONDS", "",
     "how long workers may take to stop before SIGKILL", "25"},
    {"virtual-local-rank", 0, kS, kT, "PET_VIRTUAL_LOCAL_RANK", "", "", "",
     "LOCAL_RANK is 0 for every worker, each sees one GPU"},
    {"print-completion", 0, kV, kT, "", "", "SHELL", "bash,zsh,tcsh", "handed to the real torchrun"},
    {"use-env", 0, kS, FlagOwner::kLegacy, "", "", "", "", "do not add --local-rank to the script's arguments"},
    {"nodes-on-this-machine", 0, kV, kM, "", "0", "N", "", "simulate N nodes here, one agent each"},
    {"node-name", 0, kV, kM, "MUSTER_NODE", "", "NAME", "", "stable name of this node"},
    {"log-format", 0, kV, kM, "MUSTER_LOG_FORMAT", "text", "FORMAT", "text,json", "format of Muster's own log"},
    {"log-level", 0, kV, kM, "MUSTER_LOG_LEVEL", "", "debug|info|warning|error", "",
     "level of Muster's own log; default: LOGLEVEL, else info"},
    {"restart-policy", 0, kV, kM, "MUSTER_RESTART_POLICY", "on-failure", "POLICY", "never,on-failure,always,exit-code",
     "when a failed group is started again", "exit-code"},
    {"retry-codes", 0, kV, kM, "MUSTER_RETRY_CODES", "", "CODES", "", "exit codes counted as retryable: 3,130-139"},
    {"fatal-codes", 0, kV, kM, "MUSTER_FATAL_CODES", "", "CODES", "", "exit codes counted as fatal"},
    {"restart-window", 0, kV, kM, "MUSTER_RESTART_WINDOW", "", "DURATION", "",
     "only restarts of the last 30m, 12h ... count against --max-restarts"},
    {"no-progress-limit", 0, kV, kM, "MUSTER_NO_PROGRESS_LIMIT", "0", "K", "",
     "end with exit code 93 after K restarts in a row without progress; 0: off"},
    {"hang-timeout", 0, kV, kM, "MUSTER_HANG_TIMEOUT", "", "DURATION", "",
     "a worker whose MUSTER_HEARTBEAT_FILE does not change for so long hangs: exit code 203; 0: off"},
    {"hang-log-timeout", 0, kV, kM, "MUSTER_HANG_LOG_TIMEOUT", "", "DURATION", "",
     "a job whose workers all write nothing for so long hangs: exit code 203; 0: off"},
    {"hang-signal", 0, kV, kM, "MUSTER_HANG_SIGNAL", "", "NAME", "",
     "sent to workers that hang, before they are stopped: USR1 for faulthandler.register"},
    {"standby-workers", 0, kV, kM, "MUSTER_STANDBY_WORKERS", "off", "WHEN", "auto,off",
     "auto: keep a Python process for each worker that has done the script's imports, for the next restart"},
    {"standby-delay", 0, kV, kM, "MUSTER_STANDBY_DELAY", "10s", "DURATION", "",
     "how long after a start of the workers standbys are made"},
    {"standby-imports", 0, kV, kM, "MUSTER_STANDBY_IMPORTS", "", "MODULE,MODULE", "",
     "what standbys import; default: what a worker of the script has imported"},
    {"progress", 0, kV, kM, "MUSTER_PROGRESS", "auto", "WHEN", "auto,off",
     "auto: read from what the workers write how far the training is; off: leave stdout to the workers alone"},
    {"progress-pattern", 0, kV, kM, "MUSTER_PROGRESS_PATTERN", "", "REGEX", "",
     "a further form of lines that say so: named groups step, steps, epoch, epochs, loss, as (?P<step>\\d+)"},
    {"checkpoint-dir", 0, kV, kM, "MUSTER_CHECKPOINT_DIR", "", "FOLDER", "",
     "where the program saves its checkpoints: what it did after the last one counts as lost in the goodput"},
    {"http-port", 0, kV, kM, "MUSTER_HTTP_PORT", "", "[HOST:]PORT|off", "",
     "port of /healthz, /readyz, /status and /metrics; 0: the kernel chooses; default: off, under Kubernetes 29480"},
    {"http-token-file", 0, kV, kM, "MUSTER_HTTP_TOKEN_FILE", "", "FILE", "",
     "whoever opens the live page of that port, or asks for its ranks, must give the token in this file"},
    {"node-check", 0, kV, kM, "MUSTER_NODE_CHECK", "", "COMMAND|builtin", "",
     "must end with 0 before this node joins, and after the node failed twice in a row; builtin: `muster check`"},
    {"node-check-timeout", 0, kV, kM, "MUSTER_NODE_CHECK_TIMEOUT", "60s", "DURATION", "",
     "how long --node-check may take"},
    {"nodes-file", 0, kV, kM, "MUSTER_NODES_FILE", "", "FILE", "",
     "file with the number of nodes wanted now; an elastic job starts once they are there, and follows changes"},
    {"preempt-file", 0, kV, kM, "MUSTER_PREEMPT_FILE", "", "FILE|URL", "",
     "when this file appears, or this metadata service gives notice, the node leaves as at SIGTERM (exit code 143)"},
    {"preempt-interval", 0, kV, kM, "MUSTER_PREEMPT_INTERVAL", "5s", "DURATION", "",
     "pause between two requests to the URL of --preempt-file"},
    {"termination-log", 0, kV, kM, "MUSTER_TERMINATION_LOG", "/dev/termination-log", "FILE", "",
     "file for the pod's termination message, written only if it exists; empty: none"},
    {"args-from-env", 0, kS, kE, "", "", "", "",
     "a word MUSTER_ARG_N of the command stands for the value of that variable; the controller writes it"},
    {"serve-rsh", 0, kS, kE, "", "", "", "", "run no command: serve `muster rsh` until the launcher's verdict"},
    {"rsh-listen", 0, kV, kE, "MUSTER_RSH_LISTEN", "", "HOST:PORT", "",
     "where --serve-rsh listens; default: every address, port 29522 or MUSTER_RSH_PORT. Needed without a token"},
    {"wire", 0, kV, kE, "MUSTER_WIRE", "plain", "FRAMEWORK", "plain,torch,jax,mpi,xgboost",
     "framework that the command uses; mpi if MUSTER_MPI_HOSTS is set"},
    {"scale-up", 0, kV, kM, "MUSTER_SCALE_UP", "now", "WHEN", "now,at-restart",
     "when a new node may join a running job"},
};

std::string Dashes(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

Status Bad(const std::string& text) { return absl::InvalidArgumentError(text); }

// As argparse: ^-\d+$|^-\d*\.\d+$
bool LooksNegative(std::string_view text) {
  if (text.size() < 2 || text[0] != '-') return false;
  std::string_view rest = text.substr(1);
  size_t digits = rest.find_first_not_of("0123456789");
  if (digits == std::string_view::npos) return true;
  if (rest[digits] != '.') return false;
  rest.remove_prefix(digits + 1);
  return !rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos;
}

// True if `text` cannot be an option; argparse marks such a text 'A'.
bool IsPlain(std::string_view text) {
  if (text.empty() || text[0] != '-' || text == "-") return true;
  if (LooksNegative(text)) return true;
  // A blank makes an unknown option a value; "--flag=a b" is still that flag.
  size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return false;
  size_t equals = text.find('=');
  if (equals != std::string_view::npos && equals < blank) return false;
  return text.starts_with("--") || FindLetter(text[1]) == nullptr;
}

class Splitter {
 public:
  Splitter(const std::vector<std::string>& arguments, CalledAs called_as)
      : arguments_(arguments), called_as_(called_as) {}

  StatusOr<CommandLine> Run(bool lenient) {
    bool ended = false;  // "--" was seen
    while (at_ < arguments_.size() && !line_.script && !line_.help) {
      const std::string& text = arguments_[at_++];
      if (ended || IsPlain(text)) {
        line_.script = text;
        line_.script_at = at_ - 1;
      } else if (text == "--") {
        ended = true;
      } else if (text.starts_with("--")) {
        if (Status status = TakeLong(text); !status.ok()) {
          if (!lenient) return status;
          if (text.find('=') == std::string::npos) PassOverValue();
        }
      } else if (Status status = TakeLetters(text); !status.ok()) {
        if (!lenient) return status;
        PassOverValue();
      }
    }
    if (!line_.script) line_.script_at = arguments_.size();
    if (line_.script && !ended && at_ < arguments_.size() && arguments_[at_] == "--") ++at_;
    for (; at_ < arguments_.size(); ++at_) line_.script_args.push_back(arguments_[at_]);
    return std::move(line_);
  }

 private:
  // After a wrong flag: skips a word that was its value, as it is followed by an option and later "--".
  void PassOverValue() {
    const auto rest = arguments_.begin() + static_cast<std::ptrdiff_t>(at_);
    if (arguments_.end() - rest < 2 || !IsPlain(rest[0]) || IsPlain(rest[1])) return;
    if (std::find(rest, arguments_.end(), "--") != arguments_.end()) ++at_;
  }

  Status TakeLong(std::string_view text) {
    std::string_view name = text.substr(2);
    std::optional<std::string> value;
    if (size_t equals = name.find('='); equals != std::string_view::npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    MUSTER_ASSIGN_OR_RETURN(const Flag* flag, FindFlag(name, called_as_));
    const size_t first = at_ - 1;
    MUSTER_RETURN_IF_ERROR(Take(*flag, value, fmt::format("--{}", flag->name)));
    if (IsOwn(*flag)) line_.own.push_back({flag, first, at_});
    return absl::OkStatus();
  }

  // "-r3", "-r=3", "-r 3", "-mr3".
  Status TakeLetters(std::string_view text) {
    std::string_view rest = text.substr(1);
    while (true) {
      std::string spelled = fmt::format("-{}", rest[0]);
      const Flag* flag = FindLetter(rest[0]);
      if (flag == nullptr) return Bad(fmt::format("unknown flag {} in '{}'; see --help", spelled, text));
      rest.remove_prefix(1);
      if (flag->kind == FlagKind::kValue) {
        std::optional<std::string> value;
        if (rest.starts_with('=')) {
          value = rest.substr(1);
        } else if (!rest.empty()) {
          value = rest;
        }
        return Take(*flag, value, spelled);
      }
      MUSTER_RETURN_IF_ERROR(Take(*flag, std::nullopt, spelled));
      if (rest.empty() || line_.help) return absl::OkStatus();
      if (FindLetter(rest[0]) == nullptr)
        return Bad(fmt::format("{} takes no value, but '{}' was given", spelled, text));
    }
  }

  Status Take(const Flag& flag, std::optional<std::string> value, const std::string& spelled) {
    if (flag.kind != FlagKind::kValue) {
      if (value) return Bad(fmt::format("{} takes no value, but '{}' was given", spelled, *value));
      if (flag.kind == FlagKind::kHelp) line_.help = true;
      line_.values[flag.name] = "";
      return absl::OkStatus();
    }
    if (!value) {
      if (at_ >= arguments_.size() || !IsPlain(arguments_[at_])) {
        return Bad(fmt::format("{} needs a value: {} {}", spelled, spelled, flag.metavar));
      }
      value = arguments_[at_++];
    }
    if (!flag.choices.empty()) {
      std::vector<std::string_view> choices = Split(flag.choices, ',');
      if (std::find(choices.begin(), choices.end(), std::string_view(*value)) == choices.end()) {
        return Bad(fmt::format("{}={}: choose one of {}", spelled, *value, fmt::join(choices, ", ")));
      }
    }
    line_.values[flag.name] = *std::move(value);
    return absl::OkStatus();
  }

  const std::vector<std::string>& arguments_;
  const CalledAs called_as_;
  size_t at_ = 0;
  CommandLine line_;
};

}  // namespace

std::span<const Flag> FlagTable() { return kTable; }

bool IsVisible(const Flag& flag, CalledAs called_as) {
  if (flag.owner == FlagOwner::kLegacy) return called_as == CalledAs::kLaunch;
  return flag.owner != FlagOwner::kExec || called_as == CalledAs::kExec;
}

bool IsOwn(const Flag& flag) { return flag.owner == FlagOwner::kMuster || flag.owner == FlagOwner::kExec; }

const Flag* FindLetter(char letter) {
  for (const Flag& flag : kTable) {
    if (flag.letter == letter && letter != 0) return &flag;
  }
  return nullptr;
}

StatusOr<const Flag*> FindFlag(std::string_view name, CalledAs called_as) {
  std::string dashed = Dashes(name);
  std::vector<const Flag*> torchrun, own;
  for (const Flag& flag : kTable) {
    if (!IsVisible(flag, called_as)) continue;
    if (flag.name == dashed) return &flag;
    if (!flag.name.starts_with(dashed)) continue;
    (IsOwn(flag) ? own : torchrun).push_back(&flag);
  }
  if (torchrun.size() == 1) return torchrun.front();
  if (torchrun.empty() && own.size() == 1) return own.front();
  if (torchrun.empty() && own.empty()) {
    return Bad(fmt::format("unknown flag --{}; flags of the script go behind the script. See --help", name));
  }
  torchrun.insert(torchrun.end(), own.begin(), own.end());
  std::vector<std::string> names;
  for (const Flag* flag : torchrun) names.push_back(fmt::format("--{}", flag->name));
  return Bad(fmt::format("--{} is ambiguous; it could be {}. Write more of the name", name, Join(names, ", ")));
}

StatusOr<CommandLine> SplitCommandLine(const std::vector<std::string>& arguments, CalledAs called_as) {
  return Splitter(arguments, called_as).Run(false);
}

CommandLine SplitWhatCanBeRead(const std::vector<std::string>& arguments, CalledAs called_as) {
  return *Splitter(arguments, called_as).Run(true);
}

TorchrunsPart WithoutOwnFlags(const std::vector<std::string>& arguments, const CommandLine& line) {
  TorchrunsPart part;
  size_t at = 0;
  auto keep_until = [&](size_t end) {
    for (; at < end; ++at) part.arguments.push_back(arguments[at]);
  };
  for (const CommandLine::Own& own : line.own) {
    keep_until(own.first);
    part.left_out.push_back(fmt::format("--{}", own.flag->name));
    at = own.end;
  }
  keep_until(arguments.size());
  return part;
}

std::string_view Fallback(const Flag& flag, CalledAs called_as) {
  return called_as == CalledAs::kExec && !flag.exec_fallback.empty() ? flag.exec_fallback : flag.fallback;
}

Status MissingScript(CalledAs called_as) {
  return absl::InvalidArgumentError(
      called_as == CalledAs::kExec
          ? "the command is missing: muster exec [flags] -- COMMAND [arguments]; see --help"
          : "the script (training_script) is missing: muster run [flags] script [arguments]; see --help");
}

}  // namespace muster::agent
