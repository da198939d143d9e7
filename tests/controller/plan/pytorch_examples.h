// SPDX-License-Identifier: Apache-2.0
// PyTorchJobs of many shapes, as YAML, for tests of the conversion.
#pragma once

#include <string>
#include <vector>

namespace muster::controller {

struct PyTorchExample {
  std::string what;
  std::string spec;             // YAML of the spec
  std::string metadata = "{}";  // more than name and namespace
  std::string file = "";        // instead of spec: path of a file with a PyTorchJob, from the repository's root
};

inline std::vector<PyTorchExample> PyTorchExamples() {
  const std::string container = "{name: pytorch, image: i, command: [torchrun, t.py]}";
  const std::string pod = "template: {spec: {containers: [" + container + "]}}";
  const std::string both =
      "{Master: {replicas: 1, " + pod + "}, Worker: {replicas: 2, restartPolicy: OnFailure, " + pod + "}}";
  const auto of = [](const std::string& master, const std::string& worker) {
    const auto replica = [](int count, const std::string& one) {
      return "{replicas: " + std::to_string(count) + ", template: {spec: {containers: [" + one + "]}}}";
    };
    return "{pytorchReplicaSpecs: {Master: " + replica(1, master) + ", Worker: " + replica(2, worker) + "}}";
  };
  return {
      {.what = "the example with ExitCode", .spec = "", .file = "tests/controller/examples/pytorchjob-exitcode.yaml"},
      {.what = "the elastic example", .spec = "", .file = "tests/controller/examples/pytorchjob-elastic.yaml"},
      {"Master and Workers", "{pytorchReplicaSpecs: " + both + "}"},
      {"a Master alone", "{pytorchReplicaSpecs: {Master: {replicas: 1, " + pod + "}}}"},
      {"Workers alone", "{pytorchReplicaSpecs: {Worker: {replicas: 3, " + pod + "}}}"},
      {"keys in small letters", "{pytorchReplicaSpecs: {master: {" + pod + "}, worker: {" + pod + "}}}"},
      {"nprocPerNode 8", "{nprocPerNode: \"8\", pytorchReplicaSpecs: " + both + "}"},
      {"nprocPerNode cpu", "{nprocPerNode: cpu, pytorchReplicaSpecs: " + both + "}"},
      {"nprocPerNode gpu", "{nprocPerNode: gpu, pytorchReplicaSpecs: " + both + "}"},
      {"the deprecated nProcPerNode",
       "{elasticPolicy: {nProcPerNode: 4}, pytorchReplicaSpecs: {Worker: {replicas: 2, " + pod + "}}}"},
      {"without the agent", "{pytorchReplicaSpecs: " + both + "}", "{annotations: {muster.dev/agent: \"off\"}}"},
      {"no command", of("{name: pytorch, image: i}", "{name: pytorch, image: i}")},
      {"whole-job restarts", "{runPolicy: {backoffLimit: 2}, pytorchReplicaSpecs: " + both + "}",
       "{annotations: {muster.dev/restart: job}}"},
      {"variables of the user",
       of("{name: pytorch, image: i, command: [x], env: [{name: A, value: $(MASTER_ADDR)-$(RANK)}, {name: MASTER_ADDR, "
          "value: mine}, {name: B, value: $(A)}, {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: "
          "PET_NODE_RANK, value: \"0\"}, {name: PYTHONUNBUFFERED, value: \"0\"}]}",
          "{name: pytorch, image: i, command: [x], env: [{name: A, value: $(MASTER_ADDR)-$(RANK)}, {name: MASTER_ADDR, "
          "value: mine}, {name: B, value: $(A)}, {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: "
          "PET_NODE_RANK, value: \"0\"}, {name: PYTHONUNBUFFERED, value: \"0\"}]}")},
      {"hosts in the user's variables",
       of("{name: pytorch, image: i, command: [x], env: [{name: URL, value: \"tcp://train-worker-1:80\"}]}",
          "{name: pytorch, image: i, command: [x], env: [{name: URL, value: \"tcp://train-worker-1:80\"}]}")},
      {"a port of its own",
       of("{name: pytorch, image: i, command: [x], ports: [{name: pytorchjob-port, containerPort: 5000}]}",
          "{name: pytorch, image: i, command: [x]}")},
      {"more containers", of("{name: log, image: l}, " + container, "{name: log, image: l}, " + container)},
      {"the user's restarts of torchrun",
       "{pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i, command: "
       "[x], env: [{name: PET_MAX_RESTARTS, value: \"3\"}]}]}}}}}"},
      {"elastic with a Master",
       "{elasticPolicy: {minReplicas: 1, maxReplicas: 4, maxRestarts: 5}, pytorchReplicaSpecs: " + both + "}"},
      {"elastic with all of its fields",
       "{elasticPolicy: {minReplicas: 2, maxReplicas: 4, rdzvBackend: c10d, rdzvHost: train-worker-0, rdzvPort: 29400, "
       "rdzvId: r, rdzvConf: [{key: timeout, value: \"9\"}, {key: x, value: z}], standalone: true, maxRestarts: 1}, "
       "pytorchReplicaSpecs: {Worker: {replicas: 3, " +
           pod + "}}}"},
      {"elastic by etcd",
       "{elasticPolicy: {minReplicas: 1, maxReplicas: 2, rdzvBackend: etcd-v2, rdzvHost: etcd.example, rdzvPort: "
       "2379}, "
       "pytorchReplicaSpecs: {Worker: {replicas: 2, " +
           pod + "}}}"},
      {"Always", "{pytorchReplicaSpecs: {Worker: {replicas: 2, restartPolicy: Always, " + pod + "}}}"},
      {"Never", "{pytorchReplicaSpecs: {Master: {replicas: 1, restartPolicy: Never, " + pod +
                    "}, Worker: {replicas: 1, restartPolicy: Never, " + pod + "}}}"},
      {"Volcano",
       "{runPolicy: {schedulingPolicy: {queue: q, priorityClass: high}}, pytorchReplicaSpecs: " + both + "}"},
      {"all of runPolicy",
       "{runPolicy: {suspend: true, activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 5, backoffLimit: 4, "
       "cleanPodPolicy: All, managedBy: kubeflow.org/training-operator, schedulingPolicy: {scheduleTimeoutSeconds: "
       "9}}, "
       "pytorchReplicaSpecs: " +
           both + "}",
       "{labels: {kueue.x-k8s.io/queue-name: q}}"},
  };
}

}  // namespace muster::controller
