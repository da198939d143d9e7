// SPDX-License-Identifier: Apache-2.0
// The wiring of a command as the user wrote it.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/flags/inner_environment.h"
#include "agent/flags/pod_facts.h"
#include "agent/flags/service_links.h"
#include "agent/inner_status.h"
#include "agent/installation.h"
#include "agent/mpi_launcher.h"
#include "agent/wiring.h"
#include "agent/workers/torch_env.h"
#include "base/environment.h"
#include "base/inherited.h"
#include "base/termination_message.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// JAX catches SIGTERM and runs on to a step where all processes save; without one of them that step never comes.
constexpr auto kJaxGrace = std::chrono::seconds(5);

constexpr auto kInnerMargin = std::chrono::seconds(2);
constexpr std::string_view kTerminationLogVariable = "MUSTER_TERMINATION_LOG";

bool SameFile(int one, int other) {
  struct stat a {
  }, b{};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// A run inside the command writes to the same pod's termination message. The default path needs no variable.
void SetTerminationLog(const std::string& path, Environment* environment) {
  if (path == environment->Get(kTerminationLogVariable).value_or(kTerminationLog)) return;
  if (path.find(' ') == std::string::npos) return PutForInside(kTerminationLogVariable, path, environment);
  environment->Set(kTerminationLogVariable, path);
}

// `variables`: those of the framework.
Environment PlainEnvironment(const RunOptions& options, const Variables& variables) {
  Environment environment = WithoutLinks(Environment::OfProcess());
  for (const auto& [name, value] : variables) environment.Set(name, value);
  auto lacks = [&](std::string_view name) { return !environment.Get(name); };
  if (std::string torchrun = InstalledLink("torchrun"); !torchrun.empty()) {
    std::string folder = torchrun.substr(0, torchrun.rfind('/'));
    std::string path = environment.Get("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
    environment.Set("PATH", fmt::format("{}:{}", folder, path));
  }
  if (options.http.on) {  // the port is this agent's
    PutForInside("MUSTER_HTTP_PORT", "off", &environment);
    if (const std::string& file = InnerStatusFile(); !file.empty()) environment.Set(kStatusFileVariable, file);
  }
  if (options.wire != Wire::kPlain) environment.Unset(kStatusFileVariable);  // it is this agent's
  SetTerminationLog(options.termination_log, &environment);
  if (lacks("MUSTER_RESTART_POLICY")) PutForInside("MUSTER_RESTART_POLICY", "exit-code", &environment);
  if (lacks("TORCH_ELASTIC_SHUTDOWN_TIMEOUT") && options.signals.shutdown_timeout > 2 * kInnerMargin) {
    auto inner = std::chrono::duration_cast<std::chrono::seconds>(options.signals.shutdown_timeout - kInnerMargin);
    environment.Set("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", fmt::format("{}", inner.count()));
  }
  return environment;
}

}  // namespace

Wiring PlainWiring(const RunOptions& options) {
  Wiring wiring;
  const bool terminal = isatty(STDIN_FILENO) == 1;
  auto mpi = std::make_shared<std::unique_ptr<MpiLauncher>>();
  if (options.wire == Wire::kMpi) {
    wiring.begin = [mpi](boost::asio::io_context& loop, const std::function<void(int, const std::string&)>& failed) {
      *mpi = std::make_unique<MpiLauncher>(
          loop, [failed](const RshFailure& failure) { failed(failure.exit_code, failure.reason); });
    };
    wiring.end = [&options, mpi](int exit_code, const std::string& reason, std::function<void()> done) {
      (*mpi)->End(exit_code, Classify(exit_code, options.job.shared.overrides), reason, std::move(done));
    };
  }
  wiring.workers = [&options, terminal, mpi](const rendezvous::Assignment& assignment,
                                             const AttemptPaths& paths) -> StatusOr<std::vector<launcher::WorkerSpec>> {
    std::vector<launcher::WorkerSpec> specs;
    const bool untouched = isatty(STDERR_FILENO) == 1 || SameFile(STDOUT_FILENO, STDERR_FILENO);
    Variables told;
    if (*mpi != nullptr) {  // read again for each attempt: a mounted host file follows its ConfigMap
      MUSTER_ASSIGN_OR_RETURN(told, (*mpi)->NewAttempt(Environment::OfProcess(), options.logs.Folder()));
    }
    for (int local_rank = 0; local_rank < options.workers.nproc; ++local_rank) {
      launcher::WorkerSpec spec;
      spec.local_rank = local_rank;
      spec.argv.push_back(options.command.script);
      spec.argv.insert(spec.argv.end(), options.command.script_args.begin(), options.command.script_args.end());
      if (static_cast<size_t>(local_rank) < options.workers.framework_env.size())
        told = options.workers.framework_env[static_cast<size_t>(local_rank)];
      MoveTracker(assignment.id.number, options.workers.tracker_ports, &told);
      Environment environment = PlainEnvironment(options, told);
      if (std::string beats = paths.HeartbeatFile(local_rank);
          (options.hang.step_timeout || options.job.shared.no_progress_limit > 0) && !beats.empty()) {
        environment.Set("MUSTER_HEARTBEAT_FILE", beats);
      }
      spec.output = WorkerOutput(options, assignment, local_rank, paths, {.err = untouched});
      spec.kept = InheritedDescriptors();
      spec.own_session = !terminal;
      spec.foreground = terminal && options.workers.nproc == 1;
      spec.error_file = environment.Get("TORCHELASTIC_ERROR_FILE").value_or("");
      spec.environment = environment.entries();
      specs.push_back(std::move(spec));
    }
    return specs;
  };
  wiring.summary = [](const rendezvous::Verdict&, const std::string&) { return std::string(); };
  if (options.wire == Wire::kJax) wiring.grace = kJaxGrace;
  wiring.store = false;
  // mpirun that gets a signal ends with a number of its own: Open MPI with 1, MPICH with 15. In a job of several nodes
  // the others wait for the pod that takes the place of this one: a 0 would say that none is needed.
  wiring.own_code = options.wire != Wire::kMpi && options.job.shared.max_nodes == 1;
  // Processes that such a command leaves behind delay the pod's end no longer than after a signal.
  if (wiring.own_code) wiring.grace = std::min(wiring.grace, options.signals.shutdown_timeout);
  return wiring;
}

}  // namespace muster::agent
