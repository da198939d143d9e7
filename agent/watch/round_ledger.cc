// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/round_ledger.h"

#include "base/text.h"

namespace muster::agent {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

RoundLedger::RoundLedger(LedgerOptions options) : options_(std::move(options)) {
  numbers_.run_id = options_.run_id;
  numbers_.restarts_allowed = options_.job.max_restarts;
  for (const char* cause : {"fatal", "retryable", "hang", "peer", "preemption", "membership", "policy"}) {
    numbers_.restarts[cause] = 0;
  }
  for (const char* exit_class : {"fatal", "retryable", "hang"}) numbers_.failures[exit_class] = 0;
}

void RoundLedger::Begins(TimePoint now) { time_.Begin(now); }

void RoundLedger::NodeIs(const rendezvous::Node& node) {
  node_ = node;
  numbers_.node = node.name;
  numbers_.workers = node.slots;
}

std::string RoundLedger::CauseOf(const rendezvous::Assignment& next) const {
  switch (next.cause) {
    case rendezvous::RoundCause::kMembership:
      return "membership";
    case rendezvous::RoundCause::kPreemption:
      return "preemption";
    case rendezvous::RoundCause::kFailure:
      return own_cause_.empty() ? "peer" : own_cause_;
    case rendezvous::RoundCause::kSuccess:
      return "policy";
  }
  return "";
}

void RoundLedger::RoundArrived(const rendezvous::Assignment& assignment, TimePoint now) {
  ++numbers_.rounds;
  if (round_) {
    ++numbers_.restarts[CauseOf(assignment)];
    Pause(now);  // if no stop came
  }
  round_ = assignment;
  own_cause_.clear();
  numbers_.round = assignment.id.number;
  numbers_.restarts_charged = assignment.restart_count;
  numbers_.restarts_allowed = assignment.max_restarts;
  numbers_.world_size = assignment.world_size;
  numbers_.nodes = assignment.node_count;
  numbers_.workers = assignment.seat.node.slots;
  reason_ = assignment.reason;
  stage_ = Stage::kStarting;
}

void RoundLedger::WorkersRun(TimePoint now, int from_standby) {
  numbers_.standby_starts += static_cast<uint64_t>(from_standby);
  if (stage_ == Stage::kStarting) stage_ = Stage::kRunning;
  time_.WorkersRun(now);
  if (!paused_since_) return;
  double seconds = Seconds(now - *paused_since_);
  numbers_.time_to_restart.Add(seconds);
  numbers_.time_lost_seconds += seconds;
  paused_since_.reset();
}

void RoundLedger::Pause(TimePoint now) {
  if (!paused_since_) paused_since_ = now;
}

void RoundLedger::FirstOutput(TimePoint now) { time_.FirstOutput(now); }

void RoundLedger::CheckpointSaved(TimePoint now) { time_.Saved(now); }

void RoundLedger::Progress(double position, TimePoint now) { time_.Position(position, now); }

void RoundLedger::WorkersFailed(const std::vector<WorkerFailure>& failures, TimePoint now,
                                std::optional<TimePoint> hangs_since) {
  Pause(now);
  time_.Stops(now, hangs_since);
  for (const WorkerFailure& failure : failures) {
    if (failure.consequence) continue;
    std::string exit_class = failure.exit_code == kExitHang
                                 ? std::string("hang")
                                 : std::string(ExitClassName(Classify(failure.exit_code, options_.job.overrides)));
    ++numbers_.failures[exit_class];
    if (own_cause_.empty()) own_cause_ = exit_class;
  }
  if (stage_ == Stage::kLeaving || stage_ == Stage::kDecided) return;
  stage_ = Stage::kStopping;
  if (failures.empty()) return;
  const WorkerFailure& first = failures.front();
  reason_ = fmt::format("{}: {}", WhoFailed(first), DescribeEnd(first.exit_code, first.signal));
}

void RoundLedger::WorkersSucceeded() {
  if (stage_ != Stage::kRunning && stage_ != Stage::kStarting) return;
  stage_ = Stage::kSucceeded;
  time_.Succeeded();
  reason_ = "all workers of this node succeeded";
}

void RoundLedger::StopCame(const std::string& reason, TimePoint now, std::optional<TimePoint> hangs_since) {
  Pause(now);
  time_.Stops(now, hangs_since);
  if (stage_ == Stage::kLeaving || stage_ == Stage::kDecided) return;
  stage_ = Stage::kStopping;
  reason_ = reason;
}

void RoundLedger::Leaves(const std::string& reason) {
  stage_ = Stage::kLeaving;
  reason_ = reason;
}

void RoundLedger::Decided(const rendezvous::Verdict& verdict, TimePoint now) {
  if (paused_since_) numbers_.time_lost_seconds += Seconds(now - *paused_since_);
  paused_since_.reset();
  time_.End(now);
  stage_ = Stage::kDecided;
  reason_ = verdict.reason;
}

std::string RoundLedger::NotReady() const {
  switch (stage_) {
    case Stage::kWaiting:
      return "waiting for the first round";
    case Stage::kStarting:
      return fmt::format("starting the workers of round {}", numbers_.round);
    case Stage::kRunning:
      return "";
    case Stage::kSucceeded:
      return reason_ + "; waiting for the other nodes";
    case Stage::kStopping:
      return fmt::format("round {} is over: {}", numbers_.round, reason_);
    case Stage::kLeaving:
      return "leaving: " + reason_;
    case Stage::kDecided:
      return "the job is decided: " + reason_;
  }
  return "";
}

Metrics RoundLedger::MetricsAt(TimePoint now) const {
  Metrics numbers = numbers_;
  if (paused_since_) numbers.time_lost_seconds += Seconds(now - *paused_since_);
  numbers.in_round = stage_ == Stage::kRunning;
  numbers.spent = time_.At(now);
  numbers.spent_ended = time_.Ended();
  return numbers;
}

rendezvous::StatusReport RoundLedger::OwnView() const {
  rendezvous::StatusReport report;
  report.run_id = options_.run_id;
  report.min_nodes = options_.job.min_nodes;
  report.max_nodes = options_.job.max_nodes;
  report.max_restarts = options_.job.max_restarts;
  report.restart_count = numbers_.restarts_charged;
  report.reason = reason_;
  rendezvous::StatusLine line;
  line.node = node_.name;
  line.host = node_.host;
  line.slots = node_.slots;
  line.pid = node_.pid;
  if (round_) {
    report.round = round_->id;
    line.rank = round_->node_rank;
  }
  switch (stage_) {
    case Stage::kWaiting:
      report.phase = "gathering";
      line.state = "waiting";
      break;
    case Stage::kStarting:
    case Stage::kRunning:
      report.phase = line.state = "running";
      break;
    case Stage::kSucceeded:
      report.phase = "running";
      line.state = "succeeded";
      break;
    case Stage::kStopping:
    case Stage::kLeaving:
      report.phase = line.state = "stopping";
      break;
    case Stage::kDecided:
      report.phase = "finished";
      line.state = "stopping";
      break;
  }
  report.nodes.push_back(std::move(line));
  return report;
}

}  // namespace muster::agent
