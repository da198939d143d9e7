// SPDX-License-Identifier: Apache-2.0
#include "controller/api/train_job.h"

#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

// A TrainJob with a runtimeRef and the fields `spec`, in flow style.
Json JobWith(std::string_view spec) {
  return YamlOf(std::string("metadata: {name: a}\nspec: {runtimeRef: {name: r}, ") + std::string(spec) + "}");
}

TEST(TrainJob, DefaultsAreUpstreams) {
  const auto job = ReadTrainJob(YamlOf("metadata: {name: a}\nspec: {runtimeRef: {name: r}}"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->runtime, (RuntimeRef{"trainer.kubeflow.org", "ClusterTrainingRuntime", "r"}));
  EXPECT_FALSE(job->dataset || job->model || job->trainer || job->suspend);
  EXPECT_FALSE(job->active_deadline_seconds || job->ttl_seconds_after_finished);
  EXPECT_EQ(job->managed_by, "trainer.kubeflow.org/trainjob-controller");
  EXPECT_TRUE(job->patches.empty());
  EXPECT_EQ(job->status, TrainJobStatus());
}

TEST(TrainJob, ReadsAllFields) {
  const auto job = ReadTrainJob(YamlOf(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  runtimeRef: {name: r, kind: TrainingRuntime, apiGroup: g}
  initializer:
    dataset: {storageUri: s3://b/d, env: [{name: A, value: "1"}], secretRef: {name: s}}
    model: {}
  trainer:
    image: i
    command: []
    args: [x, "1"]
    env: [{name: B, valueFrom: {secretKeyRef: {name: n, key: k}}}]
    numNodes: 2
    numProcPerNode: 8
    resourcesPerNode: {limits: {cpu: 1.5, memory: 1Gi}, claims: [{name: c}]}
  runtimePatches:
  - manager: a.example/b
    time: 2026-01-02T03:04:05Z
    trainingRuntimeSpec: {template: {metadata: {labels: {x: z}}, spec: {replicatedJobs: [{name: node}]}}}
  - manager: a.example/c
  suspend: true
  activeDeadlineSeconds: 5
  ttlSecondsAfterFinished: 0
  managedBy: kueue.x-k8s.io/multikueue
status: {state: Running}
)"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->runtime, (RuntimeRef{"g", "TrainingRuntime", "r"}));
  ASSERT_TRUE(job->dataset && job->model && job->trainer);
  EXPECT_EQ(job->dataset->storage_uri, "s3://b/d");
  EXPECT_EQ(job->dataset->env, (Json{{{"name", "A"}, {"value", "1"}}}));
  EXPECT_EQ(job->dataset->secret, "s");
  EXPECT_EQ(job->model->storage_uri, "");
  EXPECT_EQ(job->model->env, Json::array());
  EXPECT_EQ(job->trainer->image, "i");
  EXPECT_EQ(job->trainer->command, std::vector<std::string>());
  EXPECT_EQ(job->trainer->args, (std::vector<std::string>{"x", "1"}));
  EXPECT_EQ(job->trainer->env.size(), 1);
  EXPECT_EQ(job->trainer->num_nodes, 2);
  EXPECT_EQ(job->trainer->num_proc_per_node, 8);
  EXPECT_EQ(job->trainer->resources_per_node["limits"]["memory"], "1Gi");
  ASSERT_EQ(job->patches.size(), 2);
  EXPECT_EQ(job->patches[0].manager, "a.example/b");
  EXPECT_EQ(job->patches[0].metadata, (Json{{"labels", {{"x", "z"}}}}));
  EXPECT_EQ(job->patches[0].replicated_jobs, (Json{{{"name", "node"}}}));
  EXPECT_TRUE(job->patches[1].metadata.is_null() && job->patches[1].replicated_jobs.is_null());
  EXPECT_TRUE(job->suspend);
  EXPECT_EQ(job->active_deadline_seconds, 5);
  EXPECT_EQ(job->ttl_seconds_after_finished, 0);
  EXPECT_EQ(job->managed_by, "kueue.x-k8s.io/multikueue");
  EXPECT_EQ(job->status.state, "Running");
}

TEST(TrainJob, OldShapeIsRead) {
  const auto job = ReadTrainJob(JobWith("trainer: {numProcPerNode: \"4\"}, labels: {team: v}"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->trainer->num_proc_per_node, 4);
  ASSERT_EQ(job->patches.size(), 1);
  EXPECT_EQ(job->patches[0].metadata, (Json{{"labels", {{"team", "v"}}}}));
}

TEST(TrainJob, RefusesWrongFieldsByTheirPath) {
  const struct {
    std::string_view spec, message;
  } rows[] = {
      {"trainer: {numNodes: four}", "spec.trainer.numNodes: 'four' is not a whole number"},
      {"trainer: {numNodes: 2.5}", "spec.trainer.numNodes: 2.5 is not a whole number"},
      {"trainer: {numNodes: -1}", "spec.trainer.numNodes: -1 is less than 1"},
      {"trainer: {numNodes: 2147483648}", "spec.trainer.numNodes: 2147483648 is more than 100000"},
      {"trainer: {numNodes: 18446744073709551615}",
       "spec.trainer.numNodes: 18446744073709551615 is not a whole number"},
      {"trainer: {numProcPerNode: 0}", "spec.trainer.numProcPerNode: 0 is less than 1"},
      {"trainer: {numProcPerNode: many}",
       "spec.trainer.numProcPerNode: 'many' is neither a whole number from 1 to 65536 nor auto, cpu or gpu"},
      {"trainer: [1]", "spec.trainer: a list is not an object"},
      {"trainer: {image: 5}", "spec.trainer.image: 5 is not a string; put it in quotes"},
      {"trainer: {command: torchrun}", "spec.trainer.command: 'torchrun' is not a list of strings"},
      {"trainer: {args: [a, 1]}", "spec.trainer.args[1]: 1 is not a string; put it in quotes"},
      {"trainer: {args: [[a]]}", "spec.trainer.args[0]: a list is not a string"},
      {"trainer: {env: {}}", "spec.trainer.env: an object is not a list"},
      {"trainer: {env: [A]}", "spec.trainer.env[0]: 'A' is not an object"},
      {"trainer: {env: [null]}", "spec.trainer.env[0]: null is not an object"},
      {"trainer: {env: [{value: x}]}", "spec.trainer.env[0].name: it is missing"},
      {"trainer: {env: [{name: A, value: 1}]}", "spec.trainer.env[0].value: 1 is not a string; put it in quotes"},
      {"trainer: {env: [{name: A}, {name: A}]}",
       "spec.trainer.env[1].name: 'A' is there twice; give each its own name"},
      {"trainer: {env: [{name: A, valueFrom: x}]}", "spec.trainer.env[0].valueFrom: 'x' is not an object"},
      {"trainer: {resourcesPerNode: {limits: {cpu: four}}}",
       "spec.trainer.resourcesPerNode.limits.cpu: 'four' is not a quantity such as 4, 500m, 16Gi or 2e3"},
      {"trainer: {resourcesPerNode: {requests: {cpu: -1}}}",
       "spec.trainer.resourcesPerNode.requests.cpu: -1 is less than 0"},
      {"trainer: {resourcesPerNode: {requests: [cpu]}}",
       "spec.trainer.resourcesPerNode.requests: a list is not an object"},
      {"initializer: {dataset: {storageUri: /data}}",
       "spec.initializer.dataset.storageUri: '/data' may be empty, or it must be a valid URI (scheme://...)"},
      {"initializer: {dataset: {storageUri: \"1a://x\"}}",
       "spec.initializer.dataset.storageUri: '1a://x' may be empty, or it must be a valid URI (scheme://...)"},
      {"initializer: {model: {storageUri: \"s3://\"}}",
       "spec.initializer.model.storageUri: 's3://' may be empty, or it must be a valid URI (scheme://...)"},
      {"initializer: {model: {secretRef: s}}", "spec.initializer.model.secretRef: 's' is not an object"},
      {"suspend: \"true\"", "spec.suspend: 'true' is neither true nor false"},
      {"activeDeadlineSeconds: 0", "spec.activeDeadlineSeconds: 0 is less than 1"},
      {"ttlSecondsAfterFinished: -1", "spec.ttlSecondsAfterFinished: -1 is less than 0"},
      {"runtimePatches: [{}]", "spec.runtimePatches[0].manager: it is missing"},
      {"runtimePatches: [{manager: a/b}, {manager: a/b}]",
       "spec.runtimePatches[1].manager: 'a/b' has another patch already; a manager has one patch: put both into it"},
      {"runtimePatches: [{manager: a/b, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{}]}}}}]",
       "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].name: it is missing"},
      {"runtimePatches: [{manager: a/b, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: m, template: "
       "{spec: {template: {spec: {nodeSelector: {gpu: 1}}}}}}]}}}}]",
       "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec."
       "nodeSelector.gpu: 1 is not a string; put it in quotes"},
  };
  for (const auto& row : rows) EXPECT_EQ(Message(ReadTrainJob(JobWith(row.spec)).status()), row.message) << row.spec;
}

TEST(TrainJob, RefusesTheObject) {
  const std::string long_name(64, 'a');
  const struct {
    std::string yaml, message;
  } rows[] = {
      {"metadata: {name: a}", "spec: it is missing"},
      {"metadata: {name: a}\nspec: {}", "spec.runtimeRef: it is missing; name the runtime of this job"},
      {"metadata: {name: a}\nspec: {runtimeRef: {kind: k}}", "spec.runtimeRef.name: it is missing"},
      {"kind: Job\nmetadata: {name: a}", "kind: 'Job' is not TrainJob"},
      {"apiVersion: v1\nmetadata: {name: a}", "apiVersion: 'v1' is not trainer.kubeflow.org/v1alpha1"},
      {"metadata: {name: A}",
       "metadata.name: 'A' must match RFC 1035 DNS label format: a-z, 0-9 and '-', a letter first"},
      {"metadata: {name: 1a}",
       "metadata.name: '1a' must match RFC 1035 DNS label format: a-z, 0-9 and '-', a letter first"},
      {"metadata: {name: a-}",
       "metadata.name: 'a-' must match RFC 1035 DNS label format: a-z, 0-9 and '-', a letter first"},
      {"metadata: {name: " + long_name + "}", "metadata.name: '" + long_name + "' must be no more than 63 characters"},
  };
  for (const auto& row : rows) EXPECT_EQ(Message(ReadTrainJob(YamlOf(row.yaml)).status()), row.message) << row.yaml;
  EXPECT_FALSE(ReadTrainJob(Json()).ok());
  EXPECT_FALSE(ReadTrainJob(Json::array()).ok());
}

TEST(TrainJob, IsMustersUnlessManagedByAnother) {
  const struct {
    std::string_view spec;
    bool ours;
  } rows[] = {
      {"spec: {}", true},
      {"spec: {managedBy: trainer.kubeflow.org/trainjob-controller, trainer: 5}", true},
      {"spec: {managedBy: kueue.x-k8s.io/multikueue, trainer: 5}", false},
      {"spec: {managedBy: 5}", true},
      {"spec: 5", true},
      {"{}", true},
  };
  for (const auto& row : rows) EXPECT_EQ(IsManagedByMuster(YamlOf(row.spec)), row.ours) << row.spec;
}

}  // namespace
}  // namespace muster::controller
