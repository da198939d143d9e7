// Which words are left for the pod's controller, and who is heard when several speak.
#include "agent/last_words.h"

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
  options.run_id = "job-7";
  options.job.max_restarts = 2;
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
  options.job.overrides.fatal = {137};
  EXPECT_EQ(MessageOf(Failed(), options).exit_class, ExitClass::kFatal);
}

TEST(LastWords, ARunThatOthersAreInHasAName) {
  RunOptions options = Options();
  options.wire = Wire::kJax;
  options.max_nodes = 2;
  EXPECT_EQ(MessageOf(Failed(), options).run_id, "job-7");
  options.max_nodes = 1;
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
  const TerminationMessage ours = MessageOf(Failed(), Options());
  TerminationMessage success;
  TerminationMessage inner = ours;
  inner.run_id = "inner";
  TerminationMessage other = inner;
  other.exit_code = 1;
  TerminationMessage bare = inner;
  bare.cause = std::nullopt;

  EXPECT_EQ(Heard(ours, ""), ours);
  EXPECT_EQ(Heard(ours, "\n"), ours);
  EXPECT_EQ(Heard(ours, EncodeTerminationMessage(inner)), std::nullopt) << "it knows the worker";
  EXPECT_EQ(Heard(ours, EncodeTerminationMessage(other)), ours) << "an earlier attempt's";
  EXPECT_EQ(Heard(ours, EncodeTerminationMessage(bare)), ours);
  EXPECT_EQ(Heard(success, EncodeTerminationMessage(inner)), success) << "an earlier attempt's";
  EXPECT_EQ(Heard(success, "the command's result"), std::nullopt);

  EXPECT_EQ(Heard(ours, "ValueError: no"), ours) << "the cause is on another node";
  TerminationMessage own = ours;
  own.cause->node = own.node;
  auto heard = Heard(own, "ValueError: no");
  ASSERT_TRUE(heard && heard->cause);
  EXPECT_EQ(heard->cause->message, "ValueError: no");
  TerminationMessage told = own;
  told.cause->message = "from the error file";
  EXPECT_EQ(Heard(told, "ValueError: no"), told);
}

}  // namespace
}  // namespace muster::agent
