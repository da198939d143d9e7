// SPDX-License-Identifier: Apache-2.0
// PodGroups of PyTorchJobs, the same as training-operator's for Volcano and for the scheduler-plugins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/controller/plan/pytorch_planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr auto kMaster = ReplicaType::kMaster;
constexpr auto kWorker = ReplicaType::kWorker;

PyTorchOptions Gang(const std::string& scheduler) {
  PyTorchOptions options = PyTorchTestOptions();
  options.gang_scheduler = scheduler;
  return options;
}

Json GroupOf(const PlannedPyTorch& planned) {
  for (const PlannedObject& object : planned.plan.objects) {
    if (object.object["kind"] != "PodGroup") continue;
    EXPECT_EQ(object.if_there, PlannedObject::IfThere::kUpdate);
    return object.object;
  }
  ADD_FAILURE() << "no PodGroup";
  return {};
}

TEST(PyTorchGang, NoneWithoutAScheduler) {
  const PlannedPyTorch planned({.run = "{schedulingPolicy: {minAvailable: 2}}"});
  EXPECT_TRUE(planned.plan.objects.empty());
  EXPECT_FALSE(planned.plan.waits_for_pod_group);
}

TEST(PyTorchGang, ThePodGroupHasTheFieldsOfItsScheduler) {
  const std::string asks = "{resources: {requests: {cpu: 500m}, limits: {cpu: \"4\", nvidia.com/gpu: \"2\"}}}";
  // The scheduler counts init-pytorch in the workers, so its memory is here.
  const std::string all = "minResources: {cpu: 1500m, memory: \"20971520\", nvidia.com/gpu: \"6\"}";
  struct Row {
    std::string what, scheduler, policy, spec;
  };
  const Row rows[] = {
      {"all replicas", "volcano", "{}", "{minMember: 3, " + all + "}"},
      {"all of Volcano's fields", "volcano",
       "{minAvailable: 2, queue: team, priorityClass: high, scheduleTimeoutSeconds: 9}",
       "{minMember: 2, queue: team, priorityClassName: high, minResources: {cpu: \"1\", memory: \"10485760\", "
       "nvidia.com/gpu: \"4\"}}"},
      {"its own resources", "volcano", "{minResources: {cpu: \"9\"}}", "{minMember: 3, minResources: {cpu: \"9\"}}"},
      {"scheduler-plugins", "scheduler-plugins", "{queue: team, priorityClass: high, scheduleTimeoutSeconds: 9}",
       "{minMember: 3, scheduleTimeoutSeconds: 9, " + all + "}"},
      {"scheduler-plugins, nothing said", "scheduler-plugins", "{}", "{minMember: 3, " + all + "}"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const bool volcano = row.scheduler == "volcano";
    const PlannedPyTorch planned(
        {.run = fmt::format("{{schedulingPolicy: {}}}", row.policy), .annotations = "{note: x}", .container = asks},
        Gang(row.scheduler));
    const Json group = GroupOf(planned);
    EXPECT_EQ(group["apiVersion"], volcano ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1");
    EXPECT_EQ(At(group, "/metadata/name"), "a");
    EXPECT_EQ(At(group, "/metadata/annotations"), YamlOf("{note: x}")) << "the job's go to the group";
    EXPECT_EQ(At(group, "/metadata/ownerReferences/0/uid"), "uid-a");
    EXPECT_EQ(group["spec"], YamlOf(row.spec));
    EXPECT_EQ(planned.plan.waits_for_pod_group, volcano);
  }
}

TEST(PyTorchGang, WhatThePodsSay) {
  const PlannedPyTorch volcano({}, Gang("volcano")), plugins({}, Gang("scheduler-plugins"));
  for (const auto type : {kMaster, kWorker}) {
    Json pod = volcano.Pod(type, 0);
    EXPECT_EQ(At(pod, "/metadata/annotations"),
              Json({{"muster.dev/attempt", "0"},
                    {"scheduling.k8s.io/group-name", "a"},
                    {"volcano.sh/task-spec", type == kMaster ? "master" : "worker"}}));
    EXPECT_EQ(At(pod, "/spec/schedulerName"), "volcano");
    pod = plugins.Pod(type, 0);
    EXPECT_EQ(At(pod, "/metadata/labels/scheduling.x-k8s.io~1pod-group"), "a");
    EXPECT_EQ(At(pod, "/metadata/annotations"), Json({{"muster.dev/attempt", "0"}}));
    EXPECT_EQ(At(pod, "/spec/schedulerName"), "scheduler-plugins");
  }
}

TEST(PyTorchGang, ASchedulerOfThePodsOwnStaysAndIsSaid) {
  const PlannedPyTorch other({.workers = 0, .pod = "{schedulerName: mine}"}, Gang("volcano"));
  EXPECT_EQ(At(other.Pod(kMaster, 0), "/spec/schedulerName"), "mine");
  ASSERT_FALSE(other.plan.notices.empty());
  const Notice& notice = other.plan.notices.back();
  EXPECT_EQ(notice.reason, "SetPodTemplateSchedulerName");
  EXPECT_TRUE(notice.warning);
  EXPECT_THAT(notice.message, HasSubstr("spec.pytorchReplicaSpecs.Master.template.spec.schedulerName: mine"));
  const PlannedPyTorch same({.workers = 0, .pod = "{schedulerName: volcano}"}, Gang("volcano"));
  for (const Notice& each : same.plan.notices) EXPECT_NE(each.reason, "SetPodTemplateSchedulerName");
}

}  // namespace
}  // namespace muster::controller
