// SPDX-License-Identifier: Apache-2.0
// The variables, volumes and ConfigMap by which pods reach the status server.
#include "controller/plan/trainer_status.h"

#include <gtest/gtest.h>

#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

constexpr char kPath[] = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/train/status";

PlanOptions WithServer() { return {.status_server = StatusServerAddress{"https://server:10443", "PEM"}}; }

TrainJobPlan PlanWithServer(const RuntimeParts& parts = {}) {
  return PlanOf(JobWith(), TrainerRuntime(parts), WithServer());
}

TEST(StatusServerAddress, IsInEachContainerOfTheTrainer) {
  const TrainJobPlan plan = PlanWithServer({.pod = "{containers: [{name: sidecar, image: other}]}"});
  for (const size_t index : {0, 1}) {
    const Json container = ContainerOf(plan.jobs[0], index);
    EXPECT_EQ(EnvOf(container, "KUBEFLOW_TRAINER_SERVER_URL"), std::string("https://server:10443") + kPath);
    EXPECT_EQ(EnvOf(container, "KUBEFLOW_TRAINER_SERVER_CA_CERT"), "/var/run/secrets/kubeflow/trainer/ca.crt");
    EXPECT_EQ(EnvOf(container, "KUBEFLOW_TRAINER_SERVER_TOKEN"), "/var/run/secrets/kubeflow/trainer/token");
    EXPECT_EQ(At(container, "/volumeMounts/0"),
              YamlOf("{name: kubeflow-trainer-token, mountPath: /var/run/secrets/kubeflow/trainer, readOnly: true}"));
  }
  const Json sources = At(plan.jobs[0].Object(), "/spec/template/spec/volumes/0/projected/sources");
  EXPECT_EQ(At(sources, "/0/serviceAccountToken"),
            (Json{{"audience", "trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/train/status"},
                  {"expirationSeconds", 3600},
                  {"path", "token"}}));
  EXPECT_EQ(At(sources, "/1/configMap/name"), "train-tls-config");
  ASSERT_EQ(plan.objects.size(), 1u);
  EXPECT_EQ(At(plan.objects[0].object, "/metadata/name"), "train-tls-config");
  EXPECT_EQ(At(plan.objects[0].object, "/metadata/ownerReferences/0/uid"), "uid-1");
  EXPECT_EQ(At(plan.objects[0].object, "/data"), YamlOf("{ca.crt: PEM}"));
  EXPECT_EQ(plan.objects[0].if_there, PlannedObject::IfThere::kUpdate);
}

TEST(StatusServerAddress, LeavesTheUsersOwn) {
  const TrainJobPlan plan = PlanWithServer({.container = "{env: [{name: KUBEFLOW_TRAINER_SERVER_URL, value: mine}]}"});
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "KUBEFLOW_TRAINER_SERVER_URL"), "mine");
}

TEST(StatusServerAddress, IsNotThereWithoutTheServer) {
  const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime());
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "KUBEFLOW_TRAINER_SERVER_URL"), "-");
  EXPECT_TRUE(plan.objects.empty());
}

}  // namespace
}  // namespace muster::controller
