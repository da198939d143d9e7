// SPDX-License-Identifier: Apache-2.0
// JAX: its three variables, and that the agents of several nodes meet.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

constexpr char kRank[] =
    R"(from {"fieldRef":{"fieldPath":"metadata.annotations['batch.kubernetes.io/job-completion-index']"}})";

TEST(Jax, HasItsVariablesAlsoWithoutATrainer) {
  struct Row {
    std::string spec;
    int pods;
    size_t secrets;
  };
  for (const Row& row : std::vector<Row>{{"{}", 1, 0}, {"{trainer: {numNodes: 3}}", 3, 1}}) {
    SCOPED_TRACE(row.spec);
    const TrainJobPlan plan =
        PlanOf(JobWith(row.spec), TrainerRuntime({.policy = "{jax: {}}", .container = "{command: [python, a.py]}"}));
    const Json container = ContainerOf(plan.jobs[0]);
    EXPECT_EQ(plan.jobs[0].pods, row.pods);
    EXPECT_EQ(EnvOf(container, "JAX_NUM_PROCESSES"), std::to_string(row.pods));
    EXPECT_EQ(EnvOf(container, "JAX_PROCESS_ID"), kRank);
    EXPECT_EQ(EnvOf(container, "JAX_COORDINATOR_ADDRESS"), "train-node-0-0.train:29500");
    EXPECT_EQ(At(container, "/ports"), YamlOf("{p: [{containerPort: 29500}]}")["p"]);
    EXPECT_EQ(At(container, "/command"),
              YamlOf("{c: [/muster-agent/muster, exec, --wire=jax, --, python, a.py]}")["c"]);
    EXPECT_EQ(plan.objects.size(), row.secrets);
  }
}

TEST(Jax, TheJobsOwnVariablesStay) {
  const TrainJobPlan plan = PlanOf(
      JobWith("{trainer: {env: [{name: JAX_COORDINATOR_ADDRESS, value: \"other:1\"}]}}", "{muster.dev/agent: \"off\"}"),
      TrainerRuntime({.policy = "{numNodes: 2, jax: {}}", .container = "{command: [python]}"}));
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "JAX_COORDINATOR_ADDRESS"), "other:1");
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "JAX_NUM_PROCESSES"), "2");
  EXPECT_EQ(At(ContainerOf(plan.jobs[0]), "/command"), YamlOf("{c: [python]}")["c"]);
  EXPECT_TRUE(plan.objects.empty());
}

}  // namespace
}  // namespace muster::controller
