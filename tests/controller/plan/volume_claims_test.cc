// SPDX-License-Identifier: Apache-2.0
// PersistentVolumeClaims of volumeClaimPolicies.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr char kSet[] =
    "{volumeClaimPolicies: [{templates: [{metadata: {name: data, labels: {a: b}, annotations: {c: d}}, spec: "
    "{accessModes: "
    "[ReadWriteMany]}}]}, {templates: [{metadata: {name: kept}, spec: {}}], retentionPolicy: {whenDeleted: Retain}}]}";

TEST(VolumeClaims, AreMadeBeforeTheInitializers) {
  const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime({.set = kSet}));
  ASSERT_EQ(plan.objects.size(), 2U);
  for (const PlannedObject& planned : plan.objects) {
    EXPECT_TRUE(planned.for_initializers);
    EXPECT_EQ(planned.if_there, PlannedObject::IfThere::kUse);
    EXPECT_EQ(planned.object["kind"], "PersistentVolumeClaim");
    EXPECT_EQ(At(planned.object, "/metadata/namespace"), "ns");
    EXPECT_EQ(At(planned.object, "/metadata/labels/jobset.sigs.k8s.io~1jobset-name"), "train");
  }
  EXPECT_EQ(At(plan.objects[0].object, "/metadata/name"), "data-train");
  EXPECT_EQ(At(plan.objects[0].object, "/metadata/labels/a"), "b");
  EXPECT_EQ(At(plan.objects[0].object, "/metadata/annotations"), YamlOf("{c: d}"));
  EXPECT_EQ(At(plan.objects[0].object, "/metadata/ownerReferences/0/uid"), "uid-1");
  EXPECT_EQ(plan.objects[0].object["spec"], YamlOf("{accessModes: [ReadWriteMany]}"));
  EXPECT_EQ(At(plan.objects[1].object, "/metadata/name"), "kept-train");
  EXPECT_EQ(At(plan.objects[1].object, "/metadata/ownerReferences"), Json::array()) << "it outlives the TrainJob";
}

TEST(VolumeClaims, PodsThatMountOneHaveItsVolume) {
  const TrainJobPlan plan =
      PlanOf(JobWith(), TrainerRuntime({.pod = "{initContainers: [{name: i, image: i, volumeMounts: [{name: "
                                               "kept, mountPath: /k}]}]}",
                                        .set = kSet}));
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/template/spec/volumes"),
            YamlOf("{v: [{name: kept, persistentVolumeClaim: {claimName: kept-train}}]}")["v"]);
  EXPECT_TRUE(
      At(PlanOf(JobWith(), TrainerRuntime({.set = kSet})).jobs[0].Object(), "/spec/template/spec/volumes").is_null());
}

TEST(VolumeClaims, WhatIsRefused) {
  const std::string mount = "{volumeMounts: [{name: data, mountPath: /d}]}";
  struct Row {
    std::string policies, pod, message;
  };
  std::string many;
  for (int i = 0; i < 51; ++i) many += fmt::format("{{metadata: {{name: c{}}}, spec: {{}}}},", i);
  for (const Row& row : std::vector<Row>{
           {"[{templates: [{metadata: {name: data, namespace: n}, spec: {}}]}]", "{}",
            "runtime 'runtime': spec.template.spec.volumeClaimPolicies[0].templates[0].metadata.namespace: namespace "
            "cannot "
            "be set for VolumeClaimPolicies templates"},
           {"[{templates: [{metadata: {name: Data}, spec: {}}]}]", "{}", "metadata.name: 'Data' is not a DNS label"},
           {"[{templates: [{spec: {}}]}]", "{}", "templates[0].metadata.name: it is missing"},
           {"[{templates: [{metadata: {name: data}}]}]", "{}", "templates[0].spec: it is missing"},
           {"[{templates: [{metadata: {name: data}, spec: {}}, {metadata: {name: data}, spec: {}}]}]", "{}",
            "templates[1].metadata.name: 'data' is there twice; give each claim its own name"},
           {fmt::format("[{{templates: [{}]}}]", many), "{}", "templates: 51 entries are more than 50"},
           {"[{templates: [{metadata: {name: data}, spec: {}}]}]", "{volumes: [{name: data, emptyDir: {}}]}",
            "templates[0].metadata.name: job 'node' has a volume 'data' of its own; give the claim another name"},
       }) {
    SCOPED_TRACE(row.message);
    EXPECT_THAT(Refusal(JobWith(), TrainerRuntime({.pod = row.pod,
                                                   .container = mount,
                                                   .set = fmt::format("{{volumeClaimPolicies: {}}}", row.policies)})),
                HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace muster::controller
