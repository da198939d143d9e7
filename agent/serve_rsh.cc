// SPDX-License-Identifier: Apache-2.0
#include "agent/serve_rsh.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "agent/flags/early_signals.h"
#include "agent/flags/rsh_place.h"
#include "agent/flags/service_links.h"
#include "agent/mpi_host_files.h"
#include "agent/preempt_notice.h"
#include "agent/start_check.h"
#include "agent/termination_report.h"
#include "agent/this_node.h"
#include "agent/watch_port.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/oom_counter.h"
#include "launcher/process_table.h"
#include "rsh/server.h"

namespace muster::agent {
namespace {

class Worker {
 public:
  explicit Worker(const RunOptions& options) : options_(options), self_(ThisNode(options)) {}

  int Run();
  JobEnd end(int code) const {
    return {.exit_code = code, .reason = reason_, .exit_class = exit_class_, .node = self_.name, .host = self_.host};
  }

 private:
  Status Begin();
  StatusOr<rsh::Server::Options> Listening();
  void AwaitSignal();
  void OnSignal(int signal);
  void End(int code, int signal, const std::string& reason);

  const RunOptions& options_;
  const rendezvous::Node self_;
  boost::asio::io_context loop_{1};
  launcher::Reaper reaper_{loop_};
  launcher::Console console_{loop_};
  boost::asio::signal_set signals_{loop_};
  std::unique_ptr<rsh::Server> server_;
  std::unique_ptr<PreemptNotice> notice_;
  std::unique_ptr<http::Server> http_;
  const launcher::OomCounter oom_;
  const std::optional<int64_t> oom_kills_ = oom_.Read();  // at the start
  bool ending_ = false;
  bool noticed_ = false;  // the preemption notice came; the pod's SIGTERM is still to come
  int code_ = 0;
  std::string reason_;
  std::optional<ExitClass> exit_class_;  // from the launcher's verdict
};

int Worker::Run() {
  signal(SIGPIPE, SIG_IGN);
  console_.RouteLog();
  if (Status status = Begin(); !status.ok()) {
    reason_ = Message(status);
    log::Error(reason_);
    return RefusalExitCode(status);
  }
  loop_.run();
  // Kills daemons of sessions that ended long ago.
  for (pid_t pid : launcher::OwnChildren()) kill(pid, SIGKILL);
  return code_;
}

Status Worker::Begin() {
  for (int signal : AddSignals(signals_, options_.signals.to_handle)) {
    log::Warning(fmt::format("--signals-to-handle: {} cannot be handled", SignalName(signal)));
  }
  AwaitSignal();
  ReleaseSignals(options_.signals.to_handle);
  if (!options_.watched.preempt_file.empty()) {
    auto noticed = [this](const std::string& what) {
      if (ending_) return;  // the signal has come already
      noticed_ = true;
      End(kExitStopped, SIGTERM, "preempted: " + what);
    };
    MUSTER_ASSIGN_OR_RETURN(notice_, PreemptNotice::Await(loop_, options_.watched.preempt_file,
                                                          options_.watched.preempt_interval, noticed));
  }
  MUSTER_ASSIGN_OR_RETURN(rsh::Server::Options serving, Listening());
  rsh::Server::Events events;
  events.verdict = [this](const rsh::Verdict& verdict) {
    if (!ending_) exit_class_ = verdict.exit_class;
    End(verdict.exit_code, SIGTERM, kVerdictReason + verdict.reason);
  };
  events.say = [](const std::string& text) { log::Info(text); };
  const std::string host = serving.host.empty() ? "every address" : serving.host;
  auto server = rsh::Server::Serve(loop_, reaper_, console_, std::move(serving), std::move(events));
  if (!server.ok()) return Annotate(server.status(), options_.rsh.listen_origin);
  server_ = *std::move(server);
  log::Info(fmt::format("serving the remote shell on {}, port {}", host, server_->port()));
  MUSTER_ASSIGN_OR_RETURN(http_, WatchServer(loop_, options_.http, nullptr));
  return absl::OkStatus();
}

StatusOr<rsh::Server::Options> Worker::Listening() {
  Environment environment = WithoutLinks(Environment::OfProcess());
  MUSTER_ASSIGN_OR_RETURN(RshPlace place, ReadRshPlace(environment));
  rsh::Server::Options serving;
  MUSTER_ASSIGN_OR_RETURN(serving.credentials, net::ReadCredentials(place.credentials));
  serving.port = place.port;
  serving.grace = options_.signals.shutdown_timeout;
  MUSTER_ASSIGN_OR_RETURN(Variables told, MpiVariables(environment, MpiWorkerPlace()));
  // Not for the commands: with the job's hosts a `muster exec` among them would take itself for the launcher.
  environment.Unset("MUSTER_MPI_HOSTS");
  for (const auto& [name, value] : told) environment.Set(name, value);
  serving.environment = environment.entries();
  const bool open = serving.credentials.token.empty() && !serving.credentials.tls();
  if (options_.rsh.listen) {
    serving.host = options_.rsh.listen->host;
    if (options_.rsh.listen->port != kNoPort) serving.port = options_.rsh.listen->port;
    if (open) {
      log::Warning(
          fmt::format("no token and no certificates: whoever reaches {} can run commands here; give every pod the same "
                      "MUSTER_TOKEN_FILE",
                      serving.host.empty() ? fmt::format("port {} of this machine", serving.port)
                                           : JoinHostPort(serving.host, serving.port)));
    }
  } else if (open) {
    return absl::InvalidArgumentError(
        "--serve-rsh would let everybody run commands here: give every pod the same MUSTER_TOKEN_FILE (or "
        "MUSTER_TLS_CERT, MUSTER_TLS_KEY and MUSTER_TLS_CA), or name the address that may be open with --rsh-listen");
  }
  return serving;
}

void Worker::AwaitSignal() {
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    AwaitSignal();
    OnSignal(signal);
  });
}

void Worker::OnSignal(int signal) {
  if (ending_ && noticed_) {
    noticed_ = false;  // the pod's SIGTERM, which the notice announced
    return;
  }
  const std::string name = SignalName(signal);
  if (ending_) {
    log::Warning(fmt::format("{} again: commands that are left get SIGKILL", name));
    return server_->Stop(SIGKILL, Duration::zero(), nullptr);
  }
  End(128 + signal, signal, signal == SIGTERM ? "preempted: " + name : "stopped by " + name);
}

void Worker::End(int code, int signal, const std::string& reason) {
  if (std::exchange(ending_, true)) return;
  code_ = code;
  reason_ = reason;
  // The ranks are children of mpirun's daemon: this process does not see them die and reads the OOM counter.
  if (auto now = oom_.Read(); now && oom_kills_ && *now > *oom_kills_) {
    reason_ += fmt::format("; {} killed here: out of memory", Counted(*now - *oom_kills_, "command"));
  }
  log::Info(fmt::format("{}; ending with exit code {}: {} get {} and up to {} s", reason_, code,
                        Counted(server_->sessions(), "command"), SignalName(signal),
                        std::chrono::duration_cast<std::chrono::seconds>(options_.signals.shutdown_timeout).count()));
  server_->Stop(signal, options_.signals.shutdown_timeout, [this] { loop_.stop(); });
}

}  // namespace

int ServeRsh(const RunOptions& options) {
  for (const std::string& warning : options.warnings) log::Warning(warning);
  ForgetTerminationMessage(options.termination_log);
  Worker worker(options);
  int code = worker.Run();
  LeaveTerminationMessage(worker.end(code), options);
  return code;
}

}  // namespace muster::agent
