// SPDX-License-Identifier: Apache-2.0
// The state machine of attendance.h, event by event.
#include "rendezvous/attendance.h"

#include "base/text.h"
#include "tests/rendezvous/attendance_fixture.h"

namespace muster::rendezvous::attendance {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Attendance, DialsGreetsAndAttends) {
  Do(Begin{});
  EXPECT_EQ(Dialled(), "a:1");
  Do(Connected{});
  ASSERT_EQ(Told<Hello>().size(), 1u);
  EXPECT_EQ(Told<Hello>()[0].state, NodeState::kIdle);
  EXPECT_EQ(Told<Hello>()[0].resume, std::nullopt);
  Hear(Welcome{1, seconds(5), "test"});
  EXPECT_EQ(state.stage, Stage::kAttending);
  Next();
  EXPECT_EQ(Told<Beat>().size(), 1u);
}

TEST_F(Attendance, RetriesWithGrowingDelaysAndSaysEachReasonOnce) {
  Do(Begin{});
  std::vector<Duration> delays;
  for (int attempt = 0; attempt < 12; ++attempt) {
    Do(Disconnected{Loss::kRefused, "a:1: Connection refused"});
    EXPECT_EQ(Dialled(), "none");
    Duration delay = *look_again - now;
    EXPECT_GT(delay, Duration{});
    EXPECT_LE(delay, seconds(1));
    if (attempt == 11) {
      EXPECT_GT(delay, milliseconds(300));
    }
    delays.push_back(delay);
    Next();
    EXPECT_EQ(Dialled(), "a:1");
  }
  for (size_t i = 2; i < 7; ++i) EXPECT_GT(delays[i], delays[i - 2]) << "each is up to two thirds off";
  Do(Disconnected{Loss::kUnresolved, "a: no such name"});
  EXPECT_THAT(said, testing::ElementsAre("waiting for the coordinator at a:1: nothing listens there yet (up to 600 s)",
                                         "waiting for the coordinator at a:1: a: no such name (up to 600 s)"));
}

TEST_F(Attendance, ANodeOfAStaticJobWaitsForNode0) {
  state.options.indexed = true;
  state.options.join_timeout = seconds(900);
  Do(Begin{});
  Do(Disconnected{Loss::kRefused, "10.0.0.7:1: Connection refused"});
  Next();
  Do(Disconnected{Loss::kUnreachable, "a:1: no answer"});
  EXPECT_THAT(said, testing::ElementsAre("waiting for node 0 at a:1: nothing listens there yet (up to 900 s)",
                                         "waiting for node 0 at a:1: no answer (up to 900 s)"));
}

TEST_F(Attendance, ALostCoordinatorIsLookedFor) {
  Attend();
  Do(Disconnected{Loss::kClosed, "the connection was closed"});
  Do(Disconnected{Loss::kRefused, "a:1: Connection refused"});
  EXPECT_THAT(said.back(), testing::EndsWith("looking for a coordinator: a:1: Connection refused (up to 600 s)"));
}

TEST_F(Attendance, ServesAnEndpointOfThisMachineOnceNobodyElseDoes) {
  struct Row {
    bool may_host;
    Loss loss;
    bool asked;
  };
  for (const Row& row : {Row{true, Loss::kRefused, true}, Row{false, Loss::kRefused, false},
                         Row{true, Loss::kClosed, false}, Row{true, Loss::kUnreachable, false}}) {
    state = State{.run_id = "job", .endpoint = "a:1", .may_host = row.may_host};
    Do(Begin{});
    Do(Disconnected{row.loss, "gone"});
    EXPECT_EQ(All<HostEndpoint>().size(), row.asked ? 1u : 0u) << static_cast<int>(row.loss);
  }
  state = State{.run_id = "job", .endpoint = "a:1", .may_host = true};
  Do(Begin{});
  Do(Disconnected{Loss::kRefused, "gone"});
  Do(Hosting{});
  EXPECT_EQ(Dialled(), "");
  Do(Connected{});
  EXPECT_EQ(Told<Hello>().size(), 1u);
}

TEST_F(Attendance, InARoundTheRosterDecidesWhoFollowsNotTheEndpoint) {
  state.may_host = true;
  Do(Begin{});
  Do(Connected{});
  Hear(Welcome{1, seconds(5), "test"});
  Assignment round;
  round.id = {1, 1};
  Hear(Start{round});
  Do(Disconnected{Loss::kClosed, "gone"});
  Do(Disconnected{Loss::kRefused, "a:1: Connection refused"});
  EXPECT_TRUE(All<HostEndpoint>().empty());
}

TEST_F(Attendance, GivesUpWith200AfterTheJoinTimeout) {
  Do(Begin{});
  Do(Disconnected{Loss::kRefused, "Connection refused"});
  now += seconds(600);
  Do(Tick{});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 200);
  EXPECT_THAT(ends[0].reason, AllOf(HasSubstr("a:1"), HasSubstr("Connection refused"), HasSubstr("600 s")));
}

TEST_F(Attendance, GivesUpWith201WhenItHadACoordinator) {
  state.may_stand_in = false;
  Run();
  Do(Disconnected{Loss::kClosed, "reset"});
  for (int i = 0; i < 5000 && ends.empty(); ++i) {
    if (Dialled() == "none") {
      Next();
    } else {
      Do(Disconnected{Loss::kUnreachable, "no route"});
    }
  }
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 201);
}

TEST_F(Attendance, ADialWithoutAnswerHasADeadline) {
  Do(Begin{});
  Next();
  EXPECT_EQ(All<HangUp>().size(), 1u);
  EXPECT_EQ(state.stage, Stage::kDialling);
  EXPECT_TRUE(look_again);
}

TEST_F(Attendance, WrongCredentialsAreNotRetried) {
  Do(Begin{});
  Do(Disconnected{Loss::kUnauthenticated, "token"});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 78);
}

// The Secret may have been replaced: this pod has the new token, and the coordinator's pod goes soon, or the other way.
TEST_F(Attendance, APodTriesRefusedCredentialsForTwoMinutes) {
  state.in_pods = true;
  Do(Begin{});
  const TimePoint began = now;
  while (ends.empty() && now < began + std::chrono::minutes(5)) {
    Do(Disconnected{Loss::kUnauthenticated, "token"});
    if (ends.empty()) Next();
  }
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 78);
  EXPECT_GE(now, began + std::chrono::minutes(2));
  EXPECT_LT(now, began + std::chrono::minutes(3));
}

TEST_F(Attendance, ARoundFromStartToEnd) {
  Run();
  ASSERT_EQ(All<StartRound>().size(), 1u);
  Report report{{1, 0}, {}, seconds(1), {}};
  Do(WorkersEnded{report});
  EXPECT_EQ(Told<Report>().at(0), report);
  EXPECT_EQ(state.doing, NodeState::kSucceeded);
  Hear(Stop{{1, 0}, "why"});
  EXPECT_EQ(All<StopRound>().size(), 1u);
  EXPECT_FALSE(All<StopRound>().at(0).keep_evidence);
  Hear(Stop{{1, 0}, "why"});
  EXPECT_EQ(All<StopRound>().size(), 0u) << "once is enough";
  WorkerFailure late;
  late.late = true;
  Do(NoWorkerLeft{77, std::nullopt, {late}});
  EXPECT_EQ(Told<Report>().at(0), (Report{{1, 0}, {late}, {}, {}}));
  EXPECT_EQ(Told<Ready>().at(0), (Ready{{1, 0}, 77}));
  Hear(Start{Round(1)});
  EXPECT_EQ(All<StartRound>().size(), 1u);
  Hear(Finish{1, {3, "over", {}, {}}});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 3);
}

TEST_F(Attendance, SilenceIsToldAtOnceAndWithEveryBeat) {
  Run();
  Do(Silence{true});
  EXPECT_EQ(ToldBeat(), (Beat{{1, 0}, true}));
  Do(Silence{true});
  EXPECT_TRUE(Told<Beat>().empty()) << "once is enough";
  Hear(Beat{});
  EXPECT_TRUE(All<AllSilent>().empty());
  Hear(Beat{{1, 7}, true});
  EXPECT_TRUE(All<AllSilent>().empty()) << "another round";
  Hear(Beat{{1, 0}, true});
  EXPECT_EQ(All<AllSilent>().size(), 1u);
  Do(Silence{false});
  EXPECT_EQ(ToldBeat(), (Beat{{1, 0}, false}));
  Hear(Beat{{1, 0}, true});
  EXPECT_TRUE(All<AllSilent>().empty()) << "it writes again";
  Do(Silence{true});
  Hear(Stop{{1, 0}, "why"});
  Hear(Beat{{1, 0}, true});
  EXPECT_TRUE(All<AllSilent>().empty()) << "it is being stopped";
  Do(NoWorkerLeft{77});
  Hear(Start{Round(1)});
  EXPECT_FALSE(state.silent);
}

TEST_F(Attendance, AStopPassesOnItsCauseAndThatEvidenceIsWanted) {
  Run();
  Hear(Stop{{1, 0}, "why", RoundCause::kPreemption, true});
  ASSERT_EQ(All<StopRound>().size(), 1u);
  EXPECT_TRUE(All<StopRound>().at(0).keep_evidence);
  EXPECT_EQ(All<StopRound>().at(0).cause, RoundCause::kPreemption);
}

TEST_F(Attendance, OldMessagesAreDropped) {
  Run(5);
  Hear(Stop{{1, 4}, "old"});
  EXPECT_EQ(All<StopRound>().size(), 0u);
  Hear(Start{Round(5)});
  Hear(Start{Round(4)});
  EXPECT_EQ(All<StartRound>().size(), 0u);
  Do(WorkersEnded{Report{{1, 4}, {}, {}, {}}});
  EXPECT_EQ(Told<Report>().size(), 0u);
}

TEST_F(Attendance, AStopOfANewerRoundMakesItAnOutsider) {
  Run(5);
  Hear(Stop{{1, 7}, "round 5 is over"});
  EXPECT_EQ(All<StopRound>().at(0).round, (RoundId{1, 5}));
  Do(NoWorkerLeft{1});
  EXPECT_EQ(Told<Ready>().at(0).round, (RoundId{1, 5}));
  EXPECT_TRUE(state.outdated);
}

TEST_F(Attendance, AReconnectResumes) {
  Run();
  WorkerFailure failure;
  failure.exit_code = 3;
  Report report{{1, 0}, {failure}, seconds(1), {}};
  Do(Disconnected{Loss::kClosed, "reset"});
  EXPECT_EQ(Dialled(), "a:1") << "at once";
  EXPECT_TRUE(All<StopRound>().empty()) << "the workers go on";
  Do(WorkersEnded{report});
  EXPECT_TRUE(Told<Report>().empty());
  Do(Connected{});
  ASSERT_EQ(Told<Hello>().size(), 1u);
  EXPECT_EQ(Told<Hello>()[0].resume, Round(0));
  EXPECT_EQ(Told<Hello>()[0].report, report);
  EXPECT_EQ(Told<Hello>()[0].state, NodeState::kStopping);
}

TEST_F(Attendance, SilenceIsALoss) {
  Run();
  for (int i = 0; i < 4 && Dialled() == "none"; ++i) Next();
  EXPECT_EQ(Dialled(), "a:1");
  EXPECT_EQ(now, TimePoint{seconds(1015)});
}

TEST_F(Attendance, AFreezeOfThisProcessIsNoSilence) {
  Run();
  now += seconds(60);
  Do(Tick{});
  EXPECT_EQ(state.stage, Stage::kAttending);
}

TEST_F(Attendance, ARefusedCoordinatorIsDeadAndTheSuccessorsAreTried) {
  Run();
  Do(Disconnected{Loss::kClosed, "reset"});
  Do(Disconnected{Loss::kRefused, "refused"});
  EXPECT_EQ(Dialled(), "x:1");
  Do(Disconnected{Loss::kRefused, "refused"});
  EXPECT_EQ(Dialled(), "");
  auto here = All<CoordinateHere>();
  ASSERT_EQ(here.size(), 1u);
  EXPECT_TRUE(here[0].proof);
  EXPECT_EQ(here[0].dead, std::vector<std::string>{"x"});
  EXPECT_EQ(here[0].assignment, Round(0));
  Do(Connected{});
  Hear(Welcome{2, seconds(5), "test"});
  EXPECT_EQ(state.term, 2u);
  EXPECT_TRUE(state.standing_in);
}

TEST_F(Attendance, AnUnreachableCoordinatorIsWaitedForUntilItWasSilentLongEnough) {
  Run();
  Do(Disconnected{Loss::kClosed, "reset"});
  Do(Disconnected{Loss::kUnreachable, "no route"});
  EXPECT_EQ(Dialled(), "none");
  now += seconds(15);
  Do(Tick{});
  EXPECT_EQ(Dialled(), "a:1");
  Do(Disconnected{Loss::kUnreachable, "no route"});
  EXPECT_EQ(Dialled(), "x:1");
  Do(Disconnected{Loss::kUnreachable, "no route"});
  EXPECT_FALSE(All<CoordinateHere>().at(0).proof);
}

TEST_F(Attendance, AStandInWithProofProbesTheNodesBehindIt) {
  Attend();
  Assignment round = Round(0);
  round.successors = {{0, "a", "a:1"}, {1, "b", "b:1"}, {2, "c", "c:1"}};
  Hear(Start{round});
  Do(Disconnected{Loss::kClosed, "reset"});
  Do(Disconnected{Loss::kRefused, "refused"});
  ASSERT_EQ(All<CoordinateHere>().size(), 1u);
  auto probes = All<Probe>();
  ASSERT_EQ(probes.size(), 1u);
  EXPECT_EQ(probes[0].address, "c:1");
  Do(Connected{});
  Hear(Welcome{2, seconds(5), "test"});
  Do(Probed{"c", Loss::kClosed});  // it accepted and closed: it is dying, or closed the idle connection
  EXPECT_EQ(All<Probe>().size(), 1u);
  Do(Probed{"c", Loss::kRefused});
  ASSERT_EQ(All<TellDead>().size(), 1u);
  EXPECT_EQ(All<TellDead>()[0].name, "c");
  now += seconds(16);
  Do(Probed{"c", Loss::kRefused});
  EXPECT_TRUE(All<TellDead>().empty()) << "it may have joined another stand-in, and ended there";
}

TEST_F(Attendance, ADeathSeenTooLateProvesNothing) {
  Run();
  now += seconds(40);  // this process was frozen: the coordinator has given it up, there may be a newer round
  Do(Disconnected{Loss::kClosed, "reset"});
  Do(Disconnected{Loss::kRefused, "refused"});
  EXPECT_EQ(Dialled(), "x:1");
  Do(Disconnected{Loss::kRefused, "refused"});
  auto here = All<CoordinateHere>();
  ASSERT_EQ(here.size(), 1u);
  EXPECT_FALSE(here[0].proof);
  EXPECT_TRUE(here[0].dead.empty());
}

// A process continues after a freeze of 20 s. Messages that it reads are from before, until its new beats are answered.
TEST_F(Attendance, WhatLayInTheSocketDuringAFreezeIsNoLateWord) {
  for (int answers : {0, 1, 2}) {
    state = State();
    state.run_id = "job";
    state.endpoint = "a:1";
    state.self.name = "b";
    Run();  // without a round, so that no beat follows the welcome
    Next();
    ASSERT_EQ(Told<Beat>().size(), 1u);
    now += seconds(20);
    Hear(Notice{"have 1 of 3 nodes"});
    EXPECT_EQ(Told<Beat>().size(), 1u) << "due since long";
    for (int i = 0; i < answers; ++i) Hear(Beat{});
    Do(Disconnected{Loss::kClosed, "reset"});
    Do(Disconnected{Loss::kRefused, "refused"});
    Do(Disconnected{Loss::kRefused, "refused"});
    ASSERT_EQ(All<CoordinateHere>().size(), 1u);
    EXPECT_EQ(All<CoordinateHere>()[0].proof, answers == 2) << answers;
  }
}

TEST_F(Attendance, ItSaysThatItLivesBeforeItLooksElsewhere) {
  Run();
  now += seconds(5);
  Do(Tick{});
  EXPECT_EQ(Told<Beat>().at(0).round, state.round->id);
  for (int turn = 0; turn < 100 && Told<Doubt>().empty(); ++turn) Next();
  ASSERT_FALSE(Told<Doubt>().empty());
  ASSERT_GE(actions.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<HangUp>(actions[1]));
  EXPECT_EQ(Dialled(), "a:1");
}

TEST_F(Attendance, AWelcomeIsAnsweredWhereARoundIsAtStake) {
  Attend();
  EXPECT_TRUE(Told<Beat>().empty());
  Hear(Start{Round(0, 4)});
  Do(Disconnected{Loss::kClosed, "reset"});
  Do(Connected{});
  EXPECT_EQ(Told<Hello>().at(0).term, 4u);
  Hear(Welcome{4, seconds(5), "test"});
  EXPECT_EQ(Told<Beat>().at(0).round, (RoundId{4, 0}));
}

TEST_F(Attendance, WhoCoordinatesNowIsTheOneThatCanBeLost) {
  Run();
  Do(Disconnected{Loss::kClosed, "reset"});
  Do(Connected{});
  Hear(Welcome{4, seconds(5), "test", false, false, "c"});  // "a" made the round
  EXPECT_EQ(state.round->coordinator_node, "c");
  Do(Disconnected{Loss::kClosed, "reset"});
  Do(Connected{});
  Hear(Welcome{4, seconds(5), "older"});
  EXPECT_EQ(state.round->coordinator_node, "c");
}

TEST_F(Attendance, WithoutAControlPortItNeverStandsIn) {
  state.may_stand_in = false;
  Run();
  Do(Disconnected{Loss::kClosed, "reset"});
  Do(Disconnected{Loss::kRefused, "refused"});
  Do(Disconnected{Loss::kRefused, "refused"});
  EXPECT_TRUE(All<CoordinateHere>().empty());
  Next();
  EXPECT_EQ(Dialled(), "a:1");
}

TEST_F(Attendance, FollowsARedirectOfAHigherTerm) {
  Run();
  Hear(Redirect{1, "y:1"});
  EXPECT_EQ(Dialled(), "none");
  Hear(Redirect{2, "y:1"});
  EXPECT_EQ(Dialled(), "y:1");
  Do(Connected{});
  EXPECT_EQ(Told<Hello>().at(0).state, NodeState::kRunning);
}

TEST_F(Attendance, GoingSaysLeaveAndBeatsUntilTheEnd) {
  Run();
  Do(Going{"preempted", LeaveCause::kPreempted});
  EXPECT_EQ(Told<Leave>().at(0), (Leave{"preempted", LeaveCause::kPreempted}));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 143);
  Next();
  EXPECT_EQ(Told<Beat>().size(), 1u) << "its workers still run";
  Do(NoWorkerLeft{0});
  Hear(Start{Round(1)});
  EXPECT_TRUE(All<StartRound>().empty());
}

TEST_F(Attendance, ANodeThatFindsNobodyEndsOnceTheRunIsOver) {
  Attend();
  Do(Over{});
  EXPECT_TRUE(ends.empty()) << "the coordinator that it attends decides";
  Do(Disconnected{Loss::kClosed, "the connection was closed"});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 0);
}

TEST_F(Attendance, WorkersGoOnThoughTheRunIsOver) {
  Run();
  Do(Over{});
  const RoundId round = state.round->id;
  Do(WorkersEnded{{.round = round}});
  EXPECT_EQ(Told<Report>().size(), 1u) << "the coordinator that it attends decides";
  EXPECT_TRUE(ends.empty());
  Do(Disconnected{Loss::kClosed, "the connection was closed"});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 0);
}

TEST_F(Attendance, AFailureOfItsWorkersIsNotLostThoughTheRunIsOver) {
  Run();
  Do(Over{});
  Do(WorkersEnded{{.round = state.round->id, .failures = {WorkerFailure()}}});
  Do(NoWorkerLeft{0});
  Do(Disconnected{Loss::kClosed, "the connection was closed"});
  EXPECT_TRUE(ends.empty());
}

TEST_F(Attendance, ARefusalEndsIt) {
  Do(Begin{});
  Do(Connected{});
  Hear(Refuse{78, "nnodes 1:2 and 2:2"});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 78);
  EXPECT_EQ(ends[0].reason, "nnodes 1:2 and 2:2");
}

TEST_F(Attendance, AsksForImportsUntilARoundStarts) {
  Do(ShareImports{""});
  Do(Begin{});
  Do(Connected{});
  Hear(Welcome{1, seconds(5), "old"});
  EXPECT_TRUE(Told<Imports>().empty()) << "an older coordinator does not know them";
  Do(Disconnected{Loss::kClosed, "reset"});
  while (Dialled() == "none") Next();
  Do(Connected{});
  Hear(Welcome{1, seconds(5), "test", true});
  EXPECT_EQ(Told<Imports>().at(0), Imports{});
  Hear(Imports{"json"});
  EXPECT_EQ(All<GiveImports>().at(0).names, "json");
  Hear(Imports{"json"});
  EXPECT_TRUE(All<GiveImports>().empty()) << "given already";
  Do(ShareImports{""});
  EXPECT_EQ(Told<Imports>().at(0), Imports{});
  Hear(Start{Round(0)});
  Hear(Imports{"json"});
  EXPECT_TRUE(All<GiveImports>().empty()) << "it does not wait any more";
}

TEST_F(Attendance, SaysWhetherItIsPreparing) {
  Do(Prepares{true});
  Do(Begin{});
  Do(Connected{});
  EXPECT_TRUE(Told<Hello>().at(0).preparing);
  Hear(Welcome{1, seconds(5), "test"});
  Do(Prepares{false});
  EXPECT_EQ(ToldBeat(), (Beat{{}, false, false}));
  Do(Prepares{false});
  EXPECT_TRUE(Told<Beat>().empty()) << "once is enough";
  Do(Prepares{true});
  EXPECT_EQ(ToldBeat(), (Beat{{}, false, true}));
  Hear(Notice{"a node joins", true});
  EXPECT_TRUE(All<PrepareNow>().empty()) << "it does so anyway while it waits";
  Hear(Start{Round(0)});
  Hear(Notice{"a node joins", true});
  EXPECT_EQ(All<PrepareNow>().size(), 1u);
  Hear(Notice{"a node joins", true});
  EXPECT_EQ(All<PrepareNow>().size(), 1u) << "a new coordinator may not know that another has asked";
  Do(Prepares{false});
  EXPECT_EQ(ToldBeat(), (Beat{{1, 0}, false, false}));
}

TEST_F(Attendance, TellsEachCoordinatorWhatItImports) {
  Do(Begin{});
  Do(Connected{});
  Do(ShareImports{"json"});
  EXPECT_TRUE(Told<Imports>().empty());
  Hear(Welcome{1, seconds(5), "test", true});
  EXPECT_EQ(Told<Imports>().at(0), Imports{"json"});
  Do(ShareImports{"csv"});
  EXPECT_EQ(Told<Imports>().at(0), Imports{"csv"});
  Hear(Redirect{2, "y:1"});
  Do(Connected{});
  Hear(Welcome{2, seconds(5), "test", true});
  EXPECT_EQ(Told<Imports>().at(0), Imports{"csv"});
}

TEST_F(Attendance, NoticesAreSaidOnce) {
  Attend();
  Hear(Notice{"waiting"});
  Hear(Notice{"waiting"});
  EXPECT_EQ(said.size(), 1u);
}

}  // namespace
}  // namespace muster::rendezvous::attendance
