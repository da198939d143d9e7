// SPDX-License-Identifier: Apache-2.0
// Plans a job of each built-in runtime and each example, and compares the objects with tests/controller/golden, byte
// for byte. MUSTER_RENEW_GOLDEN=1 rewrites these files: read the difference before you keep it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "controller/api/yaml.h"
#include "controller/plan/plan_files.h"
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

const std::filesystem::path kGolden = "tests/controller/golden";
const std::string kExamples = "tests/controller/examples/", kRuntimes = "controller/manifests/runtimes/";

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

struct Row {
  std::string golden;
  std::vector<std::string> files;
};

std::vector<Row> Rows() {
  return {
      {"v21.yaml", {kExamples + "trainjob-v21.yaml", kExamples + "runtime-with-data-v21.yaml"}},
      {"v23.yaml", {kExamples + "trainjob-v23.yaml", kRuntimes + "torch-distributed.yaml"}},
      {"plain.yaml", {kGolden / "plain-job.in.yaml", kRuntimes + "plain.yaml"}},
      {"deepspeed.yaml", {kGolden / "deepspeed-job.in.yaml", kRuntimes + "deepspeed-distributed.yaml"}},
      {"mlx.yaml", {kGolden / "mlx-job.in.yaml", kRuntimes + "mlx-distributed.yaml"}},
      {"mpi.yaml", {kGolden / "mpi-job.in.yaml", kExamples + "runtime-mpi.yaml"}},
      {"jax.yaml", {kGolden / "jax-job.in.yaml", kRuntimes + "jax-distributed.yaml"}},
      {"xgboost.yaml", {kGolden / "xgboost-job.in.yaml", kRuntimes + "xgboost-distributed.yaml"}},
      {"elastic.yaml", {kGolden / "elastic-job.in.yaml", kExamples + "runtime-elastic-v21.yaml"}},
      {"torchtune-1b.yaml", {kGolden / "torchtune-1b-job.in.yaml", kRuntimes + "torchtune-llama3.2-1b.yaml"}},
      {"torchtune-3b.yaml", {kGolden / "torchtune-3b-job.in.yaml", kRuntimes + "torchtune-llama3.2-3b.yaml"}},
      {"torchtune-qwen.yaml", {kGolden / "torchtune-qwen-job.in.yaml", kRuntimes + "torchtune-qwen2.5-1.5b.yaml"}},
      {"pytorchjob-exitcode.yaml", {kExamples + "pytorchjob-exitcode.yaml"}},
      {"pytorchjob-elastic.yaml", {kExamples + "pytorchjob-elastic.yaml"}},
  };
}

// Paths of the YAML files in `folder` that have an object of one of `kinds`.
std::set<std::string> FilesWith(const std::filesystem::path& folder, const std::set<std::string>& kinds) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    const auto documents = ReadYaml(ReadText(entry.path()));
    EXPECT_TRUE(documents.ok()) << entry.path() << documents.status();
    if (!documents.ok()) continue;
    for (const YamlDocument& document : *documents) {
      if (kinds.contains(TextField(document.object, "kind"))) files.insert(entry.path());
    }
  }
  return files;
}

// The dependencies between the Jobs of a plan, as YAML comments.
std::string OrderOf(const TrainJobPlan& plan) {
  std::string text;
  for (const PlannedJob& job : plan.jobs) {
    for (const Dependency& dependency : job.after) {
      text += "# " + job.replicated_job + " after " + dependency.job +
              (dependency.until == Dependency::Until::kReady ? " is ready\n" : " is complete\n");
    }
  }
  return text;
}

TEST(Golden, EachPlanIsTheOneInItsFile) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.golden);
    std::vector<InputFile> files;
    for (const std::string& name : row.files) files.push_back({name, ReadText(name)});
    const auto planned = PlanFiles(files, {.agent_image = "muster", .version = "test"});
    ASSERT_TRUE(planned.ok()) << planned.status();
    ASSERT_EQ(planned->jobs.size() + planned->pytorch_jobs.size(), 1);
    std::string text = ObjectsAsYaml(PlannedObjects(*planned));
    for (const std::string& remark : planned->remarks) text += "# " + remark + "\n";
    for (const PlannedTrainJob& train_job : planned->jobs) text += OrderOf(train_job.plan);
    if (std::getenv("MUSTER_RENEW_GOLDEN") != nullptr) std::ofstream(kGolden / row.golden) << text;
    EXPECT_EQ(text, ReadText(kGolden / row.golden));
  }
}

TEST(Golden, EveryRuntimeAndExampleHasAPlan) {
  std::set<std::string> planned, wanted;
  for (const Row& row : Rows()) planned.insert(row.files.begin(), row.files.end());
  for (const std::filesystem::path& folder :
       {std::filesystem::path(kRuntimes), std::filesystem::path(kExamples), kGolden}) {
    wanted.merge(FilesWith(folder, {"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime", "PyTorchJob"}));
  }
  EXPECT_EQ(planned, wanted) << "give each file a row in Rows()";
}

TEST(Golden, NoPlanIsLeftOver) {
  std::set<std::string> golden;
  for (const Row& row : Rows()) golden.insert(kGolden / row.golden);
  EXPECT_EQ(golden, FilesWith(kGolden, {"Job", "Pod"}));
}

}  // namespace
}  // namespace muster::controller
