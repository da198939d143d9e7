// SPDX-License-Identifier: Apache-2.0
// Reads all files in tests/controller/examples and checks the values that their authors meant.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/text.h"
#include "controller/api/pytorch_job.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

const std::filesystem::path kExamples = "tests/controller/examples";

Json Example(const std::string& name) {
  std::ifstream file(kExamples / name);
  EXPECT_TRUE(file) << name;
  return YamlOf(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
}

TrainJob JobOf(const std::string& name) {
  auto job = ReadTrainJob(Example(name));
  EXPECT_TRUE(job.ok()) << name << ": " << job.status();
  return job.value_or(TrainJob());
}

PyTorchJob PyTorchJobOf(const std::string& name) {
  auto job = ReadPyTorchJob(Example(name));
  EXPECT_TRUE(job.ok()) << name << ": " << job.status();
  return job.value_or(PyTorchJob());
}

Runtime RuntimeOf(const std::string& name) {
  auto runtime = ReadRuntime(Example(name));
  EXPECT_TRUE(runtime.ok()) << name << ": " << runtime.status();
  return runtime.value_or(Runtime());
}

TEST(Examples, AllAreRead) {
  std::set<std::string> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(kExamples)) {
    const std::string name = entry.path().filename();
    const Json object = Example(name);
    const std::string kind = TextField(object, "kind");
    kinds.insert(kind);
    EXPECT_EQ(YamlOf(WriteYaml(object)), object) << name;
    if (kind == "TrainJob") JobOf(name);
    if (kind == "PyTorchJob") PyTorchJobOf(name);
    if (kind.ends_with("TrainingRuntime")) RuntimeOf(name);
    EXPECT_TRUE(ReadMeta(object).ok()) << name;
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"ClusterTrainingRuntime", "PyTorchJob", "TrainJob", "TrainingRuntime"}));
}

TEST(Examples, TrainJobOfV21) {
  const TrainJob job = JobOf("trainjob-v21.yaml");
  EXPECT_EQ(job.meta.Annotation(kNumProcAnnotation), "auto");
  EXPECT_EQ(job.runtime.name, "torch-with-data");
  EXPECT_EQ(job.dataset->secret, "s3-credentials");
  EXPECT_EQ(job.model->env.size(), 2);
  EXPECT_EQ(job.trainer->num_nodes, 4);
  EXPECT_FALSE(job.trainer->num_proc_per_node);
  ASSERT_EQ(job.patches.size(), 1);
  EXPECT_EQ(job.patches[0].metadata, YamlOf("{labels: {team: vision}, annotations: {cost-center: \"42\"}}"));
  const Json& node = job.patches[0].replicated_jobs[0];
  EXPECT_EQ(node["name"], "node");
  EXPECT_EQ(node["template"]["spec"]["template"]["metadata"],
            YamlOf("{labels: {zone: a}, annotations: {note: second}}"));
  EXPECT_EQ(node["template"]["spec"]["template"]["spec"]["schedulingGates"][0]["name"], "example.com/quota");
}

TEST(Examples, TrainJobOfV23) {
  const TrainJob job = JobOf("trainjob-v23.yaml");
  EXPECT_EQ(job.active_deadline_seconds, 86400);
  EXPECT_EQ(job.trainer->num_proc_per_node, 4);
  EXPECT_EQ(job.patches[0].manager, "vision.example.com/defaults");
}

TEST(Examples, PyTorchJobs) {
  const PyTorchJob elastic = PyTorchJobOf("pytorchjob-elastic.yaml");
  ASSERT_TRUE(elastic.elastic);
  EXPECT_EQ(elastic.elastic->most, 3);
  EXPECT_EQ(elastic.elastic->max_restarts, 100);
  EXPECT_EQ(elastic.elastic->metrics[0]["resource"]["name"], "cpu");
  EXPECT_EQ(elastic.AllReplicas(), 2);
  EXPECT_EQ(elastic.Find(ReplicaType::kMaster), nullptr);

  const PyTorchJob exit_code = PyTorchJobOf("pytorchjob-exitcode.yaml");
  EXPECT_EQ(exit_code.processes_per_node, "2");
  EXPECT_EQ(exit_code.backoff_limit, 3);
  EXPECT_EQ(exit_code.clean, CleanPodPolicy::kRunning);
  EXPECT_EQ(exit_code.ttl_seconds_after_finished, 600);
  EXPECT_EQ(exit_code.AllReplicas(), 4);
  EXPECT_EQ(exit_code.Find(ReplicaType::kMaster)->restart, RestartPolicy::kExitCode);
}

TEST(Examples, FieldsOfTheRuntimesAreRead) {
  const Runtime elastic = RuntimeOf("runtime-elastic-v21.yaml");
  EXPECT_EQ(elastic.ml_policy.policy["numProcPerNode"], "cpu");
  EXPECT_EQ(elastic.ml_policy.policy["elasticPolicy"]["maxNodes"], 4);
  EXPECT_EQ(elastic.pod_group_policy["coscheduling"]["scheduleTimeoutSeconds"], 120);

  const Runtime mpi = RuntimeOf("runtime-mpi.yaml");
  EXPECT_EQ(mpi.ml_policy.framework, Framework::kMpi);
  EXPECT_EQ(mpi.jobs[1].step, Step::kTrainer);
  EXPECT_EQ(mpi.jobs[1].depends_on, (std::vector<Dependency>{{"node", Dependency::Until::kReady}}));
  EXPECT_EQ(mpi.success.jobs, std::vector<std::string>{"launcher"});

  const Runtime data = RuntimeOf("runtime-with-data-v21.yaml");
  EXPECT_EQ(data.jobs.size(), 4);
  EXPECT_EQ(data.jobs[0].step, Step::kDatasetInitializer);
  EXPECT_EQ(data.jobs[3].step, Step::kOther);
  EXPECT_EQ(data.failure->max_restarts, 3);
  EXPECT_EQ(data.template_metadata, (Json{{"labels", {{"runtime", "torch"}}}}));
}

}  // namespace
}  // namespace muster::controller
