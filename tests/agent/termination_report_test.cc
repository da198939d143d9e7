// SPDX-License-Identifier: Apache-2.0
// Which termination message is left for the pod's controller if several agents or the command wrote one.
#include "agent/termination_report.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

WorkerFailure Killed() {
  WorkerFailure failure;
  failure.node = "n1";
  failure.rank = 3;
  failure.exit_code = 137;
  failure.signal = 9;
  return failure;
}

JobEnd Failed() {
  JobEnd end;
  end.exit_code = 137;
  end.node = "n0";
  end.host = "pod-0";
  end.verdict = rendezvous::Verdict{137, "node n1: worker rank 3 was killed by SIGKILL", Killed(), {Killed()}};
  rendezvous::Assignment assignment;
  assignment.node_rank = 0;
  assignment.id.number = 4;
  assignment.restart_count = 2;
  end.assignment = assignment;
  return end;
}

RunOptions Options() {
  RunOptions options;
  options.job.run_id = "job-7";
  options.job.shared.max_restarts = 2;
  return options;
}

TEST(LastWords, AVerdictIsToldWhole) {
  TerminationMessage message = MessageOf(Failed(), Options());
  EXPECT_EQ(message.exit_code, 137);
  EXPECT_EQ(message.exit_class, ExitClass::kRetryable);
  EXPECT_EQ(message.reason, "node n1: worker rank 3 was killed by SIGKILL");
  EXPECT_EQ(message.run_id, "job-7");
  EXPECT_EQ(message.node, "n0");
  EXPECT_EQ(message.host, "pod-0");
  EXPECT_EQ(message.node_rank, 0);
  EXPECT_EQ(message.round, 4);
  EXPECT_EQ(message.restart_count, 2);
  EXPECT_EQ(message.max_restarts, 2);
  EXPECT_EQ(message.cause, Killed());
}

TEST(LastWords, TheClassFollowsTheJobsOwnRules) {
  RunOptions options = Options();
  options.job.shared.overrides.fatal = {137};
  EXPECT_EQ(MessageOf(Failed(), options).exit_class, ExitClass::kFatal);
}

TEST(LastWords, ARunThatOthersAreInHasAName) {
  RunOptions options = Options();
  options.wire = Wire::kJax;
  options.job.shared.max_nodes = 2;
  EXPECT_EQ(MessageOf(Failed(), options).run_id, "job-7");
  options.job.shared.max_nodes = 1;
  EXPECT_EQ(MessageOf(Failed(), options).run_id, "");
}

TEST(LastWords, WithoutAVerdictTheReasonIsOurs) {
  JobEnd end;
  end.exit_code = 143;
  end.reason = "preempted: SIGTERM";
  TerminationMessage message = MessageOf(end, Options());
  EXPECT_EQ(message.reason, "preempted: SIGTERM");
  EXPECT_EQ(message.round, std::nullopt);
  EXPECT_EQ(message.cause, std::nullopt);
}

TEST(LastWords, WhoKnowsMostIsHeard) {
  const JobEnd end = Failed();
  const TerminationMessage ours = MessageOf(end, Options());
  const TerminationMessage success = MessageOf(JobEnd(), Options());
  TerminationMessage inner = ours;
  inner.run_id = "inner";
  TerminationMessage other = inner;
  other.exit_code = 1;
  TerminationMessage bare = inner;
  bare.cause = std::nullopt;

  EXPECT_EQ(Heard(end, Options(), ""), ours);
  EXPECT_EQ(Heard(end, Options(), "\n"), ours);
  EXPECT_EQ(Heard(end, Options(), EncodeTerminationMessage(inner)), std::nullopt) << "it knows the worker";
  EXPECT_EQ(Heard(end, Options(), EncodeTerminationMessage(other)), ours) << "an earlier attempt's";
  EXPECT_EQ(Heard(end, Options(), EncodeTerminationMessage(bare)), ours);
  EXPECT_EQ(Heard(JobEnd(), Options(), EncodeTerminationMessage(inner)), success) << "another node's of this machine";
  EXPECT_EQ(Heard(JobEnd(), Options(), "the command's result"), std::nullopt);

  EXPECT_EQ(Heard(end, Options(), "ValueError: no"), ours) << "the cause is on another node";
  JobEnd own = end;
  own.verdict->root_cause->node = own.node;
  auto heard = Heard(own, Options(), "ValueError: no");
  ASSERT_TRUE(heard && heard->cause);
  EXPECT_EQ(heard->cause->message, "ValueError: no");
  own.verdict->root_cause->message = "from the error file";
  EXPECT_EQ(Heard(own, Options(), "ValueError: no"), MessageOf(own, Options()));
}

// ---- The one command of a `muster exec`, with a run inside ----

RunOptions OneCommand() {
  RunOptions options;
  options.wire = Wire::kPlain;
  options.job.run_id = "exec";
  return options;
}

// The end of the command itself. `restarts`: those of the exec.
JobEnd CommandEnd(int code, int restarts = 0) {
  JobEnd end;
  end.exit_code = code;
  end.node = "outer";
  end.host = "pod-0";
  end.assignment = rendezvous::Assignment();
  end.assignment->node_rank = 0;
  end.assignment->id.number = restarts;
  end.assignment->restart_count = restarts;
  end.verdict = rendezvous::Verdict{code, code == 0 ? "all workers succeeded" : "the command ended", std::nullopt, {}};
  if (code == 0) return end;
  WorkerFailure command;
  command.node = "outer";
  command.exit_code = code;
  end.verdict->root_cause = command;
  return end;
}

// The message of the run inside, as node 2 of its job.
TerminationMessage Inside(int code, bool caused) {
  TerminationMessage message;
  message.exit_code = code;
  message.exit_class = Classify(code);
  message.reason = code == 0 ? "all workers succeeded" : "worker rank 3 failed";
  message.run_id = "job-7";
  message.node = "n2";
  message.host = "pod-2";
  message.node_rank = 2;
  message.round = 4;
  message.restart_count = 3;
  message.max_restarts = 5;
  if (caused) message.cause = Killed();
  return message;
}

std::optional<TerminationMessage> HeardOf(const JobEnd& end, const TerminationMessage& inner) {
  return Heard(end, OneCommand(), EncodeTerminationMessage(inner));
}

TEST(RunInside, WithTheSameCodeItsMessageStays) {
  for (int code : {0, 1, 137, 143, 200}) {
    for (bool caused : {false, true}) EXPECT_EQ(HeardOf(CommandEnd(code), Inside(code, caused)), std::nullopt) << code;
  }
  JobEnd told_to_go{.exit_code = 143, .reason = "preempted: SIGTERM", .node = "outer"};
  EXPECT_EQ(HeardOf(told_to_go, Inside(143, false)), std::nullopt);
}

struct InsideRow {
  const char* name;
  int code;   // of the command
  int inner;  // of the run inside
  bool caused;
  const char* reason;
  int cause_code;  // 0: none
  int cause_rank;
};
class RunInsideRows : public testing::TestWithParam<InsideRow> {};

TEST_P(RunInsideRows, WithAnotherCodeBothAreTold) {
  const InsideRow& row = GetParam();
  auto heard = HeardOf(CommandEnd(row.code), Inside(row.inner, row.caused));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->exit_code, row.code) << "what the container ends with";
  EXPECT_EQ(heard->exit_class, Classify(row.code));
  EXPECT_EQ(heard->inner_exit_code, row.inner);
  EXPECT_EQ(heard->reason, row.reason);
  EXPECT_EQ(heard->run_id, "job-7");
  EXPECT_EQ(heard->node, "n2");
  EXPECT_EQ(heard->node_rank, 2);
  EXPECT_EQ(heard->round, 4);
  EXPECT_EQ(heard->restart_count, 3);
  EXPECT_EQ(heard->cause ? heard->cause->exit_code : 0, row.cause_code);
  EXPECT_EQ(heard->cause ? heard->cause->rank : -1, row.cause_rank);
}
INSTANTIATE_TEST_SUITE_P(
    Table, RunInsideRows,
    testing::Values(InsideRow{"HiddenByAPipe", 0, 137, true,
                              "the command ended with 0, but the run inside it ended with exit code 137: worker rank 3 "
                              "failed",
                              137, 3},
                    InsideRow{"HiddenNoRendezvous", 0, 200, false,
                              "the command ended with 0, but the run inside it ended with exit code 200: worker rank 3 "
                              "failed",
                              0, -1},
                    InsideRow{"MadeAnotherFailure", 9, 137, true,
                              "the command ended; the run inside it ended with exit code 137: worker rank 3 failed",
                              137, 3},
                    InsideRow{"MadeAnotherFailureWithoutACause", 9, 200, false,
                              "the command ended; the run inside it ended with exit code 200: worker rank 3 failed", 9,
                              -1},
                    InsideRow{"FailedAfterASuccess", 9, 0, false, "the command ended", 9, -1},
                    InsideRow{"FailedAfterASuccessWithRestarts", 9, 0, true, "the command ended", 9, -1},
                    InsideRow{"AHangOfTheCommandStopsTheRun", 203, 143, true, "the command ended", 203, -1}),
    [](const auto& row) { return row.param.name; });

TEST(RunInside, AStoppedCommandKeepsItsReason) {
  JobEnd told_to_go{.exit_code = 0, .reason = "preempted: SIGTERM", .node = "outer"};
  auto heard = HeardOf(told_to_go, Inside(1, true));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->reason, "preempted: SIGTERM");
  EXPECT_EQ(heard->inner_exit_code, 1);
  EXPECT_EQ(heard->node_rank, 2);
  EXPECT_EQ(heard->cause, Killed());
}

TEST(RunInside, RestartsOfTheCommandCountToo) {
  auto heard = HeardOf(CommandEnd(0, 2), Inside(0, true));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->restart_count, 5);
  EXPECT_EQ(heard->round, 4);
  EXPECT_EQ(heard->reason, "all workers succeeded");
  EXPECT_EQ(heard->inner_exit_code, std::nullopt);
  EXPECT_EQ(heard->cause, Killed());
}

TEST(RunInside, OnlyOneCommandHasOne) {
  const std::string text = EncodeTerminationMessage(Inside(1, true));
  EXPECT_EQ(InnerRun(OneCommand(), text), Inside(1, true));
  EXPECT_EQ(InnerRun(OneCommand(), ""), std::nullopt);
  EXPECT_EQ(InnerRun(OneCommand(), "the command's result"), std::nullopt);
  EXPECT_EQ(InnerRun(Options(), text), std::nullopt) << "workers wired as torch";
  RunOptions options = OneCommand();
  options.rsh.serve = true;
  EXPECT_EQ(InnerRun(options, text), std::nullopt);
  options = OneCommand();
  options.job.shared.max_nodes = 2;
  EXPECT_EQ(InnerRun(options, text), std::nullopt);
  options = OneCommand();
  options.workers.nproc = 2;
  EXPECT_EQ(InnerRun(options, text), std::nullopt);
}

}  // namespace
}  // namespace muster::agent
