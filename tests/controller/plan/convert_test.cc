// SPDX-License-Identifier: Apache-2.0
// Conversion of a PyTorchJob: the variables in the pods stay the same, and the result of each field.
#include "controller/plan/convert/convert.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <map>

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_object.h"
#include "controller/plan/pytorch_plan.h"
#include "tests/controller/plan/planned.h"
#include "tests/controller/plan/pytorch_examples.h"

namespace muster::controller {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Json ObjectOf(const PyTorchExample& example) {
  if (!example.file.empty()) {
    std::ifstream file(example.file);
    EXPECT_TRUE(file) << example.file;
    return YamlOf(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
  }
  Json object = {{"apiVersion", kKubeflowApi},
                 {"kind", kPyTorchJobKind},
                 {"metadata", {{"name", "train"}, {"namespace", "ns"}}},
                 {"spec", YamlOf(example.spec)}};
  object["metadata"].merge_patch(YamlOf(example.metadata));
  return object;
}

ConvertedJob Converted(const Json& object, const ConvertOptions& options = {}) {
  auto converted = ConvertPyTorchJob(object, options);
  if (!converted.ok()) ADD_FAILURE() << Message(converted.status());
  return converted.value_or(ConvertedJob());
}

// Converts a job whose `spec` and `metadata` are YAML.
ConvertedJob ConvertedSpec(const std::string& spec, const std::string& metadata = "{}") {
  return Converted(ObjectOf({.what = "", .spec = spec, .metadata = metadata}));
}

// A spec with a Master and two Workers; `more` has further fields beside pytorchReplicaSpecs.
std::string Both(const std::string& more = "", const std::string& policy = "OnFailure",
                 const std::string& container = "command: [x]") {
  const std::string replica = ", restartPolicy: " + policy +
                              ", template: {spec: {containers: [{name: pytorch, image: i, " + container + "}]}}}";
  return "{" + more + (more.empty() ? "" : ", ") + "pytorchReplicaSpecs: {Master: {replicas: 1" + replica +
         ", Worker: {replicas: 2" + replica + "}}";
}

using Variables = std::map<std::string, std::string>;

// The variables of the container `name` of a pod, with the values that the kubelet would set.
Variables VariablesIn(const Json& pod, std::string_view name) {
  constexpr std::string_view kAnnotation = "metadata.annotations['", kLabel = "metadata.labels['";
  Variables variables;
  for (const Json& container : At(pod, "/spec/containers")) {
    if (TextField(container, "name") != name) continue;
    for (const Json& variable : ListField(container, "env")) {
      std::string value = TextField(variable, "value");
      if (const Json* source = FindField(variable, "valueFrom")) {
        const std::string path = TextField(PartOf(*source, "fieldRef"), "fieldPath");
        value = WriteJson(*source);
        for (const auto& [prefix, map] : {std::pair(kAnnotation, "annotations"), std::pair(kLabel, "labels")}) {
          if (!path.starts_with(prefix)) continue;
          const std::string key = path.substr(prefix.size(), path.size() - prefix.size() - 2);
          value = TextField(PartOf(pod, "metadata", map), key.c_str());
        }
      }
      for (const auto& [earlier, text] : variables) value = Replaced(value, "$(" + earlier + ")", text);
      variables[TextField(variable, "name")] = value;
    }
  }
  return variables;
}

struct BothPlans {
  PyTorchJob pytorch_job;
  PyTorchPlan pytorch;
  TrainJob train_job;
  TrainJobPlan plan;

  explicit BothPlans(const Json& object) {
    const ConvertedJob converted = Converted(object);
    auto read = ReadPyTorchJob(object);
    auto job = ReadTrainJob(converted.train_job);
    auto runtime = ReadRuntime(converted.runtime);
    if (!read.ok() || !job.ok() || !runtime.ok()) {
      ADD_FAILURE() << read.status() << job.status() << runtime.status();
      return;
    }
    pytorch_job = *read;
    train_job = *job;
    auto made = PlanPyTorchJob(pytorch_job, {});
    if (!made.ok()) ADD_FAILURE() << made.status();
    pytorch = made.value_or(PyTorchPlan());
    plan = PlanOf(train_job, *runtime);
  }

  // The variables of v1's pod with this rank, with the host names of the TrainJob in them.
  Variables OfPyTorchJob(int rank, std::string_view container) const {
    Variables variables;
    for (const PlannedReplicas& replicas : pytorch.replicas) {
      const int index = rank - replicas.first_rank;
      if (index < 0 || index >= replicas.count) continue;
      variables = VariablesIn(PodOfReplica(pytorch_job, pytorch, replicas, index,
                                           {.restarts_left = pytorch.budget.value_or(kUnlimitedRestarts)}),
                              container);
      if (replicas.type == ReplicaType::kMaster) break;
    }
    const std::string name = pytorch_job.meta.name;
    for (const PlannedReplicas& replicas : pytorch.replicas) {
      for (int index = replicas.count - 1; index >= 0; --index) {
        const std::string old = ReplicaObjectName(pytorch_job.meta, replicas.type, index);
        const std::string host = fmt::format("{0}-node-0-{1}.{0}", name, replicas.first_rank + index);
        for (auto& [variable, value] : variables) value = Replaced(value, old, host);
      }
    }
    return variables;
  }

  Variables OfTrainJob(int rank, std::string_view container) const {
    const PlannedJob& node = JobNamed(plan, "node");
    const Json job = JobOfAttempt(node, {.restarts_left = plan.max_restarts});
    const auto pod = PodOfJob(job, rank, fmt::format("{}-{}-abcde", node.name, rank));
    if (!pod.ok()) ADD_FAILURE() << pod.status();
    return VariablesIn(pod.value_or(Json()), container);
  }

  int Nodes() const { return JobNamed(plan, "node").pods; }
};

// A variable that differs in the TrainJob's pods, when, and why.
struct Exception {
  std::string name;
  bool (*holds)(const BothPlans&);
  std::string why;
};

std::vector<Exception> Exceptions() {
  const auto always = [](const BothPlans&) { return true; };
  const auto without_master = [](const BothPlans& plans) { return !plans.pytorch.has_master; };
  return {
      {"JOB_COMPLETION_INDEX", always, "the Job controller gives it to each pod of an Indexed Job"},
      {"PET_NODE_RANK", without_master, "v1 sets it only beside a Master, the Trainer always"},
      {"PET_MASTER_ADDR", without_master, "v1 sets it only beside a Master, the Trainer always"},
      {"PET_MASTER_PORT", without_master, "v1 sets it only beside a Master, the Trainer always"},
      {"PET_RDZV_ID",
       [](const BothPlans& plans) { return plans.pytorch.elastic && plans.pytorch_job.elastic->rdzv_id.empty(); },
       "v1 leaves torchrun its own default, the Trainer gives the job's name or UID"},
      {"PET_RDZV_ENDPOINT", [](const BothPlans& plans) { return plans.pytorch.elastic && plans.pytorch.has_master; },
       "the nodes meet at node 0, the Master; node 1, which was Worker 0, goes when the job becomes smaller"},
      {"PET_MAX_RESTARTS",
       [](const BothPlans& plans) {
         return plans.pytorch.restart == RestartScope::kPod &&
                !(plans.pytorch_job.elastic && plans.pytorch_job.elastic->max_restarts) &&
                plans.OfPyTorchJob(0, "pytorch").count("PET_MAX_RESTARTS") == 0;
       },
       "v1 restarts pods and counts them itself; the agents of a TrainJob know the budget by it"},
  };
}

bool IsException(const std::string& name, const BothPlans& plans) {
  // Variables that only one of the two systems has for its own purposes.
  if (name.starts_with("MUSTER_") || name.starts_with("TRAINER_")) return true;
  for (const Exception& exception : Exceptions()) {
    if (exception.name == name && exception.holds(plans)) return true;
  }
  return false;
}

Variables Without(Variables variables, const BothPlans& plans) {
  std::erase_if(variables, [&](const auto& variable) { return IsException(variable.first, plans); });
  return variables;
}

TEST(Convert, ThePodsHaveTheSameVariables) {
  for (const PyTorchExample& example : PyTorchExamples()) {
    SCOPED_TRACE(example.what);
    const BothPlans plans(ObjectOf(example));
    ASSERT_EQ(plans.Nodes(), plans.pytorch_job.AllReplicas());
    for (int rank = 0; rank < plans.Nodes(); ++rank) {
      SCOPED_TRACE(rank);
      const Variables wanted = plans.OfPyTorchJob(rank, "pytorch");
      EXPECT_FALSE(wanted.empty());
      EXPECT_EQ(Without(plans.OfTrainJob(rank, "node"), plans), Without(wanted, plans));
    }
  }
}

TEST(Convert, ThePlaceToMeetOfAnElasticJobWithAMasterIsNode0) {
  const BothPlans plans(ObjectOf({.what = "", .spec = Both("elasticPolicy: {minReplicas: 1, maxReplicas: 4}")}));
  EXPECT_EQ(plans.OfPyTorchJob(0, "pytorch").at("PET_RDZV_ENDPOINT"), "train-node-0-1.train:23456");
  EXPECT_EQ(plans.OfTrainJob(2, "node").at("PET_RDZV_ENDPOINT"), "train-node-0-0.train:23456");
}

TEST(Convert, OtherContainersHaveThemToo) {
  const BothPlans plans(ObjectOf(
      {.what = "",
       .spec = "{pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, "
               "image: i}, {name: log, image: l}]}}}, Worker: {replicas: 1, template: {spec: {containers: [{name: "
               "pytorch, image: i}, {name: log, image: l}]}}}}}"}));
  for (int rank = 0; rank < 2; ++rank) {
    Variables variables = plans.OfTrainJob(rank, "log");
    variables.erase("JOB_COMPLETION_INDEX");
    EXPECT_EQ(variables, plans.OfPyTorchJob(rank, "log"));
  }
}

TEST(Convert, HostsAreRenamedWhereTheyAreHosts) {
  struct Row {
    std::string word, wanted;
  };
  for (const Row& row : std::vector<Row>{
           {"train-master-0", "train-node-0-0.train"},
           {"--rdzv_endpoint=train-worker-1:29500", "--rdzv_endpoint=train-node-0-2.train:29500"},
           {"tcp://train-master-0:1,train-worker-0:2", "tcp://train-node-0-0.train:1,train-node-0-1.train:2"},
           {"train-worker-0.ns.svc.cluster.local", "train-node-0-1.train.ns.svc.cluster.local"},
           {"train-worker-", "train-worker-"},
           {"train-worker-0a", "train-worker-0a"},
           {"my-train-worker-0", "my-train-worker-0"},
           {"/data/train-worker-0/log", "/data/train-worker-0/log"},
           {"train-worker-99999999999999999999", "train-worker-99999999999999999999"},
       }) {
    SCOPED_TRACE(row.word);
    const ConvertedJob converted = ConvertedSpec(Both("", "OnFailure", "command: [x, \"" + row.word + "\"]"));
    EXPECT_EQ(At(converted.runtime,
                 "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/command/1"),
              row.wanted);
    const auto said = Contains(HasSubstr("spec.pytorchReplicaSpecs.Master.template.spec.containers[0].command[1]: "));
    if (row.word == row.wanted) {
      EXPECT_THAT(converted.remarks, Not(said));
    } else {
      EXPECT_THAT(converted.remarks, said);
    }
  }
}

TEST(Convert, TheHostOfALongNameIsTheTrainJobs) {
  const std::string name(52, 'a');
  const BothPlans plans(ObjectOf({.what = "", .spec = Both(), .metadata = "{name: " + name + "}"}));
  const Variables variables = plans.OfTrainJob(1, "node");
  EXPECT_EQ(variables.at("MASTER_ADDR"), variables.at("PET_MASTER_ADDR"));
  EXPECT_THAT(variables.at("MASTER_ADDR"), Not(HasSubstr(name + "-node")));
}

TEST(Convert, FieldsGoWhereTheyBelong) {
  const ConvertedJob converted =
      ConvertedSpec(Both("runPolicy: {suspend: true, activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 5, "
                         "backoffLimit: 4, managedBy: "
                         "kueue.x-k8s.io/multikueue}"),
                    "{labels: {kueue.x-k8s.io/queue-name: q}, annotations: {a: b, muster.dev/restart: job, "
                    "kubectl.kubernetes.io/last-applied-configuration: x}}");
  EXPECT_EQ(converted.train_job, YamlOf(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train, namespace: ns, labels: {kueue.x-k8s.io/queue-name: q}, annotations: {a: b}}
spec:
  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: train}
  suspend: true
  activeDeadlineSeconds: 60
  ttlSecondsAfterFinished: 5
  managedBy: kueue.x-k8s.io/multikueue
)"));
  EXPECT_EQ(At(converted.runtime, "/metadata"),
            YamlOf("{name: train, namespace: ns, labels: {trainer.kubeflow.org/framework: torch}}"));
  EXPECT_EQ(At(converted.runtime, "/spec/mlPolicy"), YamlOf("{numNodes: 3, torch: {numProcPerNode: auto}}"));
  EXPECT_EQ(At(converted.runtime, "/spec/template/spec/failurePolicy"), YamlOf("{maxRestarts: 4}"));
  EXPECT_THAT(converted.remarks,
              ElementsAre(HasSubstr("spec.pytorchReplicaSpecs.Master: v1 succeeds once its Master")));
}

TEST(Convert, TheContainerIsRenamedWhereverItIsNamed) {
  const ConvertedJob converted = ConvertedSpec(
      "{pytorchReplicaSpecs: {Master: {replicas: 1, template: {metadata: {annotations: {a/pytorch: x, "
      "kubectl.kubernetes.io/default-container: pytorch}}, spec: {restartPolicy: Always, containers: [{name: log, "
      "image: "
      "l, env: [{name: M, valueFrom: {resourceFieldRef: {containerName: pytorch, resource: limits.memory}}}]}, {name: "
      "pytorch, image: i, command: [x]}]}}}}}");
  const Json pod = At(converted.runtime, "/spec/template/spec/replicatedJobs/0/template/spec/template");
  EXPECT_EQ(At(pod, "/metadata/annotations"), YamlOf("{a/node: x, kubectl.kubernetes.io/default-container: node}"));
  EXPECT_EQ(At(pod, "/spec/containers/1/name"), "node");
  EXPECT_EQ(At(pod, "/spec/restartPolicy"), Json());
  for (const Json& variable : At(pod, "/spec/containers/0/env")) {
    if (variable["name"] == "M") {
      EXPECT_EQ(At(variable, "/valueFrom/resourceFieldRef/containerName"), "node");
    }
  }
}

TEST(Convert, RestartsKeepTheirMeaning) {
  struct Row {
    std::string policy, more, container;
    std::string annotation;
    Json failure_policy, backoff_limit;
    std::string remark;  // empty: no remark about restarts
  };
  const std::string agent = "command: [x]", none = "args: [x]";
  const Json no;
  for (const Row& row : std::vector<Row>{
           {"OnFailure", "runPolicy: {backoffLimit: 2}", agent, "on-failure", {{"maxRestarts", 2}}, no, ""},
           {"ExitCode", "runPolicy: {backoffLimit: 0}", agent, "exit-code", {{"maxRestarts", 0}}, no, ""},
           {"Always", "runPolicy: {backoffLimit: 2}", agent, "always", {{"maxRestarts", 2}}, no, ""},
           {"Never", "runPolicy: {backoffLimit: 2}", agent, "never", {{"maxRestarts", 0}}, no, ""},
           {"OnFailure", "", agent, "on-failure", {{"maxRestarts", 1'000'000}}, no, "without a limit"},
           {"OnFailure", "", none, "on-failure", no, 1'000'000, "without a limit"},
           {"OnFailure", "runPolicy: {backoffLimit: 2}", none, "on-failure", no, 2, ""},
           {"ExitCode", "runPolicy: {backoffLimit: 2}", none, "exit-code", no, 2, ""},
           {"Never", "runPolicy: {backoffLimit: 2}", none, "never", no, no, ""},
           {"Always", "runPolicy: {backoffLimit: 2}", none, "on-failure", no, 2, "Always needs the agent"},
           {"OnFailure", "runPolicy: {backoffLimit: 2}, elasticPolicy: {minReplicas: 3, maxRestarts: 7}", agent,
            "on-failure", no, no, "spec.runPolicy.backoffLimit: 2 is left out"},
           {"Never", "elasticPolicy: {minReplicas: 3, maxRestarts: 7}", agent, "on-failure", no, no,
            "Never, but torchrun restarts its workers 7 times"},
           {"Never", "", agent + ", env: [{name: PET_MAX_RESTARTS, value: \"3\"}]", "on-failure", no, no,
            "Never, but torchrun restarts its workers 3 times"},
       }) {
    SCOPED_TRACE(row.policy + " " + row.more + " " + row.container);
    const ConvertedJob converted = ConvertedSpec(Both(row.more, row.policy, row.container));
    const Json job = At(converted.runtime, "/spec/template/spec/replicatedJobs/0/template");
    EXPECT_EQ(At(job, "/metadata/annotations"), (Json{{"muster.dev/restart-policy", row.annotation}}));
    EXPECT_EQ(At(converted.runtime, "/spec/template/spec/failurePolicy"), row.failure_policy);
    EXPECT_EQ(At(job, "/spec/backoffLimit"), row.backoff_limit);
    if (row.remark.empty()) {
      EXPECT_THAT(converted.remarks, Not(Contains(HasSubstr("estart"))));
    } else {
      EXPECT_THAT(converted.remarks, Contains(HasSubstr(row.remark)));
    }
  }
}

TEST(Convert, TemplatesThatDifferAreSaid) {
  const auto remarks = [](const std::string& master, const std::string& worker) {
    std::vector<std::string> said;
    for (const std::string& remark : ConvertedSpec("{pytorchReplicaSpecs: {Master: {replicas: 1, " + master +
                                                   "}, Worker: {replicas: 2, " + worker + "}}}")
                                         .remarks) {
      if (remark.find("WARNING") != std::string::npos) said.push_back(remark);
    }
    return said;
  };
  const std::string pod =
      "template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: pytorch, image: i, "
      "resources: {limits: {cpu: 1}}, ports: [{name: pytorchjob-port, containerPort: 1}]}]}}";
  EXPECT_THAT(remarks(pod, pod), IsEmpty());
  EXPECT_THAT(remarks(pod, Replaced(Replaced(Replaced(pod, "restartPolicy: Never, ", ""), "cpu: 1", "cpu: \"1\""),
                                    "containerPort: 1", "containerPort: 2")),
              IsEmpty())
      << "v1 settles these itself";
  const std::string other =
      "restartPolicy: ExitCode, template: {metadata: {labels: {a: c}}, spec: {nodeSelector: {x: z}, containers: "
      "[{name: "
      "pytorch, image: j, resources: {limits: {cpu: 2}}}, {name: log, image: l}]}}";
  EXPECT_THAT(remarks(pod, other),
              ElementsAre(HasSubstr("spec.pytorchReplicaSpecs.Worker: WARNING: the Worker differs from the Master in "
                                    "restartPolicy, template.metadata.labels.a, "
                                    "template.spec.containers[pytorch].image, "
                                    "template.spec.containers[pytorch].resources.limits.cpu, "
                                    "template.spec.containers[log], template.spec.nodeSelector. All nodes of a "
                                    "TrainJob have one template, and it is the Master's: check that the 2 Workers")));
}

TEST(Convert, FieldsOfNoPyTorchJobAreNamed) {
  const std::string spec =
      Both("cleanPodPolicy: All, runPolicy: {backoffLimit: 1, cleanPodPolicy: Running, wait: 1}, more: {}");
  EXPECT_THAT(
      ConvertedSpec(spec).remarks,
      ElementsAre(testing::_,
                  HasSubstr("spec.cleanPodPolicy (it belongs to spec.runPolicy): is not a field of a PyTorchJob"),
                  HasSubstr("spec.more: is not a field"), HasSubstr("spec.runPolicy.wait: is not a field")));
}

TEST(Convert, AGangHasAPodGroupPolicy) {
  struct Row {
    std::string policy, scheduler;
    Json wanted;
    std::vector<std::string> remarks;
  };
  const std::string path = "spec.runPolicy.schedulingPolicy";
  for (const Row& row : std::vector<Row>{
           {"{}", "volcano", Json(), {}},
           {"{queue: q, minAvailable: 3}", "volcano", {{"volcano", Json::object()}}, {}},
           {"{queue: q}", "", Json(), {path + ": is left out: the job names no scheduler"}},
           {"{scheduleTimeoutSeconds: 9}", "s", {{"coscheduling", {{"scheduleTimeoutSeconds", 9}}}}, {}},
           {"{minAvailable: 2}", "s", {{"coscheduling", Json::object()}}, {path + ".minAvailable: is left out"}},
           {"{minResources: {cpu: 1}}", "s", {{"coscheduling", Json::object()}}, {path + ".minResources: is left"}},
           {"{queue: q, priorityClass: p}",
            "s",
            {{"coscheduling", Json::object()}},
            {path + ".queue: is left out", path + ".priorityClass: is left out"}},
           {"{queue: q, scheduleTimeoutSeconds: 1}",
            "volcano",
            {{"volcano", Json::object()}},
            {path + ".scheduleTimeoutSeconds: is left out"}},
       }) {
    SCOPED_TRACE(row.policy + row.scheduler);
    const std::string pod = row.scheduler.empty() ? "" : "schedulerName: " + row.scheduler + ", ";
    const ConvertedJob converted = ConvertedSpec(
        Replaced(Both("runPolicy: {backoffLimit: 1, cleanPodPolicy: Running, schedulingPolicy: " + row.policy + "}"),
                 "{spec: {containers", "{spec: {" + pod + "containers"));
    EXPECT_EQ(At(converted.runtime, "/spec/podGroupPolicy"), row.wanted);
    std::vector<std::string> said;
    for (const std::string& remark : converted.remarks) {
      if (remark.starts_with(path)) said.push_back(remark);
    }
    ASSERT_EQ(said.size(), row.remarks.size());
    for (size_t i = 0; i < said.size(); ++i) EXPECT_THAT(said[i], HasSubstr(row.remarks[i]));
  }
  const ConvertedJob volcano =
      Converted(ObjectOf({.spec = Both("runPolicy: {schedulingPolicy: {queue: q, priorityClass: p}}")}),
                {.gang_scheduler = "volcano"});
  EXPECT_EQ(At(volcano.runtime, "/spec/podGroupPolicy"), (Json{{"volcano", Json::object()}}));
  EXPECT_EQ(At(volcano.runtime, "/spec/template/metadata/annotations"),
            (Json{{"scheduling.volcano.sh/queue-name", "q"}}));
  EXPECT_EQ(At(volcano.runtime, "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/priorityClassName"),
            "p");
}

TEST(Convert, TheEndOfAJob) {
  struct Row {
    std::string more;
    Json success;
    std::string remark;
  };
  for (const Row& row : std::vector<Row>{
           {"runPolicy: {cleanPodPolicy: Running}", YamlOf("{rules: [{succeededIndexes: \"0\"}]}"), "successPolicy"},
           {"runPolicy: {cleanPodPolicy: All}", YamlOf("{rules: [{succeededIndexes: \"0\"}]}"),
            "cleanPodPolicy: All has"},
           {"runPolicy: {cleanPodPolicy: None}", Json(), "cleanPodPolicy: None has no counterpart"},
           {"", Json(), "the TrainJob succeeds once all its nodes have"},
           {"runPolicy: {activeDeadlineSeconds: 0}", Json(), "activeDeadlineSeconds: 0 fails the job at once"},
           {"runPolicy: {managedBy: me}", Json(), "spec.runPolicy.managedBy: 'me' is left out"},
           {"nprocPerNode: xpu", Json(), "spec.nprocPerNode: 'xpu' is not a value of a runtime"},
       }) {
    SCOPED_TRACE(row.more);
    const ConvertedJob converted = ConvertedSpec(Both(row.more));
    EXPECT_EQ(At(converted.runtime, "/spec/template/spec/replicatedJobs/0/template/spec/successPolicy"), row.success);
    EXPECT_THAT(converted.remarks, Contains(HasSubstr(row.remark)));
  }
  const ConvertedJob elastic = ConvertedSpec(
      "{runPolicy: {cleanPodPolicy: Running}, elasticPolicy: {minReplicas: 1, maxReplicas: 2}, pytorchReplicaSpecs: "
      "{Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}");
  EXPECT_EQ(At(elastic.runtime, "/spec/template/spec/replicatedJobs/0/template/spec/successPolicy"),
            YamlOf("{rules: [{succeededCount: 1}]}"));
}

TEST(Convert, NodesBeyondTheElasticPolicyAreSaid) {
  const ConvertedJob converted = ConvertedSpec(Both("elasticPolicy: {minReplicas: 1, maxReplicas: 2}"));
  EXPECT_EQ(At(converted.train_job, "/spec/trainer"), YamlOf("{numNodes: 2}"));
  EXPECT_THAT(converted.remarks, Contains("spec.elasticPolicy: the PyTorchJob has 3 pods, and PET_NNODES is 1:2: "
                                          "numNodes is 2"));
}

TEST(Convert, WhatIsRefused) {
  struct Row {
    std::string spec, message;
  };
  for (const Row& row : std::vector<Row>{
           {"{}", "spec.pytorchReplicaSpecs: it is missing"},
           {"{pytorchReplicaSpecs: {}}", "spec.pytorchReplicaSpecs: it is empty; it needs Master, Worker, or both"},
           {"{pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i}, {name: node, "
            "image: i}]}}}}}",
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers: a container has the name node"},
       }) {
    SCOPED_TRACE(row.spec);
    const auto converted = ConvertPyTorchJob(ObjectOf({.what = "", .spec = row.spec}), {});
    EXPECT_TRUE(absl::IsInvalidArgument(converted.status()));
    EXPECT_THAT(std::string(Message(converted.status())), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace muster::controller
