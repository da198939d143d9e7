// SPDX-License-Identifier: Apache-2.0
// The trainer's container under torch: overrides, variables, processes per node, the port.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr char kRank[] =
    R"(from {"fieldRef":{"fieldPath":"metadata.annotations['batch.kubernetes.io/job-completion-index']"}})";

TEST(Torch, HasItsVariablesAlsoWithoutATrainer) {
  const TrainJobPlan plan = PlanOf(JobWith(), TrainerRuntime({.policy = "{numNodes: 2, torch: {}}"}));
  const Json container = ContainerOf(plan.jobs[0]);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"PET_NNODES", "2"},
                                                        {"PET_NPROC_PER_NODE", "1"},
                                                        {"PET_NODE_RANK", kRank},
                                                        {"PET_MASTER_ADDR", "train-node-0-0.train"},
                                                        {"PET_MASTER_PORT", "29500"},
                                                        {"TRAINER_NNODES", "2"},
                                                        {"TRAINER_NPROC_PER_NODE", "1"},
                                                        {"TRAINER_NODE_0_HOSTNAME", "train-node-0-0.train"},
                                                        {"TRAINER_JOB_ID", "uid-1"},
                                                        {"PET_MAX_RESTARTS", "-"}}) {
    EXPECT_EQ(EnvOf(container, name), value) << name;
  }
  EXPECT_EQ(At(container, "/ports"), YamlOf("{p: [{containerPort: 29500}]}")["p"]);
}

TEST(Torch, ElasticJobsMeetByC10d) {
  const std::string policy = "{torch: {elasticPolicy: {minNodes: 1, maxNodes: 4}}}";
  const Json container = ContainerOf(PlanOf(JobWith(), TrainerRuntime({.policy = policy})).jobs[0]);
  EXPECT_EQ(EnvOf(container, "PET_RDZV_BACKEND"), "c10d");
  EXPECT_EQ(EnvOf(container, "PET_RDZV_ENDPOINT"), "train-node-0-0.train:29500");
  EXPECT_EQ(EnvOf(container, "PET_RDZV_ID"), "uid-1");
  const Json own = ContainerOf(
      PlanOf(JobWith(), TrainerRuntime({.policy = policy, .container = R"({env: [{name: PET_RDZV_BACKEND, value: etcd},
      {name: PET_MASTER_PORT, value: "7"}]})"}))
          .jobs[0]);
  EXPECT_EQ(EnvOf(own, "PET_RDZV_BACKEND"), "etcd");
  EXPECT_EQ(EnvOf(own, "PET_RDZV_ENDPOINT"), "train-node-0-0.train:7");
  EXPECT_EQ(EnvOf(ContainerOf(PlanOf(JobWith(), TrainerRuntime()).jobs[0]), "PET_RDZV_BACKEND"), "-");
}

TEST(Torch, APlainJobHasNoVariables) {
  const TrainJobPlan plan = PlanOf(JobWith("{trainer: {env: [{name: PET_NNODES, value: \"7\"}]}}"),
                                   TrainerRuntime({.policy = "{numNodes: 2}"}));
  EXPECT_EQ(At(ContainerOf(plan.jobs[0]), "/env"), YamlOf("{e: [{name: PET_NNODES, value: \"7\"}]}")["e"]);
  EXPECT_TRUE(At(ContainerOf(plan.jobs[0]), "/ports").is_null());
}

TEST(Torch, TheMasterAddressFollowsSubdomainAndJob) {
  const Runtime runtime = RuntimeWith(R"(
mlPolicy: {torch: {}}
template:
  spec:
    network: {subdomain: other}
    replicatedJobs:
    - name: worker
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
        spec: {template: {spec: {containers: [{name: node, image: i}]}}}
)");
  const TrainJobPlan plan = PlanOf(JobWith(), runtime);
  EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "PET_MASTER_ADDR"), "train-worker-0-0.other");
  EXPECT_EQ(plan.subdomain, "other");
  EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/template/spec/subdomain"), "other");
  EXPECT_EQ(At(plan.service, "/metadata/name"), "other");
}

TEST(Torch, VariablesThatTheRuntimeSetsStay) {
  const TrainJobPlan plan =
      PlanOf(JobWith("{trainer: {env: [{name: TRAINER_JOB_ID, value: mine}]}}"), TrainerRuntime({.container = R"({
env: [{name: PET_MASTER_PORT, value: "29400"}, {name: PET_NNODES, value: "9"}, {name: OTHER, value: $(PET_NNODES)}],
ports: [{containerPort: 29400, protocol: UDP}]})"}));
  const Json container = ContainerOf(plan.jobs[0]);
  EXPECT_EQ(EnvOf(container, "PET_MASTER_PORT"), "29400");
  EXPECT_EQ(EnvOf(container, "PET_NNODES"), "1");
  EXPECT_EQ(EnvOf(container, "TRAINER_JOB_ID"), "mine");
  EXPECT_EQ(At(container, "/ports"),
            YamlOf("{p: [{containerPort: 29400, protocol: UDP}, {containerPort: 29400}]}")["p"]);
}

TEST(Torch, OwnVariablesCanReferToItsVariables) {
  const TrainJobPlan plan = PlanOf(JobWith("{trainer: {env: [{name: OWN, value: $(PET_NNODES)}]}}"),
                                   TrainerRuntime({.container = "{env: [{name: FIRST, value: x}]}"}));
  const Json env = At(ContainerOf(plan.jobs[0]), "/env");
  ASSERT_EQ(env.size(), 11);
  EXPECT_EQ(At(env, "/0/name"), "PET_NNODES");
  EXPECT_EQ(At(env, "/9/name"), "FIRST");
  EXPECT_EQ(At(env, "/10/name"), "OWN");
}

TEST(Torch, ReservedNamesAreRefused) {
  EXPECT_THAT(Refusal(JobWith("{trainer: {env: [{name: PET_NNODES, value: \"1\"}, {name: A, value: b}, "
                              "{name: PET_MASTER_ADDR, value: x}]}}"),
                      TrainerRuntime()),
              HasSubstr("spec.trainer.env: must not have reserved envs, invalid envs configured: [PET_MASTER_ADDR "
                        "PET_NNODES]"));
}

TEST(Torch, ProcessesPerNodeAreAsAskedOrFromTheGpus) {
  struct Row {
    std::string trainer, annotations, policy, container, processes;
  };
  const std::string torch = "{torch: {}}", none = "{}";
  const std::string gpu = "{resources: {limits: {nvidia.com/gpu: 2}, requests: {cpu: 4}}}";
  for (const Row& row : std::vector<Row>{
           {"{numProcPerNode: 4}", "{muster.dev/num-proc-per-node: cpu}", "{torch: {numProcPerNode: gpu}}", gpu, "4"},
           {"{image: i}", "{muster.dev/num-proc-per-node: cpu}", "{torch: {numProcPerNode: gpu}}", gpu, "cpu"},
           {"{image: i}", none, "{torch: {numProcPerNode: gpu}}", none, "gpu"},
           {"{image: i}", none, "{torch: {numProcPerNode: 3}}", gpu, "3"},
           {"{image: i}", none, "{torch: {numProcPerNode: 3.0}}", gpu, "3"},
           {"{image: i}", none, "{torch: {numProcPerNode: \"3\"}}", gpu, "3"},
           {"{image: i}", none, torch, gpu, "auto"},
           {"{image: i}", none, torch, "{resources: {requests: {amd.com/GPU: 1}, limits: {amd.com/GPU: 1}}}", "auto"},
           {"{image: i}", none, torch, "{resources: {limits: {nvidia.com/mig-1g.5gb: 1}}}", "auto"},
           {"{image: i}", none, torch, "{resources: {limits: {nvidia.com/gpu: 0, cpu: 2}}}", "2"},
           {"{image: i}", none, torch, "{resources: {claims: [{name: gpus}]}}", "auto"},
           {"{image: i}", none, torch, "{resources: {limits: {google.com/tpu: 4, cpu: 9}}}", "4"},
           {"{image: i}", none, torch, "{resources: {requests: {cpu: 1500m}, limits: {cpu: 8}}}", "2"},
           {"{image: i}", none, torch, "{resources: {limits: {cpu: 8}}}", "8"},
           {"{image: i}", none, torch, "{resources: {requests: {cpu: 0}, limits: {cpu: 8}}}", "8"},
           {"{image: i}", none, torch, none, "1"},
           // Resources of the runtime and the job, merged.
           {"{resourcesPerNode: {requests: {cpu: 3}}}", none, torch, gpu, "auto"},
           {"{resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}", none, torch, none, "auto"},
           {"{resourcesPerNode: {requests: {cpu: 3}}}", none, torch, "{resources: {limits: {memory: 1Gi}}}", "3"},
       }) {
    SCOPED_TRACE(row.trainer + row.annotations + row.policy + row.container);
    const TrainJobPlan plan = PlanOf(JobWith("{trainer: " + row.trainer + "}", row.annotations),
                                     TrainerRuntime({.policy = row.policy, .container = row.container}));
    EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "PET_NPROC_PER_NODE"), row.processes);
  }
  EXPECT_THAT(
      Refusal(JobWith("{}", "{muster.dev/num-proc-per-node: many}"), TrainerRuntime()),
      HasSubstr("metadata.annotations.muster.dev/num-proc-per-node: 'many' is neither a whole number from 1 to 65536"));
}

TEST(Torch, TheTrainerOverridesTheRuntime) {
  const TrainJobPlan plan = PlanOf(
      JobWith(R"({trainer: {image: "own:2", command: [run], args: [], env: [{name: A, value: own}, {name: B, value: b}],
               resourcesPerNode: {requests: {cpu: "3"}, limits: {cpu: "5"}}}})"),
      TrainerRuntime({.policy = "{}",
                      .container = R"({command: [old], args: [x], env: [{name: A, value: old}, {name: C, value: c}],
               resources: {requests: {cpu: "1", memory: 1Gi}, claims: [{name: net}]}})",
                      .annotations = "{muster.dev/agent: \"off\"}"}));
  EXPECT_EQ(ContainerOf(plan.jobs[0]), YamlOf(R"(
name: node
image: own:2
command: [run]
args: []
env: [{name: A, value: own}, {name: C, value: c}, {name: B, value: b}]
resources: {requests: {cpu: "3", memory: 1Gi}, limits: {cpu: "5"}, claims: [{name: net}]}
)"));
}

constexpr char kInjection[] = R"(
mlPolicy:
  torch: {envInjection: {targets: [{jobName: side, containerNames: [first, second]}]}}
template:
  spec:
    replicatedJobs:
    - name: node
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
        spec: {template: {spec: {containers: [{name: node, image: i}]}}}
    - name: side
      template:
        spec:
          template:
            spec: {initContainers: [{name: first, image: i}], containers: [{name: second, image: i}]}
)";

TEST(Torch, OtherContainersGetTheVariablesToo) {
  const TrainJobPlan plan = PlanOf(JobWith(), RuntimeWith(kInjection));
  const PlannedJob& side = JobNamed(plan, "side");
  for (const char* container : {"/spec/template/spec/initContainers/0", "/spec/template/spec/containers/0"}) {
    EXPECT_EQ(EnvOf(At(side.Object(), container), "PET_MASTER_ADDR"), "train-node-0-0.train");
    EXPECT_EQ(At(At(side.Object(), container), "/env").size(), 5);
  }
  EXPECT_THAT(Refusal(JobWith(), RuntimeWith(Replaced(kInjection, "jobName: side", "jobName: aside"))),
              HasSubstr("there is no job 'aside'; there are: node, side"));
  EXPECT_THAT(Refusal(JobWith(), RuntimeWith(Replaced(kInjection, "[first, second]", "[third]"))),
              HasSubstr("job 'side' has no container 'third'; its containers are: second; its init containers: first"));
}

}  // namespace
}  // namespace muster::controller
