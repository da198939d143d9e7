// SPDX-License-Identifier: Apache-2.0
#include "agent/node_agent.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <filesystem>

#include "agent/attempt.h"
#include "agent/endpoint_name.h"
#include "agent/error_file.h"
#include "agent/flags/early_signals.h"
#include "agent/hang_guard.h"
#include "agent/live/live_view.h"
#include "agent/log_place.h"
#include "agent/node_check.h"
#include "agent/nodes_file.h"
#include "agent/preempt_notice.h"
#include "agent/rendezvous_place.h"
#include "agent/round_store.h"
#include "agent/standby/standbys.h"
#include "agent/start_check.h"
#include "agent/telemetry_teller.h"
#include "agent/termination_report.h"
#include "agent/this_node.h"
#include "agent/watch_port.h"
#include "agent/wiring.h"
#include "agent/workers/torch_env.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/folder_watch.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/reaper.h"
#include "rendezvous/attendant.h"

namespace muster::agent {
namespace {

using rendezvous::Assignment;
using rendezvous::Verdict;

// How long the agent waits at its end for the coordinator and for the console.
constexpr auto kFarewell = std::chrono::seconds(2);
// Descriptors that connections to this node's ports leave free: for the agent's own files; for starting, logging and
// watching each worker.
constexpr int kOwnDescriptors = 16, kDescriptorsPerWorker = 12;

}  // namespace

class NodeAgent::Impl {
 public:
  explicit Impl(RunOptions options)
      : options_(std::move(options)),
        wiring_(options_.wire == Wire::kTorch ? TorchWiring(options_) : PlainWiring(options_)),
        reaper_(loop_),
        console_(loop_),
        check_({loop_, reaper_, console_, options_}, [this](const std::string& reason) { Unhealthy(reason); }),
        signals_(loop_),
        forwarded_(loop_),
        store_(loop_, options_, KeepDescriptors(),
               [this](const store::StoreServer& store) { watch_.StoreGoes(store); }),
        guard_(loop_, reaper_, options_.hang,
               {.hangs = [this](std::vector<WorkerFailure> hangs) { WorkersFailed(std::move(hangs)); },
                .silent = [this](bool silent) { attendant_->WorkersSilent(silent); }}),
        standbys_(loop_, reaper_, options_,
                  {.learned = [this](const std::string& imports) { ShareImports(imports); },
                   .preparing = [this](bool preparing) { attendant_->Prepares(preparing); }}),
        teller_(loop_, reaper_,
                {.facts = [this] { return Facts(); },
                 .tell = [this](const rendezvous::Telemetry& facts) { attendant_->Tell(facts); }}),
        watch_(loop_, options_, Sources()) {
    cold_workers_ = std::move(wiring_.workers);
    wiring_.workers = [this](const Assignment& assignment,
                             const AttemptPaths& paths) -> StatusOr<std::vector<launcher::WorkerSpec>> {
      MUSTER_ASSIGN_OR_RETURN(std::vector<launcher::WorkerSpec> workers, cold_workers_(assignment, paths));
      standbys_.Prepare(&workers);
      return workers;
    };
  }

  int Run();
  // Call these after Run() has returned `exit_code`. end() is for the error file and the termination message.
  JobEnd end(int exit_code);
  void LeaveLogs(int exit_code) const { LeaveLogPlace(logs_, exit_code == 0); }
  const RunOptions& options() const { return options_; }

 private:
  WatchSources Sources();
  rendezvous::Telemetry Facts();
  TimeSpent Spent() { return watch_.TimeOfRun().spent; }
  // --- start ---
  void FindPlace();
  void Join(RendezvousPlace place);
  Status WatchNodesFile();
  Status WatchCheckpoints();
  void RequestWantedNodes();
  KeptDescriptors KeepDescriptors() const;
  StatusOr<int> FreshStore();  // its port; 0: this wiring has none
  // --- what the rendezvous says ---
  void StartRound(const Assignment& assignment);
  void StopRound(const rendezvous::attendance::StopRound& stop);
  void End(const Verdict& verdict);
  void SayHowItEnded(const Verdict& verdict);
  void SayWhereTheTimeWent();
  void SayHowItLeft(int code);
  void SayEnd(decltype(&log::Info) say, const std::string& reason, int code) const;
  // --- what the workers do ---
  void WorkersFailed(std::vector<WorkerFailure> failures);
  void OfThisNode(WorkerFailure& failure) const;
  void RoundFailed(int exit_code, const std::string& reason);
  // Of a hang that has just been found: the last sign of progress, to about an eighth of the limit.
  TimePoint HangsSince() const;
  void WorkersSucceeded();
  void WorkersGone();
  // `limit`: of the grace; evidence is not waited for then.
  void StopWorkers(rendezvous::RoundCause cause, bool keep_evidence, std::optional<Duration> limit = std::nullopt);
  void ReadyAgain();
  void Ready();
  void MakeStandbys();
  void ShareImports(const std::string& imports);
  // --- signals and the end ---
  void AwaitSignal();
  void AwaitForwarded();
  void OnSignal(int signal);
  void OnNotice(const std::string& what);
  void Go(int signal, rendezvous::LeaveCause cause, const std::string& reason);
  void Unhealthy(const std::string& reason);
  int GoneCode() const;
  int Refused(const Status& status);
  void FinishWith(int code);
  void TakeLeave();

  RunOptions options_;
  boost::asio::io_context loop_{1};
  Wiring wiring_;
  decltype(Wiring::workers) cold_workers_;  // as wiring_.workers, but none begins in a standby
  launcher::Reaper reaper_;
  launcher::Console console_;
  NodeCheck check_;
  boost::asio::signal_set signals_;    // that make this node leave
  boost::asio::signal_set forwarded_;  // for the workers only
  net::Credentials credentials_;
  RendezvousPlace place_;
  std::unique_ptr<rendezvous::Attendant> attendant_;
  RoundStore store_;
  rendezvous::Node self_;
  LogPlace logs_;
  std::unique_ptr<Attempt> attempt_;
  HangGuard guard_;  // of `attempt_`
  standby::Standbys standbys_;
  bool attempt_gone_ = false;  // no process of `attempt_` is left
  std::string stop_reason_;    // of the attempt being stopped
  std::optional<Verdict> verdict_;
  std::unique_ptr<PreemptNotice> notice_;
  std::unique_ptr<NodesFile> nodes_file_;
  std::unique_ptr<FolderWatch> checkpoints_;
  bool watches_checkpoints_ = false;
  std::optional<int> wanted_nodes_;  // what nodes_file_ says
  int going_signal_ = 0;             // this node was told to leave by this signal
  bool unhealthy_ = false;           // leaves because its check failed
  bool noticed_ = false;             // the preemption notice came; the pod's SIGTERM is still to come
  bool finishing_ = false;
  int exit_code_ = 0;
  std::string reason_;  // why the agent ends, if no verdict says so
  std::unique_ptr<EndpointName> endpoint_name_;
  TelemetryTeller teller_;  // begins when `attendant_` is there
  WatchPort watch_;         // reads the members above
};

WatchSources NodeAgent::Impl::Sources() {
  WatchSources sources;
  sources.workers_running = [this] { return attempt_ ? attempt_->workers_running() : 0; };
  sources.standbys_ready = [this] { return standbys_.ready(); };
  sources.standby_workers = [this] { return attempt_ ? std::optional(attempt_->standby_workers()) : std::nullopt; };
  sources.first_output_seconds = [this] { return attempt_ ? attempt_->FirstOutputSeconds() : std::nullopt; };
  sources.training = [this] { return attempt_ ? attempt_->Training() : std::nullopt; };
  sources.store = [this] { return store_.server(); };
  sources.attended = [this] {
    std::optional<std::string> address = attendant_ ? attendant_->attended() : std::nullopt;
    return Attended{address.has_value(), address.value_or(""), place_.coordinator.get(), &credentials_};
  };
  return sources;
}

// The curve comes from one node.
rendezvous::Telemetry NodeAgent::Impl::Facts() {
  rendezvous::Telemetry facts = attempt_ ? attempt_->Telemetry() : rendezvous::Telemetry{};
  if (attempt_ && attempt_->assignment().node_rank != 0) facts.curve.clear();
  const TimeSpent spent = Spent();
  for (size_t use = 0; use < kTimeUses; ++use) {
    facts.seconds[std::string(TimeUseName(static_cast<TimeUse>(use)))] =
        std::chrono::duration<double>(spent[use]).count();
  }
  return facts;
}

int NodeAgent::Impl::Run() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);  // we write to a terminal, and move its foreground, from the background
  signal(SIGXFSZ, SIG_IGN);  // beyond RLIMIT_FSIZE write() fails instead
  console_.RouteLog();
  watch_.ledger().Begins(MonotonicClock::now());
  for (const std::string& warning : options_.warnings) log::Warning(warning);
  if (auto warning = OmpWarning(Environment::OfProcess(), options_)) {
    if (options_.log.format == log::Format::kJson) {
      log::Warning(*warning);
    } else {
      console_.Write(launcher::Console::Stream::kErr, BetweenStars(*warning));
    }
  }
  self_ = ThisNode(options_);
  logs_ = FindLogPlace(options_);
  if (Status status = watch_.Open(); !status.ok()) return Refused(status);
  for (int signal : AddSignals(signals_, options_.signals.to_handle)) {
    log::Warning(fmt::format("--signals-to-handle: {} cannot be handled", SignalName(signal)));
  }
  AwaitSignal();
  AddSignals(forwarded_, options_.signals.to_forward);
  AwaitForwarded();
  std::vector<int> heard = options_.signals.to_handle;
  heard.insert(heard.end(), options_.signals.to_forward.begin(), options_.signals.to_forward.end());
  ReleaseSignals(heard);
  if (!options_.watched.preempt_file.empty()) {
    auto notice = PreemptNotice::Await(loop_, options_.watched.preempt_file, options_.watched.preempt_interval,
                                       [this](const std::string& what) { OnNotice(what); });
    if (!notice.ok()) return Refused(notice.status());
    notice_ = *std::move(notice);
  }
  auto credentials = net::ReadCredentials(options_.job.credentials);
  if (!credentials.ok()) return Refused(credentials.status());
  credentials_ = *std::move(credentials);
  check_.Run([this] { FindPlace(); });
  loop_.run();
  console_.Drain(kFarewell);
  return exit_code_;
}

void NodeAgent::Impl::FindPlace() {
  if (wiring_.begin) wiring_.begin(loop_, [this](int code, const std::string& reason) { RoundFailed(code, reason); });
  FindRendezvousPlace(loop_, options_.job, credentials_, self_.name, KeepDescriptors(),
                      [this](StatusOr<RendezvousPlace> place) {
                        if (!place.ok()) return FinishWith(Refused(place.status()));
                        Join(*std::move(place));
                      });
}

// While workers run, they have their descriptors.
KeptDescriptors NodeAgent::Impl::KeepDescriptors() const {
  return [this] {
    return kOwnDescriptors + (attempt_ && !attempt_gone_ ? 0 : kDescriptorsPerWorker * options_.workers.nproc);
  };
}

void NodeAgent::Impl::Join(RendezvousPlace place) {
  place_ = std::move(place);
  self_.control_address = place_.control_address;
  self_.measured = check_.measured();
  bool fixed = options_.job.backend == Backend::kStatic && !options_.job.standalone;
  self_.store_host = fixed && options_.job.node_rank == 0 ? options_.job.endpoint.host : place_.address;
  auto port = FreshStore();
  if (!port.ok()) return FinishWith(Refused(port.status()));
  self_.store_port = *port;
  watch_.ledger().NodeIs(self_);

  rendezvous::AttendantOptions attendant{.run_id = options_.job.run_id,
                                         .endpoint = place_.endpoint,
                                         .self = self_,
                                         .options = options_.job.shared,
                                         .credentials = credentials_,
                                         .in_pods = options_.job.in_cluster};
  rendezvous::AttendantEvents events;
  events.start = [this](const Assignment& assignment) { StartRound(assignment); };
  events.stop = [this](const rendezvous::attendance::StopRound& stop) { StopRound(stop); };
  events.end = [this](const Verdict& verdict) { End(verdict); };
  events.say = [](const std::string& text) { log::Info(text); };
  if (place_.endpoint_is != RendezvousPlace::Endpoint::kElsewhere) {
    events.host_endpoint = [this] {
      const bool taken = TakeEndpoint(loop_, options_.job, credentials_, &place_);
      RequestWantedNodes();
      return taken;
    };
  }
  events.all_silent = [this] { guard_.AllSilent(); };
  events.prepare = [this] { standbys_.Hurry(); };
  events.telemetry_wanted = [this] { teller_.Want(); };
  events.imports = [this](const std::string& names) { standbys_.Hear(names); };
  attendant_ =
      std::make_unique<rendezvous::Attendant>(loop_, std::move(attendant), place_.coordinator.get(), std::move(events));
  if (IsFoundByItsName(options_.job, place_)) {
    endpoint_name_ = std::make_unique<EndpointName>(
        loop_, options_.job.endpoint.host, [this](const std::string& why_not) { place_.coordinator->Hide(why_not); });
  }
  if (Status status = WatchNodesFile(); !status.ok()) return FinishWith(Refused(status));
  if (Status status = WatchCheckpoints(); !status.ok()) return FinishWith(Refused(status));
  if (finishing_) return;  // the file says that the run is over
  MakeStandbys();
  attendant_->Begin();
}

// A number that is in the file already counts from the first Hello on.
Status NodeAgent::Impl::WatchNodesFile() {
  if (options_.watched.nodes_file.empty()) return absl::OkStatus();
  if (auto nodes = ReadNodesFile(options_.watched.nodes_file); nodes.ok()) wanted_nodes_ = *nodes;
  RequestWantedNodes();
  MUSTER_ASSIGN_OR_RETURN(nodes_file_, NodesFile::Watch(loop_, options_.watched.nodes_file, [this](int nodes) {
                            if (std::exchange(wanted_nodes_, nodes) != nodes) RequestWantedNodes();
                          }));
  return absl::OkStatus();
}

// The first call only says that the watch has begun.
Status NodeAgent::Impl::WatchCheckpoints() {
  const std::string& folder = options_.progress.checkpoint_dir;
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  MUSTER_ASSIGN_OR_RETURN(
      checkpoints_, FolderWatch::Begin(loop_, folder + "/any", fmt::format("--checkpoint-dir {}", folder), [this] {
        if (!std::exchange(watches_checkpoints_, true)) return;
        watch_.ledger().CheckpointSaved(MonotonicClock::now());
      }));
  return absl::OkStatus();
}

void NodeAgent::Impl::RequestWantedNodes() {
  if (wanted_nodes_ == 0) attendant_->RunIsOver();
  if (wanted_nodes_ && place_.coordinator) place_.coordinator->Want(*wanted_nodes_);
}

StatusOr<int> NodeAgent::Impl::FreshStore() {
  if (!wiring_.store) return 0;
  return store_.Renew(place_, attempt_ && attempt_->assignment().node_rank == 0);
}

void NodeAgent::Impl::StartRound(const Assignment& assignment) {
  if (going_signal_ != 0 || verdict_) return;
  ForgetTerminationMessage(options_.termination_log);  // written by a run inside the last round's command
  watch_.ledger().RoundArrived(assignment, MonotonicClock::now());
  if (options_.job.shared.max_nodes > 1 || assignment.id.number > 0) {
    log::Info(fmt::format("round {}: this is node {} of {}, {} of {}; {}", assignment.id.number, assignment.node_rank,
                          assignment.node_count, Counted(assignment.seat.node.slots, "worker"), assignment.world_size,
                          assignment.reason));
  }
  AttemptEvents events{.failed = [this](std::vector<WorkerFailure> failures) { WorkersFailed(std::move(failures)); },
                       .succeeded = [this] { WorkersSucceeded(); },
                       .gone = [this] { WorkersGone(); },
                       .first_output = [this] { watch_.ledger().FirstOutput(MonotonicClock::now()); },
                       .progress = [this](double to) { watch_.ledger().Progress(to, MonotonicClock::now()); },
                       .spent = [this] { return Spent(); }};
  guard_.End();
  attempt_ =
      std::make_unique<Attempt>(loop_, reaper_, console_, options_, wiring_, assignment, logs_.root, std::move(events));
  stop_reason_.clear();
  attempt_gone_ = false;
  check_.RoundBegins();
  if (Status status = attempt_->Start(); !status.ok()) {
    WorkersFailed({attempt_->StartFailure(status)});  // the failure's message says why
    return;
  }
  const int standbys = standbys_.WorkersRun();
  watch_.ledger().WorkersRun(MonotonicClock::now(), standbys);
  if (!attempt_->SeesStdout()) watch_.ledger().FirstOutput(MonotonicClock::now());
  if (standbys > 0) {
    attempt_->BeganInStandby(standbys);
    log::Info(fmt::format("{} of {} began in a standby", standbys, Counted(assignment.seat.node.slots, "worker")));
  }
  guard_.Begin(*attempt_);
}

void NodeAgent::Impl::StopRound(const rendezvous::attendance::StopRound& stop) {
  if (!attempt_ || attempt_->assignment().id != stop.round) return;
  const bool stops = !stop_reason_.empty();
  if (attempt_gone_ && stops) return;  // that no worker is left is being said
  watch_.ledger().StopCame(stop.reason, MonotonicClock::now(),
                           stop.keep_evidence ? std::optional(HangsSince()) : std::nullopt);
  if (!stops) stop_reason_ = stop.reason;
  if (attempt_gone_) return ReadyAgain();  // the workers had succeeded, but the round is repeated
  StopWorkers(stop.cause, stop.keep_evidence, stop.grace);
}

void NodeAgent::Impl::StopWorkers(rendezvous::RoundCause cause, bool keep_evidence, std::optional<Duration> limit) {
  standbys_.RoundEnds();
  if (guard_.gathering() && !limit) return;  // the workers are stopped after it
  guard_.End();
  if (cause == rendezvous::RoundCause::kFailure) attempt_->NoteErrors();
  const Duration usual = cause == rendezvous::RoundCause::kPreemption ? kRestartGrace : wiring_.grace;
  const Duration grace = limit ? std::min(*limit, wiring_.grace) : usual;
  if (!keep_evidence || !attempt_->running()) return attempt_->Stop(SIGTERM, grace, stop_reason_);
  attempt_->Hold(stop_reason_);
  guard_.Gather(*attempt_, [this, grace] { attempt_->Stop(SIGTERM, grace, stop_reason_); });
}

TimePoint NodeAgent::Impl::HangsSince() const {
  const auto& [steps, output, signal] = options_.hang;
  const Duration limit = steps && output ? std::min(*steps, *output) : steps.value_or(output.value_or(Duration{}));
  return MonotonicClock::now() - limit;
}

void NodeAgent::Impl::WorkersFailed(std::vector<WorkerFailure> failures) {
  if (!attempt_) return;
  check_.WorkersFailed(failures);
  for (WorkerFailure& failure : failures) OfThisNode(failure);
  const WorkerFailure& first = failures.front();
  const bool hang = first.exit_code == kExitHang && first.signal == 0;
  watch_.ledger().WorkersFailed(failures, MonotonicClock::now(), hang ? std::optional(HangsSince()) : std::nullopt);
  const std::string who =
      first.rank < 0 ? WhoFailed(first) : fmt::format("rank {} (local rank {})", first.rank, first.local_rank);
  stop_reason_ = fmt::format("{}: {}", who, DescribeEnd(first.exit_code, first.signal));
  if (hang && !first.message.empty()) stop_reason_ += fmt::format(": {}", first.message);
  rendezvous::Report report{attempt_->assignment().id, std::move(failures), attempt_->lived(), attempt_->HighestStep()};
  if (going_signal_ == 0) attendant_->WorkersEnded(std::move(report));
  StopWorkers(rendezvous::RoundCause::kFailure, hang && going_signal_ == 0);
}

void NodeAgent::Impl::OfThisNode(WorkerFailure& failure) const {
  failure.node = self_.name;
  failure.host = self_.host;
  if (IsOneCommand(options_)) failure.rank = failure.local_rank = -1;
}

void NodeAgent::Impl::RoundFailed(int exit_code, const std::string& reason) {
  if (!attempt_ || !attempt_->running() || !stop_reason_.empty() || going_signal_ != 0 || verdict_) return;
  WorkerFailure failure = attempt_->Failure(exit_code, reason);
  failure.pid = 0;  // no worker has ended
  WorkersFailed({std::move(failure)});
}

void NodeAgent::Impl::WorkersSucceeded() {
  if (!attempt_) return;
  watch_.ledger().WorkersSucceeded();
  rendezvous::Report report{
      .round = attempt_->assignment().id, .lived = attempt_->lived(), .progress = attempt_->HighestStep()};
  guard_.End();
  // Ends what the workers left behind in their process groups (daemons, data loaders).
  attempt_->Stop(SIGTERM, wiring_.own_code ? wiring_.grace : kRestartGrace, "all workers succeeded");
  if (going_signal_ == 0) attendant_->WorkersEnded(std::move(report));
}

void NodeAgent::Impl::WorkersGone() {
  attempt_gone_ = true;
  guard_.End();
  attempt_->Close(stop_reason_.empty() ? "all workers succeeded" : stop_reason_);
  if (going_signal_ != 0) return FinishWith(GoneCode());
  if (verdict_) return FinishWith(verdict_->exit_code);
  if (!stop_reason_.empty()) ReadyAgain();  // else the workers succeeded: stay until the job is decided
}

void NodeAgent::Impl::ReadyAgain() {
  check_.BeforeReady([this] { Ready(); });
}

void NodeAgent::Impl::Ready() {
  auto port = FreshStore();
  if (!port.ok()) {
    log::Error(Message(port.status()));
    port = 0;
  }
  std::vector<WorkerFailure> late = attempt_ ? attempt_->LateFailures() : std::vector<WorkerFailure>();
  for (WorkerFailure& failure : late) OfThisNode(failure);
  MakeStandbys();
  attendant_->NoWorkerLeft(*port, attempt_ ? attempt_->HighestStep() : std::nullopt, std::move(late));
}

// While this node waits for a round. What comes with the round does not matter: any will do.
void NodeAgent::Impl::MakeStandbys() {
  if (!standbys_.on()) return;
  Assignment assignment;
  assignment.seat.node = self_;
  AttemptPaths paths;
  if (attempt_) {
    assignment = attempt_->assignment();
    paths = attempt_->paths();
  } else if (!logs_.root.empty()) {
    paths.folder = logs_.root + "/attempt";
    if (options_.hang.on()) paths.flight_recorder = paths.folder;
  }
  if (auto workers = cold_workers_(assignment, paths); workers.ok()) standbys_.Wait(*workers);
  if (standbys_.wants_imports()) attendant_->ShareImports("");
}

// One node of the round tells the others.
void NodeAgent::Impl::ShareImports(const std::string& imports) {
  if (attempt_->assignment().node_rank == 0 && imports.size() <= rendezvous::kMaxImports) {
    attendant_->ShareImports(imports);
  }
}

void NodeAgent::Impl::End(const Verdict& verdict) {
  // A node that leaves ends with its own code (of the signal or of the node check), whatever becomes of the job.
  if (verdict_ || going_signal_ != 0 || unhealthy_) return;
  verdict_ = verdict;
  watch_.ledger().Decided(verdict, MonotonicClock::now());
  SayHowItEnded(verdict);
  SayWhereTheTimeWent();
  if (attempt_ && !attempt_gone_) {  // the attempt's record is written before the job's end
    if (stop_reason_.empty()) stop_reason_ = verdict.reason;
    if (guard_.gathering()) return;  // the workers are stopped after it
    guard_.End();
    attempt_->Stop(SIGTERM, options_.signals.shutdown_timeout, stop_reason_);
    return;
  }
  FinishWith(verdict.exit_code);
}

void NodeAgent::Impl::SayHowItEnded(const Verdict& verdict) {
  const auto inner = InnerRun(options_, ReadTerminationText(options_.termination_log));
  if (verdict.exit_code == 0) {
    if (inner && inner->exit_code != 0) log::Warning(HiddenFailure(*inner));
    if (verdict.reason == rendezvous::kRunIsOver) log::Info(verdict.reason);
    return;
  }
  if (inner && inner->exit_code == verdict.exit_code) return;  // the run inside has printed it
  console_.Write(launcher::Console::Stream::kErr, wiring_.summary(verdict, self_.name));
  SayEnd(log::Error, verdict.reason, verdict.exit_code);
}

// Once for the job. Of a program that tells no progress and did not restart it would say nothing new.
void NodeAgent::Impl::SayWhereTheTimeWent() {
  if (options_.wire != Wire::kTorch || !attempt_ || attempt_->assignment().node_rank != 0) return;
  if (attempt_->assignment().restart_count == 0 && !attempt_->Training()) return;
  log::Info(TimeSentence(Spent()));
}

// For a node that was told to leave.
void NodeAgent::Impl::SayHowItLeft(int code) {
  const auto inner = InnerRun(options_, ReadTerminationText(options_.termination_log));
  if (!inner || inner->exit_code != code) SayEnd(log::Info, reason_, code);  // else the run inside has said it
}

void NodeAgent::Impl::SayEnd(decltype(&log::Info) say, const std::string& reason, int code) const {
  const std::string text = fmt::format("{} (exit code {})", reason, code);
  logs_.temporary.empty() ? say(text, {}) : say(text, {{"logs", logs_.root}});
}

void NodeAgent::Impl::AwaitSignal() {
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    OnSignal(signal);
    AwaitSignal();
  });
}

void NodeAgent::Impl::AwaitForwarded() {
  if (options_.signals.to_forward.empty()) return;
  forwarded_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    if (attempt_) attempt_->Signal(signal);
    AwaitForwarded();
  });
}

void NodeAgent::Impl::OnSignal(int signal) {
  if (std::exchange(noticed_, false)) {
    log::Info(fmt::format("{}: expected since the preemption notice", SignalName(signal)));
    return;
  }
  if (going_signal_ != 0) {  // the second one kills at once
    log::Warning(fmt::format("{} again: workers that are left get SIGKILL", SignalName(signal)));
    if (!attempt_ || attempt_gone_) return FinishWith(128 + going_signal_);
    attempt_->Stop(SIGKILL, Duration::zero(), stop_reason_);
    if (!attempt_->running()) WorkersGone();  // no worker is left, only output to be written
    return;
  }
  if (signal == SIGTERM) return Go(signal, rendezvous::LeaveCause::kPreempted, "preempted: SIGTERM");
  Go(signal, rendezvous::LeaveCause::kAsked, fmt::format("stopped by {}", SignalName(signal)));
}

void NodeAgent::Impl::OnNotice(const std::string& what) {
  if (going_signal_ != 0) return;
  noticed_ = true;
  Go(SIGTERM, rendezvous::LeaveCause::kPreempted, "preempted: " + what);
}

// This node leaves: tells the coordinator first, then sends `signal` to the workers.
void NodeAgent::Impl::Go(int signal, rendezvous::LeaveCause cause, const std::string& reason) {
  if (finishing_) return;
  going_signal_ = signal;
  guard_.End();
  reason_ = reason;
  watch_.ledger().Leaves(reason);
  if (attendant_) attendant_->Leave(reason, cause);
  log::Info(fmt::format("{}: leaving, workers get {} and up to {} s{}", reason, SignalName(signal),
                        std::chrono::duration_cast<std::chrono::seconds>(options_.signals.shutdown_timeout).count(),
                        noticed_ ? "" : "; a second signal kills them"));
  if (attempt_ && !attempt_gone_) {
    stop_reason_ = reason;
    attempt_->Stop(signal, options_.signals.shutdown_timeout, reason);
    return;
  }
  if (check_.Stop(signal, options_.signals.shutdown_timeout, [=, this] { FinishWith(128 + signal); })) return;
  FinishWith(128 + signal);
}

void NodeAgent::Impl::Unhealthy(const std::string& reason) {
  if (finishing_) return;
  unhealthy_ = true;
  reason_ = reason;
  watch_.ledger().Leaves(reason);
  log::Error(fmt::format("{} (exit code {})", reason, kExitNodeUnhealthy));
  if (attendant_) attendant_->Leave(reason, rendezvous::LeaveCause::kUnhealthy);
  FinishWith(kExitNodeUnhealthy);
}

int NodeAgent::Impl::Refused(const Status& status) {
  reason_ = Message(status);
  log::Error(reason_);
  return RefusalExitCode(status);
}

JobEnd NodeAgent::Impl::end(int exit_code) {
  JobEnd end{.exit_code = exit_code, .reason = reason_, .node = self_.name, .host = self_.host, .verdict = verdict_};
  end.time = watch_.TimeOfRun();
  if (attempt_) {
    end.assignment = attempt_->assignment();
    end.training = attempt_->Training();
  }
  return end;
}

// The exit code of a node that was told to leave.
int NodeAgent::Impl::GoneCode() const {
  std::optional<int> own = wiring_.own_code && attempt_ ? attempt_->OwnExitCode() : std::nullopt;
  return own.value_or(128 + going_signal_);
}

void NodeAgent::Impl::FinishWith(int code) {
  if (finishing_) return;
  finishing_ = true;
  exit_code_ = code;
  if (going_signal_ != 0) SayHowItLeft(code);
  if (attempt_ && verdict_) {
    attempt_->JobEnded(verdict_->exit_code, verdict_->reason);
  } else if (attempt_ &&
             options_.job.shared.max_nodes == 1) {  // told to leave; for a single node that is the job's end
    attempt_->JobEnded(code, reason_);
  }
  if (wiring_.end && verdict_) {
    wiring_.end(verdict_->exit_code, verdict_->reason, [this] { TakeLeave(); });
  } else {
    TakeLeave();
  }
}

void NodeAgent::Impl::TakeLeave() {
  if (!attendant_) return loop_.stop();
  attendant_->Close(kFarewell, [this] {
    // A node that serves the rendezvous stays until the others have heard the verdict. If it was told to leave, it does
    // not stay: its peers find a successor as soon as its port refuses them.
    Duration limit = verdict_ ? Duration(kFarewell) : Duration::zero();
    place_.coordinator->Drain(
        limit, [this] { verdict_ ? watch_.Farewell(kFarewell, [this] { loop_.stop(); }) : loop_.stop(); });
  });
}

NodeAgent::NodeAgent(RunOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
NodeAgent::~NodeAgent() = default;

int NodeAgent::Run() {
  ForgetTerminationMessage(impl_->options().termination_log);  // also if the agent ends before a round begins
  int code = impl_->Run();
  impl_->LeaveLogs(code);
  const JobEnd end = impl_->end(code);
  LeaveErrorFile(end, impl_->options().wire);
  LeaveTerminationMessage(end, impl_->options());
  return code;
}

}  // namespace muster::agent
