// SPDX-License-Identifier: Apache-2.0
// How many and how large objects a job may make. Each row is refused before memory is taken.
#include "controller/plan/sizes.h"
#include "controller/plan/train_job_plan.h"
#include "tests/controller/plan/planned.h"
#include "tests/controller/plan/pytorch_planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

std::string Text(size_t bytes) { return std::string(bytes, 'x'); }

// Runtimes with a job `side` of so many replicas and pods, and one variable of so many bytes.
Runtime SideRuntime(int replicas, int pods, size_t bytes, std::string_view policy = "{torch: {}}") {
  return RuntimeWith(fmt::format(R"(
mlPolicy: {}
template:
  spec:
    replicatedJobs:
    - name: side
      replicas: {}
      template: {{spec: {{parallelism: {}, template: {{spec: {{containers: [{{name: c, image: i, env: [{{name: V, value: "{}"}}]}}]}}}}}}}}
    - name: node
      template:
        metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
        spec: {{template: {{spec: {{containers: [{{name: node, image: i, command: [x]}}]}}}}}}
)",
                                 policy, replicas, pods, Text(bytes)));
}

// Job `node` of an MPI runtime beside its launcher.
constexpr char kMpi[] = R"(
mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 8}}
template:
  spec:
    replicatedJobs:
    - name: launcher
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
        spec: {template: {spec: {containers: [{name: node, image: i, command: [mpirun]}]}}}
    - name: node
      template: {spec: {template: {spec: {containers: [{name: node, image: i}]}}}}
)";

TEST(Bounds, TooManyPodsOrHostsAreRefused) {
  struct Row {
    std::string what;
    Status made;
    std::string message;  // empty: it is planned
  };
  const auto with_nodes = [](int nodes, std::string_view runtime) {
    TrainJob job = JobWith("{trainer: {image: i}}");
    job.trainer->num_nodes = nodes;
    return PlanTrainJob(job, runtime.empty() ? TrainerRuntime() : RuntimeWith(runtime), {}).status();
  };
  const auto with_side = [](int replicas, int pods) {
    return PlanTrainJob(JobWith(), SideRuntime(replicas, pods, 1), {}).status();
  };
  const std::string jobs = "runtime 'runtime': spec.template.spec.replicatedJobs: their ";
  for (const Row& row : std::vector<Row>{
           {"torch", with_nodes(100'000, ""), ""},
           {"torch, too many", with_nodes(100'001, ""),
            jobs + "Jobs have 100001 pods together, and 100000 are the most"},
           {"mpi", with_nodes(30'000, kMpi), ""},
           {"mpi, too many for a ConfigMap", with_nodes(50'000, kMpi),
            "spec.trainer.numNodes: 50000: the list of the hosts would have 1650000 bytes, and a ConfigMap holds "
            "1048576: with hosts of this length, 31775 nodes at most; use fewer"},
           {"mpi, far too many", with_nodes(2'000'000'000, kMpi), "spec.trainer.numNodes: 2000000000: the list of the"},
           {"replicas", with_side(9'999, 1), ""},
           {"replicas, too many", with_side(10'000, 1),
            jobs + "replicas are 10001 Jobs together, and 10000 are the most"},
           {"pods", with_side(1'000, 99), ""},
           {"pods, too many", with_side(1'000, 100), jobs + "Jobs have 100001 pods together"},
           {"pods, far too many", with_side(9'000, 2'000'000'000), jobs + "Jobs have 18000000000001 pods together"},
       }) {
    EXPECT_EQ(row.made.ok(), row.message.empty()) << row.what << row.made;
    EXPECT_THAT(std::string(Message(row.made)), HasSubstr(row.message)) << row.what;
  }
}

TEST(Bounds, AJobWithoutNodesIsRefused) {
  EXPECT_THAT(Refusal(JobWith(), TrainerRuntime({.policy = "{numNodes: 0, torch: {}}"})),
              HasSubstr("runtime 'runtime': spec.mlPolicy.numNodes: 0: a job without nodes trains nothing"));
  EXPECT_EQ(Refusal(JobWith("{trainer: {numNodes: 1}}"), TrainerRuntime({.policy = "{numNodes: 0, torch: {}}"})), "");
}

TEST(Bounds, TheListOfHostsIsCountedAsItIsWritten) {
  TrainJob job = JobWith("{trainer: {numNodes: 1000}}");
  const TrainJobPlan plan = PlanOf(job, RuntimeWith(kMpi));
  const std::string hosts = At(plan.objects.at(0).object, "/data/hostfile").get<std::string>();
  EXPECT_EQ(std::count(hosts.begin(), hosts.end(), '\n'), 1000);
  EXPECT_TRUE(hosts.ends_with("train-node-0-999.train slots=8\n"));
}

TEST(Bounds, ObjectsThatAreTooLargeAreRefused) {
  struct Row {
    std::string what;
    Status made;
    std::string message;  // empty: it is planned
  };
  const auto with_side = [](int replicas, size_t bytes) {
    return PlanTrainJob(JobWith(), SideRuntime(replicas, 1, bytes), {}).status();
  };
  const auto trained = [](size_t bytes, int jobs) {
    Json list = Json::array();
    for (int i = 0; i < jobs; ++i) {
      list.push_back(YamlOf(fmt::format(
          "{{name: t{}, template: {{metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}, "
          "spec: {{template: {{spec: {{containers: [{{name: node, image: i}}]}}}}}}}}}}",
          i)));
    }
    const Json spec = {{"template", {{"spec", {{"replicatedJobs", std::move(list)}}}}}};
    TrainJob job = JobWith("{trainer: {image: i}}");
    job.trainer->args = std::vector<std::string>{Text(bytes)};
    return PlanTrainJob(job, RuntimeWith(WriteYaml(spec)), {}).status();
  };
  const std::string side = "spec.template.spec.replicatedJobs: job 'side': ";
  for (const Row& row : std::vector<Row>{
           {"a hundred times 100 kB", with_side(100, 100'000), ""},
           {"a thousand times 100 kB", with_side(1'000, 100'000), side + "1000 objects of 10"},
           {"the job's own part in three templates", trained(1'000'000, 3), ""},
           {"the job's own part in a hundred templates", trained(1'000'000, 100),
            "the templates of this job's objects would have 100"},
           {"one Job", trained(1'570'000, 1), "Job train-t0-0 would have 157"},
       }) {
    EXPECT_EQ(row.made.ok(), row.message.empty()) << row.what << row.made;
    EXPECT_THAT(std::string(Message(row.made)), HasSubstr(row.message)) << row.what;
  }
}

TEST(Bounds, SharedMetadataIsInEachObject) {
  TrainJob job = JobWith();
  job.patches.push_back(
      {.manager = "a.example/b", .metadata = {{"annotations", {{"a", Text(100'000)}}}}, .replicated_jobs = Json()});
  EXPECT_EQ(Refusal(job, SideRuntime(100, 1, 1)), "");
  EXPECT_THAT(Refusal(job, SideRuntime(1'000, 1, 1)),
              HasSubstr("are more than the 67108864 bytes that one job may make"));
  std::string claims;
  for (int i = 0; i < 50; ++i) claims += fmt::format("{{metadata: {{name: c{}}}, spec: {{}}}}, ", i);
  EXPECT_THAT(Refusal(job, TrainerRuntime({.set = "{volumeClaimPolicies: [{templates: [" + claims + "]}]}"})),
              HasSubstr("and 4194304 are the most"));
}

TEST(Bounds, ReplicasShareOneTemplate) {
  const TrainJobPlan plan = PlanOf(JobWith(), SideRuntime(600, 1, 100'000));
  ASSERT_EQ(plan.jobs.size(), 601);
  size_t bytes = 0;
  for (const PlannedJob& job : plan.jobs) {
    if (bytes == 0) bytes = job.common.bytes();
    EXPECT_TRUE(job.step == Step::kTrainer || job.common.Shares(plan.jobs[0].common)) << job.name;
  }
  EXPECT_EQ(At(plan.jobs[599].Object(), "/metadata/labels/jobset.sigs.k8s.io~1job-index"), "599");
}

TEST(Bounds, PyTorchJobs) {
  const auto refused = [](int workers, size_t bytes) {
    PyTorchJob job = PyTorchJobOf(PyTorchJobObject({}));
    for (ReplicaSpec& replica : job.replicas) {
      if (replica.type != ReplicaType::kWorker) continue;
      replica.replicas = workers;
      replica.pod_template["metadata"]["annotations"]["a"] = Text(bytes);
    }
    return std::string(Message(PlanPyTorchJob(job, PyTorchTestOptions()).status()));
  };
  EXPECT_EQ(refused(9'000, 1), "");
  EXPECT_EQ(refused(1'000, 20'000), "");
  EXPECT_THAT(refused(10'001, 1), HasSubstr("replicas together, and 10000 are the most; use fewer"));
  EXPECT_THAT(refused(9'000, 20'000), HasSubstr("spec.pytorchReplicaSpecs.Worker.replicas: 9000 objects of 2"));
  EXPECT_THAT(refused(1, 1'600'000), HasSubstr("spec.pytorchReplicaSpecs.Worker.template: a pod would have 160"));
}

}  // namespace
}  // namespace muster::controller
