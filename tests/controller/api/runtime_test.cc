// SPDX-License-Identifier: Apache-2.0
#include "controller/api/runtime.h"

#include "base/text.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

constexpr std::string_view kNode = "{name: node, template: {spec: {template: {spec: {containers: [{name: node}]}}}}}";

// A runtime with the job `node`. `job_set` and `spec` are more fields, in flow style, of the JobSet's spec and of the
// runtime's spec.
Json RuntimeWith(std::string_view job_set, std::string_view spec = "") {
  return YamlOf(
      fmt::format("kind: TrainingRuntime\nmetadata: {{name: r}}\n"
                  "spec: {{{} template: {{spec: {{replicatedJobs: [{}], {}}}}}}}",
                  spec, kNode, job_set));
}

// A runtime with the job `node`. Each argument is the text inside the braces of that level.
Json RuntimeOfJob(std::string_view job, std::string_view job_template, std::string_view job_spec,
                  std::string_view pod_template, std::string_view pod_spec) {
  return YamlOf(
      fmt::format("kind: TrainingRuntime\nmetadata: {{name: r}}\n"
                  "spec: {{template: {{spec: {{replicatedJobs: [{{name: node, {} template: {{{} spec: {{{} "
                  "template: {{{} spec: {{{}}}}}}}}}}}]}}}}}}",
                  job, job_template, job_spec, pod_template, pod_spec));
}

TEST(Runtime, DefaultsAreJobSets) {
  const auto runtime = ReadRuntime(RuntimeWith(""));
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_EQ(runtime->kind, "TrainingRuntime");
  EXPECT_FALSE(runtime->ml_policy.given || runtime->ml_policy.num_nodes);
  EXPECT_EQ(runtime->ml_policy.framework, Framework::kPlain);
  EXPECT_TRUE(runtime->pod_group_policy.is_null() && runtime->template_metadata.is_null());
  ASSERT_EQ(runtime->jobs.size(), 1);
  EXPECT_EQ(runtime->jobs[0].name, "node");
  EXPECT_EQ(runtime->jobs[0].group, "default");
  EXPECT_EQ(runtime->jobs[0].replicas, 1);
  EXPECT_EQ(runtime->jobs[0].step, Step::kOther);
  EXPECT_TRUE(runtime->success.all && runtime->success.jobs.empty());
  EXPECT_FALSE(runtime->failure);
  EXPECT_EQ(runtime->subdomain, "");
  EXPECT_TRUE(runtime->publish_not_ready_addresses && runtime->dns_hostnames);
  EXPECT_FALSE(runtime->in_order || runtime->child_ttl_seconds || runtime->train_job_ttl_seconds);
}

TEST(Runtime, ReadsAllFields) {
  const auto runtime = ReadRuntime(YamlOf(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: r}
spec:
  mlPolicy: {numNodes: 3, torch: {envInjection: {targets: [{jobName: side, containerNames: [a]}]}}}
  podGroupPolicy: {volcano: {networkTopology: {mode: soft, highestTierAllowed: 2}}}
  runPolicy: {ttlSecondsAfterFinished: 9}
  template:
    metadata: {labels: {a: b}, name: dropped}
    spec:
      replicatedJobs:
      - name: data
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec: {template: {spec: {containers: [{name: dataset-initializer}]}}}
      - name: model
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: model-initializer}}
          spec: {template: {spec: {containers: [{name: model-initializer}]}}}
      - name: node
        groupName: workers
        replicas: 2
        dependsOn: [{name: data, status: Complete}, {name: model, status: Ready}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, ports: [{containerPort: 80}]}]}}}
      successPolicy: {operator: Any, targetReplicatedJobs: [node]}
      failurePolicy:
        maxRestarts: 3
        restartStrategy: BlockingRecreate
        rules: [{action: FailJobSet, onJobFailureReasons: [PodFailurePolicy], targetReplicatedJobs: [node]}]
      network: {subdomain: sub, publishNotReadyAddresses: false, enableDNSHostnames: false}
      coordinator: {replicatedJob: node}
      volumeClaimPolicies: [{templates: [], retentionPolicy: {whenDeleted: Retain}}]
      ttlSecondsAfterFinished: 8
)"));
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_EQ(runtime->ml_policy.num_nodes, 3);
  EXPECT_EQ(runtime->ml_policy.framework, Framework::kTorch);
  EXPECT_EQ(runtime->ml_policy.policy["envInjection"]["targets"][0]["jobName"], "side");
  EXPECT_EQ(runtime->pod_group_policy["volcano"]["networkTopology"]["mode"], "soft");
  EXPECT_EQ(runtime->template_metadata, (Json{{"labels", {{"a", "b"}}}}));
  ASSERT_EQ(runtime->jobs.size(), 3);
  EXPECT_EQ(runtime->jobs[0].step, Step::kDatasetInitializer);
  EXPECT_EQ(runtime->jobs[1].step, Step::kModelInitializer);
  const ReplicatedJob& node = runtime->jobs[2];
  EXPECT_EQ(node.step, Step::kTrainer);
  EXPECT_EQ(node.group, "workers");
  EXPECT_EQ(node.replicas, 2);
  EXPECT_EQ(node.depends_on,
            (std::vector<Dependency>{{"data", Dependency::Until::kComplete}, {"model", Dependency::Until::kReady}}));
  EXPECT_EQ(node.job_template["spec"]["template"]["spec"]["containers"][0]["name"], "node");
  EXPECT_FALSE(runtime->success.all);
  EXPECT_EQ(runtime->success.jobs, std::vector<std::string>{"node"});
  ASSERT_TRUE(runtime->failure);
  EXPECT_EQ(runtime->failure->max_restarts, 3);
  EXPECT_EQ(runtime->failure->restart_strategy, "BlockingRecreate");
  EXPECT_EQ(runtime->failure->rules[0].name, "failurePolicyRule0");
  EXPECT_EQ(runtime->subdomain, "sub");
  EXPECT_FALSE(runtime->publish_not_ready_addresses || runtime->dns_hostnames);
  EXPECT_EQ(runtime->coordinator["replicatedJob"], "node");
  EXPECT_EQ(runtime->volume_claim_policies.size(), 1);
  EXPECT_EQ(runtime->child_ttl_seconds, 8);
  EXPECT_EQ(runtime->train_job_ttl_seconds, 9);
}

TEST(Runtime, ThePolicyDecidesTheFramework) {
  const struct {
    std::string_view policy;
    Framework framework;
  } rows[] = {
      {"{}", Framework::kPlain},
      {"{torch: {}}", Framework::kTorch},
      {"{torch: {numProcPerNode: auto}}", Framework::kTorch},
      {"{torch: {numProcPerNode: gpu}}", Framework::kTorch},
      {"{torch: {numProcPerNode: 4}}", Framework::kTorch},
      {"{torch: {numProcPerNode: \"4\"}}", Framework::kTorch},
      {"{torch: {elasticPolicy: {minNodes: 1, maxNodes: 4, maxRestarts: 0, metrics: [{type: Resource}]}}}",
       Framework::kTorch},
      {"{mpi: {numProcPerNode: 2, mpiImplementation: Intel, sshAuthMountPath: /s, runLauncherAsNode: true}}",
       Framework::kMpi},
      {"{jax: {}}", Framework::kJax},
      {"{xgboost: {}}", Framework::kXgboost},
      {"{flux: {numProcPerNode: 1}}", Framework::kFlux},
      {"{jax: null}", Framework::kPlain},
  };
  for (const auto& row : rows) {
    const auto runtime = ReadRuntime(RuntimeWith("", fmt::format("mlPolicy: {},", row.policy)));
    ASSERT_TRUE(runtime.ok()) << row.policy << runtime.status();
    EXPECT_TRUE(runtime->ml_policy.given);
    EXPECT_EQ(runtime->ml_policy.framework, row.framework) << row.policy;
    EXPECT_EQ(runtime->ml_policy.policy.is_null(), row.framework == Framework::kPlain);
  }
}

TEST(Runtime, RefusesPolicies) {
  constexpr std::string_view kWanted = " is neither a whole number from 1 to 65536 nor auto, cpu or gpu";
  const struct {
    std::string_view spec;
    std::string message;
  } rows[] = {
      {"mlPolicy: {torch: {}, mpi: {}},",
       "spec.mlPolicy: torch and mpi are there. Only one of the policy can be configured"},
      {"mlPolicy: {numNodes: x},", "spec.mlPolicy.numNodes: 'x' is not a whole number"},
      {"mlPolicy: {torch: 5},", "spec.mlPolicy.torch: 5 is not an object"},
      {"mlPolicy: {torch: {numProcPerNode: tpu}},",
       fmt::format("spec.mlPolicy.torch.numProcPerNode: 'tpu'{}", kWanted)},
      {"mlPolicy: {torch: {numProcPerNode: 0}},", fmt::format("spec.mlPolicy.torch.numProcPerNode: 0{}", kWanted)},
      {"mlPolicy: {torch: {numProcPerNode: [1]}},",
       fmt::format("spec.mlPolicy.torch.numProcPerNode: a list{}", kWanted)},
      {"mlPolicy: {torch: {elasticPolicy: {minNodes: 3, maxNodes: 2}}},",
       "spec.mlPolicy.torch.elasticPolicy.minNodes: 3 is more than maxNodes, which is 2"},
      {"mlPolicy: {torch: {elasticPolicy: {minNodes: 0}}},",
       "spec.mlPolicy.torch.elasticPolicy.minNodes: 0 is less than 1"},
      {"mlPolicy: {numNodes: 2, torch: {elasticPolicy: {}}},",
       "spec.mlPolicy.torch.elasticPolicy: stands beside mlPolicy.numNodes; leave numNodes out: minNodes and maxNodes "
       "say it"},
      {"mlPolicy: {torch: {envInjection: {targets: [{jobName: a, containerNames: [node]}]}}},",
       "spec.mlPolicy.torch.envInjection.targets[0].containerNames: may not contain \"node\": that one always has the "
       "variables"},
      {"mlPolicy: {mpi: {numProcPerNode: 0}},", "spec.mlPolicy.mpi.numProcPerNode: 0 is less than 1"},
      {"mlPolicy: {mpi: {mpiImplementation: Open}},",
       "spec.mlPolicy.mpi.mpiImplementation: 'Open' is not one of OpenMPI, Intel, MPICH"},
      {"mlPolicy: {flux: {numProcPerNode: auto}},", "spec.mlPolicy.flux.numProcPerNode: 'auto' is not a whole number"},
      {"podGroupPolicy: {coscheduling: {}, volcano: {}},",
       "spec.podGroupPolicy: coscheduling and volcano are there; one scheduler places the pods: leave one out"},
      {"podGroupPolicy: {volcano: {networkTopology: {mode: firm}}},",
       "spec.podGroupPolicy.volcano.networkTopology.mode: 'firm' is not one of hard, soft"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Message(ReadRuntime(RuntimeWith("", row.spec)).status()), row.message) << row.spec;
  }
}

TEST(Runtime, RefusesFieldsOfTheJobSet) {
  const std::string long_pattern = fmt::format(
      "failurePolicy: {{rules: [{{action: FailJobSet, onJobFailureMessagePatterns: [{}]}}]}}", std::string(1025, 'a'));
  const struct {
    std::string_view job_set, message;
  } rows[] = {
      {"replicas: 1, failurePolicy: {maxRestarts: -1}",
       "spec.template.spec.failurePolicy.maxRestarts: -1 is less than 0"},
      {"failurePolicy: {restartStrategy: Never}",
       "spec.template.spec.failurePolicy.restartStrategy: 'Never' is not one of Recreate, BlockingRecreate, "
       "InPlaceRestart"},
      {"failurePolicy: {rules: [{}]}", "spec.template.spec.failurePolicy.rules[0].action: it is missing"},
      {"failurePolicy: {rules: [{action: FailJobSet, onJobFailureReasons: [Bad]}]}",
       "spec.template.spec.failurePolicy.rules[0].onJobFailureReasons[0]: 'Bad' is not one of BackoffLimitExceeded, "
       "DeadlineExceeded, FailedIndexes, MaxFailedIndexesExceeded, PodFailurePolicy"},
      {"failurePolicy: {rules: [{action: RestartJob}]}",
       "spec.template.spec.failurePolicy.rules[0].action: 'RestartJob' is not served: all Jobs of a step restart "
       "together; use RestartJobSet"},
      {"failurePolicy: {rules: [{action: FailJobSet, onJobFailureMessagePatterns: ['a', '(']}]}",
       "spec.template.spec.failurePolicy.rules[0].onJobFailureMessagePatterns[1]: '(' is not a regular expression of "
       "RE2: "
       "'missing ): ('"},
      {long_pattern,
       "spec.template.spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]: it has more than 1024 characters"},
      {"failurePolicy: {rules: [{action: FailJobSet, targetReplicatedJobs: [x]}]}",
       "spec.template.spec.failurePolicy.rules[0].targetReplicatedJobs[0]: 'x' is not a replicated job; these are: "
       "node"},
      {"failurePolicy: {rules: [{action: FailJobSet, name: a}, {action: FailJobSet, name: a}]}",
       "spec.template.spec.failurePolicy.rules[1].name: 'a' is there twice; a rule needs its own"},
      {"successPolicy: {operator: Some}", "spec.template.spec.successPolicy.operator: 'Some' is not one of All, Any"},
      {"successPolicy: {targetReplicatedJobs: [x]}",
       "spec.template.spec.successPolicy.targetReplicatedJobs[0]: 'x' is not a replicated job; these are: node"},
      {"network: {subdomain: A.b}",
       "spec.template.spec.network.subdomain: 'A.b' is not a DNS label: a-z, 0-9 and '-', a letter first and no '-' "
       "last, "
       "at most 63"},
      {"startupPolicy: {startupPolicyOrder: Some}",
       "spec.template.spec.startupPolicy.startupPolicyOrder: 'Some' is not one of AnyOrder, InOrder"},
      {"coordinator: {replicatedJob: x}",
       "spec.template.spec.coordinator.replicatedJob: 'x' is not a replicated job; these are: node"},
      {"mlPolicy: {}", "spec.template.spec.mlPolicy: it belongs in spec.mlPolicy"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Message(ReadRuntime(RuntimeWith(row.job_set)).status()), row.message) << row.job_set;
  }
}

TEST(Runtime, RefusesFieldsAtAWrongLevel) {
  constexpr std::string_view kPod = "containers: [{name: node}]";
  const std::string job = "spec.template.spec.replicatedJobs[0]", in_pod = job + ".template.spec.template.spec";
  const struct {
    std::array<std::string_view, 5> parts;  // arguments of RuntimeOfJob
    std::string message;
  } rows[] = {
      {{"", "", "", "restartPolicy: Never,", kPod},
       job + ".template.spec.template.restartPolicy: it belongs in " + in_pod + ".restartPolicy"},
      {{"", "", "restartPolicy: Never,", "", kPod},
       job + ".template.spec.restartPolicy: it belongs in " + in_pod + ".restartPolicy"},
      {{"restartPolicy: Never,", "", "", "", kPod}, job + ".restartPolicy: it belongs in " + in_pod + ".restartPolicy"},
      {{"", "", "containers: [],", "", kPod},
       job + ".template.spec.containers: it belongs in " + in_pod + ".containers"},
      {{"", "", "", "", "containers: [{name: node}], backoffLimit: 3"},
       in_pod + ".backoffLimit: it belongs in " + job + ".template.spec.backoffLimit"},
      {{"", "parallelism: 2,", "", "", kPod},
       job + ".template.parallelism: it belongs in " + job + ".template.spec.parallelism"},
      {{"failurePolicy: {},", "", "", "", kPod},
       job + ".failurePolicy: it belongs in spec.template.spec.failurePolicy"},
      {{"", "", "network: {}, successPolicy: {rules: []},", "", kPod},
       job + ".template.spec.network: it belongs in spec.template.spec.network"},
      {{"", "dependsOn: [],", "", "", kPod}, job + ".template.dependsOn: it belongs in " + job + ".dependsOn"},
  };
  for (const auto& row : rows) {
    const auto& [a, b, c, d, e] = row.parts;
    EXPECT_EQ(Message(ReadRuntime(RuntimeOfJob(a, b, c, d, e)).status()), row.message);
  }
  const struct {
    std::string_view spec, message;
  } outer[] = {
      {"failurePolicy: {maxRestarts: 3},", "spec.failurePolicy: it belongs in spec.template.spec.failurePolicy"},
      {"replicatedJobs: [],", "spec.replicatedJobs: it belongs in spec.template.spec.replicatedJobs"},
      {"numNodes: 2,", "spec.numNodes: it belongs in spec.mlPolicy.numNodes"},
      {"torch: {},", "spec.torch: it belongs in spec.mlPolicy.torch"},
  };
  for (const auto& row : outer) EXPECT_EQ(Message(ReadRuntime(RuntimeWith("", row.spec)).status()), row.message);
  EXPECT_EQ(
      Message(
          ReadRuntime(YamlOf("kind: TrainingRuntime\nmetadata: {name: r}\nspec: {template: {network: {}}}")).status()),
      "spec.template.network: it belongs in spec.template.spec.network");
}

TEST(Runtime, RefusesJobs) {
  const std::string jobs = "spec.template.spec.replicatedJobs";
  const struct {
    std::string replicated_jobs, message;
  } rows[] = {
      {"[]", jobs + ": it is missing; a runtime needs a job"},
      {"{}", jobs + ": an object is not a list"},
      {"[{}]", jobs + "[0].name: it is missing"},
      {"[{name: M}]",
       jobs + "[0].name: 'M' is not a DNS label: a-z, 0-9 and '-', a letter first and no '-' last, at most 63"},
      {"[{name: m}]", jobs + "[0].template: it is missing"},
      {"[{name: m, template: {}}]", jobs + "[0].template.spec: it is missing"},
      {"[{name: m, template: {spec: {}}}]", jobs + "[0].template.spec.template: it is missing"},
      {"[{name: m, template: {spec: {template: {spec: {}}}}}]",
       jobs + "[0].template.spec.template.spec.containers: it is missing; a pod needs a container"},
      {fmt::format("[{}, {}]", kNode, kNode), jobs + "[1].name: 'node' is there twice; give each job its own name"},
      {"[{name: m, replicas: -1}]", jobs + "[0].replicas: -1 is less than 0"},
      {"[{name: m, dependsOn: [{name: x, status: Ready}]}]",
       jobs + "[0].dependsOn[0].name: 'x' is not a job above this one, which is the first; leave dependsOn out"},
      {fmt::format("[{}, {{name: m, dependsOn: [{{name: m, status: Ready}}]}}]", kNode),
       jobs + "[1].dependsOn[0].name: 'm' is not a job above this one; these are: node"},
      {fmt::format("[{}, {{name: m, dependsOn: [{{name: node}}]}}]", kNode),
       jobs + "[1].dependsOn[0].status: it is missing; Ready or Complete"},
      {fmt::format("[{}, {{name: m, dependsOn: [{{name: node, status: Done}}]}}]", kNode),
       jobs + "[1].dependsOn[0].status: 'Done' is not one of Ready, Complete"},
      {Replaced(std::string(kNode), "{name: node}", "{name: a, env: [{name: A, value: 1}]}"),
       jobs + "[0].template.spec.template.spec.containers[0].env[0].value: 1 is not a string; put it in quotes"},
      {Replaced(std::string(kNode), "{name: node}", "{name: a}, {name: a}"),
       jobs + "[0].template.spec.template.spec.containers[1].name: 'a' is there twice; give each its own name"},
      {Replaced(std::string(kNode), "{name: node}", "{name: a, ports: [{name: http}]}"),
       jobs + "[0].template.spec.template.spec.containers[0].ports[0].containerPort: it is missing"},
      {Replaced(std::string(kNode), "{name: node}", "{name: a, volumeMounts: [{name: v}]}"),
       jobs + "[0].template.spec.template.spec.containers[0].volumeMounts[0].mountPath: it is missing"},
      {Replaced(std::string(kNode), "containers:", "restartPolicy: Sometimes, containers:"),
       jobs + "[0].template.spec.template.spec.restartPolicy: 'Sometimes' is not one of Always, OnFailure, Never"},
      {Replaced(std::string(kNode), "template: {spec: {template",
                "template: {metadata: {labels: {a: 1}}, spec: {template"),
       jobs + "[0].template.metadata.labels.a: 1 is not a string; put it in quotes"},
  };
  for (const auto& row : rows) {
    const std::string list =
        row.replicated_jobs.starts_with("{name") ? "[" + row.replicated_jobs + "]" : row.replicated_jobs;
    const Json object =
        YamlOf("kind: TrainingRuntime\nmetadata: {name: r}\nspec: {template: {spec: {replicatedJobs: " + list + "}}}");
    EXPECT_EQ(Message(ReadRuntime(object).status()), row.message) << list;
  }
  Json many = RuntimeWith("");
  Json& list = many["spec"]["template"]["spec"]["replicatedJobs"];
  while (list.size() < 101) list.push_back(list[0]);
  EXPECT_EQ(Message(ReadRuntime(many).status()), jobs + ": 101 jobs are more than 100");
}

TEST(Runtime, RefusesInOrderBesideDependsOn) {
  const auto object = YamlOf(fmt::format(
      "kind: TrainingRuntime\nmetadata: {{name: r}}\nspec: {{template: {{spec: {{startupPolicy: {{startupPolicyOrder: "
      "InOrder}}, replicatedJobs: [{}, {}]}}}}}}",
      kNode, Replaced(std::string(kNode), "{name: node, t", "{name: b, dependsOn: [{name: node, status: Ready}], t")));
  EXPECT_EQ(
      Message(ReadRuntime(object).status()),
      "spec.template.spec.startupPolicy.startupPolicyOrder: StartupPolicy and DependsOn APIs are mutually exclusive; "
      "leave InOrder out");
  EXPECT_TRUE(ReadRuntime(RuntimeWith("startupPolicy: {startupPolicyOrder: InOrder}"))->in_order);
}

TEST(Runtime, RefusesTheObject) {
  const struct {
    std::string_view yaml, message;
  } rows[] = {
      {"metadata: {name: r}", "kind: it is missing; TrainingRuntime or ClusterTrainingRuntime"},
      {"kind: X\nmetadata: {name: r}", "kind: 'X' is not one of TrainingRuntime, ClusterTrainingRuntime"},
      {"kind: TrainingRuntime\nmetadata: {name: r}", "spec: it is missing"},
      {"kind: TrainingRuntime\nmetadata: {name: r}\nspec: {}", "spec.template: it is missing"},
      {"kind: TrainingRuntime\nmetadata: {name: r}\nspec: {template: {}}", "spec.template.spec: it is missing"},
      {"kind: TrainingRuntime\nmetadata: {}", "metadata.name: it is missing"},
      {"apiVersion: v1\nmetadata: {name: r}", "apiVersion: 'v1' is not trainer.kubeflow.org/v1alpha1"},
  };
  for (const auto& row : rows) EXPECT_EQ(Message(ReadRuntime(YamlOf(row.yaml)).status()), row.message) << row.yaml;
}

}  // namespace
}  // namespace muster::controller
