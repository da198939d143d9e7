// SPDX-License-Identifier: Apache-2.0
// XGBoost: its four variables, one worker for each GPU, and that the agents of several nodes meet.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr char kRank[] =
    R"(from {"fieldRef":{"fieldPath":"metadata.annotations['batch.kubernetes.io/job-completion-index']"}})";

TEST(Xgboost, HasItsVariablesAlsoWithoutATrainer) {
  struct Row {
    std::string spec, resources, workers;
    size_t secrets;
  };
  for (const Row& row : std::vector<Row>{
           {"{}", "{}", "1", 0},
           {"{trainer: {numNodes: 3}}", "{}", "3", 1},
           {"{trainer: {numNodes: 3}}", "{limits: {nvidia.com/gpu: 2}}", "6", 1},
           {"{trainer: {numNodes: 2, resourcesPerNode: {requests: {cpu: 1}}}}", "{limits: {nvidia.com/gpu: 2}}", "4",
            1},
           {"{trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}}", "{}", "8", 1},
       }) {
    SCOPED_TRACE(row.spec + row.resources);
    const TrainJobPlan plan = PlanOf(
        JobWith(row.spec), TrainerRuntime({.policy = "{xgboost: {}}",
                                           .container = "{command: [python], resources: " + row.resources + "}"}));
    const Json container = ContainerOf(plan.jobs[0]);
    EXPECT_EQ(EnvOf(container, "DMLC_TRACKER_URI"), "train-node-0-0.train");
    EXPECT_EQ(EnvOf(container, "DMLC_TRACKER_PORT"), "29500");
    EXPECT_EQ(EnvOf(container, "DMLC_TASK_ID"), kRank);
    EXPECT_EQ(EnvOf(container, "DMLC_NUM_WORKER"), row.workers);
    EXPECT_EQ(EnvOf(container, "TRAINER_NNODES"), std::to_string(plan.jobs[0].pods));
    EXPECT_EQ(At(container, "/command"), YamlOf("{c: [/muster-agent/muster, exec, --wire=xgboost, --, python]}")["c"]);
    EXPECT_EQ(At(container, "/ports"), YamlOf("{p: [{containerPort: 29500}]}")["p"]);
    EXPECT_EQ(plan.objects.size(), row.secrets);
  }
}

TEST(Xgboost, ReservedNamesAreRefused) {
  EXPECT_THAT(Refusal(JobWith("{trainer: {env: [{name: DMLC_TASK_ID, value: \"1\"}]}}"),
                      TrainerRuntime({.policy = "{xgboost: {}}"})),
              HasSubstr("spec.trainer.env: DMLC_TASK_ID is reserved for the XGBoost runtime"));
}

}  // namespace
}  // namespace muster::controller
