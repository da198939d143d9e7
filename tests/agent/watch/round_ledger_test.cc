// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/round_ledger.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using rendezvous::Assignment;
using rendezvous::RoundCause;
using std::chrono::milliseconds;

class RoundLedgerTest : public testing::Test {
 protected:
  RoundLedgerTest() : ledger_({"job", {}}) {
    rendezvous::Node node;
    node.name = "n1";
    node.slots = 4;
    ledger_.NodeIs(node);
  }

  void Round(int number, RoundCause cause, const std::string& reason = "") {
    Assignment assignment;
    assignment.id = {1, number};
    restart_count_ += UsesBudget(cause) ? 1 : 0;
    assignment.restart_count = restart_count_;
    assignment.cause = cause;
    assignment.max_restarts = 5;
    assignment.world_size = 8;
    assignment.node_count = 2;
    assignment.node_rank = 1;
    assignment.seat.node.slots = 4;
    assignment.reason = reason;
    ledger_.RoundArrived(assignment, now_);
  }
  void FirstRound() {
    Round(0, RoundCause::kMembership);
    ledger_.WorkersRun(now_);
  }
  void Fail(int code, bool consequence = false) {
    WorkerFailure failure;
    failure.rank = 5;
    failure.exit_code = code;
    failure.consequence = consequence;
    ledger_.WorkersFailed({failure}, now_);
  }
  // The counts of restarts by cause, without the zeros.
  std::map<std::string, uint64_t> Causes() {
    auto restarts = ledger_.MetricsAt(now_).restarts;
    std::erase_if(restarts, [](const auto& entry) { return entry.second == 0; });
    return restarts;
  }
  using Counts = std::map<std::string, uint64_t>;

  TimePoint now_{std::chrono::hours(1)};
  int restart_count_ = 0;
  RoundLedger ledger_;
};

TEST_F(RoundLedgerTest, CountsWorkersThatBeganInAStandby) {
  FirstRound();
  Round(1, RoundCause::kFailure);
  ledger_.WorkersRun(now_, 4);
  Round(2, RoundCause::kFailure);
  ledger_.WorkersRun(now_, 3);
  EXPECT_EQ(ledger_.MetricsAt(now_).standby_starts, 7);
}

TEST_F(RoundLedgerTest, OwnFailuresHaveTheirClass) {
  FirstRound();
  Fail(3);
  Round(1, RoundCause::kFailure);
  EXPECT_EQ(Causes(), (Counts{{"fatal", 1}}));
  ledger_.WorkersRun(now_);
  Fail(137);
  Round(2, RoundCause::kFailure);
  ledger_.WorkersRun(now_);
  Fail(203);
  Round(3, RoundCause::kFailure);
  EXPECT_EQ(Causes(), (Counts{{"fatal", 1}, {"hang", 1}, {"retryable", 1}}));
  Metrics metrics = ledger_.MetricsAt(now_);
  EXPECT_EQ(metrics.failures, (Counts{{"fatal", 1}, {"hang", 1}, {"retryable", 1}}));
  EXPECT_EQ(metrics.rounds, 4u);
  EXPECT_EQ(metrics.restarts_charged, 3);
  EXPECT_EQ(metrics.restarts_allowed, 5);
}

TEST_F(RoundLedgerTest, OthersFailuresAreTheirs) {
  FirstRound();
  ledger_.StopCame("node n0: worker rank 0 ended with exit code 3", now_);
  Round(1, RoundCause::kFailure);
  EXPECT_EQ(Causes(), (Counts{{"peer", 1}}));
  ledger_.WorkersRun(now_);
  Fail(1, true);  // a consequence: this node only lost a peer
  Round(2, RoundCause::kFailure);
  EXPECT_EQ(Causes(), (Counts{{"peer", 2}}));
  EXPECT_EQ(ledger_.MetricsAt(now_).failures, (Counts{{"fatal", 0}, {"hang", 0}, {"retryable", 0}}));
}

TEST_F(RoundLedgerTest, TheCauseIsTheCoordinators) {
  FirstRound();
  ledger_.StopCame("node n0 (host h) is leaving (preempted: SIGTERM)", now_);
  Round(1, RoundCause::kPreemption);
  ledger_.WorkersRun(now_);
  Fail(1, true);  // its own workers lost the peer first; no Stop was needed
  Round(2, RoundCause::kPreemption);
  ledger_.WorkersRun(now_);
  ledger_.StopCame("node n0 is lost: its connection closed", now_);
  Round(3, RoundCause::kMembership);
  EXPECT_EQ(ledger_.MetricsAt(now_).restarts_charged, 0);
  ledger_.WorkersRun(now_);
  ledger_.StopCame("all workers succeeded and the restart policy is always", now_);
  Round(4, RoundCause::kSuccess);
  EXPECT_EQ(Causes(), (Counts{{"membership", 1}, {"policy", 1}, {"preemption", 2}}));
}

TEST_F(RoundLedgerTest, TimeLostRunsUntilTheNextWorkers) {
  FirstRound();
  now_ += milliseconds(5000);
  EXPECT_EQ(ledger_.MetricsAt(now_).time_lost_seconds, 0);
  Fail(3);
  now_ += milliseconds(250);
  EXPECT_DOUBLE_EQ(ledger_.MetricsAt(now_).time_lost_seconds, 0.25);  // the present pause is in it
  ledger_.StopCame("the coordinator's word comes later", now_);
  Round(1, RoundCause::kFailure);
  now_ += milliseconds(250);
  ledger_.WorkersRun(now_);
  now_ += milliseconds(9000);
  Metrics metrics = ledger_.MetricsAt(now_);
  EXPECT_DOUBLE_EQ(metrics.time_lost_seconds, 0.5);
  EXPECT_DOUBLE_EQ(metrics.time_to_restart.sum, 0.5);
  EXPECT_EQ(metrics.time_to_restart.counts[3], 1u);  // 0.25 < x <= 0.5

  Fail(3);
  now_ += milliseconds(100);
  ledger_.Decided({.exit_code = 3, .reason = "over"}, now_);
  now_ += milliseconds(9000);
  EXPECT_DOUBLE_EQ(ledger_.MetricsAt(now_).time_lost_seconds, 0.6);
  EXPECT_DOUBLE_EQ(ledger_.MetricsAt(now_).time_to_restart.sum, 0.5);  // the job ended without a restart
}

TEST_F(RoundLedgerTest, ReadyIsARoundWithRunningWorkers) {
  EXPECT_EQ(ledger_.NotReady(), "waiting for the first round");
  EXPECT_EQ(ledger_.OwnView().phase, "gathering");
  Round(0, RoundCause::kMembership);
  EXPECT_EQ(ledger_.NotReady(), "starting the workers of round 0");
  ledger_.WorkersRun(now_);
  EXPECT_EQ(ledger_.NotReady(), "");
  EXPECT_TRUE(ledger_.MetricsAt(now_).in_round);
  ledger_.WorkersSucceeded();
  EXPECT_EQ(ledger_.NotReady(), "all workers of this node succeeded; waiting for the other nodes");
  ledger_.StopCame("node n0 is lost", now_);
  EXPECT_EQ(ledger_.NotReady(), "round 0 is over: node n0 is lost");
  EXPECT_FALSE(ledger_.MetricsAt(now_).in_round);
  ledger_.Leaves("preempted: SIGTERM");
  EXPECT_EQ(ledger_.NotReady(), "leaving: preempted: SIGTERM");
  Fail(143);  // a consequence of the SIGTERM
  EXPECT_EQ(ledger_.NotReady(), "leaving: preempted: SIGTERM");
}

TEST_F(RoundLedgerTest, ItsOwnViewIsARosterOfOne) {
  FirstRound();
  rendezvous::StatusReport view = ledger_.OwnView();
  EXPECT_EQ(view.run_id, "job");
  EXPECT_EQ(view.phase, "running");
  EXPECT_EQ(view.round, (rendezvous::RoundId{1, 0}));
  ASSERT_EQ(view.nodes.size(), 1u);
  EXPECT_EQ(view.nodes[0].node, "n1");
  EXPECT_EQ(view.nodes[0].rank, 1);
}

}  // namespace
}  // namespace muster::agent
