// What `muster run`, `launch` and `exec` are asked to do: the options after flags, variables and defaults have been
// applied. Passive data; torchrun_flags.h fills it in.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/workers/flight_recorder.h"
#include "agent/workers/hang_rule.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/credentials.h"
#include "rendezvous/round.h"

namespace muster::agent {

// Which streams, per local rank: torchrun's 0 none, 1 stdout, 2 stderr, 3 both.
struct StdStreams {
  int all = 0;
  std::map<int, int> by_local_rank;  // if "0:3,1:1" was given; a rank that is not listed has 0
  int For(int local_rank) const {
    if (by_local_rank.empty()) return all;
    auto found = by_local_rank.find(local_rank);
    return found == by_local_rank.end() ? 0 : found->second;
  }
};

struct Endpoint {
  std::string host;
  int port = 0;
};
inline constexpr int kNoPort = -1;  // of an endpoint without a port

// Where /healthz, /readyz, /status and /metrics are served.
struct HttpListen {
  bool on = false;
  bool required = false;               // the user asked for it: if it cannot be opened, that is an error
  std::string host;                    // numeric or "localhost"; empty: every address
  int port = 0;                        // 0: the kernel chooses
  std::string origin = "--http-port";  // the flag or variable, for the errors
};
// The default under Kubernetes. Below the ports that the kernel gives out by itself.
inline constexpr int kHttpPortUnderKubernetes = 29480;

enum class Backend { kStatic, kC10d };
enum class Wire { kTorch, kPlain, kJax, kMpi, kXgboost };

struct RunOptions {
  std::string nproc_per_node = "1";               // number, auto, cpu, gpu, xpu: host_facts.h resolves it
  std::string nproc_origin = "--nproc-per-node";  // or the variable that gave it
  int nproc = 1;                                  // resolved
  Backend backend = Backend::kStatic;
  bool standalone = false;  // --standalone, or torchrun's implicit one: a static node without endpoint
  std::string endpoint_host;
  int endpoint_port = 0;
  std::string run_id;
  std::string rdzv_conf;        // --rdzv-conf or PET_RDZV_CONF as given, for agents started by this one
  std::optional<bool> is_host;  // --rdzv-conf is_host
  rendezvous::JobOptions job;   // nodes, restarts and time-outs for the rendezvous
  net::CredentialFiles credentials;
  int node_rank = 0;
  std::optional<int> node_index;  // node_rank, if one is given or known
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  std::string master_port_origin = "--master-port";  // the flag or variable that gave it, maybe as an endpoint
  std::string local_addr;
  double monitor_interval = 0.1;  // accepted; Muster does not poll
  std::string start_method = "spawn";
  std::string event_log_handler = "null";
  std::string role = "default";
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  bool virtual_local_rank = false;
  RecorderNames recorder_names = RecorderNames::kBoth;  // that the python's torch reads; set if hangs are watched
  std::string launcher = "torchrun";                    // the torchrun (or python) whose python starts the scripts
  std::optional<std::string> log_dir;                   // "/dev/null": no directories
  std::string log_dir_origin;                           // the flag or variable that gave it
  StdStreams redirects;
  StdStreams tee;
  std::string log_line_prefix_template;
  std::vector<int> local_ranks_filter;  // empty: all
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  std::string numa_binding;                                              // empty, node, socket, exclusive, core-complex
  std::vector<int> signals_to_handle;                                    // default TERM, INT, HUP, QUIT
  std::string signals_to_handle_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // exported as TORCHELASTIC_SIGNALS_TO_HANDLE
  Duration shutdown_timeout = std::chrono::seconds(30);
  // `muster launch` (torch.distributed.launch): add --local-rank=N as the script's first argument unless --use-env.
  bool legacy_launch = false;
  bool use_env = false;
  // Muster's own.
  Wire wire = Wire::kTorch;
  std::vector<int> signals_to_forward;  // only passed on to the workers
  std::string termination_log;          // empty: none
  std::string node_check;               // empty: none; node_check.h
  Duration node_check_timeout = std::chrono::seconds(60);
  std::string nodes_file;    // empty: none
  std::string preempt_file;  // or a URL; empty: none
  Duration preempt_interval = std::chrono::seconds(5);
  HangOptions hang;  // off unless asked for
  HttpListen http;
  bool serve_rsh = false;  // run no command, serve the remote shell
  // Where; nullopt: every address, only with credentials. No host: every address. kNoPort: the port of rsh_place.h.
  std::optional<Endpoint> rsh_listen;
  std::string rsh_listen_origin = "--serve-rsh";
  int nodes_on_this_machine = 0;  // 0: off
  std::string node_name;          // MUSTER_NODE; empty: chosen by the agent
  // Wired as jax or xgboost: the framework's variables for each worker, by local rank.
  std::vector<std::map<std::string, std::string>> framework_env;
  int tracker_ports = 1;  // XGBoost's tracker uses so many ports in turn, one per round
  log::Options log;

  std::string script;  // the positional "training_script"
  std::vector<std::string> script_args;
  std::vector<std::string> warnings;  // logged once at the start
};

}  // namespace muster::agent
