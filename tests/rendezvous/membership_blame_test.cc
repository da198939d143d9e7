// SPDX-License-Identifier: Apache-2.0
// Membership: which worker is blamed, by what the workers of three nodes wrote.
#include <algorithm>

#include "tests/base/recorded_failure.h"
#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kNodes = {"a", "b", "c"};

// Runs a round in which one worker of each node fails, in the order of `outputs`: names of recorded outputs.
Verdict VerdictOn(const std::vector<std::string>& outputs) {
  Stage s(Job(3, 3));
  for (const std::string& name : kNodes) s.Join(name);
  for (size_t i = 0; i < outputs.size(); ++i) {
    WorkerFailure failure = RecordedFailure(outputs[i]);
    failure.node = kNodes[i];
    failure.rank = static_cast<int>(i) * 2;
    s.Says(kNodes[i], Report{s.RoundOf(kNodes[i]), {failure}, seconds(5), {}});
  }
  for (const std::string& name : kNodes) s.Ready(name);
  return s.End("a").value_or(Verdict{});
}

TEST(Blame, FindsTheCauseAmongPeersThatLostItInEachOrder) {
  const std::vector<std::string> rows[] = {
      // the cause, and two that lost it
      {"python_traceback", "gloo_closed", "gloo_timeout"},
      {"cuda_assert", "nccl_watchdog", "nccl_watchdog_old"},
      {"cuda_ecc", "nccl_remote_error", "nccl_system_error"},
      {"torch_loader_killed", "nccl_aborted", "nccl_dump_signal"},
      {"glibc_double_free", "mpich_peer", "openmpi_btl"},
      {"openmpi_segv", "openmpi_daemon", "ucx_reset"},
      {"nccl_out_of_memory", "store_gone", "store_broken_pipe"},
      {"huggingface_datasets", "store_wait", "store_clients"},
      {"store_port_taken", "store_connect", "store_barrier"},
      {"deepspeed_launcher", "deepspeed_lost_peer", "gloo_mesh"},
      {"deepspeed_killed", "deepspeed_lost_peer", "lightning_teardown"},
      {"jax_oom", "jax_peer", "jax_barrier"},
      {"tensorflow_oom", "tensorflow_peer", "horovod"},
      {"faulthandler_segv", "gloo_monitored_barrier", "gloo_monitored_barrier_others"},
      {"bash_killed", "xgboost_peer", "nccl_terminate_twice"},
  };
  for (const std::vector<std::string>& row : rows) {
    const std::string cause = RecordedFailure(row[0]).stderr_reason;
    std::vector<std::string> order = row;
    std::sort(order.begin(), order.end());
    do {
      SCOPED_TRACE(fmt::format("{}", fmt::join(order, ", ")));
      const Verdict verdict = VerdictOn(order);
      ASSERT_TRUE(verdict.root_cause);
      EXPECT_EQ(verdict.root_cause->stderr_reason, cause);
      EXPECT_EQ(verdict.failures.size(), 3u);
      EXPECT_THAT(verdict.reason, Not(HasSubstr("hung")));
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// If no worker failed by itself, a timeout is the cause.
TEST(Blame, SaysWhereTheJobHungIfNoWorkerFailed) {
  struct Row {
    std::vector<std::string> outputs;
    std::string reason;  // "": it did not hang
  };
  const Row rows[] = {
      {{"nccl_watchdog", "gloo_closed", "nccl_dump_signal"},
       "; no worker failed by itself: the job hung in ALLREDUCE;"},
      {{"gloo_closed", "nccl_desync", "nccl_watchdog"},
       "; no worker failed by itself: the job hung in ALLREDUCE, which rank 0 did not join;"},
      {{"gloo_monitored_barrier_others", "gloo_monitored_barrier", "gloo_closed"},
       "; no worker failed by itself: the job hung in monitoredBarrier, which rank 1 did not join;"},
      {{"gloo_timeout", "gloo_closed", "gloo_closed"},
       "; no worker failed by itself: the job hung in a collective operation;"},
      {{"gloo_closed", "store_gone", "nccl_remote_error"}, ""},
      {{"gloo_closed", "store_connect", "mpich_peer"}, ""},
  };
  for (const Row& row : rows) {
    const Verdict verdict = VerdictOn(row.outputs);
    ASSERT_TRUE(verdict.root_cause) << row.reason;
    EXPECT_EQ(verdict.root_cause->node, "a") << "the first";
    if (row.reason.empty()) {
      EXPECT_THAT(verdict.reason, Not(HasSubstr("hung")));
    } else {
      EXPECT_THAT(verdict.reason, HasSubstr(row.reason));
    }
  }
}

// If the words do not name the ranks that did not join, those that did not fail are named, if they are few.
TEST(Blame, NamesTheRanksThatDidNotFailInAHang) {
  struct Row {
    std::vector<int> failed;
    int slots;
    std::string reason;
  };
  const Row rows[] = {
      {{3, 0, 1}, 4, "; no worker failed by itself: the job hung in ALLREDUCE, and only rank 2 did not fail;"},
      {{0, 1, 4}, 5, "; no worker failed by itself: the job hung in ALLREDUCE, and only ranks 2, 3 did not fail;"},
      {{0, 1}, 4, "; no worker failed by itself: the job hung in ALLREDUCE;"},  // perhaps they had no time to
      {{0, 1}, 2, "; no worker failed by itself: the job hung in ALLREDUCE;"},
  };
  for (const Row& row : rows) {
    Stage s(Job(1, 1));
    s.Join(s.Greeting("a", row.slots));
    std::vector<WorkerFailure> failures;
    for (int rank : row.failed) {
      failures.push_back(RecordedFailure("nccl_watchdog"));
      failures.back().rank = rank;
    }
    s.Says("a", Report{s.RoundOf("a"), failures, seconds(5), {}});
    s.Ready("a");
    ASSERT_TRUE(s.End("a"));
    EXPECT_THAT(s.End("a")->reason, HasSubstr(row.reason));
  }
}

}  // namespace
}  // namespace muster::rendezvous
