// SPDX-License-Identifier: Apache-2.0
// Names, labels, ports, Services and variables, all the same as training-operator's.
#include "controller/plan/pytorch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "controller/plan/plan_files.h"
#include "controller/plan/pod_fields.h"
#include "tests/controller/plan/pytorch_planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr auto kMaster = ReplicaType::kMaster;
constexpr auto kWorker = ReplicaType::kWorker;

Json Container(const Json& pod, size_t index = 0) { return At(pod, fmt::format("/spec/containers/{}", index)); }

// The variables that v1 sets, as "NAME=value", sorted, without those of the agent.
std::string Environment(const Json& container) {
  std::map<std::string, std::string> all;
  for (const Json& variable : At(container, "/env")) {
    const std::string name = TextField(variable, "name");
    if (!name.starts_with("MUSTER_")) all[name] = TextField(variable, "value");
  }
  std::vector<std::string> texts;
  for (const auto& [name, value] : all) texts.push_back(fmt::format("{}={}", name, value));
  return Join(texts, " ");
}

std::vector<std::string> Notices(const PyTorchPlan& plan) {
  std::vector<std::string> reasons;
  for (const Notice& notice : plan.notices) reasons.push_back(notice.reason);
  return reasons;
}

TEST(PyTorchPlan, NamesAndLabels) {
  const PlannedPyTorch both({});
  const PlannedPyTorch workers({.master = false});
  struct Row {
    const PlannedPyTorch& planned;
    ReplicaType type;
    int index;
    const char* name;
    bool leads;
  };
  const Row rows[] = {
      {both, kMaster, 0, "a-master-0", true},     {both, kWorker, 0, "a-worker-0", false},
      {both, kWorker, 1, "a-worker-1", false},    {workers, kWorker, 0, "a-worker-0", true},
      {workers, kWorker, 1, "a-worker-1", false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Json pod = row.planned.Pod(row.type, row.index), service = row.planned.Service(row.type, row.index);
    Json labels = {{"training.kubeflow.org/operator-name", "pytorchjob-controller"},
                   {"training.kubeflow.org/job-name", "a"},
                   {"training.kubeflow.org/replica-type", row.type == kMaster ? "master" : "worker"},
                   {"training.kubeflow.org/replica-index", fmt::format("{}", row.index)}};
    EXPECT_EQ(At(service, "/metadata/labels"), labels);
    EXPECT_EQ(At(service, "/spec/selector"), labels);
    if (row.leads) labels["training.kubeflow.org/job-role"] = "master";
    EXPECT_EQ(At(pod, "/metadata/labels"), labels);
    const Json owner = YamlOf(
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: a, uid: uid-a, controller: true, "
        "blockOwnerDeletion: true}");
    for (const Json* object : {&pod, &service}) {
      EXPECT_EQ(At(*object, "/metadata/name"), row.name);
      EXPECT_EQ(At(*object, "/metadata/namespace"), "ns");
      EXPECT_EQ(At(*object, "/metadata/ownerReferences"), Json::array({owner}));
    }
    EXPECT_EQ(At(service, "/spec/clusterIP"), "None");
    EXPECT_EQ(At(service, "/spec/publishNotReadyAddresses"), true) << "a readiness probe would hold up the workers";
  }
}

TEST(PyTorchPlan, WhatTheTemplateSaysStaysButForTheLabelsOfTheJob) {
  const PlannedPyTorch planned(
      {.annotations = "{of-the-job: x}",
       .metadata = "{labels: {team: vision, training.kubeflow.org/replica-index: \"7\"}, annotations: {note: x}, "
                   "finalizers: [example.com/keep]}"});
  const Json pod = planned.Pod(kWorker, 1);
  EXPECT_EQ(At(pod, "/metadata/labels/team"), "vision");
  EXPECT_EQ(At(pod, "/metadata/labels/training.kubeflow.org~1replica-index"), "1");
  EXPECT_EQ(At(pod, "/metadata/annotations"), YamlOf("{muster.dev/attempt: '0', note: x}"))
      << "the job's own are not copied";
  EXPECT_EQ(At(pod, "/metadata/finalizers"), YamlList("[example.com/keep]"));
}

TEST(PyTorchPlan, ContainerAndServiceHaveThePort) {
  struct Row {
    const char *what, *container, *ports, *service_ports;
  };
  const Row rows[] = {
      {"none", "{}", "[{name: pytorchjob-port, containerPort: 23456}]", "[{name: pytorchjob-port, port: 23456}]"},
      {"its own number", "{ports: [{name: pytorchjob-port, containerPort: 29500}]}",
       "[{name: pytorchjob-port, containerPort: 29500}]", "[{name: pytorchjob-port, port: 29500}]"},
      {"others beside it", "{ports: [{name: metrics, containerPort: 8080, protocol: TCP}]}",
       "[{name: metrics, containerPort: 8080, protocol: TCP}, {name: pytorchjob-port, containerPort: 23456}]",
       "[{name: metrics, port: 8080, protocol: TCP}, {name: pytorchjob-port, port: 23456}]"},
      {"without names", "{ports: [{containerPort: 1}, {containerPort: 2}]}",
       "[{containerPort: 1}, {containerPort: 2}, {name: pytorchjob-port, containerPort: 23456}]",
       "[{name: pytorchjob-port, port: 23456}]"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const PlannedPyTorch planned({.container = row.container});
    EXPECT_EQ(At(Container(planned.Pod(kMaster, 0)), "/ports"), YamlList(row.ports));
    EXPECT_EQ(At(planned.Service(kWorker, 1), "/spec/ports"), YamlList(row.service_ports));
  }
}

TEST(PyTorchPlan, ThePortsOfOtherContainersAreTheirOwn) {
  const PlannedPyTorch planned({.pod = "{containers: [{name: proxy, image: p, ports: [{name: http, containerPort: "
                                       "80}]}]}"});
  EXPECT_EQ(At(planned.Service(kMaster, 0), "/spec/ports"), YamlList("[{name: pytorchjob-port, port: 23456}]"));
  EXPECT_EQ(At(Container(planned.Pod(kMaster, 0), 1), "/ports"), YamlList("[{name: http, containerPort: 80}]"));
}

struct EnvironmentRow {
  std::string what;
  PyTorchParts parts;
  ReplicaType type;
  int index;
  std::string wanted;
};

std::vector<EnvironmentRow> EnvironmentRows() {
  const std::string address =
      "MASTER_ADDR=a-master-0 MASTER_PORT=23456 PET_MASTER_ADDR=a-master-0 "
      "PET_MASTER_PORT=23456 ";
  const PyTorchParts elastic{.master = false, .spec = "{elasticPolicy: {minReplicas: 1, maxReplicas: 4}}"};
  const auto with = [](std::string spec, bool master = false) {
    return PyTorchParts{.master = master, .spec = fmt::format("{{elasticPolicy: {{{}}}}}", spec)};
  };
  const std::string meets = "PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=a-worker-0:23456 PYTHONUNBUFFERED=1";
  return {
      {"master",
       {},
       kMaster,
       0,
       address + "PET_NNODES=3 PET_NODE_RANK=0 PET_NPROC_PER_NODE=auto PYTHONUNBUFFERED=1 RANK=0 WORLD_SIZE=3"},
      {"worker 0",
       {},
       kWorker,
       0,
       address + "PET_NNODES=3 PET_NODE_RANK=1 PET_NPROC_PER_NODE=auto PYTHONUNBUFFERED=1 RANK=1 WORLD_SIZE=3"},
      {"worker 1",
       {},
       kWorker,
       1,
       address + "PET_NNODES=3 PET_NODE_RANK=2 PET_NPROC_PER_NODE=auto PYTHONUNBUFFERED=1 RANK=2 WORLD_SIZE=3"},
      {"processes",
       {.spec = "{nprocPerNode: \"4\"}"},
       kWorker,
       1,
       address + "PET_NNODES=3 PET_NODE_RANK=2 PET_NPROC_PER_NODE=4 PYTHONUNBUFFERED=1 RANK=2 WORLD_SIZE=12"},
      {"processes by a word",
       {.spec = "{nprocPerNode: gpu}"},
       kWorker,
       1,
       address + "PET_NNODES=3 PET_NODE_RANK=2 PET_NPROC_PER_NODE=gpu PYTHONUNBUFFERED=1 RANK=2 WORLD_SIZE=3"},
      {"a master alone",
       {.workers = 0},
       kMaster,
       0,
       address + "PET_NNODES=1 PET_NODE_RANK=0 PET_NPROC_PER_NODE=auto PYTHONUNBUFFERED=1 RANK=0 WORLD_SIZE=1"},
      {"the master's port",
       {.master_container = "{ports: [{name: pytorchjob-port, containerPort: 7}]}"},
       kWorker,
       0,
       "MASTER_ADDR=a-master-0 MASTER_PORT=7 PET_MASTER_ADDR=a-master-0 PET_MASTER_PORT=7 PET_NNODES=3 "
       "PET_NODE_RANK=1 PET_NPROC_PER_NODE=auto PYTHONUNBUFFERED=1 RANK=1 WORLD_SIZE=3"},
      {"workers alone", {.master = false}, kWorker, 1, "PET_NNODES=2 PET_NPROC_PER_NODE=auto PYTHONUNBUFFERED=1"},
      {"elastic", elastic, kWorker, 0, "PET_NNODES=1:4 PET_NPROC_PER_NODE=auto " + meets},
      {"elastic: no bounds", with(""), kWorker, 0, "PET_NNODES=2:2 PET_NPROC_PER_NODE=auto " + meets},
      {"elastic: one bound", with("maxReplicas: 5"), kWorker, 0, "PET_NNODES=5:5 PET_NPROC_PER_NODE=auto " + meets},
      {"elastic: the other", with("minReplicas: 3"), kWorker, 0, "PET_NNODES=3:3 PET_NPROC_PER_NODE=auto " + meets},
      {"elastic: restarts", with("maxRestarts: 3"), kWorker, 0,
       "PET_MAX_RESTARTS=3 PET_NNODES=2:2 PET_NPROC_PER_NODE=auto " + meets},
      {"elastic: no restarts", with("maxRestarts: 0"), kWorker, 0,
       "PET_MAX_RESTARTS=0 PET_NNODES=2:2 PET_NPROC_PER_NODE=auto " + meets},
      {"elastic: all of the rendezvous",
       with("rdzvBackend: etcd-v2, rdzvPort: 2379, rdzvHost: etcd, rdzvId: run, rdzvConf: [{key: a, value: \"1\"}, "
            "{key: b, value: \"2\"}]"),
       kWorker, 0,
       "PET_NNODES=2:2 PET_NPROC_PER_NODE=auto PET_RDZV_BACKEND=etcd-v2 PET_RDZV_CONF=a=1,b=2 "
       "PET_RDZV_ENDPOINT=etcd:2379 PET_RDZV_ID=run PYTHONUNBUFFERED=1"},
      {"elastic: an empty rdzvConf", with("rdzvConf: []"), kWorker, 0,
       "PET_NNODES=2:2 PET_NPROC_PER_NODE=auto " + meets},
      {"elastic: standalone, which torchrun reads as a number", with("standalone: true"), kWorker, 0,
       "PET_NNODES=2:2 PET_NPROC_PER_NODE=auto PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=a-worker-0:23456 "
       "PET_STANDALONE=1 PYTHONUNBUFFERED=1"},
      {"elastic: the old number of processes", with("nProcPerNode: 2"), kWorker, 0,
       "PET_NNODES=2:2 PET_NPROC_PER_NODE=2 " + meets},
      {"elastic: it multiplies no WORLD_SIZE", with("nProcPerNode: 2", true), kMaster, 0,
       address + "PET_NNODES=2:2 PET_NODE_RANK=0 PET_NPROC_PER_NODE=2 PET_RDZV_BACKEND=c10d "
                 "PET_RDZV_ENDPOINT=a-worker-0:23456 PYTHONUNBUFFERED=1 RANK=0 WORLD_SIZE=3"},
      {"elastic: the worker's port",
       {.master = false,
        .spec = "{elasticPolicy: {}}",
        .container = "{ports: [{name: pytorchjob-port, containerPort: 7}]}"},
       kWorker,
       0,
       "PET_NNODES=2:2 PET_NPROC_PER_NODE=auto PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=a-worker-0:7 "
       "PYTHONUNBUFFERED=1"},
  };
}

TEST(PyTorchPlan, EachPodHasItsVariables) {
  for (const EnvironmentRow& row : EnvironmentRows()) {
    SCOPED_TRACE(row.what);
    const PlannedPyTorch planned(row.parts);
    EXPECT_EQ(Environment(Container(planned.Pod(row.type, row.index))), row.wanted);
  }
}

TEST(PyTorchPlan, UnderTheAgentTheVariablesAreTheSame) {
  for (const EnvironmentRow& row : EnvironmentRows()) {
    SCOPED_TRACE(row.what);
    PyTorchParts parts = row.parts;
    for (std::string* container : {&parts.container, &parts.master_container}) {
      if (container->empty() || *container == "{}") {
        *container = kTorchrun;
      } else {
        container->insert(1, "command: [torchrun, train.py], ");
      }
    }
    const PlannedPyTorch planned(parts);
    ASSERT_TRUE(planned.plan.RestartsInPlace());
    EXPECT_EQ(Environment(Container(planned.Pod(row.type, row.index))), row.wanted);
  }
}

TEST(PyTorchPlan, VariablesAreInAllContainersAndWinOverTheUsers) {
  const PlannedPyTorch planned(
      {.container = "{env: [{name: RANK, value: \"9\"}, {name: MINE, value: $(MASTER_ADDR)}, {name: PET_NNODES, "
                    "valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}",
       .pod = "{containers: [{name: side, image: s}], initContainers: [{name: before, image: b}]}"});
  const Json pod = planned.Pod(kWorker, 1);
  for (size_t index : {0, 1}) {
    EXPECT_EQ(EnvOf(Container(pod, index), "RANK"), "2");
    EXPECT_EQ(EnvOf(Container(pod, index), "PET_NNODES"), "3");
    EXPECT_EQ(EnvOf(Container(pod, index), "WORLD_SIZE"), "3");
  }
  const Json variables = At(Container(pod), "/env");
  size_t own = 0, address = 0;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i]["name"] == "MINE") own = i;
    if (variables[i]["name"] == "MASTER_ADDR") address = i;
  }
  EXPECT_LT(address, own) << "$(MASTER_ADDR) would stay as it is";
  EXPECT_EQ(At(pod, "/spec/initContainers/0/env"), Json()) << "not in init containers";
}

TEST(PyTorchPlan, RestartPolicyOfThePods) {
  struct Row {
    const char *policy, *own, *pod, *whole_job;
    bool told;
  };
  const Row rows[] = {
      {"Always", "", "Always", "Never", false},
      {"OnFailure", "", "OnFailure", "Never", false},
      {"Never", "", "Never", "Never", false},
      {"ExitCode", "", "Never", "Never", false},
      {"ExitCode", "OnFailure", "Never", "Never", true},
      {"Never", "Always", "Never", "Never", true},
      {"OnFailure", "Never", "OnFailure", "Never", true},
      {"Never", "Never", "Never", "Never", false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("{} over {}", row.policy, row.own));
    const std::string pod = *row.own == '\0' ? "{}" : fmt::format("{{restartPolicy: {}}}", row.own);
    const PlannedPyTorch planned({.workers = 0, .policy = row.policy, .container = kTorchrun, .pod = pod});
    EXPECT_EQ(At(planned.Pod(kMaster, 0), "/spec/restartPolicy"), row.pod);
    EXPECT_EQ(Notices(planned.plan),
              row.told ? std::vector<std::string>{"SetPodTemplateRestartPolicy"} : std::vector<std::string>());
    const PlannedPyTorch whole(
        {.workers = 0, .policy = row.policy, .annotations = "{muster.dev/restart: job}", .pod = pod});
    EXPECT_EQ(At(whole.Pod(kMaster, 0), "/spec/restartPolicy"), row.whole_job);
  }
}

TEST(PyTorchPlan, LongNames) {
  const std::string most(63 - std::string("-worker-9").size(), 'x');
  EXPECT_EQ(PyTorchRefusal({.workers = 10, .name = most}), "");
  EXPECT_THAT(PyTorchRefusal({.workers = 11, .name = most}),
              ::testing::AllOf(HasSubstr("metadata.name"), HasSubstr("64 characters"), HasSubstr("1 shorter")));
  EXPECT_EQ(PyTorchRefusal({.workers = 0, .name = most}), "");
  EXPECT_THAT(PyTorchRefusal({.workers = 0, .name = std::string(63, 'x')}), HasSubstr("-master-0"));
}

TEST(PyTorchPlan, AnAutoscalerWhereThereAreMetrics) {
  const PlannedPyTorch planned(
      {.master = false, .spec = "{elasticPolicy: {minReplicas: 1, maxReplicas: 4, metrics: [{type: Pods}]}}"});
  ASSERT_EQ(planned.plan.objects.size(), 1U);
  const Json& scaler = planned.plan.objects[0].object;
  EXPECT_EQ(scaler["kind"], "HorizontalPodAutoscaler");
  EXPECT_EQ(At(scaler, "/metadata/name"), "a");
  EXPECT_EQ(At(scaler, "/metadata/ownerReferences/0/uid"), "uid-a");
  EXPECT_EQ(scaler["spec"], YamlOf("{scaleTargetRef: {apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: a}, "
                                   "minReplicas: 1, maxReplicas: 4, metrics: [{type: Pods}]}"));
  EXPECT_EQ(planned.plan.objects[0].if_there, PlannedObject::IfThere::kUpdate);
  EXPECT_TRUE(PlannedPyTorch({.master = false, .spec = "{elasticPolicy: {}}"}).plan.objects.empty());
}

}  // namespace
}  // namespace muster::controller
