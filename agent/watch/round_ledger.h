// What happened on this node, as the watchers want it: numbers for /metrics, one line for /readyz, this node's own view
// for /status.
//
// Pure: it is told what happens, with the moment, and never asks anything. The causes of a restart:
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
  void NodeIs(const rendezvous::Node& node);
  void RoundArrived(const rendezvous::Assignment& assignment, TimePoint now);
  void WorkersRun(TimePoint now);
  void WorkersFailed(const std::vector<WorkerFailure>& failures, TimePoint now);
  void WorkersSucceeded();
  void StopCame(const std::string& reason, TimePoint now);
  void Leaves(const std::string& reason);
  void Decided(const rendezvous::Verdict& verdict, TimePoint now);

  // --- what it says ---
  // Empty: in a round with running workers. Else why not, one line.
  std::string NotReady() const;
  // Of its own numbers; workers_running, store and process are the caller's to fill in.
  Metrics MetricsAt(TimePoint now) const;
  // A roster of this node alone.
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
  std::optional<TimePoint> paused_since_;  // the round's end began; no workers of a next one run yet
  std::string own_cause_;                  // of the failure of the current round, where it is this node's
  Metrics numbers_;
};

}  // namespace muster::agent
