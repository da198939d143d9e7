// SPDX-License-Identifier: Apache-2.0
#include "base/collective_timeout.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(CollectiveTimeout, OfTheWordsOfWorkers) {
  const std::string watchdog =
      "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=1, "
      "NumelOut=1, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.";
  const std::string jax =
      "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: start. Timed out task names:";
  struct Row {
    const char* what;
    std::vector<WorkerFailure> failures;
    std::optional<CollectiveTimeout> timeout;
  };
  const Row rows[] = {
      {"nothing", {}, std::nullopt},
      {"an error of its own", {{.stderr_reason = "KeyError: 'timeout'"}}, std::nullopt},
      {"a peer that went away", {{.stderr_reason = "gloo: Connection closed by peer"}}, std::nullopt},
      {"no connection in time",
       {{.stderr_reason = "DistNetworkError: The client socket has timed out after 60000ms while trying to connect"}},
       std::nullopt},
      {"NCCL's watchdog", {{.stderr_reason = watchdog}}, {{"ALLREDUCE", ""}}},
      {"only in the last lines",
       {{.stderr_tail = {watchdog, "x"}, .stderr_reason = "Fatal Python error: Aborted"}},
       {{"ALLREDUCE", ""}}},
      {"with the states of the ranks",
       {{.stderr_tail = {watchdog, "\t     [0, 2] finished collective #807, but didn't join collective #808"}}},
       {{"ALLREDUCE", "ranks 0, 2"}}},
      {"never joined",
       {{.stderr_tail = {watchdog,
                         "\t - To our best knowledge, ranks [47] are the lagging ranks that caused this timeout. "
                         "They never joined any collectives"}}},
       {{"ALLREDUCE", "rank 47"}}},
      {"gloo",
       {{.stderr_reason = "RuntimeError: [gloo/unbound_buffer.cc:78] Timed out waiting 3000ms for recv"}},
       {{"", ""}}},
      {"a monitored barrier",
       {{.stderr_reason = "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 3000 ms"}},
       {{"monitoredBarrier", "rank 1"}}},
      {"a monitored barrier, several ranks",
       {{.stderr_reason = "RuntimeError: [Rank 0]: Ranks 4, 5, 6 failed to pass monitoredBarrier in 3000 ms"}},
       {{"monitoredBarrier", "ranks 4, 5, 6"}}},
      {"another worker names the rank",
       {{.stderr_reason =
             "RuntimeError: Rank 3 successfully reached monitoredBarrier, but received errors while waiting "
             "for send/recv from rank 0."},
        {.stderr_reason = "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 3000 ms"}},
       {{"monitoredBarrier", "rank 1"}}},
      {"JAX", {{.stderr_tail = {jax, "/job:jax_worker/replica:0/task:3"}, .stderr_reason = jax}}, {{"", "rank 3"}}},
      {"no ranks where they should be",
       {{.stderr_tail = {watchdog, "[a] finished collective #1", "] finished collective #", "Rank  failed to pass"}}},
       {{"ALLREDUCE", ""}}},
  };
  for (const Row& row : rows) EXPECT_EQ(FindCollectiveTimeout(row.failures), row.timeout) << row.what;
}

}  // namespace
}  // namespace muster
