// SPDX-License-Identifier: Apache-2.0
#include "agent/attempt.h"

#include <sys/stat.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/progress/last_line.h"
#include "agent/progress/progress_reader.h"
#include "agent/report/report_text.h"
#include "agent/start_check.h"
#include "agent/workers/log_layout.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_fs.h"
#include "base/log.h"
#include "base/peer_loss.h"
#include "base/text.h"
#include "base/version.h"

namespace muster::agent {
namespace {

constexpr int kUncaughtException = 1;  // the exit code of Python

// True if the worker chose its code, or died of its own signal. Programs that handle our signal n end with 128 + n.
bool FailedByItself(const launcher::ExitRecord& exit) {
  return exit.signal == 0 ? exit.exit_code != 0 && exit.exit_code < 128 : !launcher::IsFromOutside(exit.signal);
}

}  // namespace

class Attempt::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console, const RunOptions& options,
       const Wiring& wiring, rendezvous::Assignment assignment, const std::string& log_root, AttemptEvents events)
      : loop_(loop),
        options_(options),
        wiring_(wiring),
        log_root_(log_root),
        events_(std::move(events)),
        cause_wait_(loop),
        group_(loop, reaper, console,
               {.first_output = [this](Duration after, launcher::Console::Stream on) { OnFirstOutput(after, on); },
                .output = [this](int local_rank, launcher::Console::Stream on,
                                 std::string_view bytes) { OnOutput(local_rank, on, bytes); },
                .worker_exited = [this](const launcher::ExitRecord& exit) { OnExit(exit); },
                .all_gone = [this] { SayGone(); }}) {
    record_.run_id = options.job.run_id;
    record_.version = Version();
    record_.assignment = std::move(assignment);
    record_.start_reason = record_.assignment.reason;
    record_.started_unix_ms = UnixMillis();
    started_at_ = MonotonicClock::now();
    readers_.assign(static_cast<size_t>(options.workers.nproc), ProgressReader(options.progress.pattern));
    last_lines_.resize(readers_.size());
  }

  Status Start();
  void Stop(int signal, Duration grace, const std::string& reason);
  void Hold(const std::string& reason);
  void NoteErrors() {
    if (!stopping_) errors_before_ = group_.ErrorsSoFar();
  }
  void Close(const std::string& reason);
  void BeganInStandby(int workers) {
    record_.standby_workers = workers;
    Write();
  }
  void JobEnded(int exit_code, const std::string& reason);
  std::optional<int64_t> HighestStep() const;
  std::optional<TrainingFacts> Training();
  rendezvous::Telemetry Telemetry();
  std::vector<EvidenceTarget> EvidenceTargets() const;
  WorkerFailure HangFailure(int local_rank, const std::string& evidence);
  std::vector<WorkerFailure> LateFailures() const;
  bool Ended(int local_rank) const;
  const AttemptPaths& paths() const { return paths_; }

  launcher::WorkerGroup& group() { return group_; }
  const AttemptRecord& record() const { return record_; }
  bool sees_stdout() const { return sees_stdout_; }
  Duration lived() const { return MonotonicClock::now() - started_at_; }

 private:
  Status MakeFolder();
  void OnFirstOutput(Duration after, launcher::Console::Stream stream);
  void OnOutput(int local_rank, launcher::Console::Stream stream, std::string_view bytes);
  void OnExit(const launcher::ExitRecord& exit);
  bool MayHaveACause() const;
  void AwaitCause();
  void ReportFailures();
  std::optional<std::string> OwnError(int local_rank) const;
  void SayGone();
  void ReleaseGone();
  void NoteTraining();
  void Write();
  WorkerFailure ToFailure(const launcher::ExitRecord& exit) const;

  boost::asio::io_context& loop_;
  const RunOptions& options_;
  const Wiring& wiring_;
  std::string log_root_;
  AttemptEvents events_;
  AttemptRecord record_;
  AttemptPaths paths_;
  std::string record_path_;
  std::vector<WorkerFailure> failures_;
  bool started_ = false;   // group_ was started
  bool reported_ = false;  // `failed` or `succeeded` was called, or is posted
  bool stopping_ = false;
  bool gone_ = false;
  bool waits_ = false;     // for a cause: the failures are reported after it
  bool gone_due_ = false;  // `gone` is to be called
  boost::asio::steady_timer cause_wait_;
  std::set<int> ended_on_hold_;                           // local ranks that ended after Hold()
  std::map<int, std::string> errors_before_;              // by local rank: what NoteErrors() has found
  std::vector<std::optional<FlightRecorder>> recorders_;  // by local rank
  std::vector<ProgressReader> readers_;                   // by local rank
  std::vector<LastLine> last_lines_;                      // by local rank
  bool sees_stdout_ = false;
  int ended_well_ = 0;
  TimePoint started_at_{};
  launcher::WorkerGroup group_;  // last: its callbacks use everything above
};

// attempt_N is never overwritten: N is the round's number, or the next that is free.
Status Attempt::Impl::MakeFolder() {
  if (log_root_.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(log_root_, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot make the log folder {}", log_root_));
  int number = static_cast<int>(record_.assignment.id.number);
  for (;; ++number) {
    std::string folder = fmt::format("{}/attempt_{}", log_root_, number);
    if (mkdir(folder.c_str(), 0777) == 0) {
      paths_.folder = folder;
      break;
    }
    if (errno != EEXIST) return ErrnoStatus(errno, fmt::format("cannot make the log folder {}", folder));
  }
  record_.attempt = number;
  for (int local_rank = 0; local_rank < options_.workers.nproc; ++local_rank) {
    std::string folder = fmt::format("{}/{}", paths_.folder, local_rank);
    if (mkdir(folder.c_str(), 0777) != 0) return ErrnoStatus(errno, fmt::format("cannot make {}", folder));
  }
  if (options_.hang.on() && options_.wire == Wire::kTorch) {
    paths_.flight_recorder = MakeFlightRecorderFolder(paths_.folder);
  }
  record_path_ = paths_.folder + "/attempt.json";
  return absl::OkStatus();
}

Status Attempt::Impl::Start() {
  // Unavailable: StartExitCode() must not read an error of mkdir as one of the command.
  if (Status made = MakeFolder(); !made.ok()) return absl::UnavailableError(made.message());
  Write();
  MUSTER_ASSIGN_OR_RETURN(std::vector<launcher::WorkerSpec> specs, wiring_.workers(record_.assignment, paths_));
  sees_stdout_ = std::any_of(specs.begin(), specs.end(), [](const auto& spec) { return spec.output.out.piped(); });
  MUSTER_RETURN_IF_ERROR(group_.Start(specs));
  started_ = true;
  for (const launcher::WorkerSpec& spec : specs)
    recorders_.push_back(FlightRecorderOf(Environment::Of(spec.environment)));
  record_.pids = group_.pids();
  record_.workers_started_unix_ms = UnixMillis();
  Write();
  return absl::OkStatus();
}

// What a worker says because it is stopped tells nothing about its start.
void Attempt::Impl::OnFirstOutput(Duration after, launcher::Console::Stream stream) {
  if (stopping_) return;
  events_.first_output();
  record_.first_output_seconds = std::chrono::duration<double>(after).count();
  Write();
  std::string said = fmt::format("first output of the workers {} after their start, on {}",
                                 FormatSeconds(*record_.first_output_seconds),
                                 stream == launcher::Console::Stream::kOut ? "stdout" : "stderr");
  if (record_.standby_workers > 0) {
    said += fmt::format("; {} of {} from standby", record_.standby_workers,
                        Counted(record_.assignment.seat.node.slots, "worker"));
  }
  record_.assignment.id.number > 0 ? log::Info(said) : log::Debug(said);
}

void Attempt::Impl::OnOutput(int local_rank, launcher::Console::Stream stream, std::string_view bytes) {
  const TimePoint now = MonotonicClock::now();
  last_lines_.at(static_cast<size_t>(local_rank)).Add(bytes, now);
  if (stopping_ || !options_.progress.read) return;
  ProgressReader& reader = readers_.at(static_cast<size_t>(local_rank));
  const auto before = reader.At(now).position();
  reader.Add(stream == launcher::Console::Stream::kOut ? ProgressReader::Stream::kOut : ProgressReader::Stream::kErr,
             bytes, now);
  if (const auto position = reader.At(now).position(); position != before) events_.progress(*position);
}

void Attempt::Impl::OnExit(const launcher::ExitRecord& exit) {
  if (stopping_) ended_on_hold_.insert(exit.local_rank);
  if (stopping_ || reported_) return;
  if (exit.exit_code == 0) {
    if (++ended_well_ < options_.workers.nproc || !failures_.empty()) return;
    reported_ = true;
    boost::asio::post(loop_, [self = shared_from_this()] { self->events_.succeeded(); });
    return;
  }
  failures_.push_back(ToFailure(exit));
  // Workers reaped in the same sweep are reported together: the order of reaping says nothing about who failed first.
  boost::asio::post(loop_, [self = shared_from_this()] {
    if (self->reported_ || self->stopping_) return;
    self->MayHaveACause() ? self->AwaitCause() : self->ReportFailures();
  });
}

// True if all failures so far are consequences, and a worker that has not ended yet may be their cause. The peers of a
// plain command are in other pods, whose agents know nothing of this one: its pod ends later, so that theirs come
// first.
bool Attempt::Impl::MayHaveACause() const {
  const bool elsewhere = options_.wire == Wire::kPlain || record_.assignment.node_count > 1;
  const bool others = elsewhere || group_.pids().size() > group_.records().size();
  return others &&
         std::all_of(failures_.begin(), failures_.end(), [](const WorkerFailure& f) { return f.consequence; });
}

void Attempt::Impl::AwaitCause() {
  if (std::exchange(waits_, true)) return;
  cause_wait_.expires_after(kCauseWait);
  cause_wait_.async_wait([weak = weak_from_this()](boost::system::error_code cancelled) {
    if (auto self = weak.lock(); self && !cancelled && self->waits_) self->ReportFailures();
  });
}

void Attempt::Impl::ReportFailures() {
  waits_ = false;
  reported_ = true;
  std::stable_partition(failures_.begin(), failures_.end(), [](const WorkerFailure& f) { return !f.consequence; });
  events_.failed(failures_);
  ReleaseGone();
}

WorkerFailure Attempt::Impl::ToFailure(const launcher::ExitRecord& exit) const {
  WorkerFailure failure;
  failure.rank = record_.assignment.seat.first_rank + exit.local_rank;
  failure.local_rank = exit.local_rank;
  failure.pid = exit.pid;
  failure.exit_code = exit.exit_code;
  failure.signal = exit.signal;
  failure.core_dumped = exit.core_dumped;
  failure.oom_killed = exit.oom_killed;
  failure.message = exit.error_callstack.empty() ? exit.error_message : exit.error_callstack;
  failure.error_file = exit.error_file;
  failure.stderr_tail = exit.stderr_tail;
  failure.stderr_reason = exit.stderr_reason;
  failure.unix_millis = exit.ended_unix_millis;
  failure.consequence = LooksLikePeerLoss(failure);
  return failure;
}

void Attempt::Impl::Hold(const std::string& reason) {
  if (stopping_) return;
  stopping_ = true;
  record_.stopping_unix_ms = UnixMillis();
  record_.end_reason = reason;
  if (std::exchange(waits_, false)) ReleaseGone();
}

void Attempt::Impl::Stop(int signal, Duration grace, const std::string& reason) {
  Hold(reason);
  if (gone_) return;
  if (started_) {
    group_.Stop(signal, grace);  // also without a running worker: strays may be left
  } else {
    SayGone();
  }
}

// Posted, so that it comes after a failure or a success that was posted before.
void Attempt::Impl::SayGone() {
  if (gone_) return;
  gone_ = true;
  boost::asio::post(loop_, [self = shared_from_this()] {
    self->gone_due_ = true;
    if (!self->waits_) self->ReleaseGone();
  });
}

// `gone` waited for the report of the failures.
void Attempt::Impl::ReleaseGone() {
  if (!std::exchange(gone_due_, false)) return;
  boost::asio::post(loop_, [self = shared_from_this()] { self->events_.gone(); });
}

void Attempt::Impl::Close(const std::string& reason) {
  record_.end_reason = reason;
  record_.ended_unix_ms = UnixMillis();
  NoteTraining();
  Write();
}

void Attempt::Impl::JobEnded(int exit_code, const std::string& reason) {
  record_.spent = events_.spent();
  record_.job = JobResult{exit_code, Classify(exit_code, options_.job.shared.overrides), reason};
  Write();
}

void Attempt::Impl::NoteTraining() {
  rendezvous::Telemetry told = Telemetry();
  record_.training.clear();
  for (const rendezvous::RankTelemetry& rank : told.ranks) {
    if (!rank.position) continue;
    record_.training.push_back({rank.local_rank, *rank.position, rank.in_epochs, rank.end, rank.loss, rank.step_time});
    if (rank.loss && !std::isfinite(*rank.loss)) record_.training.back().loss.reset();
  }
  record_.curve = std::move(told.curve);
  record_.spent = events_.spent();
}

void Attempt::Impl::Write() {
  if (record_path_.empty()) return;
  record_.exits = group_.records();
  for (launcher::ExitRecord& exit : record_.exits) {
    const std::optional<std::string> own = OwnError(exit.local_rank);
    exit.after_stop = !own && (exit.after_stop || ended_on_hold_.contains(exit.local_rank));
    if (own) exit.stderr_reason = *own;
  }
  if (Status status = WriteAttemptRecord(record_, record_path_); !status.ok()) log::Warning(Message(status));
}

std::optional<int64_t> Attempt::Impl::HighestStep() const {
  std::optional<int64_t> highest;
  for (int local_rank = 0; !paths_.folder.empty() && local_rank < options_.workers.nproc; ++local_rank) {
    std::ifstream file(paths_.HeartbeatFile(local_rank));
    int64_t step = 0;
    if (file >> step) highest = std::max(highest.value_or(step), step);
  }
  return highest;
}

std::optional<TrainingFacts> Attempt::Impl::Training() {
  std::optional<TrainingFacts> furthest;
  for (size_t local_rank = 0; local_rank < readers_.size(); ++local_rank) {
    const RankProgress& progress = readers_[local_rank].At(MonotonicClock::now());
    if (!progress.position() || (furthest && *progress.position() <= furthest->position)) continue;
    furthest = {.rank = record_.assignment.seat.first_rank + static_cast<int>(local_rank),
                .position = *progress.position(),
                .in_epochs = progress.in_epochs(),
                .end = progress.end(),
                .epoch = progress.last().epoch,
                .loss = progress.last().loss,
                .step_time = progress.step_time(),
                .left = progress.left()};
  }
  return furthest;
}

rendezvous::Telemetry Attempt::Impl::Telemetry() {
  const TimePoint now = MonotonicClock::now();
  rendezvous::Telemetry telemetry{.round = record_.assignment.id};
  std::optional<double> furthest;
  for (size_t at = 0; at < record_.pids.size(); ++at) {
    rendezvous::RankTelemetry& rank = telemetry.ranks.emplace_back();
    rank.local_rank = static_cast<int>(at);
    rank.pid = record_.pids[at];
    rank.last_line = last_lines_[at].Text(rendezvous::kMaxLastLine);
    if (const auto came = last_lines_[at].came()) rank.silent = now - *came;
    const RankProgress& progress = readers_[at].At(now);
    rank.position = progress.position();
    rank.end = progress.end();
    rank.epoch = progress.last().epoch;
    rank.loss = progress.last().loss;
    rank.in_epochs = progress.in_epochs();
    rank.step_time = progress.step_time();
    if (!rank.position || (furthest && *rank.position <= *furthest)) continue;
    furthest = rank.position;
    telemetry.curve.clear();
    for (const LossPoint& point : progress.curve()) telemetry.curve.push_back({point.position, point.loss});
  }
  for (const launcher::ExitRecord& exit : group_.records()) {
    if (static_cast<size_t>(exit.local_rank) >= telemetry.ranks.size()) continue;
    telemetry.ranks[static_cast<size_t>(exit.local_rank)].exit_code =
        exit.signal != 0 ? 128 + exit.signal : exit.exit_code;
  }
  return telemetry;
}

bool Attempt::Impl::Ended(int local_rank) const {
  const auto& ended = group_.records();
  return std::any_of(ended.begin(), ended.end(), [&](const auto& exit) { return exit.local_rank == local_rank; });
}

std::vector<EvidenceTarget> Attempt::Impl::EvidenceTargets() const {
  std::vector<EvidenceTarget> targets;
  for (size_t rank = 0; !paths_.folder.empty() && rank < record_.pids.size(); ++rank) {
    int local_rank = static_cast<int>(rank);
    if (Ended(local_rank)) continue;
    targets.push_back({local_rank, static_cast<pid_t>(record_.pids[rank]), paths_.WorkerFolder(local_rank),
                       rank < recorders_.size() ? recorders_[rank] : std::nullopt});
  }
  return targets;
}

WorkerFailure Attempt::Impl::HangFailure(int local_rank, const std::string& evidence) {
  WorkerFailure failure;
  failure.rank = record_.assignment.seat.first_rank + local_rank;
  failure.local_rank = local_rank;
  failure.pid = static_cast<size_t>(local_rank) < record_.pids.size() ? record_.pids[local_rank] : 0;
  failure.exit_code = kExitHang;
  failure.message = evidence;
  if (!paths_.folder.empty()) failure.message += fmt::format("; stacks are in {}", paths_.folder);
  failure.unix_millis = UnixMillis();
  record_.hangs.push_back({local_rank, evidence});
  return failure;
}

// The error of its own that the worker had written before it was stopped.
std::optional<std::string> Attempt::Impl::OwnError(int local_rank) const {
  const auto written = errors_before_.find(local_rank);
  const bool own = written != errors_before_.end() && !ReportsLostPeer(written->second);
  return own ? std::optional(written->second) : std::nullopt;
}

std::vector<WorkerFailure> Attempt::Impl::LateFailures() const {
  std::vector<WorkerFailure> late;
  for (const launcher::ExitRecord& exit : group_.records()) {
    const bool reported = reported_ && std::any_of(failures_.begin(), failures_.end(), [&](const WorkerFailure& known) {
                            return known.local_rank == exit.local_rank;
                          });
    if (reported || record_.HangPlace(exit.local_rank) < record_.hangs.size()) continue;
    const std::optional<std::string> own = OwnError(exit.local_rank);
    if (!own && !FailedByItself(exit)) continue;
    WorkerFailure failure = ToFailure(exit);
    failure.late = true;
    failure.consequence = !own;
    if (own && !FailedByItself(exit)) {
      failure.exit_code = kUncaughtException;
      failure.signal = 0;
    }
    if (own && MessageLine(failure) != *own) failure.message.clear();  // written after our signal
    if (own) failure.stderr_reason = *own;
    late.push_back(std::move(failure));
  }
  return late;
}

Attempt::Attempt(boost::asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console,
                 const RunOptions& options, const Wiring& wiring, rendezvous::Assignment assignment,
                 const std::string& log_root, AttemptEvents events)
    : impl_(std::make_shared<Impl>(loop, reaper, console, options, wiring, std::move(assignment), log_root,
                                   std::move(events))) {}
Attempt::~Attempt() = default;

Status Attempt::Start() { return impl_->Start(); }
void Attempt::Stop(int signal, Duration grace, const std::string& reason) { impl_->Stop(signal, grace, reason); }
void Attempt::Hold(const std::string& reason) { impl_->Hold(reason); }
void Attempt::NoteErrors() { impl_->NoteErrors(); }
void Attempt::Close(const std::string& reason) { impl_->Close(reason); }
void Attempt::BeganInStandby(int workers) { impl_->BeganInStandby(workers); }
void Attempt::JobEnded(int exit_code, const std::string& reason) { impl_->JobEnded(exit_code, reason); }
const AttemptPaths& Attempt::paths() const { return impl_->paths(); }
bool Attempt::Ended(int local_rank) const { return impl_->Ended(local_rank); }
std::optional<TimePoint> Attempt::LastOutput() const { return impl_->group().LastOutput(); }
int Attempt::standby_workers() const { return impl_->record().standby_workers; }
bool Attempt::SeesStdout() const { return impl_->sees_stdout(); }
std::optional<double> Attempt::FirstOutputSeconds() const { return impl_->record().first_output_seconds; }
std::vector<EvidenceTarget> Attempt::EvidenceTargets() const { return impl_->EvidenceTargets(); }
std::vector<WorkerFailure> Attempt::LateFailures() const { return impl_->LateFailures(); }
WorkerFailure Attempt::HangFailure(int local_rank, const std::string& evidence) {
  return impl_->HangFailure(local_rank, evidence);
}
void Attempt::Signal(int signal) { impl_->group().Signal(signal); }
std::optional<int> Attempt::OwnExitCode() const {
  const std::vector<launcher::ExitRecord>& ended = impl_->group().records();
  if (ended.empty() || (ended.front().after_stop && ended.front().signal == SIGKILL)) return std::nullopt;
  return ended.front().exit_code;
}
bool Attempt::running() const { return impl_->group().running(); }
int Attempt::workers_running() const {
  const launcher::WorkerGroup& group = impl_->group();
  return static_cast<int>(group.pids().size() - group.records().size());
}
const rendezvous::Assignment& Attempt::assignment() const { return impl_->record().assignment; }
Duration Attempt::lived() const { return impl_->lived(); }
std::optional<int64_t> Attempt::HighestStep() const { return impl_->HighestStep(); }
std::optional<TrainingFacts> Attempt::Training() { return impl_->Training(); }
rendezvous::Telemetry Attempt::Telemetry() { return impl_->Telemetry(); }

WorkerFailure Attempt::StartFailure(const Status& error) const {
  return Failure(StartExitCode(error), std::string(Message(error)));
}

WorkerFailure Attempt::Failure(int exit_code, std::string message) const {
  WorkerFailure failure;
  failure.rank = impl_->record().assignment.seat.first_rank;
  failure.local_rank = 0;
  if (!impl_->record().pids.empty()) failure.pid = impl_->record().pids.front();
  failure.exit_code = exit_code;
  failure.message = std::move(message);
  failure.unix_millis = UnixMillis();
  return failure;
}

}  // namespace muster::agent
