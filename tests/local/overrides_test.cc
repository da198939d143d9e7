// SPDX-License-Identifier: Apache-2.0
#include "local/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/api/yaml.h"

namespace muster::local {

using namespace controller;

namespace {

using testing::HasSubstr;

Json YamlOf(const std::string& text) { return ReadYaml(text)->at(0).object; }

TEST(Overrides, ChangeATrainJob) {
  struct Row {
    Overrides overrides;
    const char *before, *after;
  };
  const Row rows[] = {
      {{}, "{runtimeRef: {name: a}}", "{runtimeRef: {name: a}, trainer: {}}"},
      {{.nodes = 3, .processes = 2}, "{}", "{trainer: {numNodes: 3, numProcPerNode: 2}}"},
      {{.nodes = 3}, "{trainer: {numNodes: 1, args: [x]}}", "{trainer: {numNodes: 3, args: [x]}}"},
      {{.env = {"A=b=c", "E="}},
       "{trainer: {env: [{name: A, value: old}]}}",
       "{trainer: {env: [{name: A, value: b=c}, {name: E, value: ''}]}}"},
      {{.sets = {"spec.trainer.args=[--lr, \"1\"]"}}, "{}", "{trainer: {args: [--lr, '1']}}"},
      {{.sets = {"spec.trainer.env[1].value=no"}},
       "{trainer: {env: [{name: A}, {name: B}]}}",
       "{trainer: {env: [{name: A}, {name: B, value: false}]}}"},
      {{.nodes = 2, .env = {"A=b"}}, "{trainer: 5}", "{trainer: 5}"},
      {{.env = {"A=b"}}, "{trainer: {env: {A: c}}}", "{trainer: {env: {A: c}}}"},
      {{.sets = {"spec.suspend=true", "spec.suspend=false"}}, "{}", "{trainer: {}, suspend: false}"},
  };
  for (const Row& row : rows) {
    Json job = {{"kind", "TrainJob"}, {"spec", YamlOf(row.before)}};
    EXPECT_TRUE(Override(row.overrides, &job).ok());
    EXPECT_EQ(job["spec"], YamlOf(row.after));
  }
}

TEST(Overrides, ChangeAPyTorchJob) {
  const std::string pod = "template: {spec: {containers: [{name: log}, {name: pytorch}]}}";
  const std::string both =
      "{pytorchReplicaSpecs: {Master: {replicas: 1, " + pod + "}, Worker: {replicas: 1, " + pod + "}}}";
  Json job = {{"kind", "PyTorchJob"}, {"spec", YamlOf(both)}};
  EXPECT_TRUE(Override({.nodes = 4, .processes = 2, .env = {"A=b"}}, &job).ok());
  EXPECT_EQ(job["spec"]["nprocPerNode"], "2");
  EXPECT_EQ(job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"], 3);
  for (const char* type : {"Master", "Worker"}) {
    const Json& containers = job["spec"]["pytorchReplicaSpecs"][type]["template"]["spec"]["containers"];
    EXPECT_EQ(containers, YamlOf("{c: [{name: log}, {name: pytorch, env: [{name: A, value: b}]}]}")["c"]);
  }
  EXPECT_TRUE(Override({.nodes = 1}, &job).ok());
  EXPECT_FALSE(job["spec"]["pytorchReplicaSpecs"].contains("Worker"));
  EXPECT_THAT(std::string(Message(Override({.nodes = 2}, &job))), HasSubstr("--nodes 2: the job has no Worker"));
}

TEST(Overrides, AWrongValueIsNamed) {
  struct Row {
    Overrides overrides;
    const char* message;
  };
  const Row rows[] = {
      {{.nodes = 0}, "--nodes: want at least 1"},
      {{.processes = -1}, "--procs: want at least 1"},
      {{.env = {"A"}}, "--env 'A': want NAME=VALUE"},
      {{.env = {"=b"}}, "--env '=b': want NAME=VALUE"},
      {{.sets = {"spec.a"}}, "--set 'spec.a': it has no '='"},
      {{.sets = {"spec..a=1"}}, "an empty part"},
      {{.sets = {"spec.trainer.numNodes.a=1"}}, "'a' has no fields"},
      {{.sets = {"spec.a[x]=1"}}, "'a[x]' is not an entry of a list"},
      {{.sets = {"spec.a[99999]=1"}}, "is not an entry of a list"},
      {{.sets = {"spec.trainer[0]=1"}}, "'trainer' is not a list"},
      {{.sets = {"spec.a={"}}, "--set 'spec.a={': "},
  };
  for (const Row& row : rows) {
    Json job = {{"kind", "TrainJob"}, {"spec", {{"trainer", {{"numNodes", 1}}}}}};
    EXPECT_THAT(std::string(Message(Override(row.overrides, &job))), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace muster::local
