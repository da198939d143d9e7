// SPDX-License-Identifier: Apache-2.0
// What `muster run`, `launch` and `exec` are asked to do: the options after flags, variables and defaults have been
// applied. Passive data; torchrun_flags.h fills it in.
#pragma once

#include <map>
#include <memory>
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

class ProgressPattern;  // progress/progress_pattern.h

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
  std::string token_file;              // of the live page; empty: everybody may see it
  std::string token_origin;            // the flag or variable that gave it
};
// The default under Kubernetes. Below the ports that the kernel gives out by itself.
inline constexpr int kHttpPortUnderKubernetes = 29480;

enum class Backend { kStatic, kC10d };
enum class Wire { kTorch, kPlain, kJax, kMpi, kXgboost };

// In groups of what is read together: a function that needs one group takes that group.
struct RunOptions {
  Wire wire = Wire::kTorch;
  // Which job this node belongs to, which node it is, and where the nodes meet.
  struct Job {
    std::string run_id;
    std::string name;               // of the Kubernetes job, or of that of `muster local`; empty: not known
    rendezvous::JobOptions shared;  // number of nodes, restarts and time-outs: the same on all nodes
    Backend backend = Backend::kStatic;
    bool standalone = false;  // --standalone, or torchrun's implicit one: a static node without endpoint
    Endpoint endpoint;        // static: also that of the store of rank 0
    std::string port_origin = "--master-port";  // static: the flag or variable that gave the port, maybe as an endpoint
    std::string rdzv_conf;                      // --rdzv-conf or PET_RDZV_CONF as given, for agents started by this one
    std::optional<bool> is_host;                // --rdzv-conf is_host
    net::CredentialFiles credentials;
    std::optional<int> node_rank;  // always known if shared.indexed; otherwise only the order of the nodes
    std::string node_name;         // MUSTER_NODE; empty: chosen by the agent
    std::string local_addr;
    int nodes_on_this_machine = 0;  // to simulate; 0: off
    bool in_cluster = false;        // this node is a pod of Kubernetes, and so are the others
  } job;
  // How many workers this node has, and what their environment depends on.
  struct Workers {
    std::string nproc_per_node = "1";               // number, auto, cpu, gpu, xpu: host_facts.h resolves it
    std::string nproc_origin = "--nproc-per-node";  // or the variable that gave it
    int nproc = 1;                                  // resolved
    std::string role = "default";
    bool virtual_local_rank = false;
    RecorderNames recorder_names = RecorderNames::kBoth;  // that the python's torch reads; set if hangs are watched
    // Wired as jax or xgboost: the framework's variables for each worker, by local rank.
    std::vector<std::map<std::string, std::string>> framework_env;
    int tracker_ports = 1;  // XGBoost's tracker uses so many ports in turn, one per round
  } workers;
  // What each worker runs.
  struct Command {
    std::string script;  // the positional "training_script"
    std::vector<std::string> script_args;
    bool module = false;
    bool no_python = false;
    bool run_path = false;
    bool local_rank_argument = false;   // `muster launch` without --use-env: --local-rank=N is the first argument
    std::string launcher = "torchrun";  // the torchrun (or python) whose python starts the scripts
    std::string numa_binding;           // empty, node, socket, exclusive, core-complex
  } command;
  // Where the workers' streams and files go.
  struct Logs {
    std::optional<std::string> dir;  // "/dev/null": no directories
    std::string dir_origin;          // the flag or variable that gave it
    StdStreams redirects;
    StdStreams tee;
    std::string line_prefix_template;
    std::vector<int> local_ranks_filter;  // empty: all
    std::vector<std::string> duplicate_stdout_filters;
    std::vector<std::string> duplicate_stderr_filters;
    // The folder that the user named; empty: none.
    std::string Folder() const { return dir == "/dev/null" ? "" : dir.value_or(""); }
  } logs;
  // Which signals end this node or go to its workers, and how long the workers then have.
  struct Signals {
    std::vector<int> to_handle;                                    // default TERM, INT, HUP, QUIT
    std::string to_handle_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";  // exported as TORCHELASTIC_SIGNALS_TO_HANDLE
    std::vector<int> to_forward;                                   // only passed on to the workers
    Duration shutdown_timeout = std::chrono::seconds(30);
  } signals;
  // The command that tells whether this node is fit (node_check.h).
  struct Check {
    std::string command;  // empty: none
    Duration timeout = std::chrono::seconds(60);
  } check;
  // Files that tell this node of changes while the job runs.
  struct Watched {
    std::string nodes_file;    // empty: none
    std::string preempt_file;  // or a URL; empty: none
    Duration preempt_interval = std::chrono::seconds(5);
  } watched;
  HangOptions hang;  // off unless asked for
  // Python processes that wait, with their imports done, to become the workers of the next round (standby/plan.h).
  struct Standby {
    bool wanted = false;                        // --standby-workers auto
    Duration delay = std::chrono::seconds(10);  // after the start of a round's workers
    std::vector<std::string> imports;           // empty: learned from a worker
  } standby;
  // How far the training is, by what the workers write (progress/progress_reader.h).
  struct Progress {
    bool read = true;                                // --progress auto
    std::shared_ptr<const ProgressPattern> pattern;  // null: none
    std::string checkpoint_dir;                      // where checkpoints appear; empty: not known
  } progress;
  HttpListen http;
  // The remote shell (serve_rsh.h), served in place of a command.
  struct Rsh {
    bool serve = false;
    // Where; nullopt: every address, only with credentials. No host: every address. kNoPort: the port of rsh_place.h.
    std::optional<Endpoint> listen;
    std::string listen_origin = "--serve-rsh";
  } rsh;
  log::Options log;
  std::string termination_log;        // empty: none
  std::vector<std::string> warnings;  // logged once at the start
};

}  // namespace muster::agent
