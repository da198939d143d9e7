// SPDX-License-Identifier: Apache-2.0
#include "controller/api/pytorch_job.h"

#include "base/text.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

constexpr char kPods[] = "template: {spec: {containers: [{name: pytorch, image: x}]}}";

std::string Worker(std::string_view more = "") {
  return fmt::format("Worker: {{{}{}{}}}", kPods, more.empty() ? "" : ", ", more);
}
std::string Master(std::string_view more = "") {
  return fmt::format("Master: {{{}{}{}}}", kPods, more.empty() ? "" : ", ", more);
}

// A PyTorchJob. `replicas` is YAML inside pytorchReplicaSpecs, `spec` further fields of spec.
Json JobWith(std::string_view replicas, std::string_view spec = "") {
  return YamlOf(fmt::format("{{metadata: {{name: train, namespace: ns}}, spec: {{pytorchReplicaSpecs: {{{}}}{}{}}}}}",
                            replicas, spec.empty() ? "" : ", ", spec));
}

PyTorchJob Read(const Json& object) {
  auto job = ReadPyTorchJob(object);
  EXPECT_TRUE(job.ok()) << job.status() << "\n" << object;
  return job.value_or(PyTorchJob());
}

TEST(PyTorchJob, FieldsThatAreMissingHaveTheirDefaults) {
  const PyTorchJob job = Read(JobWith(Master() + ", " + Worker()));
  EXPECT_EQ(job.meta.name, "train");
  EXPECT_EQ(job.meta.ns, "ns");
  ASSERT_EQ(job.replicas.size(), 2);
  EXPECT_EQ(job.replicas[0].type, ReplicaType::kMaster);
  EXPECT_EQ(job.replicas[1].type, ReplicaType::kWorker);
  for (const ReplicaSpec& replica : job.replicas) {
    EXPECT_EQ(replica.replicas, 1);
    EXPECT_EQ(replica.restart, RestartPolicy::kOnFailure);
    EXPECT_EQ(replica.pod_template, YamlOf("{metadata: {}, spec: {containers: [{name: pytorch, image: x}]}}"));
  }
  EXPECT_EQ(job.processes_per_node, "auto");
  EXPECT_FALSE(job.elastic);
  EXPECT_EQ(job.clean, CleanPodPolicy::kNone);
  EXPECT_FALSE(job.ttl_seconds_after_finished);
  EXPECT_FALSE(job.active_deadline_seconds);
  EXPECT_FALSE(job.backoff_limit);
  EXPECT_FALSE(job.scheduling.min_available);
  EXPECT_EQ(job.scheduling.queue, "");
  EXPECT_TRUE(job.scheduling.min_resources.is_null());
  EXPECT_EQ(job.scheduling.priority_class, "");
  EXPECT_FALSE(job.scheduling.timeout_seconds);
  EXPECT_FALSE(job.suspend);
  EXPECT_EQ(job.status, PyTorchJobStatus());
  EXPECT_EQ(job.AllReplicas(), 2);
  EXPECT_EQ(job.Find(ReplicaType::kWorker), &job.replicas[1]);
}

TEST(PyTorchJob, ReadsEveryField) {
  const PyTorchJob job =
      Read(JobWith("Worker: {replicas: 3, restartPolicy: ExitCode, template: {metadata: {labels: {a: b}}, "
                   "spec: {nodeSelector: null, containers: [{name: pytorch, image: x, args: null}]}}}",
                   R"(nprocPerNode: "8",
    runPolicy: {cleanPodPolicy: Running, ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 99999999999, backoffLimit: 0,
      suspend: true, managedBy: kubeflow.org/training-operator,
      schedulingPolicy: {minAvailable: 2, queue: q, minResources: {cpu: 4, memory: 1Gi}, priorityClass: high, scheduleTimeoutSeconds: 60}},
    elasticPolicy: {minReplicas: 1, maxReplicas: 5, rdzvBackend: etcd-v2, rdzvHost: h, rdzvPort: 29400, rdzvId: i,
      rdzvConf: [{key: k, value: v}, {key: l}], standalone: true, nProcPerNode: 4, maxRestarts: 0, metrics: [{type: Resource, resource: null}]})"));
  ASSERT_EQ(job.replicas.size(), 1);
  EXPECT_EQ(job.replicas[0].replicas, 3);
  EXPECT_EQ(job.replicas[0].restart, RestartPolicy::kExitCode);
  EXPECT_EQ(job.replicas[0].pod_template,
            YamlOf("{metadata: {labels: {a: b}}, spec: {containers: [{name: pytorch, image: x}]}}"));
  EXPECT_EQ(job.Find(ReplicaType::kMaster), nullptr);
  EXPECT_EQ(job.AllReplicas(), 3);
  EXPECT_EQ(job.processes_per_node, "8");
  EXPECT_EQ(job.clean, CleanPodPolicy::kRunning);
  EXPECT_EQ(job.ttl_seconds_after_finished, 0);
  EXPECT_EQ(job.active_deadline_seconds, 99'999'999'999);
  EXPECT_EQ(job.backoff_limit, 0);
  EXPECT_TRUE(job.suspend);
  EXPECT_EQ(job.scheduling.min_available, 2);
  EXPECT_EQ(job.scheduling.queue, "q");
  EXPECT_EQ(job.scheduling.min_resources, YamlOf("{cpu: 4, memory: 1Gi}"));
  EXPECT_EQ(job.scheduling.priority_class, "high");
  EXPECT_EQ(job.scheduling.timeout_seconds, 60);
  ASSERT_TRUE(job.elastic);
  EXPECT_EQ(job.elastic->least, 1);
  EXPECT_EQ(job.elastic->most, 5);
  EXPECT_EQ(job.elastic->rdzv_backend, "etcd-v2");
  EXPECT_EQ(job.elastic->rdzv_host, "h");
  EXPECT_EQ(job.elastic->rdzv_port, 29400);
  EXPECT_EQ(job.elastic->rdzv_id, "i");
  EXPECT_EQ(job.elastic->rdzv_conf, (std::vector<std::pair<std::string, std::string>>{{"k", "v"}, {"l", ""}}));
  EXPECT_TRUE(job.elastic->standalone);
  EXPECT_EQ(job.elastic->processes_per_node, 4);
  EXPECT_EQ(job.elastic->max_restarts, 0);
  EXPECT_EQ(job.elastic->metrics, YamlOf("x: [{type: Resource}]")["x"]);
}

TEST(PyTorchJob, TheStatusIsReadToo) {
  Json object = JobWith(Worker());
  object["status"] = YamlOf("{restarts: 2}");
  EXPECT_EQ(Read(object).status.restarts, 2);
  object["status"] = 5;
  EXPECT_EQ(Read(object).status, PyTorchJobStatus());
}

TEST(PyTorchJob, ReadsEachWordOfThePolicies) {
  const std::pair<std::string_view, RestartPolicy> policies[] = {
      {"Always", RestartPolicy::kAlways},  {"OnFailure", RestartPolicy::kOnFailure},
      {"Never", RestartPolicy::kNever},    {"ExitCode", RestartPolicy::kExitCode},
      {"\"\"", RestartPolicy::kOnFailure}, {"null", RestartPolicy::kOnFailure}};
  for (const auto& [word, policy] : policies) {
    EXPECT_EQ(Read(JobWith(Worker(fmt::format("restartPolicy: {}", word)))).replicas.at(0).restart, policy) << word;
  }
  const std::pair<std::string_view, CleanPodPolicy> cleans[] = {{"None", CleanPodPolicy::kNone},
                                                                {"Running", CleanPodPolicy::kRunning},
                                                                {"All", CleanPodPolicy::kAll},
                                                                {"\"\"", CleanPodPolicy::kNone}};
  for (const auto& [word, clean] : cleans) {
    EXPECT_EQ(Read(JobWith(Worker(), fmt::format("runPolicy: {{cleanPodPolicy: {}}}", word))).clean, clean) << word;
  }
}

TEST(PyTorchJob, KeysInAnyLetterCase) {
  for (const char* key : {"Worker", "worker", "WORKER", "wOrKeR"}) {
    const PyTorchJob job = Read(JobWith(Replaced(Worker(), "Worker", key) + ", master: {" + kPods + "}"));
    ASSERT_EQ(job.replicas.size(), 2) << key;
    EXPECT_EQ(job.replicas[0].type, ReplicaType::kMaster);
    EXPECT_EQ(job.replicas[1].type, ReplicaType::kWorker);
  }
  EXPECT_EQ(Read(JobWith("Master: null, " + Worker())).replicas.size(), 1);
  EXPECT_EQ(Read(JobWith("")).replicas.size(), 0);
}

TEST(PyTorchJob, NumberOfNodesOfAnElasticJob) {
  const struct {
    std::string_view policy, worker;
    int least, most;
  } rows[] = {
      {"{}", "", 1, 1},
      {"{}", "replicas: 4", 4, 4},
      {"{}", "replicas: 0", 1, 1},
      {"{minReplicas: 2}", "replicas: 4", 2, 2},
      {"{maxReplicas: 3}", "replicas: 4", 3, 3},
      {"{minReplicas: 2, maxReplicas: 6}", "replicas: 4", 2, 6},
  };
  for (const auto& row : rows) {
    const PyTorchJob job = Read(JobWith(Worker(row.worker), fmt::format("elasticPolicy: {}", row.policy)));
    ASSERT_TRUE(job.elastic) << row.policy;
    EXPECT_EQ(job.elastic->least, row.least) << row.policy;
    EXPECT_EQ(job.elastic->most, row.most) << row.policy;
    EXPECT_EQ(job.elastic->rdzv_backend, "c10d");
  }
}

TEST(PyTorchJob, ProcessesPerNode) {
  const struct {
    std::string_view spec, processes;
  } rows[] = {
      {"a: b", "auto"},
      {"nprocPerNode: \"\"", "auto"},
      {"nprocPerNode: cpu", "cpu"},
      {"nprocPerNode: gpu", "gpu"},
      {"nprocPerNode: xpu", "xpu"},
      {"nprocPerNode: npu", "npu"},
      {"nprocPerNode: \"65536\"", "65536"},
      {"elasticPolicy: {}", "auto"},
      {"elasticPolicy: {nProcPerNode: 2}", ""},
      {"elasticPolicy: {nProcPerNode: 2}, nprocPerNode: gpu", "gpu"},
      {"elasticPolicy: {rdzvConf: []}", "auto"},  // an empty list is not a fault
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Read(JobWith(Worker(), row.spec)).processes_per_node, row.processes) << row.spec;
  }
}

TEST(PyTorchJob, RefusesFieldsOfTheJob) {
  const struct {
    std::string_view spec, message;
  } rows[] = {
      {"nprocPerNode: 2", "spec.nprocPerNode: 2 is not a string; put it in quotes"},
      {"nprocPerNode: \"0\"",
       "spec.nprocPerNode: '0' is not a whole number from 1 to 65536, and no word such as auto, cpu, gpu"},
      {"nprocPerNode: \"2147483648\"",
       "spec.nprocPerNode: '2147483648' is not a whole number from 1 to 65536, and no word such as auto, cpu, gpu"},
      {"runPolicy: 5", "spec.runPolicy: 5 is not an object"},
      {"runPolicy: {cleanPodPolicy: Some}", "spec.runPolicy.cleanPodPolicy: 'Some' is not one of None, Running, All"},
      {"runPolicy: {cleanPodPolicy: 5}", "spec.runPolicy.cleanPodPolicy: 5 is not a string; put it in quotes"},
      {"runPolicy: {ttlSecondsAfterFinished: -1}", "spec.runPolicy.ttlSecondsAfterFinished: -1 is less than 0"},
      {"runPolicy: {ttlSecondsAfterFinished: soon}",
       "spec.runPolicy.ttlSecondsAfterFinished: 'soon' is not a whole number"},
      {"runPolicy: {activeDeadlineSeconds: -1}", "spec.runPolicy.activeDeadlineSeconds: -1 is less than 0"},
      {"runPolicy: {activeDeadlineSeconds: 1.5}", "spec.runPolicy.activeDeadlineSeconds: 1.5 is not a whole number"},
      {"runPolicy: {backoffLimit: -1}", "spec.runPolicy.backoffLimit: -1 is less than 0"},
      {"runPolicy: {backoffLimit: 2147483648}", "spec.runPolicy.backoffLimit: 2147483648 is more than 2147483647"},
      {"runPolicy: {suspend: \"true\"}", "spec.runPolicy.suspend: 'true' is neither true nor false"},
      {"runPolicy: {managedBy: 5}", "spec.runPolicy.managedBy: 5 is not a string; put it in quotes"},
      {"runPolicy: {schedulingPolicy: [q]}", "spec.runPolicy.schedulingPolicy: a list is not an object"},
      {"runPolicy: {schedulingPolicy: {minAvailable: -1}}",
       "spec.runPolicy.schedulingPolicy.minAvailable: -1 is less than 0"},
      {"runPolicy: {schedulingPolicy: {queue: 1}}",
       "spec.runPolicy.schedulingPolicy.queue: 1 is not a string; put it in quotes"},
      {"runPolicy: {schedulingPolicy: {minResources: {cpu: four}}}",
       "spec.runPolicy.schedulingPolicy.minResources.cpu: 'four' is not a quantity such as 4, 500m, 16Gi or 2e3"},
      {"runPolicy: {schedulingPolicy: {minResources: 5}}",
       "spec.runPolicy.schedulingPolicy.minResources: 5 is not an object"},
      {"runPolicy: {schedulingPolicy: {priorityClass: {}}}",
       "spec.runPolicy.schedulingPolicy.priorityClass: an object is not a string"},
      {"runPolicy: {schedulingPolicy: {scheduleTimeoutSeconds: -1}}",
       "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds: -1 is less than 0"},
      {"elasticPolicy: true", "spec.elasticPolicy: true is not an object"},
      {"elasticPolicy: {minReplicas: 0}", "spec.elasticPolicy.minReplicas: 0 is less than 1"},
      {"elasticPolicy: {maxReplicas: 10001}", "spec.elasticPolicy.maxReplicas: 10001 is more than 10000"},
      {"elasticPolicy: {minReplicas: 3, maxReplicas: 2}",
       "spec.elasticPolicy.minReplicas: 3 is more than maxReplicas, 2"},
      {"elasticPolicy: {rdzvBackend: static}",
       "spec.elasticPolicy.rdzvBackend: 'static' is not one of c10d, etcd, etcd-v2"},
      {"elasticPolicy: {rdzvHost: 5}", "spec.elasticPolicy.rdzvHost: 5 is not a string; put it in quotes"},
      {"elasticPolicy: {rdzvPort: 0}", "spec.elasticPolicy.rdzvPort: 0 is less than 1"},
      {"elasticPolicy: {rdzvPort: 65536}", "spec.elasticPolicy.rdzvPort: 65536 is more than 65535"},
      {"elasticPolicy: {rdzvId: 5}", "spec.elasticPolicy.rdzvId: 5 is not a string; put it in quotes"},
      {"elasticPolicy: {rdzvConf: {}}", "spec.elasticPolicy.rdzvConf: an object is not a list"},
      {"elasticPolicy: {rdzvConf: [k=v]}", "spec.elasticPolicy.rdzvConf[0]: 'k=v' is not an object"},
      {"elasticPolicy: {rdzvConf: [{value: v}]}", "spec.elasticPolicy.rdzvConf[0].key: it is missing"},
      {"elasticPolicy: {rdzvConf: [{key: k, value: 5}]}",
       "spec.elasticPolicy.rdzvConf[0].value: 5 is not a string; put it in quotes"},
      {"elasticPolicy: {standalone: 1}", "spec.elasticPolicy.standalone: 1 is neither true nor false"},
      {"elasticPolicy: {nProcPerNode: 0}", "spec.elasticPolicy.nProcPerNode: 0 is less than 1"},
      {"elasticPolicy: {nProcPerNode: auto}", "spec.elasticPolicy.nProcPerNode: 'auto' is not a whole number"},
      {"elasticPolicy: {maxRestarts: -1}", "spec.elasticPolicy.maxRestarts: -1 is less than 0"},
      {"elasticPolicy: {metrics: {}}", "spec.elasticPolicy.metrics: an object is not a list"},
      {"elasticPolicy: {metrics: [cpu]}", "spec.elasticPolicy.metrics[0]: 'cpu' is not an object"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Message(ReadPyTorchJob(JobWith(Worker(), row.spec)).status()), row.message) << row.spec;
  }
}

TEST(PyTorchJob, RefusesReplicas) {
  const std::string path = "spec.pytorchReplicaSpecs.";
  const struct {
    std::string replicas, message;
  } rows[] = {
      {"Chief: {" + std::string(kPods) + "}",
       path + "Chief: is not a type of replicas; the types are Master and Worker"},
      {Worker() + ", worker: {}", path + "worker: there are two of this type, in different letter case; keep one"},
      {"Worker: 5", path + "Worker: 5 is not an object"},
      {"Worker: {}", path + "Worker.template: it is missing; give the pods a template"},
      {"worker: {}", path + "worker.template: it is missing; give the pods a template"},
      {"Worker: {template: t}", path + "Worker.template: 't' is not an object"},
      {"Worker: {template: {}}", path + "Worker.template.spec: it is missing"},
      {"Worker: {template: {spec: {containers: []}}}",
       path + "Worker.template.spec.containers: it is missing; a pod needs a container"},
      {"Worker: {template: {spec: {containers: [{image: x}]}}}",
       path + "Worker.template.spec.containers[0].name: it is missing"},
      {"Worker: {template: {spec: {containers: [{name: a}, {name: a}]}}}",
       path + "Worker.template.spec.containers[1].name: 'a' is there twice; give each its own name"},
      {"Worker: {template: {metadata: {labels: {a: 1}}, spec: {containers: [{name: a}]}}}",
       path + "Worker.template.metadata.labels.a: 1 is not a string; put it in quotes"},
      {Worker("replicas: -1"), path + "Worker.replicas: -1 is less than 0"},
      {Worker("replicas: 10001"), path + "Worker.replicas: 10001 is more than 10000"},
      {Worker("replicas: two"), path + "Worker.replicas: 'two' is not a whole number"},
      {Worker("restartPolicy: Sometimes"),
       path + "Worker.restartPolicy: 'Sometimes' is not one of Always, OnFailure, Never, ExitCode"},
      {Worker("restartPolicy: {}"), path + "Worker.restartPolicy: an object is not a string"},
      {Master("replicas: one") + ", " + Worker("replicas: two"), path + "Master.replicas: 'one' is not a whole number"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Message(ReadPyTorchJob(JobWith(row.replicas)).status()), row.message) << row.replicas;
  }
}

TEST(PyTorchJob, RefusesTheObject) {
  const struct {
    std::string_view yaml, message;
  } rows[] = {
      {"spec: {}", "metadata.name: it is missing"},
      {"metadata: {name: a, labels: {b: 1}}", "metadata.labels.b: 1 is not a string; put it in quotes"},
      {"metadata: {name: a}", "spec: it is missing"},
      {"{metadata: {name: a}, spec: text}", "spec: 'text' is not an object"},
      {"{metadata: {name: a}, spec: {}}", "spec.pytorchReplicaSpecs: it is missing; it needs Master, Worker, or both"},
      {"{metadata: {name: a}, spec: {pytorchReplicaSpecs: [Worker]}}",
       "spec.pytorchReplicaSpecs: a list is not an object"},
      {"{kind: TFJob, metadata: {name: a}}", "kind: 'TFJob' is not PyTorchJob"},
      {"{apiVersion: kubeflow.org/v2, metadata: {name: a}}", "apiVersion: 'kubeflow.org/v2' is not kubeflow.org/v1"},
  };
  for (const auto& row : rows) EXPECT_EQ(Message(ReadPyTorchJob(YamlOf(row.yaml)).status()), row.message) << row.yaml;
  for (const Json& object : {Json(), Json(5), Json::array()}) EXPECT_FALSE(ReadPyTorchJob(object).ok());
}

TEST(PyTorchJob, IsMustersUnlessManagedByAnother) {
  const struct {
    std::string_view yaml;
    bool ours;
  } rows[] = {
      {"{}", true},
      {"spec: {runPolicy: {}}", true},
      {"spec: {runPolicy: {managedBy: null}}", true},
      {"spec: {runPolicy: {managedBy: kubeflow.org/training-operator}}", true},
      {"spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}}", false},
      {"spec: {runPolicy: {managedBy: \"\"}}", false},
  };
  for (const auto& row : rows) EXPECT_EQ(IsPyTorchJobManagedByMuster(YamlOf(row.yaml)), row.ours) << row.yaml;
}

TEST(PyTorchJob, ReplicasHaveNameLabelAndPath) {
  EXPECT_EQ(ReplicaName(ReplicaType::kMaster), "Master");
  EXPECT_EQ(ReplicaLabel(ReplicaType::kWorker), "worker");
  EXPECT_EQ(ReplicaPath(ReplicaType::kWorker), "spec.pytorchReplicaSpecs.Worker");
}

}  // namespace
}  // namespace muster::controller
