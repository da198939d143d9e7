// SPDX-License-Identifier: Apache-2.0
// Membership without memory: a coordinator that restarted, or stands in.
#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

using testing::HasSubstr;

// Round (1, 4) with three nodes, made by a coordinator that is gone now.
Round OldRound(const std::string& coordinator = "") {
  Round round;
  round.id = {1, 4};
  round.restart_count = 2;
  round.max_restarts = 3;
  round.coordinator_node = coordinator;
  for (const char* name : {"a", "b", "c"}) {
    Seat seat;
    seat.node = Stage(Job(1, 3, 3)).Greeting(name).node;
    seat.first_rank = round.world_size;
    round.world_size += 2;
    round.seats.push_back(seat);
  }
  return round;
}

class Reform : public testing::Test {
 protected:
  Stage s{Job(1, 3, 3)};
  Round old = OldRound();
  void Return(const std::string& name, NodeState doing = NodeState::kRunning, std::optional<Report> report = {}) {
    s.Return(name, doing, AssignmentFor(old, *old.RankOf(name)), std::move(report));
  }
  void StandIn(const std::string& self, bool proof, std::vector<std::string> dead = {}) {
    s.state.given.self_node = self;
    s.Do(rendezvous::StandIn{AssignmentFor(old, *old.RankOf(self)), s.options, proof, std::move(dead)});
  }
};

TEST_F(Reform, GoesOnWithoutTouchingWorkersWhenAllAgree) {
  Return("a");
  EXPECT_EQ(s.state.phase, Phase::kReforming);
  Return("b");
  Return("c", NodeState::kSucceeded, Report{old.id, {}, seconds(1), {}});
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  for (const char* name : {"a", "b", "c"}) EXPECT_FALSE(s.Stopped(name)) << name;
  EXPECT_EQ(s.Roster(), "a b c");
  EXPECT_EQ(s.state.restarts.count, 2);
  s.Fails("a", 3);
  for (const char* name : {"a", "b", "c"}) s.Ready(name);
  EXPECT_TRUE(s.Started("a", 5));
  EXPECT_EQ(s.Seat("a").restart_count, 3);
  EXPECT_EQ(s.Seat("a").id, (RoundId{2, 5})) << "the old coordinator may have begun a (1, 5)";
}

// It was cut off when the round began. Now it stands in itself, or attends another stand-in.
TEST_F(Reform, ANodeThatMissedTheStartOfItsRoundHasItsSeat) {
  for (Seat& seat : old.seats) seat.node.control_address = seat.node.name + ":1";
  Round before = old;
  before.id = {1, 3};
  const auto hello = [&](const std::string& name, const Round& round, const std::string& address) {
    Hello made = s.Greeting(name);
    made.node.control_address = address;
    made.state = NodeState::kIdle;
    if (round.id.number >= 0) made.resume = AssignmentFor(round, *old.RankOf(name));
    return made;
  };
  const struct {
    const char* what;
    bool early, resumes;
    const char* address;
    bool seated;
  } rows[] = {
      {"it came before those who know of the round", true, true, "b:1", true},
      {"it came after them", false, true, "b:1", true},
      {"another process: the address differs", false, true, "b:2", false},
      {"another process: it was in no round", false, false, "b:1", false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    s = Stage(Job(1, 3, 3));
    s.state.given.self_node = "b";
    s.Do(rendezvous::StandIn{AssignmentFor(before, 1), s.options, false, {}});
    const Hello late = hello("b", row.resumes ? before : Round(), row.address);
    if (row.early) s.Join(late);
    s.Join(hello("c", old, "c:1"));
    if (!row.early) s.Join(late);
    EXPECT_EQ(s.state.counts.seated_living, row.seated ? 2 : 1);
    s.Join(hello("a", old, "a:1"));
    EXPECT_EQ(s.state.phase == Phase::kReforming, !row.seated);
    if (row.seated) {
      EXPECT_EQ(s.Roster(), "a b c");
      EXPECT_TRUE(s.Started("b", 5));
    }
  }
}

// Its own port was refused first, so that the coordinator's process is gone, and its node's workers with it.
TEST_F(Reform, OneThatHasTakenTheEndpointDoesNotWaitForTheCoordinatorsNode) {
  for (const char* address : {"10.0.0.1:29400", "10.0.0.9:4711"}) {
    s = Stage(Job(1, 3, 3));
    s.state.given.taken_endpoint = "10.0.0.1:29400";
    old = OldRound("a");
    old.seats[0].node.control_address = address;
    s.Join("spare");
    Return("b");
    EXPECT_EQ(s.state.phase, Phase::kReforming) << "c may run";
    Return("c");
    if (address == s.state.given.taken_endpoint) {
      EXPECT_EQ(s.Told<Stop>("b").at(0).reason, "node a was lost together with the coordinator");
      s.Ready("b");
      s.Ready("c");
      EXPECT_EQ(s.Roster(), "spare b c");
    } else {
      EXPECT_EQ(s.state.phase, Phase::kReforming) << "a stand-in coordinated the job, at another address";
    }
  }
}

TEST_F(Reform, AStandInKeepsWhatItsDriverSaid) {
  s.state.given.endpoint_hint = "the endpoint is localhost";
  s.Do(Wanted{2});
  StandIn("b", true);
  EXPECT_EQ(s.state.given.wanted_nodes, 2)
      << "else an elastic job waits for its most nodes, or takes newcomers one by one";
  EXPECT_EQ(s.state.given.endpoint_hint, "the endpoint is localhost");
  EXPECT_EQ(s.state.given.run_id, "job");
}

TEST(Resumed, ARoundThatThisJobCannotHaveHadIsRefused) {
  struct Row {
    int rank;
    int count;
    bool refused;
  };
  const Row rows[] = {{1, 2, false}, {0, 1, false}, {0, 3, true}, {5, 1 << 24, true},
                      {2, 2, true},  {-1, 2, true}, {0, 0, true}};
  for (const Row& row : rows) {
    Stage s(Job(1, 2));
    Assignment told;
    told.id = {1, 4};
    told.node_rank = row.rank;
    told.node_count = row.count;
    s.Return("a", NodeState::kRunning, told);
    EXPECT_EQ(s.Refusal(s.peers["a"]),
              row.refused ? fmt::format("node a (host host-a) resumes a round in which it was node rank {} of {}: "
                                        "this job has at most 2 nodes",
                                        row.rank, row.count)
                          : "");
    EXPECT_EQ(s.state.round.seats.size(), row.refused ? 0u : static_cast<size_t>(row.count));
  }
}

TEST_F(Reform, AMissingNodeIsLostAfterTheHeartbeatLimit) {
  Return("a");
  Return("b");
  s.Wait(milliseconds(14999), {"a", "b"});
  EXPECT_EQ(s.state.phase, Phase::kReforming);
  s.Wait(milliseconds(1), {"a", "b"});
  EXPECT_TRUE(s.Stopped("a"));
  s.Ready("a");
  s.Ready("b");
  EXPECT_EQ(s.Roster(), "a b");
  EXPECT_EQ(s.Seat("a").restart_count, 2) << "not charged";
}

TEST_F(Reform, AnOlderRoundIsStoppedAndTheNewestHolds) {
  Round older = OldRound();
  older.id.number = 3;
  s.Return("a", NodeState::kRunning, AssignmentFor(older, 0));
  Return("b");
  EXPECT_TRUE(s.Stopped("a"));
  EXPECT_FALSE(s.Stopped("b"));
  Return("c");
  s.Ready("a");
  s.Wait(seconds(15), {"a", "b", "c"});
  s.Ready("b");
  s.Ready("c");
  EXPECT_EQ(s.state.round.id.number, 5);
  EXPECT_EQ(s.state.round.seats.size(), 3u);
}

TEST_F(Reform, AReportedFailureIsDecidedAsEver) {
  Return("a");
  Return("b", NodeState::kStopping, Report{old.id, {Failure(9, 2)}, seconds(1), {}});
  Return("c");
  EXPECT_TRUE(s.Stopped("a"));
  for (const char* name : {"a", "b", "c"}) s.Ready(name);
  EXPECT_EQ(s.Seat("a").restart_count, 3);
}

TEST_F(Reform, AStreamThatClosesMeanwhileMayComeBack) {
  Return("a");
  s.Closes("a");
  Return("b");
  Return("c");
  EXPECT_EQ(s.state.phase, Phase::kReforming);
  Return("a");
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  EXPECT_FALSE(s.Stopped("a"));
}

TEST_F(Reform, ANewcomerWaits) {
  s.Join("x");
  Return("a");
  Return("b");
  Return("c");
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  EXPECT_FALSE(s.Started("x", 0));
}

TEST_F(Reform, StandInWithProofActsAsSoonAsTheOthersAttend) {
  old = OldRound("a");
  StandIn("b", true);
  Return("b");
  EXPECT_EQ(s.Told<Welcome>("b").at(0).term, 2u);
  EXPECT_EQ(s.state.phase, Phase::kReforming);
  Return("c");
  EXPECT_TRUE(s.Stopped("b"));
  EXPECT_THAT(s.Told<Stop>("b").at(0).reason, HasSubstr("node a was lost"));
  s.Ready("b");
  s.Ready("c");
  EXPECT_EQ(s.Roster(), "b c");
  EXPECT_EQ(s.Seat("b").id, (RoundId{2, 5}));
  EXPECT_EQ(s.Seat("b").coordinator_node, "b");
}

TEST_F(Reform, AStandInSaysWhichNodesItHasLost) {
  for (bool proof : {true, false}) {
    s = Stage(Job(1, 3, 3));
    old = OldRound("a");
    old.seats[0].node.control_address = "10.0.0.1:29400";
    StandIn("b", proof);
    Return("b");
    Return("c");
    s.Wait(seconds(15), {"b", "c"});
    const StatusReport report = Describe(s.state, s.now);
    ASSERT_EQ(report.lost.size(), 1U) << proof;
    EXPECT_EQ(report.lost[0].node, "a");
    EXPECT_EQ(report.lost[0].control_address, "10.0.0.1:29400");
    EXPECT_EQ(report.lost[0].closed, proof);
    EXPECT_GE(report.lost[0].last_heard, seconds(15));
    EXPECT_FALSE(report.cut_off);
    Return("a");
    EXPECT_TRUE(Describe(s.state, s.now).lost.empty());
  }
}

TEST_F(Reform, StandInOfTwoNodesActsOnProofAlone) {
  old = OldRound("a");
  old.seats.pop_back();
  old.world_size = 4;
  StandIn("b", true);
  Return("b");
  s.Ready("b");
  EXPECT_EQ(s.Roster(), "b");
}

// It has been silent for so long that it fences its workers, and nobody else may come at its place. Without the new
// agents the stand-in would wait for a majority that cannot come.
TEST_F(Reform, StandInAtTheEndpointGoesOnWhenAllThatMissHaveBeenReplaced) {
  const struct {
    const char* what;
    int min, max;
    bool on_call, in_pods, replaced, goes_on;
  } rows[] = {{"fixed size, at the endpoint", 2, 2, false, false, true, true},
              {"nobody came", 2, 2, false, true, false, false},
              {"elsewhere: the new agents may have been with another coordinator", 2, 2, true, true, true, false},
              {"elastic: the other side may go on alone", 1, 2, false, false, true, false},
              {"elastic, in pods: the other one has ended", 1, 2, false, true, true, true},
              {"it may have had a third node", 1, 3, false, true, true, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    s = Stage(Job(row.min, row.max, 3));
    old = OldRound("b");
    old.seats.pop_back();
    old.world_size = 4;
    s.state.given.on_call = row.on_call;
    s.state.given.in_pods = row.in_pods;
    StandIn("a", false);
    Return("a");
    if (row.replaced) s.Join("b");
    s.Wait(milliseconds(14999), row.replaced ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"a"});
    EXPECT_FALSE(s.Stopped("a")) << "the old node's workers may run";
    s.Wait(milliseconds(1), row.replaced ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"a"});
    EXPECT_EQ(s.Stopped("a"), row.goes_on);
    if (!row.goes_on) continue;
    s.Ready("a");
    EXPECT_EQ(s.Roster(), "a b");
  }
}

TEST_F(Reform, StandInOfACoordinatorOfItsOwnTouchesNobody) {
  StandIn("a", true);
  for (const char* name : {"a", "b", "c"}) Return(name);
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  EXPECT_EQ(s.state.term, 2u);
  EXPECT_FALSE(s.Stopped("a"));
}

TEST_F(Reform, StandInWithoutMajorityHoldsTheWorkersAndEndsWith201) {
  for (bool proof : {true, false}) {
    s = Stage(Job(1, 3, 3));
    old = OldRound("a");
    StandIn("b", proof);
    Return("b");
    s.Wait(seconds(599), {"b"});
    EXPECT_FALSE(s.Stopped("b")) << proof;
    s.Wait(seconds(1), {"b"});
    ASSERT_TRUE(s.End("b")) << proof;
    EXPECT_EQ(s.End("b")->exit_code, 201);
  }
}

TEST_F(Reform, WhoRefusedOnTheWayIsNotWaitedFor) {
  old = OldRound("a");
  StandIn("c", true, {"b"});
  Return("c");
  s.Ready("c");
  EXPECT_EQ(s.Roster(), "c");
}

TEST_F(Reform, StandInWithoutProofActsWithAMajorityAfterTheLimit) {
  old = OldRound("a");
  StandIn("b", false);
  Return("b");
  Return("c");
  s.Wait(milliseconds(14999), {"b", "c"});
  EXPECT_FALSE(s.Stopped("b"));
  s.Wait(milliseconds(1), {"b", "c"});
  EXPECT_TRUE(s.Stopped("b"));
}

TEST_F(Reform, ADeathLearnedLaterLowersTheMajority) {
  old = OldRound("a");
  StandIn("b", true);
  Return("b");
  s.Wait(seconds(20), {"b"});
  EXPECT_EQ(s.state.phase, Phase::kReforming) << "c may have a stand-in of its own";
  s.Do(Gone{"c"});
  EXPECT_TRUE(s.Stopped("b"));
}

TEST_F(Reform, ADeathLearnedWithoutProofCountsForNothing) {
  old = OldRound("a");
  StandIn("b", false);
  Return("b");
  s.Wait(seconds(20), {"b"});
  s.Do(Gone{"c"});
  EXPECT_EQ(s.state.phase, Phase::kReforming);
}

TEST_F(Reform, AKnockBeforeItStandsInIsKept) {
  old = OldRound("a");
  s.state.given.self_node = "b";
  Return("c");
  EXPECT_TRUE(s.told[s.peers["c"]].empty());
  StandIn("b", true);
  EXPECT_EQ(s.Told<Welcome>("c").size(), 1u);
  EXPECT_FALSE(s.state.members.contains("c")) << "it may have gone on to another successor meanwhile";
  s.Beats("c");
  EXPECT_TRUE(s.state.members.at("c").in_round);
}

TEST_F(Reform, AKnockIsKeptUpToDate) {
  old = OldRound("a");
  s.state.given.self_node = "b";
  Return("c");
  s.Says("c", Report{old.id, {Failure(3)}, seconds(1), {}});
  s.Says("c", rendezvous::Ready{old.id, 7});
  StandIn("b", true);
  Return("b");
  s.Beats("c");
  EXPECT_EQ(s.state.members.at("c").node.store_port, 7);
  EXPECT_TRUE(UsesBudget(s.state.stopping.why.cause)) << "its failure counts";
}

TEST_F(Reform, WhoKnocksAndGoesOnIsForgotten) {
  for (const NodeMessage& going : {NodeMessage(Doubt{}), NodeMessage(Leave{"preempted"})}) {
    Stage fresh(Job(1, 3));
    s = fresh;
    s.state.given.self_node = "b";
    s.state.given.on_call = true;
    Return("c");
    s.Says("c", going);
    EXPECT_TRUE(s.hung_up.contains(s.peers["c"]));
    EXPECT_TRUE(s.state.early.empty());
  }
}

TEST_F(Reform, OnCallNothingBeginsBeforeItStandsIn) {
  s.state.given.self_node = "b";
  s.state.given.on_call = true;
  s.Join("d");
  Return("a");  // also a node whose last coordinator was this agent
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  EXPECT_TRUE(s.state.members.empty());
  EXPECT_TRUE(s.told[s.peers["a"]].empty());
}

// Two that wait for each other would wait for ever.
TEST_F(Reform, AStandInThatWaitsForMostOfTheNodesYieldsToACoordinatorThatHasBegunNoRound) {
  const std::string endpoint = "10.0.0.1:29400";
  const Supersede waits{"job", 2, "10.0.0.2:4711", true}, acts{"job", 2, "10.0.0.2:4711", false};
  State empty;
  EXPECT_EQ(AnswerTo(acts, {}, endpoint, empty), std::nullopt);
  EXPECT_EQ(AnswerTo(waits, Redirect{1, "10.0.0.3:4711"}, endpoint, empty), std::nullopt) << "it coordinates nothing";
  EXPECT_EQ(AnswerTo(waits, {}, endpoint, empty), (Redirect{3, endpoint}));
  EXPECT_EQ(empty.term, 3u) << "its rounds are above those of the stand-in";

  Return("c");  // to a coordinator without memory
  ASSERT_EQ(s.state.phase, Phase::kReforming);
  State collecting = s.state;
  EXPECT_EQ(AnswerTo(acts, {}, endpoint, collecting), std::nullopt);
  EXPECT_EQ(AnswerTo(waits, {}, endpoint, collecting), (Redirect{3, endpoint}));

  // The node that told it of the round is silent again.
  State gathering = s.state;
  gathering.phase = Phase::kGathering;
  EXPECT_EQ(AnswerTo(waits, {}, endpoint, gathering), (Redirect{3, endpoint}));
  gathering = s.state;
  gathering.phase = Phase::kGathering;
  gathering.own_round = true;
  EXPECT_EQ(AnswerTo(waits, {}, endpoint, gathering), std::nullopt) << "others may be in its round";

  StandIn("b", false);
  EXPECT_EQ(AnswerTo(Supersede{"job", 9, "10.0.0.2:4711", true}, {}, endpoint, s.state), std::nullopt);
}

TEST_F(Reform, AMinorityThatReturnsHoldsStill) {
  Return("c");
  s.Wait(seconds(15), {"c"});
  EXPECT_TRUE(s.Stopped("c"));
  s.Ready("c");
  EXPECT_EQ(s.state.phase, Phase::kGathering) << "a and b may have a stand-in";
  EXPECT_THAT(s.LastNotice("c"), HasSubstr("may be this side's network"));
}

TEST_F(Reform, AMinorityGoesOnWhenTheOthersWereReplacedBeforeOrLater) {
  for (const bool before : {true, false}) {
    s = Stage(Job(3, 3, 3));
    old = OldRound("a");
    const auto replace = [this] {
      for (const char* name : {"a", "b"}) s.Join(name);
    };
    if (before) replace();
    Return("c");
    s.Wait(seconds(15), before ? std::vector<std::string>{"a", "b", "c"} : std::vector<std::string>{"c"});
    EXPECT_TRUE(s.Stopped("c"));
    s.Ready("c");
    if (!before) replace();
    EXPECT_EQ(s.state.phase, Phase::kRunning) << before;
  }
}

TEST_F(Reform, ATermSomebodyElseClaimedIsNotClaimedAgain) {
  old = OldRound("a");
  StandIn("b", false);
  Return("b");
  EXPECT_EQ(s.state.term, 2u);
  Hello hello = s.Greeting("c");
  hello.resume = AssignmentFor(old, 2);
  hello.state = NodeState::kRunning;
  hello.term = 2;  // of another stand-in that the node attended
  s.Join(hello);
  EXPECT_EQ(s.state.term, 3u);
}

}  // namespace
}  // namespace muster::rendezvous
