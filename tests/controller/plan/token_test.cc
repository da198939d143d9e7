// SPDX-License-Identifier: Apache-2.0
// The Secret with the token by which the agents of a job authenticate to each other.
#include "controller/plan/token.h"

#include <gtest/gtest.h>

#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

constexpr char kCommand[] = "{command: [torchrun, train.py]}";

TEST(Token, IsMountedWhereSeveralPodsMeet) {
  const TrainJobPlan plan = PlanOf(JobWith("{trainer: {numNodes: 2}}"), TrainerRuntime({.container = kCommand}));
  EXPECT_EQ(At(plan.objects.at(0).object, "/metadata/name"), "train-token-uid-1");
  EXPECT_EQ(At(plan.objects.at(0).object, "/metadata/namespace"), "ns");
  EXPECT_EQ(At(plan.objects.at(0).object, "/metadata/ownerReferences/0/uid"), "uid-1");
  EXPECT_EQ(At(plan.objects.at(0).object, "/immutable"), true);
  EXPECT_FALSE(plan.objects.at(0).object.contains("stringData"));
  const Json container = ContainerOf(plan.jobs[0]);
  EXPECT_EQ(EnvOf(container, "MUSTER_TOKEN_FILE"), "/muster-token/token");
  EXPECT_EQ(At(container, "/volumeMounts/1"), YamlOf("{name: muster-token, mountPath: /muster-token, readOnly: true}"));
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/template/spec/volumes/1"),
            YamlOf("{name: muster-token, secret: {secretName: train-token-uid-1}}"));
  EXPECT_EQ(At(WithToken(plan.objects.at(0).object, "abc"), "/stringData/token"), "abc");
}

TEST(Token, IsNotMadeWhereNoAgentAsksForIt) {
  struct {
    const char* what;
    TrainJobPlan plan;
  } const rows[] = {
      {"one pod alone", PlanOf(JobWith(), TrainerRuntime({.container = kCommand}))},
      {"no torchrun", PlanOf(JobWith("{trainer: {numNodes: 2}}"),
                             TrainerRuntime({.policy = "{numNodes: 1}", .container = "{command: [train]}"}))},
      {"no agent", PlanOf(JobWith("{trainer: {numNodes: 2}}", "{muster.dev/agent: \"off\"}"),
                          TrainerRuntime({.container = kCommand}))},
      {"the user's own", PlanOf(JobWith("{trainer: {numNodes: 2, env: [{name: MUSTER_TOKEN_FILE, value: /mine}]}}"),
                                TrainerRuntime({.container = kCommand}))},
  };
  for (const auto& row : rows) {
    EXPECT_TRUE(row.plan.objects.empty()) << row.what;
    EXPECT_EQ(At(row.plan.jobs[0].Object(), "/spec/template/spec/volumes/1"), Json()) << row.what;
  }
}

}  // namespace
}  // namespace muster::controller
