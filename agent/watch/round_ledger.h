// SPDX-License-Identifier: Apache-2.0
// Records this node's events for the HTTP port: numbers for /metrics, a line for /readyz, its own view for /status.
//
// Pure: the agent tells it each event and its moment; it asks nothing itself. The causes of a restart:
//
//   fatal, retryable  a worker of this node failed by itself (the class of its code)
//   hang              the same, with 203
//   peer              a worker of another node failed: that node counts its class
//   preemption        a node left because it was preempted
//   membership        a node was lost, left or came
//   policy            all workers had succeeded and the policy is "always"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/progress/time_ledger.h"
#include "agent/watch/metrics.h"
#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/worker_failure.h"
#include "rendezvous/messages.h"

namespace muster::agent {

struct LedgerOptions {
  std::string run_id;
  rendezvous::JobOptions job;
};

class RoundLedger {
 public:
  explicit RoundLedger(LedgerOptions options);

  // --- what happens, in the order of node_agent.h ---
  void Begins(TimePoint now);
  void NodeIs(const rendezvous::Node& node);
  void RoundArrived(const rendezvous::Assignment& assignment, TimePoint now);
  void WorkersRun(TimePoint now, int from_standby = 0);  // how many of them began in a standby
  void FirstOutput(TimePoint now);
  void Progress(double position, TimePoint now);
  void CheckpointSaved(TimePoint now);
  // `hangs_since`: the round ends because the job hangs; the last sign of its progress here.
  void WorkersFailed(const std::vector<WorkerFailure>& failures, TimePoint now,
                     std::optional<TimePoint> hangs_since = std::nullopt);
  void WorkersSucceeded();
  void StopCame(const std::string& reason, TimePoint now, std::optional<TimePoint> hangs_since = std::nullopt);
  void Leaves(const std::string& reason);
  void Decided(const rendezvous::Verdict& verdict, TimePoint now);

  // --- what it says ---
  bool decided() const { return stage_ == Stage::kDecided; }
  // Empty if the node is in a round with running workers; else why not, in one line.
  std::string NotReady() const;
  // The numbers of this ledger; the caller fills in workers_running, store and process.
  Metrics MetricsAt(TimePoint now) const;
  // A status report with this node alone.
  rendezvous::StatusReport OwnView() const;

 private:
  enum class Stage { kWaiting, kStarting, kRunning, kSucceeded, kStopping, kLeaving, kDecided };

  void Pause(TimePoint now);
  std::string CauseOf(const rendezvous::Assignment& next) const;

  const LedgerOptions options_;
  rendezvous::Node node_;
  Stage stage_ = Stage::kWaiting;
  std::string reason_;  // of the last change
  std::optional<rendezvous::Assignment> round_;
  std::optional<TimePoint> paused_since_;  // since the round began to end; unset when workers run again
  TimeLedger time_;
  std::string own_cause_;  // of the current round's failure, if a worker of this node failed
  Metrics numbers_;
};

}  // namespace muster::agent
