// SPDX-License-Identifier: Apache-2.0
// Membership, rule by rule: which nodes are lost, and what a coordinator must not do while it may be cut off.
#include "rendezvous/membership.h"
#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Loss, AClosedStreamStopsTheOthersAtOnce) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Closes("b");
  EXPECT_EQ(s.state.phase, Phase::kStopping);
  EXPECT_EQ(s.Told<Stop>("a").at(0).reason, "node b (host host-b) was lost: its connection closed");
  s.Ready("a");
  EXPECT_TRUE(s.Started("a", 1));
  EXPECT_EQ(s.Seat("a").restart_count, 0) << "not charged";
  EXPECT_EQ(s.Seat("a").reason, "node b (host host-b) was lost: its connection closed");
}

TEST(Loss, SilenceIsALossAfterTheLimit) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Wait(milliseconds(14999), {"a"});
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  s.Wait(milliseconds(1), {"a"});
  EXPECT_EQ(s.state.phase, Phase::kStopping);
  EXPECT_THAT(s.reason, HasSubstr("silent for 15 s"));
  EXPECT_TRUE(s.hung_up.contains(s.peers["b"]));
}

TEST(Loss, BelowMinItGathersUpToTheJoinTimeout) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Join("b");
  s.Closes("b");
  s.Ready("a");
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Wait(seconds(500), {"a"});
  s.Join("c");
  EXPECT_EQ(s.Roster(), "a c");
  s.Closes("a");
  s.Ready("c");
  s.Wait(seconds(600), {"c"});
  EXPECT_EQ(s.End("c")->exit_code, 200);
  EXPECT_THAT(s.End("c")->reason,
              AllOf(HasSubstr("1 of 2 nodes came within 600 s: c"), HasSubstr("node a (host host-a) was lost")));
}

TEST(Loss, WhenMoreThanHalfFallSilentThisSideHoldsStill) {
  Stage s(Job(1, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Wait(seconds(16), {"a"});
  s.Ready("a");
  EXPECT_EQ(s.state.phase, Phase::kGathering) << "b and c may have made a majority of their own";
  EXPECT_THAT(s.LastNotice("a"), HasSubstr("may be this side's network"));
  Assignment last = s.Seat("a");
  Assignment b = last;
  b.node_rank = 1;
  b.seat = s.state.round.seats[1];
  s.Return("b", NodeState::kIdle, b);
  EXPECT_EQ(s.Roster(), "a b");
}

TEST(Loss, ANewProcessUnderASilentNameReleasesNothingAlone) {
  Stage s(Job(1, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Wait(seconds(16), {"a"});
  s.Ready("a");
  for (const char* name : {"b", "c"}) {
    EXPECT_EQ(s.state.phase, Phase::kGathering) << "the old b may have joined c before it died";
    Hello again = s.Greeting(name);
    again.node.incarnation = "2";
    s.Join(again);
  }
  EXPECT_EQ(s.Roster(), "a b c") << "none of the old ones is left";
}

TEST(Loss, AStartThatMayBeLostLeavesTheOldMajority) {
  Stage s(Job(1, 5));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Wait(seconds(30), {"a", "b", "c"});  // the last call
  ASSERT_EQ(s.Roster(), "a b c");
  for (const char* name : {"d", "e"}) s.Join(name);
  for (const char* name : {"a", "b", "c"}) s.Ready(name);
  ASSERT_EQ(s.Roster(), "a b c d e");
  s.Says("b", Beat{s.state.round.id});
  s.Wait(seconds(16), {"c", "d", "e"});
  for (const char* name : {"c", "d", "e"}) s.Ready(name);
  EXPECT_EQ(s.Roster(), "c d e") << "b is known to have heard of the new round: a alone is not a majority of the old";
}

TEST(Loss, TwoThatKnowOnlyTheOldRoundAreItsMajority) {
  Stage s(Job(1, 5));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Wait(seconds(30), {"a", "b", "c"});
  for (const char* name : {"d", "e"}) s.Join(name);
  for (const char* name : {"a", "b", "c"}) s.Ready(name);
  ASSERT_EQ(s.Roster(), "a b c d e");
  s.Wait(seconds(16), {"c", "d", "e"});
  for (const char* name : {"c", "d", "e"}) s.Ready(name);
  EXPECT_EQ(s.state.phase, Phase::kGathering);
}

TEST(Loss, ANodeThatDoubtsTheCoordinatorIsNotLost) {
  Stage s(Job(1, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  for (const char* name : {"b", "c"}) {
    s.Says(name, Doubt{});
    EXPECT_TRUE(s.hung_up.contains(s.peers[name]));
  }
  s.Ready("a");
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  EXPECT_THAT(s.LastNotice("a"), HasSubstr("may be this side's network"));
}

TEST(Loss, ASucceededNodeThatFellSilentCountsAsSilent) {
  Stage s(Job(1, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Succeeds("b");
  s.Wait(seconds(16), {"a"});
  s.Ready("a");
  EXPECT_EQ(s.state.phase, Phase::kGathering);
}

// b hears nothing, but what it says arrives: it is not lost. Its worker's end is a's loss of a peer.
TEST(Loss, WorkersOfANodeThatWasCutOffTakeTheirPeersWithThem) {
  for (const bool report_first : {true, false}) {
    Stage s(Job(2, 2, 1));
    s.Join("a");
    s.Join("b");
    if (report_first) s.Fails("a", 1, true);
    s.Says("b", rendezvous::Ready{s.RoundOf("b"), 2, std::nullopt, true});
    if (!report_first) s.Fails("a", 1, true);
    s.Ready("a");
    ASSERT_EQ(s.Roster(), "a b");
    EXPECT_EQ(s.Seat("a").reason, "node b (host host-b) was cut off, and stopped its workers");
    EXPECT_EQ(s.state.restarts.count, 0);
    EXPECT_EQ(s.Seat("a").cause, RoundCause::kMembership);
  }
  Stage s(Job(2, 2, 1));
  s.Join("a");
  s.Join("b");
  s.Fails("a", 137);
  s.Says("b", rendezvous::Ready{s.RoundOf("b"), 2, std::nullopt, true});
  s.Ready("a");
  EXPECT_EQ(s.state.restarts.count, 1) << "a failed by itself";
}

TEST(Loss, NoRoundBeginsOnANodeThatMissedTwoBeats) {
  Stage s(Job(1, 3, 1));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Wait(seconds(11), {"a", "b"});
  s.Fails("a", 3);
  s.Says("c", rendezvous::Ready{s.RoundOf("c"), 2});
  s.Wait(seconds(11), {"a", "b"});
  EXPECT_EQ(s.state.phase, Phase::kStopping);
  s.Ready("a");
  s.Ready("b");
  EXPECT_FALSE(s.Started("a", 1)) << "c was heard 11 s ago";
  s.Beats("c");
  EXPECT_EQ(s.Roster(), "a b c");
}

TEST(Loss, AReplacedNodeThatThawsIsToldThatItsRoundIsOver) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  Assignment seat = s.Seat("b");
  s.Closes("b");
  s.Ready("a");
  Hello twin = s.Greeting("b");
  twin.node.incarnation = "2";
  s.Join(twin);
  s.Ready("a");
  ASSERT_EQ(s.Roster(), "a b");
  s.hellos.erase("b");
  s.Return("b", NodeState::kRunning, seat);
  EXPECT_EQ(s.Told<Stop>("b").at(0).round, s.state.round.id);
}

TEST(Loss, OneOfTwoSilentIsNoMajority) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Wait(seconds(16), {"a"});
  s.Ready("a");
  EXPECT_TRUE(s.Started("a", 1));
}

TEST(Loss, AFrozenCoordinatorReadsItsSocketsFirst) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.now += seconds(60);
  s.Do(Tick{});
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  s.Beats("a");
  s.Beats("b");
  s.Wait(seconds(10), {"a", "b"});
  EXPECT_EQ(s.state.phase, Phase::kRunning);
}

TEST(Loss, ASucceededNodeWhoseStreamClosesCountsStill) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Join("b");
  s.Succeeds("a");
  s.Closes("a");
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  s.Succeeds("b");
  EXPECT_EQ(s.End("b")->exit_code, 0);
}

TEST(Loss, ASucceededNodeCountsStillWhenItsPlaceIsTakenUnderAnotherName) {
  JobOptions options = Job(2, 2, 1);
  options.indexed = true;
  for (bool fails : {false, true}) {
    SCOPED_TRACE(fails ? "the other fails" : "the other succeeds");
    Stage s(options);
    auto join = [&](const std::string& name, int index) {
      Hello hello = s.Greeting(name);
      hello.node.index = index;
      s.Join(hello);
    };
    join("a", 0);
    join("b", 1);
    s.Succeeds("b");
    s.Closes("b");
    join("c", 1);
    EXPECT_EQ(s.state.phase, Phase::kRunning);
    EXPECT_EQ(s.LastNotice("c"), "round 0 has all its 2 nodes; node c (host host-c) waits as a spare");
    if (fails) {
      s.Fails("a", 137);
      s.Ready("a");
      EXPECT_EQ(s.Roster(), "a c");
      EXPECT_TRUE(s.Started("c", 1));
      continue;
    }
    s.Succeeds("a");
    ASSERT_TRUE(s.End("c"));
    EXPECT_EQ(s.End("a")->exit_code, 0);
    EXPECT_EQ(s.End("c")->exit_code, 0);
  }
}

TEST(Loss, ASucceededNodeIsLostWhenARestartIsNeeded) {
  Stage s(Job(1, 2, 1));
  s.Join("a");
  s.Join("b");
  s.Succeeds("a");
  s.Closes("a");
  s.Fails("b", 3);
  s.Ready("b");
  EXPECT_EQ(s.Roster(), "b");
}

TEST(Loss, ANodeGivenUpThatReturnsIsWaitedFor) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  Assignment seat = s.Seat("b");
  s.Closes("b");
  s.Return("b", NodeState::kRunning, seat);
  EXPECT_TRUE(s.Stopped("b"));
  s.Ready("a");
  EXPECT_EQ(s.state.phase, Phase::kStopping) << "b's workers may still run";
  s.Ready("b");
  EXPECT_EQ(s.Roster(), "a b");
}

TEST(Loss, AStaleNodeIsToldToStopAndWaits) {
  Stage s(Job(1, 1));
  s.Join("a");
  Assignment seat = s.Seat("a");
  s.Closes("a");
  s.Join("b");
  ASSERT_TRUE(s.Started("b", 1)) << "a's workers die with it";
  s.Wait(seconds(30), {"b"});
  s.Return("a", NodeState::kRunning, seat);
  EXPECT_EQ(s.Told<Stop>("a").at(0).round, s.state.round.id) << "so it knows that it has no seat";
  s.Ready("a");
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  EXPECT_FALSE(s.Stopped("b"));
}

TEST(Loss, AnAgentOfAnEarlierJobStopsNobody) {
  for (NodeState doing : {NodeState::kRunning, NodeState::kIdle}) {
    SCOPED_TRACE(static_cast<int>(doing));
    Stage earlier(Job(2, 2));
    earlier.Join("x");
    earlier.Join("y");
    earlier.state.round.id.number = 7;
    Stage s(Job(2, 2));
    s.Join("a");
    s.Join("b");
    s.Return("x", doing, AssignmentFor(earlier.state.round, 0));
    EXPECT_EQ(s.state.phase, Phase::kRunning);
    EXPECT_FALSE(s.Stopped("a"));
    EXPECT_EQ(s.Stopped("x"), doing == NodeState::kRunning);
    if (doing == NodeState::kRunning) s.Ready("x");
    EXPECT_THAT(s.LastNotice("x"), HasSubstr("waits as a spare"));
    s.Closes("b");
    s.Ready("a");
    EXPECT_EQ(s.Roster(), "a x");
    EXPECT_EQ(s.Seat("x").id, (RoundId{2, 1})) << "newer than what it has run";
  }
}

TEST(Loss, AHigherTermIsProofThatTheRoundIsOver) {
  Stage other(Job(1, 2));
  other.Join("a");
  other.Join("b");
  other.state.round.id.term = 2;
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Return("b", NodeState::kRunning, AssignmentFor(other.state.round, 1));
  EXPECT_TRUE(s.Stopped("a"));
  EXPECT_EQ(s.state.phase, Phase::kReforming);
}

TEST(Loss, ALostStartIsSentAgain) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Join("b");
  s.Join("a");  // the same incarnation, idle: it never got its Start
  EXPECT_TRUE(s.Started("a", 0));
  EXPECT_EQ(s.state.phase, Phase::kRunning);
}

// Which nodes the status names as lost, as "name how seconds-since-heard".
std::string Lost(const Stage& s) {
  std::string text;
  for (const LostNode& lost : Describe(s.state, s.now).lost) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", lost.node, lost.closed ? "closed" : "silent",
                        std::chrono::duration_cast<seconds>(lost.last_heard).count());
  }
  return text;
}

TEST(Lost, IsNamedUntilItOrAnotherInItsPlaceComes) {
  Stage s(Job(1, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  EXPECT_EQ(Lost(s), "");
  s.Wait(seconds(3), {"a", "c"});
  s.Closes("b");
  EXPECT_EQ(Lost(s), "b closed 3");
  EXPECT_EQ(Describe(s.state, s.now).lost[0].host, "host-b");
  s.Ready("a");
  s.Ready("c");
  EXPECT_EQ(s.Roster(), "a c");
  s.Wait(seconds(2), {"a", "c"});
  EXPECT_EQ(Lost(s), "b closed 5") << "also while a round runs without it";
  s.Wait(seconds(16), {"a"});
  EXPECT_EQ(Lost(s), "b closed 21, c silent 16");
  EXPECT_FALSE(Describe(s.state, s.now).cut_off) << "one of two";
  s.Join("b");
  EXPECT_EQ(Lost(s), "c silent 16");
  Hello other = s.Greeting("c_2");
  other.node.host = "host-c";
  s.Join(other);
  EXPECT_EQ(Lost(s), "") << "a new agent of that host";
}

TEST(Lost, AnotherNodeOfItsIndexTakesItsPlace) {
  JobOptions options = Job(2, 2);
  options.indexed = true;
  Stage s(options);
  for (int index : {0, 1}) {
    Hello hello = s.Greeting(fmt::format("n{}", index));
    hello.node.index = index;
    s.Join(hello);
  }
  s.Closes("n1");
  EXPECT_EQ(Lost(s), "n1 closed 0");
  Hello other = s.Greeting("other");
  other.node.index = 1;
  s.Join(other);
  EXPECT_EQ(Lost(s), "");
}

TEST(Lost, WhoLeavesHasSucceededOrSeesTheEndIsNotLost) {
  Stage s(Job(1, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Succeeds("b");
  s.Closes("b");
  s.Leaves("c");
  s.Closes("c");
  EXPECT_EQ(Lost(s), "");
  s.Leaves("a");
  s.Closes("a");
  EXPECT_EQ(Lost(s), "");
}

TEST(Lost, ASideWithoutAMajoritySaysSo) {
  Stage s(Job(1, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Wait(seconds(16), {"a"});
  EXPECT_EQ(Lost(s), "b silent 16, c silent 16");
  EXPECT_TRUE(Describe(s.state, s.now).cut_off);
}

}  // namespace
}  // namespace muster::rendezvous
