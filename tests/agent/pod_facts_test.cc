// What JAX and XGBoost are told, from what a pod is told.
#include "agent/pod_facts.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/agent/variables.h"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

std::string Told(const StatusOr<Variables>& variables) {
  if (!variables.ok()) return "error: " + std::string(variables.status().message());
  std::vector<std::string> entries;
  for (const auto& [name, value] : *variables) entries.push_back(name + "=" + value);
  return Join(entries, " ");
}

TEST(PodFacts, Jax) {
  const struct {
    Variables pod;
    std::string told;
  } rows[] = {
      {{}, ""},
      {{{"PET_NNODES", "1"}, {"PET_MASTER_ADDR", "n0"}}, ""},
      {{{"JAX_NUM_PROCESSES", "4"}, {"JAX_PROCESS_ID", "3"}, {"JAX_COORDINATOR_ADDRESS", "c:1234"}},
       "JAX_COORDINATOR_ADDRESS=c:1234 JAX_NUM_PROCESSES=4 JAX_PROCESS_ID=3"},
      {{{"TRAINER_NNODES", "2"}, {"JOB_COMPLETION_INDEX", "1"}, {"TRAINER_NODE_0_HOSTNAME", "job-node-0-0.job"}},
       "JAX_COORDINATOR_ADDRESS=job-node-0-0.job:29500 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=1"},
      {{{"PET_NNODES", "2"}, {"PET_NODE_RANK", "0"}, {"PET_MASTER_ADDR", "fd00::1"}, {"PET_MASTER_PORT", "77"}},
       "JAX_COORDINATOR_ADDRESS=[fd00::1]:77 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0"},
      {{{"PET_NNODES", "1:4"}}, "error: PET_NNODES=1:4: want a whole number, at least 1"},
      {{{"JAX_NUM_PROCESSES", "0"}}, "error: JAX_NUM_PROCESSES=0: want a whole number, at least 1"},
      {{{"JAX_NUM_PROCESSES", "2"}, {"JAX_PROCESS_ID", "2"}},
       "error: JAX_PROCESS_ID=2: want a whole number from 0 to 1"},
  };
  for (const auto& row : rows) EXPECT_EQ(Told(JaxVariables(LookUp(row.pod))), row.told);
  EXPECT_THAT(Told(JaxVariables(LookUp({{"PET_NNODES", "2"}}))), HasSubstr("set JAX_PROCESS_ID"));
  EXPECT_THAT(Told(JaxVariables(LookUp({{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}}))),
              HasSubstr("set JAX_COORDINATOR_ADDRESS"));
}

TEST(PodFacts, XgboostTaskIdsAreByProcess) {
  const Variables pod = {{"DMLC_TRACKER_URI", "n0"}, {"DMLC_NUM_WORKER", "8"}, {"DMLC_TASK_ID", "1"}};
  EXPECT_EQ(Told(XgboostVariables(LookUp(pod), 0, 1)),
            "DMLC_NUM_WORKER=8 DMLC_TASK_ID=1 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0");
  EXPECT_EQ(Told(XgboostVariables(LookUp(pod), 0, 4)),
            "DMLC_NUM_WORKER=8 DMLC_TASK_ID=4 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0");
  EXPECT_EQ(Told(XgboostVariables(LookUp(pod), 3, 4)),
            "DMLC_NUM_WORKER=8 DMLC_TASK_ID=7 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0");
  EXPECT_THAT(Told(XgboostVariables(LookUp(pod), 7, 8)), HasSubstr("would be worker 15 of 8"));
}

TEST(PodFacts, XgboostFromThePodsPlace) {
  EXPECT_EQ(Told(XgboostVariables(LookUp({}), 0, 1)), "DMLC_NUM_WORKER=1 DMLC_TASK_ID=0 DMLC_TRACKER_PORT=29500");
  const Variables pod = {{"PET_NNODES", "3"}, {"PET_MASTER_ADDR", "n0"}, {"JOB_COMPLETION_INDEX", "2"}};
  EXPECT_EQ(Told(XgboostVariables(LookUp(pod), 1, 2)),
            "DMLC_NUM_WORKER=6 DMLC_TASK_ID=5 DMLC_TRACKER_PORT=29500 DMLC_TRACKER_URI=n0");
  EXPECT_THAT(Told(XgboostVariables(LookUp({{"DMLC_NUM_WORKER", "2"}}), 0, 1)), HasSubstr("set DMLC_TRACKER_URI"));
  EXPECT_THAT(Told(XgboostVariables(LookUp({{"DMLC_TASK_ID", "x"}}), 0, 1)), HasSubstr("DMLC_TASK_ID=x"));
}

}  // namespace
}  // namespace muster::agent
