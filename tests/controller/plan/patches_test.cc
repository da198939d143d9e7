// SPDX-License-Identifier: Apache-2.0
// spec.runtimePatches.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

std::string Patches(const std::vector<std::string>& runtime_specs) {
  std::string text = "{runtimePatches: [";
  for (size_t i = 0; i < runtime_specs.size(); ++i) {
    if (i > 0) text += ", ";
    text +=
        "{manager: example.com/m" + std::to_string(i) + ", trainingRuntimeSpec: {template: " + runtime_specs[i] + "}}";
  }
  return text + "]}";
}

std::string OfPod(const std::string& pod, const std::string& job = "node") {
  return "{spec: {replicatedJobs: [{name: " + job + ", template: {spec: {template: {spec: " + pod + "}}}}]}}";
}

TEST(Patches, GoOverTheRuntimeInTheirOrder) {
  const TrainJob job = JobWith(Patches({
      OfPod("{nodeSelector: {gpu: a100, zone: a}, tolerations: [{key: x}]}"),
      OfPod("{nodeSelector: {zone: b}, tolerations: [{key: z}], volumes: [{name: shm, emptyDir: {}}], "
            "containers: [{name: node, volumeMounts: [{name: shm, mountPath: /dev/shm}]}]}"),
  }));
  const TrainJobPlan plan = PlanOf(job, TrainerRuntime({.pod = "{nodeSelector: {disk: ssd}}"}));
  const Json pod = At(plan.jobs[0].Object(), "/spec/template/spec");
  EXPECT_EQ(At(pod, "/nodeSelector"), YamlOf("{disk: ssd, gpu: a100, zone: b}"));
  EXPECT_EQ(At(pod, "/tolerations/0/key"), "z");
  EXPECT_EQ(At(pod, "/containers/0/volumeMounts/0/mountPath"), "/dev/shm");
  EXPECT_EQ(At(pod, "/containers/0/image"), "image:1");
}

TEST(Patches, MetadataGoesToEveryObject) {
  const TrainJob job = JobWith(Patches({"{metadata: {labels: {team: a, kueue.x-k8s.io/queue-name: q}}}",
                                        "{metadata: {labels: {team: b}, annotations: {cost: \"4\"}}}"}));
  Runtime runtime = TrainerRuntime();
  runtime.template_metadata = YamlOf("{labels: {team: runtime, runtime: r}}");
  const TrainJobPlan plan = PlanOf(job, runtime);
  for (const Json& metadata : {plan.service["metadata"], At(plan.jobs[0].Object(), "/metadata"),
                               At(plan.jobs[0].Object(), "/spec/template/metadata")}) {
    EXPECT_EQ(At(metadata, "/labels/team"), "b");
    EXPECT_EQ(At(metadata, "/labels/runtime"), "r");
    EXPECT_EQ(At(metadata, "/annotations/cost"), "4");
    EXPECT_TRUE(At(metadata, "/labels/kueue.x-k8s.io~1queue-name").is_null());
  }
}

TEST(Patches, OfWhatIsNotThereAreRefused) {
  const std::string path = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]";
  const std::string pod = path + ".template.spec.template.spec.";
  struct Row {
    std::string patch, message;
  };
  for (const Row& row : std::vector<Row>{
           {OfPod("{}", "worker"), path + ".name: the runtime has no job 'worker'; there are: node"},
           {OfPod("{containers: [{name: other}]}"),
            pod + "containers: job 'node' of the runtime has no container 'other'; there are: node"},
           {OfPod("{initContainers: [{name: other}]}"),
            pod + "initContainers: job 'node' of the runtime has no init container 'other'; there are: none"},
           {OfPod("{containers: [{name: node, volumeMounts: [{name: shm, mountPath: /s}]}]}"),
            pod + "containers[node].volumeMounts: job 'node' has no volume 'shm'; there are: data"},
           {OfPod("{containers: [{name: node, env: [{name: PET_NODE_RANK, value: \"0\"}]}]}"),
            pod + "containers[node].env: must not have reserved envs, invalid envs configured: [PET_NODE_RANK]"},
       }) {
    SCOPED_TRACE(row.patch);
    EXPECT_THAT(
        Refusal(JobWith(Patches({row.patch})), TrainerRuntime({.pod = "{volumes: [{name: data, emptyDir: {}}]}"})),
        HasSubstr(row.message));
  }
}

TEST(Patches, AVolumeOfALaterPatchCounts) {
  const TrainJob job = JobWith(Patches({OfPod("{containers: [{name: node, volumeMounts: [{name: v, mountPath: /v}]}]}"),
                                        OfPod("{volumes: [{name: v, emptyDir: {}}]}")}));
  EXPECT_EQ(Refusal(job, TrainerRuntime()), "");
}

TEST(Patches, TheTrainerGoesOverThem) {
  const TrainJob job = JobWith(
      "{trainer: {env: [{name: A, value: trainer}]}, runtimePatches: [{manager: example.com/m, trainingRuntimeSpec: "
      "{template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, "
      "env: [{name: A, value: patch}, {name: B, value: patch}]}]}}}}}]}}}}]}");
  const Json container = ContainerOf(PlanOf(job, TrainerRuntime()).jobs[0]);
  EXPECT_EQ(EnvOf(container, "A"), "trainer");
  EXPECT_EQ(EnvOf(container, "B"), "patch");
}

}  // namespace
}  // namespace muster::controller
