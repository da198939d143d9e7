#include "controller/plan/known_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "controller/api/yaml.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Json YamlOf(const std::string& text) { return ReadYaml(text)->at(0).object; }

TEST(KnownFields, NamesThoseThatNobodyReads) {
  const Json job = YamlOf(R"(
spec:
  runtimRef: {name: a}
  trainer: {numNode: 1, somethingElse: 2, args: []}
  initializer: {dataset: {uri: a, storageUri: b}}
)");
  EXPECT_THAT(
      UnknownTrainJobFields(job),
      ElementsAre("spec.runtimRef: is not a field of a TrainJob: it is ignored; the nearest is 'runtimeRef'",
                  "spec.trainer.numNode: is not a field of a TrainJob: it is ignored; the nearest is 'numNodes'",
                  "spec.trainer.somethingElse: is not a field of a TrainJob: it is ignored",
                  "spec.initializer.dataset.uri: is not a field of a TrainJob: it is ignored"));
  EXPECT_THAT(UnknownTrainJobFields(YamlOf("{spec: [1]}")), IsEmpty());
  EXPECT_THAT(UnknownTrainJobFields(YamlOf("{spec: {trainer: 1}}")), IsEmpty());
}

TEST(KnownFields, NamesThoseOfARuntimeDownToItsContainers) {
  const Json runtime = YamlOf(R"(
kind: ClusterTrainingRuntime
spec:
  mlPolicies: {}
  mlPolicy: {numNodes: 1, torch: {numProcPerNod: 1}, jax: {}}
  podGroupPolicy: {podGroupPolicySource: {coscheduling: {}}, coscheduling: {}}
  template:
    spec:
      numNodes: 2
      replicatedJobs:
      - name: node
        template:
          metadata: {}
          spec:
            template:
              metadata: {}
              spec:
                nodeSelectors: {}
                initContainers: [{name: a}, {img: b}]
                containers: [{name: node, comand: [x]}]
)");
  const std::string job = "spec.template.spec.replicatedJobs[0].template.spec.template.spec";
  const std::string what = ": is not a field of a ClusterTrainingRuntime: it is ignored";
  EXPECT_THAT(UnknownRuntimeFields(runtime),
              ElementsAre("spec.mlPolicies" + what + "; the nearest is 'mlPolicy'",
                          "spec.mlPolicy.torch.numProcPerNod" + what + "; the nearest is 'numProcPerNode'",
                          "spec.podGroupPolicy.podGroupPolicySource" + what, "spec.template.spec.numNodes" + what,
                          job + ".nodeSelectors" + what + "; the nearest is 'nodeSelector'",
                          job + ".initContainers[1].img" + what,
                          job + ".containers[0].comand" + what + "; the nearest is 'command'"));
  for (const char* odd : {"{}", "{spec: [1]}", "{spec: {template: {spec: {replicatedJobs: {a: 1}}}}}",
                          "{spec: {template: {spec: {replicatedJobs: [1, {template: 2}]}}}}"}) {
    EXPECT_THAT(UnknownRuntimeFields(YamlOf(odd)), IsEmpty()) << odd;
  }
}

TEST(KnownFields, NamesThoseOfAPyTorchJobDownToItsContainers) {
  const Json job = YamlOf(R"(
spec:
  backoffLimit: 3
  pytorchReplicaSpecs:
    Worker:
      template:
        metadata: {}
        spec: {volume: [], containers: [{name: pytorch, comand: [x]}]}
)");
  const std::string pods = "spec.pytorchReplicaSpecs.Worker.template.spec";
  const std::string what = ": is not a field of a PyTorchJob: it is ignored";
  EXPECT_THAT(UnknownPyTorchJobFields(job),
              ElementsAre("spec.backoffLimit (it belongs to spec.runPolicy)" + what,
                          pods + ".volume" + what + "; the nearest is 'volumes'",
                          pods + ".containers[0].comand" + what + "; the nearest is 'command'"));
  EXPECT_THAT(UnknownPyTorchJobFields(YamlOf("{spec: {pytorchReplicaSpecs: {Worker: 1, Master: [2]}}}")), IsEmpty());
}

bool IsRefused(const Json& field) { return field.value("description", "").starts_with("Refused"); }

// A value with every field of `schema`, down to `depth` levels, without those that are there to be refused.
Json Filled(const Json& schema, int depth) {
  if (depth > 0 && schema.contains("items")) return Json::array({Filled(schema["items"], depth - 1)});
  Json object = Json::object();
  if (depth == 0 || !schema.contains("properties")) return object;
  for (const auto& [name, field] : schema["properties"].items()) {
    if (!IsRefused(field)) object[name] = Filled(field, depth - 1);
  }
  return object;
}

Json FilledByDefinition(const std::string& name, int depth) {
  std::ifstream file("controller/manifests/base/crds/" + name);
  std::stringstream text;
  text << file.rdbuf();
  const Json definition = YamlOf(text.str());
  return Filled(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], depth);
}

TEST(KnownFields, AreThoseOfTheResourceDefinitions) {
  const Json job = FilledByDefinition("trainjobs.yaml", 4);
  ASSERT_TRUE(job["spec"].contains("trainer"));
  EXPECT_THAT(UnknownTrainJobFields(job), IsEmpty());
  for (const char* name : {"trainingruntimes.yaml", "clustertrainingruntimes.yaml"}) {
    const Json runtime = FilledByDefinition(name, 13);
    const Json& pod = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    ASSERT_TRUE(pod["containers"][0].contains("image"));
    EXPECT_THAT(UnknownRuntimeFields(runtime), IsEmpty());
  }
}

}  // namespace
}  // namespace muster::controller
