// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"
#include "controller/api/old_shape.h"
#include "controller/api/pytorch_job.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// With the object's kind: a TrainJob, a runtime or a PyTorchJob.
UnknownFields UnknownOf(const Json& object) {
  UnknownFields unknown;
  const std::string kind = object["kind"];
  if (kind == "TrainJob") {
    (void)ReadTrainJob(object, &unknown);
  } else if (kind == kPyTorchJobKind) {
    (void)ReadPyTorchJob(object, &unknown);
  } else {
    (void)ReadRuntime(object, &unknown);
  }
  return unknown;
}

TEST(UnknownFields, AreThoseThatNobodyReads) {
  EXPECT_THAT(UnknownOf(YamlOf(R"(
kind: TrainJob
metadata: {name: a}
spec:
  runtimRef: {name: a}
  trainer: {numNode: 1, somethingElse: 2, args: []}
  initializer: {dataset: {uri: a, storageUri: "b://c"}}
  labels: {a: b}
  podTemplateOverride: []
)")),
              UnorderedElementsAre(Pair("spec.runtimRef", "runtimeRef"), Pair("spec.trainer.numNode", "numNodes"),
                                   Pair("spec.trainer.somethingElse", ""), Pair("spec.initializer.dataset.uri", ""),
                                   Pair("spec.podTemplateOverride", "podTemplateOverrides")));
  for (const char* spec : {"[1]", "{trainer: 1}", "{runtimeRef: {name: a}}"}) {
    EXPECT_THAT(UnknownOf(YamlOf(fmt::format("{{kind: TrainJob, metadata: {{name: a}}, spec: {}}}", spec))), IsEmpty());
  }
}

// Directives of a merge are no fields, so what a patch may have is not known.
TEST(UnknownFields, AreNotLookedForInPatches) {
  const Json job = YamlOf(R"(
kind: TrainJob
metadata: {name: a}
spec:
  runtimeRef: {name: a}
  runtimePatches:
  - manager: m/n
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - {name: node, template: {spec: {template: {spec: {containers: [{name: node, $patch: delete}]}}}}}
)");
  EXPECT_THAT(UnknownOf(job), IsEmpty());
  EXPECT_TRUE(ReadTrainJob(job).ok());
}

TEST(UnknownFields, AreThoseOfARuntimeDownToItsContainers) {
  const Json runtime = YamlOf(R"(
kind: ClusterTrainingRuntime
metadata: {name: a}
spec:
  mlPolicies: {}
  mlPolicy: {numNodes: 1, torch: {numProcPerNod: 1}}
  podGroupPolicy: {podGroupPolicySource: {coscheduling: {}}, coscheduling: {}}
  template:
    networks: {}
    spec:
      numNodes: 2
      replicatedJobs:
      - name: node
        template:
          metadata: {}
          spec:
            backofLimit: 1
            template:
              metadata: {}
              spec:
                nodeSelectors: {}
                initContainers: [{name: a}, {name: b, img: b}]
                containers: [{name: node, comand: [x], stdinonce: true}]
)");
  const std::string job = "spec.template.spec.replicatedJobs[0].template.spec", pod = job + ".template.spec";
  EXPECT_THAT(UnknownOf(runtime),
              UnorderedElementsAre(
                  Pair("spec.mlPolicies", "mlPolicy"), Pair("spec.mlPolicy.torch.numProcPerNod", "numProcPerNode"),
                  Pair("spec.podGroupPolicy.podGroupPolicySource", ""), Pair("spec.template.networks", ""),
                  Pair("spec.template.spec.numNodes", ""), Pair(job + ".backofLimit", "backoffLimit"),
                  Pair(pod + ".nodeSelectors", "nodeSelector"), Pair(pod + ".initContainers[1].img", ""),
                  Pair(pod + ".containers[0].comand", "command"), Pair(pod + ".containers[0].stdinonce", "stdinOnce")));
  EXPECT_TRUE(ReadRuntime(runtime).ok());
}

TEST(UnknownFields, AreThoseOfAPyTorchJobDownToItsContainers) {
  const Json job = YamlOf(R"(
kind: PyTorchJob
metadata: {name: a}
spec:
  backoffLimit: 3
  elasticPolicies: {}
  pytorchReplicaSpecs:
    Worker:
      template:
        metadata: {}
        spec: {volume: [], containers: [{name: pytorch, comand: [x]}]}
)");
  const std::string pods = "spec.pytorchReplicaSpecs.Worker.template.spec";
  EXPECT_THAT(UnknownOf(job),
              UnorderedElementsAre(Pair("spec.backoffLimit (it belongs to spec.runPolicy)", ""),
                                   Pair("spec.elasticPolicies", "elasticPolicy"), Pair(pods + ".volume", "volumes"),
                                   Pair(pods + ".containers[0].comand", "command")));
  EXPECT_TRUE(ReadPyTorchJob(job).ok());
}

bool IsRefused(const Json& field) { return field.value("description", "").starts_with("Refused"); }

constexpr char kNoField[] = "zz";

// A value with every field of `schema` without those that are there to be refused, and with a field kNoField in each
// object. `key` is the key of maps.
Json Filled(const Json& schema, const char* key) {
  if (schema.contains("items")) return Json::array({Filled(schema["items"], key)});
  Json object = {{kNoField, 1}};
  if (schema.contains("additionalProperties")) object = {{key, Filled(schema["additionalProperties"], key)}};
  if (!schema.contains("properties")) return object;
  for (const auto& [name, field] : schema["properties"].items()) {
    if (!IsRefused(field)) object[name] = Filled(field, key);
  }
  return object;
}

Json FilledByDefinition(const std::string& name, const std::string& kind, const char* key) {
  std::ifstream file("controller/manifests/" + name);
  std::stringstream text;
  text << file.rdbuf();
  Json object = Filled(YamlOf(text.str())["spec"]["versions"][0]["schema"]["openAPIV3Schema"], key);
  object["kind"] = kind;
  object["metadata"] = {{"name", "a"}};
  return object;
}

// The paths of the objects at which unknown fields are looked for. Fails if another field than kNoField is unknown.
std::set<std::string> LookedAt(const Json& object) {
  std::set<std::string> places;
  for (const auto& [path, nearest] : UnknownOf(object)) {
    const size_t end = path.rfind('.');
    EXPECT_EQ(path.substr(end + 1), kNoField) << path;
    places.insert(path.substr(0, end));
  }
  return places;
}

TEST(UnknownFields, AreNoneOfTheResourceDefinitions) {
  Json job = FilledByDefinition("base/crds/trainjobs.yaml", "TrainJob", "key");
  for (const char* old : kOldPatchFields) job["spec"].at(old) = nullptr;  // else it is converted first
  EXPECT_THAT(LookedAt(job), UnorderedElementsAre("spec", "spec.runtimeRef", "spec.trainer", "spec.initializer",
                                                  "spec.initializer.dataset", "spec.initializer.model"));

  std::set<std::string> pod = {"", ".spec", ".spec.initContainers[0]", ".spec.containers[0]"};
  std::set<std::string> of_job = {"spec", "spec.runPolicy", "spec.elasticPolicy", "spec.runPolicy.schedulingPolicy",
                                  "spec.pytorchReplicaSpecs.Worker"};
  for (const std::string& place : pod) of_job.insert("spec.pytorchReplicaSpecs.Worker.template" + place);
  EXPECT_THAT(LookedAt(FilledByDefinition("components/pytorchjob/crd.yaml", kPyTorchJobKind, "Worker")),
              ElementsAreArray(of_job));

  for (const std::string name : {"TrainingRuntime", "ClusterTrainingRuntime"}) {
    const Json runtime = FilledByDefinition("base/crds/" + Lower(name) + "s.yaml", name, "key");
    for (const std::string framework : {"torch", "mpi", "flux", "jax", "xgboost"}) {
      Json with_one = runtime;
      for (const char* other : {"torch", "mpi", "flux", "jax", "xgboost"}) {
        if (other != framework) with_one["spec"]["mlPolicy"].erase(other);
      }
      const std::string node = "spec.template.spec.replicatedJobs[0]";
      std::set<std::string> places = {"spec",
                                      "spec.runPolicy",
                                      "spec.mlPolicy",
                                      "spec.mlPolicy." + framework,
                                      "spec.podGroupPolicy",
                                      "spec.podGroupPolicy.coscheduling",
                                      "spec.podGroupPolicy.volcano",
                                      "spec.podGroupPolicy.volcano.networkTopology",
                                      "spec.template",
                                      "spec.template.spec",
                                      node,
                                      node + ".template",
                                      node + ".template.spec"};
      if (framework == "torch") places.insert("spec.mlPolicy.torch.elasticPolicy");
      for (const std::string& place : pod) places.insert(node + ".template.spec.template" + place);
      EXPECT_THAT(LookedAt(with_one), ElementsAreArray(places)) << framework;
    }
  }
}

}  // namespace
}  // namespace muster::controller
