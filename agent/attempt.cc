#include "agent/attempt.h"

#include <sys/stat.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/start_check.h"
#include "agent/torch/log_layout.h"
#include "agent/torch/peer_loss.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_fs.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"

namespace muster::agent {
namespace {

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
        group_(loop, reaper, console,
               {.worker_exited = [this](const launcher::ExitRecord& exit) { OnExit(exit); },
                .all_gone = [this] { SayGone(); }}) {
    record_.run_id = options.run_id;
    record_.version = Version();
    record_.assignment = std::move(assignment);
    record_.start_reason = record_.assignment.reason;
    record_.started_unix_ms = UnixMillis();
    started_at_ = MonotonicClock::now();
  }

  Status Start();
  void Stop(int signal, Duration grace, const std::string& reason);
  void Hold(const std::string& reason);
  void Close(const std::string& reason);
  void JobEnded(int exit_code, const std::string& reason);
  std::optional<int64_t> Progress() const;
  std::vector<EvidenceTarget> EvidenceTargets() const;
  WorkerFailure HangFailure(int local_rank, const std::string& evidence);
  std::vector<WorkerFailure> LateFailures() const;
  bool Ended(int local_rank) const;
  const AttemptPaths& paths() const { return paths_; }

  launcher::WorkerGroup& group() { return group_; }
  const AttemptRecord& record() const { return record_; }
  Duration lived() const { return MonotonicClock::now() - started_at_; }

 private:
  Status MakeFolder();
  void OnExit(const launcher::ExitRecord& exit);
  void ReportFailures();
  void SayGone();
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
  std::set<int> ended_on_hold_;                           // local ranks that ended after Hold()
  std::vector<std::optional<FlightRecorder>> recorders_;  // by local rank
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
  for (int local_rank = 0; local_rank < options_.nproc; ++local_rank) {
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
  MUSTER_RETURN_IF_ERROR(group_.Start(specs));
  started_ = true;
  for (const launcher::WorkerSpec& spec : specs)
    recorders_.push_back(FlightRecorderOf(Environment::Of(spec.environment)));
  record_.pids = group_.pids();
  record_.workers_started_unix_ms = UnixMillis();
  Write();
  return absl::OkStatus();
}

void Attempt::Impl::OnExit(const launcher::ExitRecord& exit) {
  if (stopping_) ended_on_hold_.insert(exit.local_rank);
  if (stopping_ || reported_) return;
  if (exit.exit_code == 0) {
    if (++ended_well_ < options_.nproc || !failures_.empty()) return;
    reported_ = true;
    boost::asio::post(loop_, [self = shared_from_this()] { self->events_.succeeded(); });
    return;
  }
  failures_.push_back(ToFailure(exit));
  if (failures_.size() > 1) return;
  // Workers reaped in the same sweep are reported together: the order of reaping says nothing about who failed first.
  boost::asio::post(loop_, [self = shared_from_this()] { self->ReportFailures(); });
}

void Attempt::Impl::ReportFailures() {
  if (reported_ || stopping_) return;
  reported_ = true;
  std::stable_partition(failures_.begin(), failures_.end(), [](const WorkerFailure& f) { return !f.consequence; });
  events_.failed(failures_);
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
  failure.consequence = LooksLikePeerLoss(failure.message, failure.stderr_tail);
  return failure;
}

void Attempt::Impl::Hold(const std::string& reason) {
  if (stopping_) return;
  stopping_ = true;
  record_.stopping_unix_ms = UnixMillis();
  record_.end_reason = reason;
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
  boost::asio::post(loop_, [self = shared_from_this()] { self->events_.gone(); });
}

void Attempt::Impl::Close(const std::string& reason) {
  record_.end_reason = reason;
  record_.ended_unix_ms = UnixMillis();
  Write();
}

void Attempt::Impl::JobEnded(int exit_code, const std::string& reason) {
  record_.job = JobResult{exit_code, Classify(exit_code, options_.job.overrides), reason};
  Write();
}

void Attempt::Impl::Write() {
  if (record_path_.empty()) return;
  record_.exits = group_.records();
  for (launcher::ExitRecord& exit : record_.exits) exit.after_stop |= ended_on_hold_.contains(exit.local_rank);
  if (Status status = WriteAttemptRecord(record_, record_path_); !status.ok()) log::Warning(Message(status));
}

std::optional<int64_t> Attempt::Impl::Progress() const {
  std::optional<int64_t> highest;
  for (int local_rank = 0; !paths_.folder.empty() && local_rank < options_.nproc; ++local_rank) {
    std::ifstream file(paths_.HeartbeatFile(local_rank));
    int64_t step = 0;
    if (file >> step) highest = std::max(highest.value_or(step), step);
  }
  return highest;
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

std::vector<WorkerFailure> Attempt::Impl::LateFailures() const {
  std::vector<WorkerFailure> late;
  for (const launcher::ExitRecord& exit : group_.records()) {
    const bool reported = std::any_of(failures_.begin(), failures_.end(),
                                      [&](const WorkerFailure& known) { return known.local_rank == exit.local_rank; });
    if (reported || record_.HangPlace(exit.local_rank) < record_.hangs.size() || !FailedByItself(exit)) continue;
    late.push_back(ToFailure(exit));
    late.back().late = late.back().consequence = true;
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
void Attempt::Close(const std::string& reason) { impl_->Close(reason); }
void Attempt::JobEnded(int exit_code, const std::string& reason) { impl_->JobEnded(exit_code, reason); }
const AttemptPaths& Attempt::paths() const { return impl_->paths(); }
bool Attempt::Ended(int local_rank) const { return impl_->Ended(local_rank); }
std::optional<TimePoint> Attempt::LastOutput() const { return impl_->group().LastOutput(); }
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
std::optional<int64_t> Attempt::Progress() const { return impl_->Progress(); }

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
