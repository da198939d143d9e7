// SPDX-License-Identifier: Apache-2.0
// Membership, rule by rule (docs/rendezvous.md): which nodes are admitted, when a round starts, with which ranks.
#include "rendezvous/membership.h"

#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// --- greetings ---

TEST(Greeting, IsWelcomedWithTermAndBeat) {
  Stage s(Job(2, 2));
  s.Join("a");
  auto welcome = s.Told<Welcome>("a");
  ASSERT_EQ(welcome.size(), 1u);
  EXPECT_EQ(welcome[0].term, 1u);
  EXPECT_EQ(welcome[0].beat_interval, seconds(5));
  EXPECT_EQ(s.LastNotice("a"), "waiting for 1 more node: have 1 of 2 (up to 600 s)");
}

TEST(Greeting, OtherOptionsAreRefusedWithBothValues) {
  struct Row {
    const char* name;
    std::function<void(JobOptions&)> change;
    const char* ours;
    const char* theirs;
  };
  const Row rows[] = {
      {"nnodes", [](JobOptions& o) { o.max_nodes = 3; }, "2:2", "2:3"},
      {"max restarts", [](JobOptions& o) { o.max_restarts = 7; }, "3", "7"},
      {"restart policy", [](JobOptions& o) { o.policy = RestartPolicy::kNever; }, "on-failure", "never"},
      {"scale-up", [](JobOptions& o) { o.scale_up = ScaleUp::kAtRestart; }, "now", "at-restart"},
      {"rendezvous", [](JobOptions& o) { o.indexed = true; }, "dynamic", "static"},
      {"retry codes",
       [](JobOptions& o) {
         o.overrides.retry = {3, 4};
       },
       "none", "3,4"},
      {"fatal codes", [](JobOptions& o) { o.overrides.fatal = {9}; }, "none", "9"},
      {"restart window", [](JobOptions& o) { o.restart_window = seconds(60); }, "none", "60 s"},
      {"no-progress limit", [](JobOptions& o) { o.no_progress_limit = 3; }, "0", "3"},
      {"join timeout", [](JobOptions& o) { o.join_timeout = seconds(60); }, "600 s", "60 s"},
      {"last call timeout", [](JobOptions& o) { o.last_call = milliseconds(1500); }, "30 s", "1.5 s"},
      {"heartbeat timeout", [](JobOptions& o) { o.heartbeat_timeout = seconds(9); }, "15 s", "9 s"},
  };
  for (const Row& row : rows) {
    Stage s(Job(2, 2, 3));
    s.Join("a");
    Hello other = s.Greeting("b");
    row.change(other.options);
    PeerId peer = s.Join(other);
    EXPECT_THAT(s.Refusal(peer),
                AllOf(HasSubstr(row.name), HasSubstr(row.ours), HasSubstr(row.theirs), HasSubstr("node b")));
    EXPECT_TRUE(s.hung_up.contains(peer)) << row.name;
    EXPECT_EQ(s.ToldPeer<Refuse>(peer)[0].exit_code, kExitBadConfiguration);
  }
}

// The controller has made the Job again, with the rest of its budget. A pod of the Job before it still runs.
TEST(Greeting, PodsMayHaveDifferentBudgets) {
  Stage s(Job(2, 2, 3));
  s.state.given.in_pods = true;
  s.Join("a");
  Hello other = s.Greeting("b");
  other.options.max_restarts = 2;
  s.Join(other);
  EXPECT_EQ(s.Roster(), "a b");
  EXPECT_EQ(s.Seat("b").max_restarts, 3);
}

TEST(Greeting, OtherProtocolIsRefusedWithBothValues) {
  Stage s(Job(1, 1));
  Hello hello = s.Greeting("a");
  hello.protocol = 77;
  EXPECT_THAT(s.Refusal(s.Join(hello)), AllOf(HasSubstr("77"), HasSubstr(fmt::format("{}", kRendezvousProtocol))));
}

TEST(Greeting, ImpossibleValuesAreRefused) {
  {
    Stage s(Job(3, 2));
    EXPECT_THAT(s.Refusal(s.Join("a")), HasSubstr("3:2"));
  }
  {
    Stage s(Job(1, 1));
    EXPECT_THAT(s.Refusal(s.Join(s.Greeting("a", 0))), HasSubstr("at least 1 worker"));
  }
}

TEST(Greeting, IndexMustBeThereAndInRange) {
  struct Row {
    std::optional<int> index;
    const char* refusal;
  };
  const Row rows[] = {{std::nullopt, "no node rank"}, {-1, "node rank -1"}, {2, "node rank 2"}, {1, ""}, {0, ""}};
  for (const Row& row : rows) {
    JobOptions options = Job(2, 2);
    options.indexed = true;
    Stage s(options);
    Hello hello = s.Greeting("a");
    hello.node.index = row.index;
    PeerId peer = s.Join(hello);
    if (*row.refusal == 0) {
      EXPECT_EQ(s.Refusal(peer), "");
    } else {
      EXPECT_THAT(s.Refusal(peer), HasSubstr(row.refusal));
    }
  }
}

// --- gathering ---

TEST(Gathering, StartsWhenMaxAreReady) {
  Stage s(Job(2, 2));
  s.Join("a");
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Join("b");
  EXPECT_EQ(s.state.phase, Phase::kRunning);
  EXPECT_EQ(s.Roster(), "a b");
  EXPECT_EQ(s.Seat("a").world_size, 4);
  EXPECT_EQ(s.Seat("b").seat.first_rank, 2);
  EXPECT_EQ(s.Seat("b").node_rank, 1);
  EXPECT_EQ(s.Seat("b").master_host, "a");
  EXPECT_EQ(s.Seat("a").id, s.Seat("b").id);
}

TEST(Gathering, MinWaitsForTheLastCall) {
  Stage s(Job(1, 3));
  s.Join("a");
  s.Wait(seconds(20), {"a"});
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Join("b");
  s.Wait(seconds(29), {"a", "b"});
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Wait(seconds(1), {"a", "b"});
  EXPECT_EQ(s.Roster(), "a b");
}

TEST(Gathering, TheLastCallIsNotWaitedForWhereAllAreThereThatAreWanted) {
  Stage s(Job(1, 4));
  s.Do(Wanted{2});
  s.Join("a");
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Join("b");
  EXPECT_EQ(s.Roster(), "a b");
  EXPECT_EQ(s.state.round.reason, "all 2 nodes are ready");
}

TEST(Gathering, HowManyAreWantedMayChangeMeanwhile) {
  struct {
    int wanted;
    const char* roster;
  } const rows[] = {{4, ""}, {3, "a b c"}, {2, "a b c"}, {9, ""}};
  for (const auto& row : rows) {
    Stage s(Job(2, 4));
    s.Do(Wanted{4});
    for (const char* name : {"a", "b", "c"}) s.Join(name);
    EXPECT_EQ(s.state.phase, Phase::kGathering);
    s.Do(Wanted{row.wanted});
    EXPECT_EQ(s.state.phase == Phase::kRunning ? s.Roster() : "", row.roster) << row.wanted;
  }
}

TEST(Gathering, NothingBeginsOnceTheRunHasSucceededOnOtherNodes) {
  Stage s(Job(1, 4));
  s.Do(Wanted{0});
  s.Join("a");
  ASSERT_EQ(s.state.phase, Phase::kFinished);
  EXPECT_EQ(s.state.verdict->exit_code, 0);

  s = Stage(Job(1, 4));
  s.Do(Wanted{1});
  s.Join("a");
  s.Do(Wanted{0});
  EXPECT_EQ(s.state.phase, Phase::kRunning) << "it has begun";
  s.Fails("a", 3);
  s.Ready("a");
  ASSERT_EQ(s.state.phase, Phase::kFinished);
  EXPECT_EQ(s.state.verdict->exit_code, 3);
}

TEST(Gathering, FewerThanWantedStartAfterTheLastCall) {
  Stage s(Job(1, 4));
  s.Do(Wanted{3});
  s.Join("a");
  s.Join("b");
  s.Wait(seconds(29), {"a", "b"});
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Wait(seconds(1), {"a", "b"});
  EXPECT_EQ(s.Roster(), "a b");
  EXPECT_EQ(s.state.round.reason, "2 of 3 nodes are ready and the last call is over");
}

TEST(Gathering, FewerThanWantedDoNotBeginWhereNobodyFindsThem) {
  Stage s(Job(1, 2));
  s.Do(Hidden{"the name does not exist"});
  s.Join("a");
  s.Wait(seconds(100), {"a"});
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  EXPECT_EQ(s.state.reason, "have 1 of 2 nodes, and no other one can come yet: the name does not exist (up to 600 s)");
  s.Do(Hidden{""});
  s.Wait(seconds(29), {"a"});
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  EXPECT_EQ(s.state.reason, "have 1 of 2 nodes, 1 at least: waiting 30 s for more");
  s.Wait(seconds(1), {"a"});
  EXPECT_EQ(s.Roster(), "a");

  s = Stage(Job(1, 2));
  s.Do(Hidden{"it leads elsewhere"});
  s.Join("a");
  s.Join("b");
  EXPECT_EQ(s.Roster(), "a b") << "all are there";
  s.Do(Hidden{"it leads elsewhere"});
  s.Closes("b");
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a") << "the run goes on";
}

TEST(Gathering, WhereNobodyEverFindsThemFewerBeginAfterTheJoinTimeout) {
  Stage s(Job(1, 2));
  s.Do(Hidden{"there is no DNS here"});
  s.Join("a");
  s.Wait(seconds(599), {"a"});
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Wait(seconds(1), {"a"});
  EXPECT_EQ(s.Roster(), "a");
}

TEST(Gathering, BelowMinItEndsWith200AndSaysWhoCame) {
  Stage s(Job(3, 3));
  s.Join("a");
  s.Join("b");
  s.Wait(seconds(599), {"a", "b"});
  EXPECT_FALSE(s.End("a"));
  s.Wait(seconds(1), {"a", "b"});
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->exit_code, 200);
  EXPECT_EQ(s.End("a")->reason, "2 of 3 nodes came within 600 s: a, b");
  EXPECT_EQ(s.End("a"), s.End("b"));
}

TEST(Gathering, MissingIndexesAreNamed) {
  JobOptions options = Job(4, 4);
  options.indexed = true;
  Stage s(options);
  for (int index : {0, 2}) {
    Hello hello = s.Greeting(fmt::format("n{}", index));
    hello.node.index = index;
    s.Join(hello);
  }
  s.Wait(seconds(600), {"n0", "n2"});
  EXPECT_EQ(s.End("n0")->reason, "2 of 4 nodes came within 600 s, node ranks are missing: 1, 3");
}

TEST(Gathering, OfManyMissingIndexesTheFirstAreNamed) {
  JobOptions options = Job(1 << 24, 1 << 24);
  options.indexed = true;
  Stage s(options);
  Hello hello = s.Greeting("a");
  hello.node.index = 2;
  s.Join(hello);
  s.Wait(seconds(600), {"a"});
  EXPECT_EQ(s.End("a")->reason,
            "1 of 16777216 nodes came within 600 s, node ranks are missing: 0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "
            "14, 15, 16 and 16777199 more");
}

TEST(Gathering, NoticesFollowTheCount) {
  Stage s(Job(3, 3));
  s.Join("a");
  EXPECT_EQ(s.LastNotice("a"), "waiting for 2 more nodes: have 1 of 3 (up to 600 s)");
  s.Join("b");
  EXPECT_EQ(s.LastNotice("a"), "waiting for 1 more node: have 2 of 3 (up to 600 s)");
  EXPECT_EQ(s.LastNotice("b"), "waiting for 1 more node: have 2 of 3 (up to 600 s)");
  s.Closes("b");
  EXPECT_EQ(s.LastNotice("a"), "waiting for 2 more nodes: have 1 of 3 (up to 600 s)");
}

TEST(Gathering, ALostWaiterIsForgotten) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Closes("a");
  s.Join("b");
  EXPECT_EQ(s.state.phase, Phase::kGathering);
  s.Join("c");
  EXPECT_EQ(s.Roster(), "b c");
}

TEST(Gathering, ALeavingWaiterIsNotSeated) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Leaves("a");
  EXPECT_EQ(s.End("a")->exit_code, 143);
}

TEST(Gathering, WhoWasRefusedIsNamedWhereSomebodyIsMissing) {
  Stage s(Job(2, 2));
  s.Join("a");
  Hello other = s.Greeting("b");
  other.options.max_restarts = 7;
  s.Join(other);
  const std::string refusal =
      "node b (host host-b) has max restarts 7, the job's first node had 0: give every node the same value";
  EXPECT_THAT(s.refusals, ElementsAre(refusal));
  s.Wait(s.options.join_timeout, {"a"});
  EXPECT_EQ(s.End("a")->reason, "1 of 2 nodes came within 600 s: a; the last one refused: " + refusal);
}

TEST(Gathering, AnEndpointThatEveryMachineTakesForItselfIsNamed) {
  Stage s(Job(3, 3));
  s.state.given.endpoint_hint = "the endpoint is localhost";
  s.Join("a");
  EXPECT_EQ(s.LastNotice("a"), "waiting for 2 more nodes: have 1 of 3 (up to 600 s); the endpoint is localhost");
  s.Join("b");  // so other nodes do find the endpoint
  EXPECT_EQ(s.LastNotice("a"), "waiting for 1 more node: have 2 of 3 (up to 600 s)");
  s.Wait(s.options.join_timeout, {"a", "b"});
  EXPECT_EQ(s.End("a")->reason, "2 of 3 nodes came within 600 s: a, b; the endpoint is localhost");
}

TEST(Gathering, ARefusalOfThePastIsNotNamed) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Do(TurnedAway{"10.0.0.7: no token"});
  EXPECT_THAT(s.refusals, ElementsAre("10.0.0.7: no token"));
  s.Join("b");
  s.Closes("b");
  s.Ready("a");
  s.Wait(s.options.join_timeout, {"a"});
  EXPECT_THAT(s.End("a")->reason, AllOf(HasSubstr("1 of 2 nodes"), Not(HasSubstr("token"))));
}

// --- ranks ---

TEST(Ranks, ByIndexWhereAllHaveOne) {
  Stage s(Job(3, 3));
  for (int index : {2, 0, 1}) {
    Hello hello = s.Greeting(fmt::format("n{}", index));
    hello.node.index = index;
    s.Join(hello);
  }
  EXPECT_EQ(s.Roster(), "n0 n1 n2");
}

// Each row: name, address, pid and index of the nodes in the order of their arrival; the first round's roster.
TEST(Ranks, ByIndexThenInTorchrunsOrder) {
  struct Came {
    const char* name;
    const char* address;
    int64_t pid;
    std::optional<int> index;
  };
  struct Row {
    std::vector<Came> nodes;
    const char* roster;
  };
  const Row rows[] = {
      {{{"c", "h3", 1, {}}, {"a", "h1", 1, {}}, {"b", "h2", 1, {}}}, "a b c"},
      {{{"b", "h10", 1, {}}, {"a", "h2", 1, {}}, {"c", "h1", 1, {}}}, "c b a"},  // as text
      {{{"a", "h", 10, {}}, {"b", "h", 9, {}}, {"c", "g", 11, {}}}, "c b a"},
      {{{"b", "h", 1, {}}, {"c", "h", 1, {}}, {"a", "h", 1, {}}}, "a b c"},
      {{{"z", "h1", 1, {}}, {"a", "h2", 1, 0}, {"b", "h0", 1, {}}}, "a b z"},  // only node 0 has an index
      {{{"a", "h1", 1, 7}, {"b", "h2", 1, 3}, {"c", "h3", 1, 5}}, "b c a"},    // with gaps
      {{{"b", "h2", 1, 0}, {"a", "h1", 1, 0}, {"c", "h0", 1, 0}}, "c a b"},    // equal indexes decide nothing
  };
  for (const Row& row : rows) {
    Stage s(Job(3, 3));
    for (const Came& came : row.nodes) {
      Hello hello = s.Greeting(came.name);
      hello.node.address = came.address;
      hello.node.pid = came.pid;
      hello.node.index = came.index;
      s.Join(hello);
    }
    EXPECT_EQ(s.Roster(), row.roster);
  }
}

TEST(Ranks, AreTheSameAfterARestartWhoeverIsReadyFirst) {
  for (bool indexed : {false, true}) {
    Stage s(Job(3, 3, 3));
    int index = 3;
    for (const char* name : {"c", "b", "a"}) {
      Hello hello = s.Greeting(name);
      hello.node.address = name;
      if (--index; indexed) hello.node.index = index;
      s.Join(hello);
    }
    EXPECT_EQ(s.Roster(), "a b c");
    s.Fails("b", 1);
    for (const char* name : {"c", "b", "a"}) s.Ready(name);
    EXPECT_EQ(s.Roster(), "a b c");
    EXPECT_TRUE(s.Started("a", 1));
  }
}

TEST(Ranks, ANodeThatJoinsMovesAnotherOnlyByItsIndex) {
  for (bool indexed : {false, true}) {
    Stage s(Job(1, 3));
    auto join = [&](const char* name, int index) {
      Hello hello = s.Greeting(name);
      hello.node.address = name;
      if (indexed) hello.node.index = index;
      s.Join(hello);
    };
    join("b", 1);
    join("c", 2);
    s.Wait(s.options.last_call, {"b", "c"});
    EXPECT_EQ(s.Roster(), "b c");
    join("a", 0);
    s.Ready("b");
    s.Ready("c");
    EXPECT_EQ(s.Roster(), indexed ? "a b c" : "b c a");
  }
}

TEST(Ranks, ANewProcessOfNodeZeroIsRankZeroAgain) {
  Stage s(Job(2, 3));
  for (int index : {0, 1, 2}) {
    Hello hello = s.Greeting(fmt::format("n{}", index));
    hello.node.index = index;
    s.Join(hello);
  }
  s.Closes("n0");
  s.Ready("n1");
  s.Ready("n2");
  EXPECT_EQ(s.Roster(), "n1 n2");
  Hello hello = s.Greeting("n0 made anew");
  hello.node.index = 0;
  s.Join(hello);
  s.Ready("n1");
  s.Ready("n2");
  EXPECT_EQ(s.Roster(), "n0 made anew n1 n2");
}

TEST(Ranks, SlotsAndRolesAreSummedUp) {
  Stage s(Job(3, 3));
  Hello hello = s.Greeting("a", 2);
  hello.node.role = "trainer";
  s.Join(hello);
  hello = s.Greeting("b", 3);
  hello.node.role = "reader";
  s.Join(hello);
  hello = s.Greeting("c", 1);
  hello.node.role = "trainer";
  s.Join(hello);
  EXPECT_EQ(s.Seat("c").seat.first_rank, 5);
  EXPECT_EQ(s.Seat("c").seat.first_role_rank, 2);
  EXPECT_EQ(s.Seat("c").seat.role_world_size, 3);
  EXPECT_EQ(s.Seat("b").seat.first_role_rank, 0);
  EXPECT_EQ(s.Seat("b").seat.role_world_size, 3);
  EXPECT_EQ(s.Seat("a").world_size, 6);
}

TEST(Ranks, SurvivorsKeepTheirPlaceAndASpareFillsTheVacantOne) {
  Stage s(Job(3, 3));
  for (const char* name : {"a", "b", "c", "spare"}) s.Join(name);
  EXPECT_THAT(s.LastNotice("spare"), HasSubstr("waits as a spare"));
  s.Closes("b");
  s.Ready("a");
  s.Ready("c");
  EXPECT_EQ(s.Roster(), "a spare c");
  EXPECT_TRUE(s.Started("spare", 1));
}

TEST(Ranks, WithoutASpareTheyCloseUp) {
  Stage s(Job(1, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Closes("a");
  s.Ready("b");
  s.Ready("c");
  EXPECT_EQ(s.Roster(), "b c");
  EXPECT_EQ(s.Seat("b").seat.first_rank, 0);
  EXPECT_EQ(s.Seat("b").master_host, "b");
  EXPECT_EQ(s.Seat("b").master_port, 2) << "the store it made ready for this round";
}

// --- why ---

TEST(Reason, HasTheWorkersOwnWords) {
  struct Row {
    std::string message;
    std::string stderr_reason;
    std::string says;
  };
  const std::string traceback = "Traceback (most recent call last):\n  File \"t.py\"\n";
  const Row rows[] = {
      {"", "", "ended with exit code 3"},
      {"ValueError: batch size 0\n  at line 7", "noise", "ended with exit code 3 (ValueError: batch size 0)"},
      {traceback + "KeyError: 'x'\nwith a note\n", "", "ended with exit code 3 (KeyError: 'x')"},
      {traceback, "KeyError: 'x'", "ended with exit code 3 (stderr: KeyError: 'x')"},  // the traceback's end is missing
      {"", "two", "ended with exit code 3 (stderr: two)"},
      {" \n", "", "ended with exit code 3"},
      {std::string(9000, 'x'), "", "ended with exit code 3 (" + std::string(240, 'x') + "...)"},
  };
  for (const Row& row : rows) {
    Stage s(Job(1, 1, 1));
    s.Join("a");
    WorkerFailure failure = Failure(3, 0, false);
    failure.node = "a";
    failure.message = row.message;
    failure.stderr_reason = row.stderr_reason;
    failure.stderr_tail = {"the last line"};
    s.Says("a", Report{s.state.round.id, {failure}, seconds(5), {}});
    EXPECT_EQ(s.state.stopping.why.reason, "node a: worker rank 0 " + row.says);
  }
}

TEST(Cause, TheNextRoundSaysWhyTheLastOneEnded) {
  struct Row {
    const char* name;
    void (*ends)(Stage&);  // ends the round of a and b, by b or by both
    RoundCause cause;
    RestartPolicy policy = RestartPolicy::kOnFailure;
  };
  const Row rows[] = {
      {"b is preempted", [](Stage& s) { s.Leaves("b"); }, RoundCause::kPreemption},
      {"and its peer's workers die of it first",
       [](Stage& s) {
         s.Fails("a", 1, true);
         s.Leaves("b");
       },
       RoundCause::kPreemption},
      {"b was asked to stop", [](Stage& s) { s.Says("b", Leave{"stopped by SIGINT"}); }, RoundCause::kMembership},
      {"b is unfit",
       [](Stage& s) {
         s.Says("b", Leave{"node check failed", LeaveCause::kUnhealthy});
       },
       RoundCause::kMembership},
      {"b is lost", [](Stage& s) { s.Closes("b"); }, RoundCause::kMembership},
      {"a worker of b failed", [](Stage& s) { s.Fails("b", 3); }, RoundCause::kFailure},
      {"both succeed, always",
       [](Stage& s) {
         s.Succeeds("a");
         s.Succeeds("b");
       },
       RoundCause::kSuccess, RestartPolicy::kAlways},
  };
  for (const Row& row : rows) {
    JobOptions options = Job(1, 2, 1);
    options.policy = row.policy;
    Stage s(options);
    s.Join("a");
    s.Join("b");
    EXPECT_EQ(s.Seat("a").cause, RoundCause::kMembership) << "the first round";
    row.ends(s);
    s.Ready("a");
    if (s.state.members.contains("b")) s.Closes("b");
    ASSERT_TRUE(s.Started("a", 1)) << row.name;
    EXPECT_EQ(s.Seat("a").cause, row.cause) << row.name << ": " << s.Seat("a").reason;
  }
}

// --- late nodes ---

TEST(LateNode, ScalesUpWhereThereIsRoom) {
  Stage s(Job(1, 2, 3));
  s.Join("a");
  s.Wait(seconds(30), {"a"});
  s.Join("b");
  EXPECT_EQ(s.Told<Stop>("a").at(0).reason, "scaling up: node b (host host-b) joined");
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a b");
  EXPECT_EQ(s.Seat("a").restart_count, 0);
}

TEST(LateNode, TogetherWithAllThatAreWanted) {
  Stage s(Job(1, 4));
  s.Do(Wanted{2});
  s.Join("a");
  s.Join("b");
  s.Join("c");
  EXPECT_FALSE(s.Stopped("a")) << "nobody wants a third one";
  s.Do(Wanted{4});
  EXPECT_FALSE(s.Stopped("a")) << "the fourth one is still to come";
  s.Join("d");
  EXPECT_EQ(s.Told<Stop>("a").at(0).reason, "scaling up: 2 nodes joined");
  s.Ready("a");
  s.Ready("b");
  EXPECT_EQ(s.Roster(), "a b c d");
}

TEST(LateNode, WaitsForTheOthersNoLongerThanTheLastCall) {
  Stage s(Job(1, 4));
  s.Do(Wanted{1});
  s.Join("a");
  s.Do(Wanted{3});
  s.Join("b");
  s.Wait(seconds(29), {"a", "b"});
  EXPECT_FALSE(s.Stopped("a"));
  s.Wait(seconds(1), {"a", "b"});
  EXPECT_EQ(s.Told<Stop>("a").at(0).reason, "scaling up: node b (host host-b) joined");
}

TEST(LateNode, LessIsWantedThanThereIs) {
  Stage s(Job(1, 4));
  s.Do(Wanted{3});
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Do(Wanted{2});
  EXPECT_FALSE(s.Stopped("a")) << "whoever is not wanted is told to go";
  s.Leaves("c");
  s.Closes("c");
  s.Ready("a");
  s.Ready("b");
  EXPECT_EQ(s.Roster(), "a b");
}

TEST(LateNode, WaitsForTheNextRestartWhereAsked) {
  JobOptions options = Job(1, 2, 1);
  options.scale_up = ScaleUp::kAtRestart;
  Stage s(options);
  s.Join("a");
  s.Wait(seconds(30), {"a"});
  s.Join("b");
  EXPECT_FALSE(s.Stopped("a"));
  s.Fails("a", 3);
  s.Ready("a");
  EXPECT_EQ(s.Roster(), "a b");
}

TEST(LateNode, NeverDisturbsAJobThatIsAboutToSucceed) {
  Stage s(Job(1, 3));
  s.Join("a");
  s.Join("b");
  s.Wait(seconds(30), {"a", "b"});
  s.Succeeds("a");
  s.Join("c");
  EXPECT_FALSE(s.Stopped("b"));
  s.Succeeds("b");
  EXPECT_EQ(s.End("c")->exit_code, 0);
}

TEST(LateNode, AfterTheEndGetsTheVerdict) {
  Stage s(Job(1, 1));
  s.Join("a");
  s.Succeeds("a");
  s.Join("b");
  EXPECT_EQ(s.End("b")->exit_code, 0);
  EXPECT_EQ(s.told[s.peers["b"]].size(), 1u);
}

// --- fencing ---

TEST(Fencing, MessagesOfAnOlderRoundChangeNothing) {
  Stage s(Job(1, 2, 5));
  s.Join("a");
  s.Join("b");
  RoundId old = s.state.round.id;
  s.Fails("a", 3);
  s.Ready("a");
  s.Ready("b");
  ASSERT_EQ(s.state.round.id.number, 1);
  s.Says("a", Report{old, {Failure(9)}, seconds(1), {}});
  s.Says("b", Ready{old, 9});
  EXPECT_EQ(s.state.phase, Phase::kRunning);
}

TEST(Beats, AreAnsweredAndNothingElse) {
  Stage s(Job(2, 2));
  s.Join("a");
  size_t before = s.told[s.peers["a"]].size();
  s.Beats("a");
  ASSERT_EQ(s.told[s.peers["a"]].size(), before + 1);
  EXPECT_EQ(s.Told<Beat>("a").size(), 1u);
}

TEST(Status, NamesWhatEachNodeDoes) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Join("b");
  s.Join("c");
  s.Succeeds("b");
  StatusReport status = Describe(s.state, s.now);
  EXPECT_EQ(status.phase, "running");
  ASSERT_EQ(status.nodes.size(), 3u);
  EXPECT_EQ(status.nodes[0].state, "running");
  EXPECT_EQ(status.nodes[1].state, "succeeded");
  EXPECT_EQ(status.nodes[1].rank, 1);
  EXPECT_EQ(status.nodes[2].state, "spare");
  EXPECT_EQ(status.nodes[2].rank, std::nullopt);
}

}  // namespace
}  // namespace muster::rendezvous
