// SPDX-License-Identifier: Apache-2.0
// Membership: how a round ends. Policy x exit code x budget (docs/exit-codes.md).
#include <csignal>
#include <tuple>

#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(RootCause, OwnFailureBeforeConsequenceThenFirstHeard) {
  EXPECT_EQ(RootCause({}), std::nullopt);
  EXPECT_EQ(RootCause({Failure(1, 0, true), Failure(1, 1, true)})->rank, 0);
  EXPECT_EQ(RootCause({Failure(1, 0, true), Failure(9, 1), Failure(3, 2)})->rank, 1);
}

TEST(Failure, SaysWhetherMemoryOrACoreWasInIt) {
  for (auto [signal, oom_killed, core_dumped, said] :
       {std::tuple(SIGABRT, false, false, "was killed by SIGABRT; no"),
        std::tuple(SIGABRT, false, true, "was killed by SIGABRT (core dumped); no"),
        std::tuple(SIGKILL, true, false, "was killed by SIGKILL (out of memory); no")}) {
    Stage s(Job(1, 1));
    s.Join("a");
    WorkerFailure failure = Failure(128 + signal);
    failure.signal = signal;
    failure.oom_killed = oom_killed;
    failure.core_dumped = core_dumped;
    s.Says("a", Report{s.state.round.id, {failure}, seconds(5), {}});
    s.Ready("a");
    EXPECT_THAT(s.End("a")->reason, HasSubstr(said));
  }
}

TEST(Failure, IsACodeOrASignal) {
  Stage s(Job(1, 1));
  s.Join("a");
  WorkerFailure failure = Failure(137);
  failure.signal = 0;  // a shell or mpirun exited with 137
  s.Says("a", Report{s.state.round.id, {failure}, seconds(5), {}});
  s.Ready("a");
  EXPECT_THAT(s.End("a")->reason, HasSubstr("ended with exit code 137 (128 + SIGKILL); no"));
}

// Workers that fail by themselves while the round is being stopped for another failure.
TEST(Failure, LateOnesAreNamedAndDecideNothing) {
  for (bool consequence : {false, true}) {
    Stage s(Job(2, 2));
    s.Join("a");
    s.Join("b");
    s.Fails("b", 3, consequence);
    WorkerFailure late = Failure(1, 0);
    late.node = "a";
    late.late = late.consequence = true;
    s.Says("a", Report{s.RoundOf("a"), {late}, {}, {}});
    s.Ready("a");
    s.Ready("b");
    auto end = s.End("a");
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 3);
    EXPECT_EQ(end->root_cause->node, "b");
    ASSERT_EQ(end->failures.size(), 2u);
    EXPECT_EQ(end->failures[1], late);
  }
}

// Whatever order the failures of a round come in, an error of a worker's own is the cause of those that lost a peer.
TEST(Failure, AConsequenceYieldsToItsCauseInEachOrder) {
  struct Said {
    const char* what;
    int code;
    bool consequence, late;
    const char* line;
  };
  const Said own = {"own", 3, false, false, "KeyError: 'x'"};
  const Said lost = {"lost a peer", 1, true, false, "RuntimeError: gloo: Connection closed by peer"};
  const Said child = {"reports a child", 4, false, false, "a.b.ChildFailedError: t.py FAILED"};
  const Said late_own = {"own, and stopped", 5, false, true, "ValueError: 1"};
  const Said late_lost = {"failed when stopped", 6, true, true, "OSError: 1"};
  struct Row {
    std::vector<Said> said;
    int code;    // of the verdict
    bool fatal;  // the job ends, although it has restarts left
  };
  const Row rows[] = {
      {{own, lost, lost}, 3, true},       {{lost, lost, late_own}, 5, true}, {{lost, child, late_lost}, 4, true},
      {{child, lost, late_own}, 5, true}, {{own, lost, late_own}, 3, true},  {{lost, lost, late_lost}, 1, false},
  };
  const std::vector<std::string> nodes = {"a", "b", "c"};
  for (const Row& row : rows) {
    std::vector<size_t> order = {0, 1, 2};
    do {
      JobOptions options = Job(3, 3, 2);
      options.policy = RestartPolicy::kExitCode;
      Stage s(options);
      for (const std::string& name : nodes) s.Join(name);
      const auto begins = [&](size_t at) { return !row.said[order[at]].late; };
      if (!begins(0)) continue;  // a round is not stopped for a late failure
      std::string text;
      for (size_t i = 0; i < nodes.size(); ++i) {
        const Said& said = row.said[order[i]];
        WorkerFailure failure = Failure(said.code, static_cast<int>(i) * 2, said.consequence);
        failure.node = nodes[i];
        failure.late = said.late;
        failure.stderr_reason = said.line;
        s.Says(nodes[i], Report{s.RoundOf(nodes[i]), {failure}, seconds(5), {}});
        text += fmt::format("{}: {}; ", nodes[i], said.what);
      }
      for (const std::string& name : nodes) s.Ready(name);
      SCOPED_TRACE(text);
      ASSERT_EQ(s.End("a").has_value(), row.fatal);
      if (!row.fatal) {
        EXPECT_TRUE(s.Started("a", 1));
        continue;
      }
      EXPECT_EQ(s.End("a")->exit_code, row.code);
      EXPECT_EQ(s.End("a")->root_cause->exit_code, row.code);
      EXPECT_EQ(s.End("a")->failures.size(), 3u);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// A worker that had written an error of its own did not end the round: the node's loss did.
TEST(Failure, ALateOneDoesNotExplainALostNode) {
  Stage s(Job(2, 3, 2));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  s.Wait(seconds(30), {"a", "b", "c"});
  s.Fails("a", 1, /*consequence=*/true);
  s.Closes("c");
  WorkerFailure late = Failure(1, 2);
  late.node = "b";
  late.late = true;
  late.stderr_reason = "KeyError: 'x'";
  s.Says("b", Report{s.RoundOf("b"), {late}, {}, {}});
  s.Ready("a");
  s.Ready("b");
  s.Wait(seconds(40), {"a", "b"});
  ASSERT_TRUE(s.Started("a", s.state.round.id.number));
  EXPECT_EQ(s.Seat("a").restart_count, 0);
  EXPECT_EQ(s.Roster(), "a b");
}

TEST(Failure, ACauseIsKeptAmongManyConsequences) {
  JobOptions options = Job(2, 2, 2);
  options.policy = RestartPolicy::kExitCode;
  Stage s(options);
  s.Join("a");
  s.Join("b");
  Report many{s.RoundOf("a"), {}, seconds(5), {}};
  for (int i = 0; i < 300; ++i) many.failures.push_back(Failure(1, i, true));
  s.Says("a", many);
  WorkerFailure late = Failure(3, 400);
  late.late = true;
  s.Says("b", Report{s.RoundOf("b"), {late}, {}, {}});
  s.Ready("a");
  s.Ready("b");
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->root_cause->rank, 400);
}

TEST(Failure, LateOnesCountOnlyWhileItsRoundIsStopped) {
  Stage s(Job(2, 2));
  s.Join("a");
  s.Join("b");
  WorkerFailure late = Failure(1, 0);
  late.late = true;
  s.Says("a", Report{s.RoundOf("a"), {late}, {}, {}});  // no other failure has ended the round yet
  s.Fails("b", 3);
  s.Says("a", Report{{1, 99}, {late}, {}, {}});
  s.Ready("a");
  s.Ready("b");
  EXPECT_EQ(s.End("a")->failures.size(), 1u);
}

TEST(Failure, StopsTheOthersAtOnceAndRestartsWhenAllAreReady) {
  Stage s(Job(2, 2, 3));
  s.Join("a");
  s.Join("b");
  s.Fails("b", 137);
  EXPECT_TRUE(s.Stopped("a"));
  EXPECT_FALSE(s.Stopped("b")) << "it knows";
  s.Ready("b");
  EXPECT_EQ(s.state.phase, Phase::kStopping);
  s.Ready("a");
  EXPECT_TRUE(s.Started("a", 1));
  EXPECT_EQ(s.Seat("a").restart_count, 1);
  EXPECT_EQ(s.Seat("b").restart_count, 1);
  EXPECT_EQ(s.Seat("a").reason, "node b (host host-b): worker rank 2 was killed by SIGKILL; restart 1 of 3");
  EXPECT_EQ(s.reason, s.Seat("a").reason);
}

TEST(Failure, ThatARestartGotOverIsToldWithTheSuccess) {
  Stage s(Job(2, 2, 3));
  s.Join("a");
  s.Join("b");
  for (int code : {1, 137}) {
    s.Fails("b", code);
    s.Ready("b");
    s.Ready("a");
  }
  s.Succeeds("a");
  s.Succeeds("b");
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->exit_code, 0);
  ASSERT_TRUE(s.End("a")->root_cause);
  EXPECT_EQ(s.End("a")->root_cause->exit_code, 137) << "the last one";
  EXPECT_EQ(s.End("a")->root_cause->node, "b");
  EXPECT_TRUE(s.End("a")->failures.empty()) << "none of the last round";
  EXPECT_EQ(s.End("a"), s.End("b"));
}

TEST(Failure, OfACommandWithoutARankNamesTheCommand) {
  Stage s(Job(1, 1, 0));
  s.Join("a");
  WorkerFailure failure;
  failure.node = "a";
  failure.exit_code = 3;
  s.Says("a", Report{s.state.round.id, {failure}, seconds(5), {}});
  s.Ready("a");
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->reason, "node a: the command ended with exit code 3; no restarts are allowed");
}

struct PolicyRow {
  const char* name;
  RestartPolicy policy;
  int restarts;
  int code;  // 0: success
  ExitCodeOverrides overrides;
  bool restarts_then;
  int exit_code;
};
class RestartPolicyRows : public testing::TestWithParam<PolicyRow> {};

TEST_P(RestartPolicyRows, PolicyCodeAndBudgetDecideTheEnd) {
  const PolicyRow& row = GetParam();
  JobOptions options = Job(2, 2, row.restarts);
  options.policy = row.policy;
  options.overrides = row.overrides;
  Stage s(options);
  s.Join("a");
  s.Join("b");
  if (row.code == 0) {
    s.Succeeds("b");
    EXPECT_NE(s.state.phase, Phase::kFinished);
    s.Succeeds("a");
  } else {
    s.Fails("a", row.code);
  }
  if (s.state.phase != Phase::kFinished) {
    s.Ready("a");
    s.Ready("b");
  }
  if (row.restarts_then) {
    EXPECT_TRUE(s.Started("a", 1));
    EXPECT_EQ(s.Seat("b").restart_count, 1);
  } else {
    ASSERT_TRUE(s.End("a"));
    EXPECT_EQ(s.End("a"), s.End("b"));
    EXPECT_EQ(s.End("a")->exit_code, row.exit_code);
    EXPECT_EQ(s.End("a")->root_cause.has_value(), row.exit_code != 0);
  }
}

constexpr auto kNever = RestartPolicy::kNever;
constexpr auto kOnFailure = RestartPolicy::kOnFailure;
constexpr auto kAlways = RestartPolicy::kAlways;
constexpr auto kExitCode = RestartPolicy::kExitCode;
INSTANTIATE_TEST_SUITE_P(Table, RestartPolicyRows,
                         testing::Values(PolicyRow{"NeverFatal", kNever, 3, 1, {}, false, 1},
                                         PolicyRow{"NeverRetryable", kNever, 3, 137, {}, false, 137},
                                         PolicyRow{"NeverSuccess", kNever, 3, 0, {}, false, 0},
                                         PolicyRow{"OnFailureFatal", kOnFailure, 3, 1, {}, true, 0},
                                         PolicyRow{"OnFailureRetryable", kOnFailure, 3, 137, {}, true, 0},
                                         PolicyRow{"OnFailureSuccess", kOnFailure, 3, 0, {}, false, 0},
                                         PolicyRow{"OnFailureNoBudget", kOnFailure, 0, 3, {}, false, 3},
                                         PolicyRow{"OnFailureCalledFatal", kOnFailure, 3, 3, {{}, {3}}, false, 3},
                                         PolicyRow{"AlwaysFatal", kAlways, 3, 1, {}, true, 0},
                                         PolicyRow{"AlwaysRetryable", kAlways, 3, 137, {}, true, 0},
                                         PolicyRow{"AlwaysSuccess", kAlways, 3, 0, {}, true, 0},
                                         PolicyRow{"AlwaysSuccessNoBudget", kAlways, 0, 0, {}, false, 0},
                                         PolicyRow{"ExitCodeFatal", kExitCode, 3, 1, {}, false, 1},
                                         PolicyRow{"ExitCodeRetryable", kExitCode, 3, 137, {}, true, 0},
                                         PolicyRow{"ExitCodeMovedToRetry", kExitCode, 3, 1, {{1}, {}}, true, 0},
                                         PolicyRow{"ExitCodeMovedToFatal", kExitCode, 3, 137, {{}, {137}}, false, 137},
                                         PolicyRow{"ExitCodeNoBudget", kExitCode, 0, 137, {}, false, 137},
                                         PolicyRow{"ExitCodeSuccess", kExitCode, 3, 0, {}, false, 0}),
                         [](const auto& info) { return info.param.name; });

TEST(Budget, IsUsedUpOneByOne) {
  Stage s(Job(1, 1, 2));
  s.Join("a");
  for (int round = 0; round < 2; ++round) {
    s.Fails("a", 3);
    s.Ready("a");
    ASSERT_TRUE(s.Started("a", round + 1));
  }
  s.Fails("a", 3);
  s.Ready("a");
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->exit_code, 3);
  EXPECT_EQ(s.End("a")->reason,
            "node a (host host-a): worker rank 0 ended with exit code 3; all 2 restarts are used up");
  EXPECT_TRUE(s.End("a")->budget_used);
}

TEST(Budget, TheOnlyRestartIsNamedSo) {
  Stage s(Job(1, 1, 1));
  s.Join("a");
  s.Fails("a", 3);
  s.Ready("a");
  s.Fails("a", 3);
  s.Ready("a");
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->reason,
            "node a (host host-a): worker rank 0 ended with exit code 3; the only restart is used up");
}

TEST(Budget, OnlyRestartsInsideTheWindowCount) {
  JobOptions options = Job(1, 1, 1);
  options.restart_window = seconds(100);
  Stage s(options);
  s.Join("a");
  for (int round = 0; round < 3; ++round) {
    s.Wait(seconds(100), {"a"});
    s.Fails("a", 3);
    s.Ready("a");
    ASSERT_TRUE(s.Started("a", round + 1));
    EXPECT_EQ(s.Seat("a").restart_count, round + 1);
  }
  s.Wait(seconds(50), {"a"});
  s.Fails("a", 3);
  s.Ready("a");
  EXPECT_EQ(s.End("a")->exit_code, 3);
}

TEST(Verdict, BlamesTheFirstOwnFailureAndIsTheSameEverywhere) {
  Stage s(Job(3, 3));
  for (const char* name : {"a", "b", "c", "spare"}) s.Join(name);
  s.Fails("a", 1, true);
  s.Fails("b", 139);
  s.Fails("c", 3);
  for (const char* name : {"a", "b", "c"}) s.Ready(name);
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->exit_code, 139);
  EXPECT_EQ(s.End("a")->root_cause->node, "b");
  EXPECT_EQ(s.End("a")->failures.size(), 3u);
  EXPECT_EQ(s.End("a")->failures[0].node, "b");
  for (const char* name : {"b", "c", "spare"}) EXPECT_EQ(s.End(name), s.End("a")) << name;
}

TEST(Verdict, NothingIsSentAfterFinish) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Fails("a", 3);
  s.Ready("a");
  s.Closes("b");
  ASSERT_TRUE(s.End("a")) << "a node which is gone does not block";
  size_t before = s.told[s.peers["a"]].size();
  s.Beats("a");
  s.Ready("a");
  s.Leaves("a");
  s.Closes("a");
  s.Do(Tick{});
  EXPECT_EQ(s.told[s.peers["a"]].size(), before);
  EXPECT_EQ(s.look_again, std::nullopt);
}

TEST(Verdict, OfALargeJobKeepsOnlyTheRootCausesTexts) {
  Stage s(Job(100, 100));
  for (int i = 0; i < 100; ++i) s.Join(fmt::format("n{}", i));
  for (int i = 0; i < 100; ++i) {
    WorkerFailure failure = Failure(3, i);
    failure.stderr_tail = {"boom"};
    s.Says(fmt::format("n{}", i), Report{s.state.round.id, {failure}, seconds(1), {}});
  }
  for (int i = 0; i < 100; ++i) s.Ready(fmt::format("n{}", i));
  ASSERT_TRUE(s.End("n5"));
  EXPECT_EQ(s.End("n5")->failures.size(), 8u);
  EXPECT_EQ(s.End("n5")->root_cause->stderr_tail.size(), 1u);
  EXPECT_TRUE(s.End("n5")->failures[1].stderr_tail.empty());
}

TEST(Consequence, OfALostNodeIsNotCharged) {
  Stage s(Job(1, 2));
  s.Join("a");
  s.Join("b");
  s.Fails("a", 1, true);  // its workers failed because their peers were gone
  s.Ready("a");
  s.Closes("b");
  EXPECT_TRUE(s.Started("a", 1));
  EXPECT_EQ(s.Seat("a").restart_count, 0);
  EXPECT_THAT(s.Seat("a").reason, HasSubstr("node b (host host-b) was lost"));
}

TEST(Consequence, WithoutALostNodeUsesTheBudget) {
  Stage s(Job(1, 2, 0));
  s.Join("a");
  s.Join("b");
  s.Fails("a", 1, true);
  s.Ready("a");
  s.Ready("b");
  EXPECT_EQ(s.End("a")->exit_code, 1);
}

TEST(Stopping, HasADeadline) {
  Stage s(Job(2, 2, 3));
  s.Join("a");
  s.Join("b");
  s.Fails("a", 3);
  s.Ready("a");
  s.Wait(seconds(600), {"a", "b"});
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->exit_code, 3);
  EXPECT_THAT(s.End("a")->reason, HasSubstr("did not stop"));
}

TEST(Stopping, AReconnectedNodeIsToldAgain) {
  Stage s(Job(2, 2, 3));
  s.Join("a");
  s.Join("b");
  Assignment seat = s.Seat("b");
  s.Fails("a", 3);
  s.Return("b", NodeState::kRunning, seat);
  EXPECT_TRUE(s.Stopped("b"));
  s.Ready("a");
  s.Ready("b");
  EXPECT_TRUE(s.Started("b", 1));
}

// For each way in which a round ends: is the other node told to keep evidence?
TEST(Hang, OnlyAHangMakesEveryNodeKeepEvidence) {
  struct Row {
    const char* name;
    int code;
    bool consequence;
    bool keeps;
  };
  for (const Row& row : {Row{"a hang", kExitHang, false, true}, Row{"a signal", 137, false, false},
                         Row{"an exit code", 3, false, false}, Row{"a lost peer", 1, true, false}}) {
    Stage s(Job(2, 2, 3));
    s.Join("a");
    s.Join("b");
    s.Fails("b", row.code, row.consequence);
    ASSERT_EQ(s.Told<Stop>("a").size(), 1u) << row.name;
    EXPECT_EQ(s.Told<Stop>("a").at(0).keep_evidence, row.keeps) << row.name;
    Assignment seat = s.Seat("a");
    s.Return("a", NodeState::kRunning, seat);
    ASSERT_FALSE(s.Told<Stop>("a").empty()) << row.name;
    EXPECT_EQ(s.Told<Stop>("a").back().keep_evidence, row.keeps) << row.name << ", after its connection broke";
  }
  Stage s(Job(1, 2, 3));
  s.Join("a");
  s.Join("b");
  s.Closes("b");
  EXPECT_FALSE(s.Told<Stop>("a").at(0).keep_evidence) << "a lost node is not a hang";
}

// The answer to a beat says whether all nodes of the round are silent.
TEST(Silence, OfAllNodesIsToldToThoseThatAskAndOfSomeIsNot) {
  Stage s(Job(3, 3, 3));
  for (const char* name : {"a", "b", "c"}) s.Join(name);
  RoundId round = s.state.round.id;
  auto answer = [&](const std::string& name, bool silent, RoundId of) {
    s.Says(name, Beat{of, silent});
    Beat told = s.Told<Beat>(name).back();
    EXPECT_TRUE(std::exchange(told.lease, false));
    return told;
  };
  EXPECT_EQ(answer("a", true, round), Beat{});
  EXPECT_EQ(answer("b", true, round), Beat{});
  EXPECT_EQ(answer("c", false, round), Beat{}) << "c prints for all";
  EXPECT_EQ(answer("c", true, round), (Beat{round, true}));
  EXPECT_EQ(answer("a", true, round), (Beat{round, true}));
  EXPECT_EQ(answer("b", false, round), Beat{}) << "it prints again";
  EXPECT_EQ(answer("a", true, round), Beat{});
  s.Succeeds("b");
  EXPECT_EQ(answer("a", true, round), (Beat{round, true})) << "one that has succeeded says nothing any more";
  EXPECT_EQ(answer("a", true, RoundId{1, 9}), Beat{}) << "another round's silence";
  EXPECT_EQ(answer("a", true, round), (Beat{round, true}));
  s.Fails("c", 137);
  EXPECT_EQ(answer("a", true, round), Beat{}) << "it is being stopped";
  for (const char* name : {"a", "b", "c"}) s.Ready(name);
  ASSERT_TRUE(s.Started("a", 1));
  round = s.state.round.id;
  EXPECT_EQ(answer("a", true, round), Beat{}) << "the others' silence was of the round before";
}

TEST(Hang, IsToldInTheAgentsWordsAndRestarts) {
  Stage s(Job(2, 2, 1));
  s.Join("a");
  s.Join("b");
  WorkerFailure failure = Failure(kExitHang, 3);
  failure.node = "b";
  failure.message = "no step reported for 300 s (last step 120); stacks are in /logs/x/attempt_0\nmore";
  s.Says("b", Report{s.state.round.id, {failure}, seconds(400), 120});
  s.Ready("a");
  s.Ready("b");
  ASSERT_TRUE(s.Started("a", 1));
  EXPECT_EQ(s.Seat("a").reason,
            "node b: worker rank 3 hangs: no step reported for 300 s (last step 120); stacks are in /logs/x/attempt_0; "
            "restart 1 of 1");
  s.Fails("a", 137);
  EXPECT_FALSE(s.Told<Stop>("b").back().keep_evidence) << "the next round begins anew";
}

TEST(Hang, OfTheWholeJobNamesNoRank) {
  Stage s(Job(2, 2, 1));
  s.Join("a");
  s.Join("b");
  WorkerFailure failure = Failure(kExitHang, -1);
  failure.node = "b";
  failure.message = "all workers of the job have been silent for 60 s; stacks are in /logs/x/attempt_0";
  s.Says("b", Report{s.state.round.id, {failure}, seconds(400), 120});
  s.Ready("a");
  s.Ready("b");
  ASSERT_TRUE(s.Started("a", 1));
  EXPECT_EQ(s.Seat("a").reason, "node b: " + failure.message + "; restart 1 of 1");
}

TEST(Report, LostWithItsStreamComesWithTheNextHello) {
  Stage s(Job(2, 2, 0));
  s.Join("a");
  s.Join("b");
  Assignment seat = s.Seat("b");
  s.Return("b", NodeState::kIdle, seat, Report{seat.id, {Failure(7, 2)}, seconds(1), {}});
  EXPECT_TRUE(s.Stopped("a"));
  s.Ready("a");
  EXPECT_EQ(s.End("b")->exit_code, 7);
}

TEST(NeverStarted, IsTriedAgainOnlyWhereThatCanHelp) {
  struct {
    int code;
    int64_t pid;
    ExitCodeOverrides overrides;
    bool restarts;
  } const rows[] = {
      {127, 0, {}, false}, {126, 0, {}, false},         {78, 0, {}, false}, {1, 0, {}, true},  // no descriptor left
      {127, 5, {}, true},  {127, 0, {{127}, {}}, true}, {78, 5, {}, true},
  };
  for (const auto& row : rows) {
    JobOptions options = Job(2, 2, 3);
    options.overrides = row.overrides;
    Stage s(options);
    s.Join("a");
    s.Join("b");
    WorkerFailure failure = Failure(row.code, 2);
    failure.node = "b";
    failure.pid = row.pid;
    failure.message = "'train' was not found in PATH (/bin)";
    s.Says("b", Report{s.state.round.id, {failure}, {}, {}});
    s.Ready("b");
    s.Ready("a");
    EXPECT_EQ(s.Started("a", 1), row.restarts) << row.code << " " << row.pid;
    if (row.restarts) continue;
    EXPECT_EQ(s.End("a")->exit_code, row.code);
    EXPECT_EQ(s.End("a")->reason,
              "node b: its workers cannot start: 'train' was not found in PATH (/bin), which is fatal: trying "
              "again would give the same");
  }
}

}  // namespace
}  // namespace muster::rendezvous
