// SPDX-License-Identifier: Apache-2.0
// The variables for JAX and XGBoost from those of a pod, and where the pods meet.
#include "agent/flags/pod_facts.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/agent/variables.h"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

// The variables of each process, with " | " between.
std::string Told(const StatusOr<PodPlace>& place) {
  if (!place.ok()) return "error: " + std::string(place.status().message());
  std::vector<std::string> workers;
  for (const Variables& variables : place->workers) {
    std::vector<std::string> entries;
    for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
    workers.push_back(Join(entries, " "));
  }
  return Join(workers, " | ");
}
// "node rank/nodes host:port" of a pod, with the first node's host and the port that the framework has there.
std::string Where(const StatusOr<PodPlace>& place) {
  if (!place.ok()) return "error: " + std::string(place.status().message());
  return fmt::format("{}/{} {}:{}", place->node_rank, place->nodes, place->first_node, place->framework_port);
}

StatusOr<PodPlace> Jax(const Variables& pod, const std::vector<std::string>& flags = {}) {
  auto line = SplitCommandLine(flags, CalledAs::kExec);
  EXPECT_TRUE(line.ok()) << line.status();
  const Environment environment = OfVariables(pod);
  return JaxPlace(FlagReader(environment, *std::move(line), CalledAs::kExec), environment);
}
StatusOr<PodPlace> Xgboost(const Variables& pod, int nproc, const std::vector<std::string>& flags = {}, int gpus = 0) {
  auto line = SplitCommandLine(flags, CalledAs::kExec);
  EXPECT_TRUE(line.ok()) << line.status();
  const Environment environment = OfVariables(pod);
  return XgboostPlace(FlagReader(environment, *std::move(line), CalledAs::kExec), environment, nproc, gpus);
}

TEST(PodFacts, TellTheNameOfTheJob) {
  const struct {
    Variables pod;
    std::string name;
  } rows[] = {
      {{}, ""},
      {{{"TRAINER_NODE_0_HOSTNAME", "digits-node-0-0.digits"}}, "digits"},
      {{{"PET_MASTER_ADDR", "a-b-node-0-0.a-b.team.svc.cluster.local"}}, "a-b"},
      {{{"PET_MASTER_ADDR", "a-trainer-node-0-0.a"}}, "a"},
      {{{"PET_MASTER_ADDR", "digits-master-0"}}, "digits"},
      {{{"PET_RDZV_ENDPOINT", "digits-worker-0:29400"}}, "digits"},
      {{{"MUSTER_JOB", " mine "}, {"PET_MASTER_ADDR", "digits-master-0"}}, "mine"},
      {{{"MUSTER_JOB", "</title><b>"}}, "</title><b>"},
      {{{"MUSTER_JOB", std::string(300, 'a')}}, std::string(253, 'a')},
      // Hosts that are not named for a job.
      {{{"PET_MASTER_ADDR", "10.0.0.7"}}, ""},
      {{{"PET_MASTER_ADDR", "fd00::1"}}, ""},
      {{{"PET_MASTER_ADDR", "localhost.localdomain"}}, ""},
      {{{"PET_MASTER_ADDR", "gpu-1.gpu"}}, ""},
      {{{"PET_MASTER_ADDR", "gpu-0-0.cluster"}}, ""},
      {{{"PET_MASTER_ADDR", "gpu-0-0."}}, ""},
      {{{"PET_MASTER_ADDR", "gpu-0-0"}}, ""},
      {{{"PET_MASTER_ADDR", "-master-0"}}, ""},
      {{{"PET_RDZV_ENDPOINT", "digits-worker-1:29400"}}, ""},
  };
  for (const auto& row : rows) EXPECT_EQ(JobNameOf(OfVariables(row.pod)), row.name) << row.name;
}

TEST(PodFacts, TellJaxTheNumberOfPodsAndTheirCoordinator) {
  const struct {
    Variables pod;
    std::string told, where;
  } rows[] = {
      {{}, "", "0/1 :29500"},
      {{{"PET_NNODES", "1"}, {"PET_MASTER_ADDR", "n0"}}, "", "0/1 :29500"},
      {{{"JAX_NUM_PROCESSES", "4"}, {"JAX_PROCESS_ID", "3"}, {"JAX_COORDINATOR_ADDRESS", "c:1234"}},
       "JAX_COORDINATOR_ADDRESS=c:1234 JAX_NUM_PROCESSES=4 JAX_PROCESS_ID=3",
       "3/4 c:1234"},
      {{{"JAX_NUM_PROCESSES", "4"},
        {"JAX_PROCESS_ID", "3"},
        {"JAX_COORDINATOR_ADDRESS", "[fd00::7]:1"},
        {"TRAINER_NODE_0_HOSTNAME", "n0"}},
       "JAX_COORDINATOR_ADDRESS=[fd00::7]:1 JAX_NUM_PROCESSES=4 JAX_PROCESS_ID=3",
       "3/4 n0:1"},
      {{{"TRAINER_NNODES", "2"}, {"JOB_COMPLETION_INDEX", "1"}, {"TRAINER_NODE_0_HOSTNAME", "job-node-0-0.job"}},
       "JAX_COORDINATOR_ADDRESS=job-node-0-0.job:29500 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=1",
       "1/2 job-node-0-0.job:29500"},
      {{{"PET_NNODES", "2"}, {"PET_NODE_RANK", "0"}, {"PET_MASTER_ADDR", "fd00::1"}, {"PET_MASTER_PORT", "77"}},
       "JAX_COORDINATOR_ADDRESS=[fd00::1]:77 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0",
       "0/2 fd00::1:77"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Told(Jax(row.pod)), row.told);
    EXPECT_EQ(Where(Jax(row.pod)), row.where);
  }
  const Variables pod = {{"JAX_NUM_PROCESSES", "4"}, {"JAX_PROCESS_ID", "3"}, {"JAX_COORDINATOR_ADDRESS", "c:1"}};
  EXPECT_EQ(Told(Jax(pod, {"--nnodes=3", "--node-rank=2"})),
            "JAX_COORDINATOR_ADDRESS=c:1 JAX_NUM_PROCESSES=3 JAX_PROCESS_ID=2");
  EXPECT_EQ(Told(Jax(pod, {"--nnodes=1"})), "");
}

TEST(PodFacts, NameTheVariableOfJaxThatIsWrong) {
  const struct {
    Variables pod;
    std::string says;
  } rows[] = {
      {{{"PET_NNODES", "1:4"}}, "PET_NNODES=1:4: want a whole number, at least 1"},
      {{{"JAX_NUM_PROCESSES", "0"}}, "JAX_NUM_PROCESSES=0: want a whole number, at least 1"},
      {{{"JAX_NUM_PROCESSES", "2"}, {"JAX_PROCESS_ID", "2"}}, "JAX_PROCESS_ID=2: want a whole number from 0 to 1"},
      {{{"PET_NNODES", "2"}}, "set JAX_PROCESS_ID"},
      {{{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}}, "set JAX_COORDINATOR_ADDRESS"},
      {{{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}, {"JAX_COORDINATOR_ADDRESS", "c"}},
       "JAX_COORDINATOR_ADDRESS=c: want HOST:PORT"},
      {{{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}, {"JAX_COORDINATOR_ADDRESS", "c:x"}},
       "JAX_COORDINATOR_ADDRESS=c:x: the port must be a number"},
  };
  for (const auto& row : rows) EXPECT_THAT(Told(Jax(row.pod)), HasSubstr(row.says));
}

TEST(PodFacts, XgboostTaskIdsAreByProcess) {
  Variables pod = {{"DMLC_TRACKER_URI", "n0"}, {"DMLC_NUM_WORKER", "8"}, {"DMLC_TASK_ID", "1"}};
  EXPECT_EQ(Told(Xgboost(pod, 1)), "DMLC_NUM_WORKER=8 DMLC_TASK_ID=1 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0");
  EXPECT_EQ(Told(Xgboost(pod, 2)),
            "DMLC_NUM_WORKER=8 DMLC_TASK_ID=2 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0 | "
            "DMLC_NUM_WORKER=8 DMLC_TASK_ID=3 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0");
  EXPECT_THAT(Told(Xgboost(pod, 8)), HasSubstr("would be worker 15 of 8"));
}

TEST(PodFacts, XgboostFromThePodsPlace) {
  EXPECT_EQ(Told(Xgboost({}, 1)), "DMLC_NUM_WORKER=1 DMLC_TASK_ID=0 DMLC_TRACKER_PORT=29500");
  Variables pod = {{"PET_NNODES", "3"}, {"PET_MASTER_ADDR", "n0"}, {"JOB_COMPLETION_INDEX", "2"}};
  EXPECT_EQ(Told(Xgboost(pod, 2)),
            "DMLC_NUM_WORKER=6 DMLC_TASK_ID=4 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0 | "
            "DMLC_NUM_WORKER=6 DMLC_TASK_ID=5 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0");
  EXPECT_EQ(Told(Xgboost(pod, 1, {"--nnodes=2", "--node-rank=1"})),
            "DMLC_NUM_WORKER=2 DMLC_TASK_ID=1 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0");
  EXPECT_THAT(Told(Xgboost({{"DMLC_NUM_WORKER", "2"}, {"DMLC_TASK_ID", "0"}}, 1)), HasSubstr("set DMLC_TRACKER_URI"));
  EXPECT_THAT(Told(Xgboost({{"DMLC_TASK_ID", "x"}}, 1)), HasSubstr("DMLC_TASK_ID=x"));
}

TEST(PodFacts, TheTrackerMovesWithEachRound) {
  const struct {
    Variables pod;
    std::vector<std::string> ports;  // of the rounds 0, 1, 2, 8
  } rows[] = {
      {{{"DMLC_TRACKER_URI", "n0"}}, {"29500", "29501", "29502", "29500"}},
      {{{"DMLC_TRACKER_URI", "n0"}, {"PET_MASTER_ADDR", "n0"}, {"DMLC_TRACKER_PORT", "7"}}, {"7", "8", "9", "7"}},
      {{{"DMLC_TRACKER_URI", "n0"}, {"DMLC_TRACKER_PORT", "65534"}}, {"65534", "65535", "65534", "65534"}},
      {{{"DMLC_TRACKER_URI", "outside"}, {"PET_MASTER_ADDR", "n0"}}, {"29500", "29500", "29500", "29500"}},
      {{}, {"29500", "29500", "29500", "29500"}},
  };
  for (const auto& row : rows) {
    auto place = Xgboost(row.pod, 1);
    ASSERT_TRUE(place.ok()) << place.status();
    std::vector<std::string> ports;
    for (int64_t round : {0, 1, 2, 8}) {
      Variables told = place->workers.front();
      MoveTracker(round, place->framework_ports, &told);
      ports.push_back(told["DMLC_TRACKER_PORT"]);
    }
    EXPECT_EQ(ports, row.ports);
  }
  Variables none;
  MoveTracker(1, 8, &none);
  EXPECT_TRUE(none.empty());
}

TEST(PodFacts, HowManyXgboostPodsThereAre) {
  const struct {
    Variables pod;
    int nproc;
    std::vector<std::string> flags;
    int gpus;
    std::string where;
  } rows[] = {
      {{{"DMLC_NUM_WORKER", "8"}}, 1, {}, 0, "1/8 t:29500"},
      {{{"DMLC_NUM_WORKER", "8"}}, 1, {}, 1, "1/8 t:29500"},
      {{{"DMLC_NUM_WORKER", "8"}}, 4, {"--nproc-per-node=4"}, 4, "1/2 t:29500"},
      {{{"DMLC_NUM_WORKER", "8"}}, 4, {"--nproc-per-node=gpu"}, 4, "1/2 t:29500"},
      {{{"DMLC_NUM_WORKER", "8"}}, 1, {"--nproc-per-node=1"}, 4, "1/8 t:29500"},
      {{{"DMLC_NUM_WORKER", "8"}}, 1, {}, 4, "1/1 :29500"},  // may be 8 pods, or 2 with 4 GPUs: they do not meet
      {{{"DMLC_NUM_WORKER", "8"}, {"PET_NNODES", "2"}}, 1, {}, 4, "1/2 t:29500"},
      {{{"DMLC_NUM_WORKER", "8"}, {"TRAINER_NODE_0_HOSTNAME", "n0"}}, 1, {}, 0, "1/8 n0:29500"},
      {{{"DMLC_NUM_WORKER", "8"}, {"DMLC_TRACKER_PORT", "7"}}, 1, {}, 0, "1/8 t:7"},
      {{{"DMLC_NUM_WORKER", "8"}},
       3,
       {"--nproc-per-node=3"},
       0,
       "error: --wire=xgboost: DMLC_NUM_WORKER=8 are not the workers of whole pods with 3 processes each; correct "
       "DMLC_NUM_WORKER or --nproc-per-node, or give --nnodes"},
      {{{"DMLC_NUM_WORKER", "3"}, {"PET_NNODES", "2"}},
       2,
       {"--nproc-per-node=2"},
       0,
       "error: --wire=xgboost: DMLC_NUM_WORKER=3 is less than 2 pods with 2 workers each; correct DMLC_NUM_WORKER or "
       "--nproc-per-node"},
      {{{"DMLC_NUM_WORKER", "8"}},
       1,
       {"--nnodes=2", "--node-rank=2"},
       0,
       "error: --node-rank=2: node ranks go from 0 to 1 with 2 nodes"},
  };
  for (const auto& row : rows) {
    Variables pod = {{"DMLC_TRACKER_URI", "t"}, {"DMLC_TASK_ID", "1"}};
    pod.insert(row.pod.begin(), row.pod.end());
    auto place = Xgboost(pod, row.nproc, row.flags, row.gpus);
    EXPECT_EQ(Where(place), row.where);
    EXPECT_EQ(place.ok() && !place->warning.empty(), row.where == "1/1 :29500") << row.where;
  }
  EXPECT_EQ(Where(Xgboost({}, 1)), "0/1 :29500");
  EXPECT_EQ(Where(Xgboost({{"DMLC_NUM_WORKER", "1"}}, 1, {}, 4)), "0/1 :29500");
  EXPECT_THAT(Where(Xgboost({{"PET_NNODES", "2"}, {"DMLC_TRACKER_URI", "t"}}, 1)), HasSubstr("set DMLC_TASK_ID"));
}

}  // namespace
}  // namespace muster::agent
