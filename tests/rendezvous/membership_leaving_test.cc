// SPDX-License-Identifier: Apache-2.0
// Membership: a node that leaves because it was stopped or preempted, or is unhealthy.
#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

TEST(Leaving, TheOthersReFormWithoutWaitingForItsWorkers) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Leaves("b");
  EXPECT_EQ(s.Told<Stop>("a").at(0).reason, "node b (host host-b) is leaving (preempted)");
  EXPECT_FALSE(s.Stopped("b"));
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a") << "while b's workers write their checkpoint";
  EXPECT_EQ(s.Seat("a").restart_count, 0);
  s.Ready("b");  // of the round that is over
  EXPECT_FALSE(s.Started("b", 1));
  s.Closes("b");
  EXPECT_EQ(s.state.phase, Phase::kRunning) << "its end changes nothing";
  EXPECT_EQ(s.Told<Stop>("a").size(), 1u);
}

TEST(Leaving, OneThatLingersDelaysNoLaterRound) {
  Stage s(Job(1, 4));
  for (const char* name : {"a", "b", "c", "d"}) s.Join(name);
  s.Leaves("d");
  for (const char* name : {"a", "b", "c"}) s.Ready(name);
  EXPECT_EQ(s.Roster(), "a b c");
  s.Closes("c");
  s.Ready("a");
  s.Ready("b");
  EXPECT_EQ(s.Roster(), "a b") << "d still leaves, and no last call is paid for that";
}

TEST(Leaving, BelowMinItsReplacementIsWaitedFor) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Join("b");
  s.Leaves("b");
  s.Ready("a");
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  EXPECT_EQ(s.LastNotice("a"), "waiting for 1 more node: have 1 of 2 (up to 600 s)");
  s.Join("c");
  EXPECT_EQ(s.Roster(), "a c") << "while b's workers still run";
}

TEST(Leaving, ItsNameIsItsOwnUntilItHasGone) {
  Stage s(Job(2, 2));
  s.Join("a");
  PeerId old = s.Join("b");
  s.Leaves("b");
  s.Ready("a");
  Hello next = s.Greeting("b");
  next.node.incarnation = "b-2";
  PeerId peer = s.Join(next);
  EXPECT_EQ(s.LastNotice("b"),
            "the name b is held by node b (host host-b) (pid 0), which is leaving: waiting for its end");
  s.Do(PeerSaid{old, Beat{}});  // it lives, but it is still leaving
  EXPECT_EQ(s.Refusal(peer), "");
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Do(PeerClosed{old});
  EXPECT_EQ(s.Roster(), "a b");
  EXPECT_TRUE(s.Started("b", 1));
}

// Kubernetes has deleted the pod of b, but its machine has not heard of it.
TEST(Leaving, APodThatReplacesALivingOneWaitsForItsEnd) {
  struct Row {
    const char* what;
    bool in_pods;
    std::string host, address;
    bool waits;
  };
  for (const Row& row : std::vector<Row>{{"a new pod", true, "host-b", "10.0.1.7:4711", true},
                                         {"in one pod", true, "host-b", "10.0.0.2:9", false},
                                         {"another pod", true, "host-c", "10.0.1.7:4711", false},
                                         {"no pods", false, "host-b", "10.0.1.7:4711", false}}) {
    SCOPED_TRACE(row.what);
    Stage s(Job(2, 2));
    s.state.given.in_pods = row.in_pods;
    s.Join("a");
    Hello first = s.Greeting("b");
    first.node.control_address = "10.0.0.2:4711";
    const PeerId old = s.Join(first);
    s.Ready("a");
    s.Ready("b");
    Hello next = s.Greeting("b");
    next.node.incarnation = "b-2";
    next.node.host = row.host;
    next.node.control_address = row.address;
    const PeerId peer = s.Join(next);
    s.Do(PeerSaid{old, Beat{}});
    EXPECT_EQ(s.Refusal(peer).empty(), row.waits);
    if (!row.waits) continue;
    EXPECT_EQ(s.LastNotice("b"), "node b (host host-b) (pid 0) is alive, which this pod replaces: waiting for its end");
    next.node.incarnation = "b-3";
    next.node.control_address = "10.0.2.7:4711";
    const PeerId third = s.Join(next);
    EXPECT_EQ(s.Refusal(third), "") << "it replaces the second one";
    s.Do(PeerClosed{old});
    s.Ready("a");
    s.Ready("b");
    EXPECT_EQ(s.Roster(), "a b");
  }
}

TEST(Leaving, ItIsNeverSeatedAgain) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Leaves("b");
  s.Ready("b");
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a");
  EXPECT_FALSE(s.Started("b", 1));
}

TEST(Leaving, WhenAllLeaveItEndsWith143) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Leaves("a");
  s.Leaves("b");
  EXPECT_EQ(s.state.verdict->exit_code, 143);
}

TEST(Leaving, OfAnUnhealthyNodeExcusesItsFailure) {
  struct Row {
    const char* name;
    LeaveCause cause;
    int own_failure_of_c;  // 0: only a consequence
    int restarts;          // charged
  };
  const Row rows[] = {{"unhealthy", LeaveCause::kUnhealthy, 0, 0},
                      {"unhealthy, and c failed too", LeaveCause::kUnhealthy, 3, 1},
                      {"preempted", LeaveCause::kPreempted, 0, 1}};
  for (const Row& row : rows) {
    Stage s(Job(2, 3, 1));
    for (const char* name : {"a", "b", "c", "spare"}) s.Join(name);
    s.Fails("b", 139);
    s.Fails("c", row.own_failure_of_c == 0 ? 1 : row.own_failure_of_c, row.own_failure_of_c == 0);
    s.Ready("a");
    s.Ready("c");
    EXPECT_EQ(s.state.phase, Phase::kStopping) << "b's check runs";
    s.Says("b", Leave{"node check failed", row.cause});
    s.Closes("b");
    EXPECT_EQ(s.Roster(), "a spare c") << row.name;
    EXPECT_EQ(s.Seat("a").restart_count, row.restarts) << row.name;
    if (row.restarts == 0) {
      EXPECT_EQ(s.Seat("a").reason, "node b (host host-b) is leaving (node check failed)");
    }
  }
}

TEST(Leaving, OfAnUnhealthyNodeEndsNoJobThatMayGoOn) {
  JobOptions options = Job(1, 2);
  options.policy = RestartPolicy::kExitCode;
  Stage s(options);
  s.Join("a");
  s.Join("b");
  s.Fails("b", 3);  // fatal, and no restart is allowed
  s.Ready("a");
  s.Says("b", Leave{"node check failed", LeaveCause::kUnhealthy});
  s.Closes("b");
  EXPECT_EQ(s.Roster(), "a");
}

// A new pod in the place of one that was told to stop may find the coordinator of those that leave.
TEST(Leaving, OfEveryNodeIsNoVerdictForNodesThatComeLater) {
  Stage s(Job(1, 1));
  const PeerId old = s.Join("a");
  Hello next = s.Greeting("a");
  next.node.incarnation = "a-2";
  const PeerId waits = s.Join(next);
  s.Do(PeerSaid{old, Leave{"preempted", LeaveCause::kPreempted}});
  ASSERT_EQ(s.state.phase, Phase::kFinished);
  const auto ended = [&s](PeerId peer) {
    return std::any_of(s.told[peer].begin(), s.told[peer].end(),
                       [](const CoordinatorMessage& message) { return std::holds_alternative<Finish>(message); });
  };
  EXPECT_TRUE(ended(old));
  const PeerId late = s.Join("b");
  for (const PeerId peer : {waits, late}) {
    EXPECT_FALSE(ended(peer));
    EXPECT_TRUE(s.hung_up.contains(peer));
  }
}

// The agent chooses the grace period of its workers by the cause.
TEST(Leaving, TheOthersAreToldWhyTheyStop) {
  struct Row {
    const char* name;
    void (*ends)(Stage&);  // ends the round of a and b, by b
    RoundCause cause;
  };
  const Row rows[] = {
      {"b is preempted", [](Stage& s) { s.Leaves("b"); }, RoundCause::kPreemption},
      {"b was asked to stop", [](Stage& s) { s.Says("b", Leave{"stopped by SIGINT"}); }, RoundCause::kMembership},
      {"b is lost", [](Stage& s) { s.Closes("b"); }, RoundCause::kMembership},
      {"a worker of b failed", [](Stage& s) { s.Fails("b", 3); }, RoundCause::kFailure}};
  for (const Row& row : rows) {
    Stage s(Job(1, 2, 1));
    s.Join("a");
    s.Join("b");
    const Assignment seat = s.Seat("a");
    row.ends(s);
    ASSERT_EQ(s.Told<Stop>("a").size(), 1u) << row.name;
    EXPECT_EQ(s.Told<Stop>("a").at(0).cause, row.cause) << row.name;
    s.Return("a", NodeState::kRunning, seat);
    ASSERT_FALSE(s.Told<Stop>("a").empty()) << row.name;
    EXPECT_EQ(s.Told<Stop>("a").back().cause, row.cause) << row.name << ", after its connection broke";
  }
}

}  // namespace
}  // namespace muster::rendezvous
