// SPDX-License-Identifier: Apache-2.0
// The ConfigMap that keeps the runtime of a job.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

Json RuntimeObject() {
  return YamlOf(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime, uid: u, managedFields: [{manager: m}]}
spec: {mlPolicy: {numNodes: 2, torch: {numProcPerNode: "4"}}}
)");
}

TEST(Snapshot, IsReadAsItWasMade) {
  const TrainJob job = JobWith();
  const Json config_map = MakeSnapshot(job, RuntimeObject()).value();
  EXPECT_EQ(At(config_map, "/metadata/name"), "train-runtime-snapshot");
  EXPECT_EQ(At(config_map, "/metadata/namespace"), "ns");
  EXPECT_EQ(At(config_map, "/metadata/ownerReferences/0/uid"), "uid-1");
  EXPECT_EQ(At(config_map, "/metadata/labels/jobset.sigs.k8s.io~1jobset-name"), "train");
  const auto runtime = ReadSnapshot(job, config_map);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  Json wanted = RuntimeObject();
  wanted["metadata"].erase("managedFields");
  EXPECT_EQ(*runtime, wanted);
}

TEST(Snapshot, AnItemOfAListGetsItsKind) {
  Json item = RuntimeObject();
  item.erase("apiVersion");
  item.erase("kind");
  const TrainJob job = JobWith();
  EXPECT_TRUE(ReadSnapshot(job, MakeSnapshot(job, item).value()).ok());
}

TEST(Snapshot, OfAnotherOneIsRefused) {
  struct Row {
    std::string pointer;
    Json value;
    std::string message;
  };
  for (const Row& row : std::vector<Row>{
           {"/metadata/ownerReferences", Json::array(), "is owned by another object (by none)"},
           {"/metadata/ownerReferences/0/uid", "uid-2", "is owned by another object (TrainJob 'train')"},
           {"/data", Json(), "data.runtime is missing"},
           {"/data/runtime", "", "data.runtime is missing"},
           {"/data/runtime", "a: [", "data.runtime: line"},
           {"/data/runtime", "{a: b}\n---\n{a: b}\n", "data.runtime is not one object"},
           {"/data/runtime", "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: x}}",
            "it holds TrainingRuntime 'x' of trainer.kubeflow.org, and the job's runtimeRef is ClusterTrainingRuntime "
            "'runtime'"},
           {"/metadata", Json(), "metadata"},
       }) {
    SCOPED_TRACE(row.message);
    const TrainJob job = JobWith();
    Json config_map = MakeSnapshot(job, RuntimeObject()).value();
    config_map[Json::json_pointer(row.pointer)] = row.value;
    const auto runtime = ReadSnapshot(job, config_map);
    EXPECT_TRUE(absl::IsFailedPrecondition(runtime.status())) << runtime.status();
    EXPECT_THAT(std::string(Message(runtime.status())), HasSubstr(row.message));
    EXPECT_THAT(std::string(Message(runtime.status())), HasSubstr("ConfigMap 'train-runtime-snapshot': "));
  }
}

TEST(Snapshot, AConfigMapHoldsIt) {
  Json runtime = RuntimeObject();
  runtime["spec"]["note"] = std::string(1'000'000, 'x');
  EXPECT_TRUE(MakeSnapshot(JobWith(), runtime).ok());
  runtime["spec"]["note"] = std::string(1'048'576, 'x');
  const Status refused = MakeSnapshot(JobWith(), runtime).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("ClusterTrainingRuntime runtime: it has 1048"));
}

}  // namespace
}  // namespace muster::controller
