# SPDX-License-Identifier: Apache-2.0
"""Checks the output of `muster-controller convert` with a real API server: the definitions have all its fields, and
Kubernetes accepts the Jobs and pods that `plan` makes of the output and of the PyTorchJob itself."""

import json
import os
import subprocess

from cluster_case import NAMESPACE, ROOT, ClusterCase

import class_runner

CONTROLLER = os.path.join(os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin")), "muster-controller")
EXAMPLES = os.path.join(ROOT, "tests", "controller", "examples")
POD = {
    "template": {
        "metadata": {"labels": {"app": "train"}, "annotations": {"kubectl.kubernetes.io/default-container": "pytorch"}},
        "spec": {
            "schedulerName": "volcano",
            "priorityClassName": "system-node-critical",
            "restartPolicy": "Always",
            "volumes": [
                {
                    "name": "info",
                    "downwardAPI": {
                        "items": [
                            {
                                "path": "memory",
                                "resourceFieldRef": {"containerName": "pytorch", "resource": "limits.memory"},
                            }
                        ]
                    },
                }
            ],
            "containers": [
                {
                    "name": "pytorch",
                    "image": "registry.example.com/torch:2",
                    "command": ["torchrun", "train.py"],
                    "resources": {"limits": {"memory": "1Gi"}},
                    "volumeMounts": [{"name": "info", "mountPath": "/info"}],
                    "env": [{"name": "HOST", "value": "train-worker-1"}],
                },
                {"name": "log", "image": "registry.example.com/log:1"},
            ],
        },
    }
}
METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
RUN_POLICY = {
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 5,
    "activeDeadlineSeconds": 60,
    "backoffLimit": 3,
    "suspend": True,
    "managedBy": "kubeflow.org/training-operator",
    "schedulingPolicy": {"queue": "q", "minAvailable": 2, "scheduleTimeoutSeconds": 9},
}


def job(policy="OnFailure", master=True, workers=2, **spec):
    replicas = {"Master": {"replicas": 1, "restartPolicy": policy, **POD}} if master else {}
    if workers:
        replicas["Worker"] = {"replicas": workers, "restartPolicy": policy, **POD}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "train", "namespace": NAMESPACE, "labels": {"a": "b"}},
        "spec": {"pytorchReplicaSpecs": replicas, **spec},
    }


JOBS = {
    "all of runPolicy": job(runPolicy=RUN_POLICY),
    "elastic": job(
        master=False, elasticPolicy={"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 2, "metrics": [METRIC]}
    ),
    "elastic, any Worker": job(master=False, elasticPolicy={"minReplicas": 1}, runPolicy={"cleanPodPolicy": "Running"}),
    "a Master alone": job(workers=0, nprocPerNode="4"),
    **{
        policy: job(policy, nprocPerNode="gpu", runPolicy={"cleanPodPolicy": "Running"})
        for policy in ("Always", "OnFailure", "Never", "ExitCode")
    },
}


def run(command, given):
    done = subprocess.run(
        [CONTROLLER, command, "-f", "-", "-o", "json"], input=given, capture_output=True, text=True, timeout=60
    )
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return json.loads(done.stdout)["items"]


class Convert(ClusterCase):
    def taken(self, objects):
        for made in objects:
            if made["kind"] == "PodGroup":
                continue  # the kind is not installed
            made["metadata"]["namespace"] = NAMESPACE
            done = self.cluster.try_kubectl("create", "-f", "-", "--dry-run=server", content=json.dumps(made))
            self.assertEqual((done.returncode, done.stderr), (0, ""), made)

    def test_the_definitions_know_all_fields(self):
        for name, made in self.jobs():
            with self.subTest(name):
                converted = run("convert", made)
                self.assertEqual([item["kind"] for item in converted], ["TrainingRuntime", "TrainJob"])
                self.taken(converted)

    def test_the_objects_of_both_plans_are_taken(self):
        for name, made in self.jobs():
            with self.subTest(name):
                self.taken(run("plan", made))
                self.taken(run("plan", json.dumps({"apiVersion": "v1", "kind": "List", "items": run("convert", made)})))

    @staticmethod
    def jobs():
        yield from ((name, json.dumps(made)) for name, made in JOBS.items())
        for name in ("pytorchjob-exitcode.yaml", "pytorchjob-elastic.yaml"):
            with open(os.path.join(EXAMPLES, name), encoding="utf-8") as example:
                yield name, example.read()


if __name__ == "__main__":
    class_runner.main()
