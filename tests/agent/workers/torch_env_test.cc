// SPDX-License-Identifier: Apache-2.0
// The worker's environment, name by name, and where its output goes.
#include "agent/workers/torch_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/workers/log_layout.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

rendezvous::Assignment Second() {  // node 1 of 2, ranks 4..7 of 8
  rendezvous::Assignment assignment;
  assignment.id = {1, 3};
  assignment.restart_count = 1;
  assignment.max_restarts = 5;
  assignment.world_size = 8;
  assignment.node_count = 2;
  assignment.node_rank = 1;
  assignment.seat.node.name = "n1";
  assignment.seat.node.host = "host1.job.svc";
  assignment.seat.node.slots = 4;
  assignment.seat.first_rank = 4;
  assignment.seat.first_role_rank = 2;
  assignment.seat.role_world_size = 6;
  assignment.master_host = "10.0.0.1";
  assignment.master_port = 4321;
  return assignment;
}
RunOptions Options() {
  RunOptions options;
  options.workers.role = "trainer";
  options.job.run_id = "job7";
  options.workers.nproc = 4;
  return options;
}

TEST(WorkerEnvironment, FlightRecorderWhereItsFolderIs) {
  AttemptPaths paths{"/logs/a", "/logs/a/flight_recorder"};
  auto environment = WorkerEnvironment(Environment::Of({"TORCH_FR_BUFFER_SIZE=5"}), Options(), Second(), 0, paths);
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(Environment::Of(*environment).Get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE"), "/logs/a/flight_recorder/");
  EXPECT_EQ(Environment::Of(*environment).Get("TORCH_FR_DUMP_TEMP_FILE"), "/logs/a/flight_recorder/nccl_trace_rank_");
  EXPECT_EQ(Environment::Of(*environment).Get("TORCH_FR_BUFFER_SIZE"), "5");
  EXPECT_EQ(Environment::Of(*environment).Get("TORCH_NCCL_TRACE_BUFFER_SIZE"), std::nullopt);
}

TEST(WorkerEnvironment, IsExactlyThis) {
  auto environment = WorkerEnvironment(Environment::Of({"HOME=/root", "RANK=77", "PATH=/bin", "HOME=/twice"}),
                                       Options(), Second(), 2, {"/logs/a"});
  ASSERT_TRUE(environment.ok());
  EXPECT_THAT(*environment,
              UnorderedElementsAre("HOME=/root", "PATH=/bin", "LOCAL_RANK=2", "RANK=6", "GROUP_RANK=1", "ROLE_RANK=4",
                                   "ROLE_NAME=trainer", "LOCAL_WORLD_SIZE=4", "WORLD_SIZE=8", "GROUP_WORLD_SIZE=2",
                                   "ROLE_WORLD_SIZE=6", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=4321",
                                   "TORCHELASTIC_RESTART_COUNT=1", "TORCHELASTIC_MAX_RESTARTS=5",
                                   "TORCHELASTIC_RUN_ID=job7", "TORCHELASTIC_USE_AGENT_STORE=True",
                                   "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "TORCHELASTIC_ERROR_FILE=/logs/a/2/error.json",
                                   "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT", "OMP_NUM_THREADS=1",
                                   "MUSTER_ROUND=3", "MUSTER_NODE=n1", "MUSTER_HEARTBEAT_FILE=/logs/a/2/heartbeat"));
}

TEST(WorkerEnvironment, WithoutLogFolder) {
  auto environment = WorkerEnvironment(
      Environment::Of({"MUSTER_HEARTBEAT_FILE=/outer", "TORCHELASTIC_ERROR_FILE=/outer"}), Options(), Second(), 0, {});
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(Environment::Of(*environment).Get("TORCHELASTIC_ERROR_FILE"), "");
  EXPECT_EQ(Environment::Of(*environment).Get("MUSTER_HEARTBEAT_FILE"), std::nullopt);
}

TEST(WorkerEnvironment, OmpThreadsAreOneUnlessSet) {
  RunOptions options = Options();
  rendezvous::Assignment assignment = Second();
  auto omp = [&](const Environment& agent) {
    return Environment::Of(*WorkerEnvironment(agent, options, assignment, 0, {})).Get("OMP_NUM_THREADS");
  };
  EXPECT_EQ(omp({}), "1");
  EXPECT_EQ(omp({{"OMP_NUM_THREADS", "8"}}), "8");
  EXPECT_EQ(omp({{"OMP_NUM_THREADS", ""}}), "");
  assignment.seat.node.slots = 1;
  EXPECT_EQ(omp({}), std::nullopt);
}

TEST(WorkerEnvironment, EveryWorkerHasADevice) {
  RunOptions options = Options();
  options.workers.nproc = 2;
  EXPECT_TRUE(CheckDevices({{"CUDA_VISIBLE_DEVICES", "4"}}, options.workers).ok());
  options.workers.virtual_local_rank = true;
  EXPECT_TRUE(CheckDevices({}, options.workers).ok());
  EXPECT_TRUE(CheckDevices({{"CUDA_VISIBLE_DEVICES", "4,5"}}, options.workers).ok());
  EXPECT_EQ(CheckDevices({{"CUDA_VISIBLE_DEVICES", "4"}}, options.workers).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckDevices({{"CUDA_VISIBLE_DEVICES", ""}}, options.workers).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(WorkerEnvironment, OmpThreadsThatAreSetAreSaid) {
  RunOptions options = Options();
  options.workers.nproc = 2;
  EXPECT_THAT(OmpWarning({}, options).value_or(""), HasSubstr("Setting OMP_NUM_THREADS"));
  EXPECT_EQ(OmpWarning({{"OMP_NUM_THREADS", "2"}}, options), std::nullopt);
  options.wire = Wire::kXgboost;  // XGBoost's commands do not get the variable
  EXPECT_EQ(OmpWarning({}, options), std::nullopt);
  options.wire = Wire::kTorch;
  options.workers.nproc = 1;
  EXPECT_EQ(OmpWarning({}, options), std::nullopt);
}

TEST(WorkerEnvironment, InheritedNcclErrorHandling) {
  auto environment =
      WorkerEnvironment(Environment::Of({"TORCH_NCCL_ASYNC_ERROR_HANDLING=3"}), Options(), Second(), 0, {});
  EXPECT_EQ(Environment::Of(*environment).Get("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3");
}

TEST(WorkerEnvironment, CudaDevicesPassThrough) {
  auto environment = WorkerEnvironment(Environment::Of({"CUDA_VISIBLE_DEVICES=2,3"}), Options(), Second(), 1, {});
  EXPECT_EQ(Environment::Of(*environment).Get("CUDA_VISIBLE_DEVICES"), "2,3");
  EXPECT_EQ(Environment::Of(*WorkerEnvironment({}, Options(), Second(), 1, {})).Get("CUDA_VISIBLE_DEVICES"),
            std::nullopt);
}

TEST(WorkerEnvironment, VirtualLocalRank) {
  RunOptions options = Options();
  options.workers.virtual_local_rank = true;
  auto environment = WorkerEnvironment(Environment::Of({"CUDA_VISIBLE_DEVICES=5, 7"}), options, Second(), 1, {});
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(Environment::Of(*environment).Get("LOCAL_RANK"), "0");
  EXPECT_EQ(Environment::Of(*environment).Get("RANK"), "5");
  EXPECT_EQ(Environment::Of(*environment).Get("CUDA_VISIBLE_DEVICES"), "7");
  environment = WorkerEnvironment({}, options, Second(), 3, {});
  EXPECT_EQ(Environment::Of(*environment).Get("CUDA_VISIBLE_DEVICES"), "3");
  Status error = WorkerEnvironment(Environment::Of({"CUDA_VISIBLE_DEVICES=5,7"}), options, Second(), 2, {}).status();
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(error), HasSubstr("CUDA_VISIBLE_DEVICES=5,7 names 2 devices, none for local rank 2"));
}

// ---- where the output goes ----

struct Streams {
  std::string redirects, tee;
};
// "file console prefix tail" of a stream; "-" if it has no file.
std::string Shown(const launcher::StreamSpec& stream) {
  std::string file = stream.file.empty() ? "-" : stream.file.substr(stream.file.rfind('/') + 1);
  return fmt::format("{}{}{}{}", file, stream.console ? " console" : "", stream.prefix.empty() ? "" : " prefix",
                     stream.keep_tail ? " tail" : "");
}

TEST(WorkerOutput, GoesWhereRedirectsAndTeeSendIt) {
  struct {
    int redirects, tee;
    bool heard, folder, terminal;
    std::string out, err;
  } const rows[] = {
      {0, 0, true, true, false, "- console", "- console tail"},
      {0, 0, true, true, true, "- console", "- console"},
      {0, 0, true, false, true, "- console", "- console"},
      {1, 0, true, true, true, "stdout.log", "- console"},
      {2, 0, true, true, true, "- console", "stderr.log tail"},
      {3, 0, true, true, false, "stdout.log", "stderr.log tail"},
      {0, 1, true, true, true, "stdout.log console prefix", "- console"},
      {0, 2, true, true, true, "- console", "stderr.log console prefix tail"},
      {0, 3, true, true, false, "stdout.log console prefix", "stderr.log console prefix tail"},
      {3, 3, true, true, false, "stdout.log console prefix", "stderr.log console prefix tail"},
      {2, 1, true, true, false, "stdout.log console prefix", "stderr.log tail"},
      {0, 0, false, true, true, "-", "- tail"},
      {3, 0, false, true, true, "stdout.log", "stderr.log tail"},
      {0, 3, false, true, true, "stdout.log prefix", "stderr.log prefix tail"},
      {3, 0, true, false, true, "- console", "- console"},
      {0, 3, true, false, true, "- console prefix", "- console prefix tail"},
  };
  for (const auto& row : rows) {
    RunOptions options = Options();
    options.logs.redirects.all = row.redirects;
    options.logs.tee.all = row.tee;
    if (!row.heard) options.logs.local_ranks_filter = {0, 2};
    auto output = WorkerOutput(options, Second(), 1, {row.folder ? "/logs/a" : ""}, {row.terminal, row.terminal});
    SCOPED_TRACE(fmt::format("-r {} -t {} heard {} folder {} terminal {}", row.redirects, row.tee, row.heard,
                             row.folder, row.terminal));
    EXPECT_EQ(Shown(output.out), row.out);
    EXPECT_EQ(Shown(output.err), row.err);
  }
}

TEST(WorkerOutput, IsRedirectedForTheLocalRanksGiven) {
  RunOptions options = Options();
  options.logs.redirects.by_local_rank = {{0, 3}};
  EXPECT_EQ(WorkerOutput(options, Second(), 0, {"/l"}, {true, true}).out.file, "/l/0/stdout.log");
  EXPECT_EQ(WorkerOutput(options, Second(), 1, {"/l"}, {true, true}).out.file, "");
}

TEST(WorkerOutput, DuplicateFilters) {
  RunOptions options = Options();
  options.logs.tee.all = 1;
  options.logs.duplicate_stdout_filters = {"loss"};
  options.logs.duplicate_stderr_filters = {"error"};
  auto output = WorkerOutput(options, Second(), 0, {"/l"}, {true, true});
  EXPECT_THAT(output.out.filters, ElementsAre("loss"));
  EXPECT_EQ(output.out.filter_file, "/l/filtered_stdout.log");
  EXPECT_TRUE(output.err.filters.empty());  // stderr is not tee'd
  EXPECT_EQ(output.err.filter_file, "");
  options.logs.local_ranks_filter = {1};  // a rank without console output has no filtered lines either
  EXPECT_EQ(WorkerOutput(options, Second(), 0, {"/l"}, {true, true}).out.filter_file, "");
  EXPECT_EQ(WorkerOutput(options, Second(), 1, {"/l"}, {true, true}).out.filter_file, "/l/filtered_stdout.log");
}

TEST(LinePrefix, FillsInTheTemplate) {
  RunOptions options = Options();
  EXPECT_EQ(LinePrefix(options, Second(), 1), "[trainer1]:");
  options.logs.line_prefix_template = "${role_name}|$local_rank|${rank}|${hostname}|$$|${what}|$9: ";
  EXPECT_EQ(LinePrefix(options, Second(), 1), "trainer|1|5|host1|$|${what}|$9: ");
}

TEST(AttemptPaths, NameTheFilesOfAnAttempt) {
  AttemptPaths paths{"/logs/job7/attempt_3"};
  EXPECT_EQ(paths.StdoutFile(1), "/logs/job7/attempt_3/1/stdout.log");
  EXPECT_EQ(paths.StderrFile(1), "/logs/job7/attempt_3/1/stderr.log");
  EXPECT_EQ(paths.FilteredStderrFile(), "/logs/job7/attempt_3/filtered_stderr.log");
  EXPECT_EQ(AttemptPaths{}.StdoutFile(1), "");
  EXPECT_EQ(AttemptPaths{}.FilteredStdoutFile(), "");
}

}  // namespace
}  // namespace muster::agent
