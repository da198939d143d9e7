# SPDX-License-Identifier: Apache-2.0
"""The base of all scenarios: a namespace for each, short ways to write objects, waiting for the controller."""

import contextlib
import json
import os
import time
import unittest
from datetime import datetime

import installation
from images import BUSYBOX
from node import Node

ROUNDED = 2  # s: the times of the API server are whole seconds, and an agent needs some time to start and to end
API = "trainer.kubeflow.org/v1alpha1"
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
INITIALIZER, MODEL_INITIALIZER = "dataset-initializer", "model-initializer"  # names of steps and of their containers
INITIALIZER_IMAGE = "docker.io/library/muster-initializer:e2e"
# Folders of this machine's Debian for pods: Python and PyTorch, without an image of 2 GB.
DEBIAN = ("/usr", "/lib", "/lib64", "/etc/alternatives")


def shell(script):
    return ["/bin/sh", "-c", script]


def runtime(name, nodes, policy=None, pod=None, job=None, container=None, annotations=None):
    """A TrainingRuntime with one step `node` of busybox. `job`, `pod`, `container`: further fields of their specs."""
    node = {"name": "node", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", **(container or {})}
    return {
        "apiVersion": API,
        "kind": "TrainingRuntime",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {
            "mlPolicy": {"numNodes": nodes, **(policy or {})},
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "metadata": {"labels": {ANCESTOR: "trainer"}},
                                "spec": {**(job or {}), "template": {"spec": {"containers": [node], **(pod or {})}}},
                            },
                        }
                    ]
                }
            },
        },
    }


def put_before(made, name, pod):
    """Adds a step of one pod to a runtime, which must succeed before the nodes start."""
    steps = made["spec"]["template"]["spec"]["replicatedJobs"]
    steps[-1].setdefault("dependsOn", []).append({"name": name, "status": "Complete"})
    steps.insert(
        0, {"name": name, "template": {"metadata": {"labels": {ANCESTOR: name}}, "spec": {"template": {"spec": pod}}}}
    )


def train_job(name, runtime_name, annotations=None, **spec):
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"runtimeRef": {"name": runtime_name, "kind": "TrainingRuntime"}, **spec},
    }


def host_folders(paths):
    """(volumes, volumeMounts) that mount folders of the machine read-only at the same paths."""
    names = {path: path.strip("/").replace("/", "-").replace(".", "-").lower()[-60:].strip("-") for path in paths}
    return (
        [{"name": name, "hostPath": {"path": path}} for path, name in names.items()],
        [{"name": name, "mountPath": path, "readOnly": True} for path, name in names.items()],
    )


class Nodes:
    """The real nodes of all scenarios. There is one, and those that need several add them."""

    def __init__(self, cluster, place, first, binaries):
        self.cluster, self.place, self.binaries = cluster, place, binaries
        self.all = first

    @contextlib.contextmanager
    def several(self, count):
        """Yields `count` nodes that pods are scheduled to. At the end all of them work again, and only the first one
        gets pods."""
        while len(self.all) < count:
            made = Node(self.cluster, self.place, len(self.all))
            made.start()
            installation.load_images(made, self.binaries)
            self.all.append(made)
        others = [node.name for node in self.all[1:count]]
        self.cluster.kubectl("uncordon", *others)
        try:
            yield self.all[:count]
        finally:
            self.place.network.mend()
            for node in self.all:
                node.thaw()
                if not node.alive("kubelet"):
                    node.restart()
            self.cluster.kubectl("cordon", *others)


class Scenario(unittest.TestCase):
    cluster = node = nodes = None  # set by the runner

    def setUp(self):
        self.namespace = self.id().rpartition(".")[2].replace("_", "-").lower().removeprefix("test-")[:40]
        self.cluster.kubectl("create", "namespace", self.namespace)
        self.addCleanup(self.cluster.try_kubectl, "delete", "namespace", self.namespace, "--wait=false")
        self.made = {("ConfigMap", "kube-root-ca.crt")}
        self.addCleanup(self.check_that_nothing_is_left)

    def create(self, *objects):
        for made in objects:
            self.made.add((made["kind"], made["metadata"]["name"]))
            self.cluster.kubectl("create", "-n", self.namespace, "-f", "-", content=json.dumps(made))

    def shared(self):
        """A folder of the machine that all pods of this scenario share, like a shared file system."""
        folder = os.path.join(self.cluster.folder, "shared", self.namespace)
        os.makedirs(folder, exist_ok=True)
        return folder

    def check_that_nothing_is_left(self, seconds=120):
        """Deletes the jobs, and waits until their objects are gone. The garbage collector of a new cluster needs up to
        half a minute to learn of a new kind of owner."""
        self.cluster.kubectl("delete", "trainjobs,pytorchjobs", "--all", "-n", self.namespace, f"--timeout={seconds}s")
        until = time.monotonic() + seconds
        while left := self.left():
            if time.monotonic() > until:
                self.fail(f"{seconds} s after the jobs there still are: {', '.join(left)}")
            self.cluster.try_kubectl("wait", "--for=delete", "-n", self.namespace, f"--timeout={seconds}s", *left)

    def left(self):
        """The objects in the namespace that the scenario did not create itself."""
        found = self.cluster.get("jobs,pods,services,configmaps,secrets", "-n", self.namespace)["items"]
        names = [(item["kind"], item["metadata"]["name"]) for item in found]
        return [f"{kind.lower()}/{name}" for kind, name in names if (kind, name) not in self.made]

    def finished(self, name, seconds=120):
        """Waits until the TrainJob is Complete or Failed, and returns it. Its time must add up if it is Complete."""
        job = self.cluster.await_object(
            f"trainjob/{name}",
            lambda job: any(
                condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
                for condition in job.get("status", {}).get("conditions", [])
            ),
            self.namespace,
            seconds,
        )
        if "goodput" in job["status"] and job["status"]["state"] == "Complete":
            self.adds_up(name, job["status"])
        return job

    def pods_of(self, job):
        """All pods of a TrainJob, also those that are being deleted."""
        return self.cluster.get("pods", "-n", self.namespace, "-l", f"jobset.sigs.k8s.io/jobset-name={job}")["items"]

    def adds_up(self, job, status):
        """All seconds of the goodput are the time from the job's begin to the end of its last container."""
        states = [one["state"] for pod in self.pods_of(job) for one in pod["status"].get("containerStatuses", [])]
        ends = [state["terminated"]["finishedAt"] for state in states if "terminated" in state]
        begin, end = (datetime.fromisoformat(moment) for moment in (status["startTime"], max(ends)))
        wall, told = (end - begin).total_seconds(), sum(status["goodput"]["seconds"].values())
        self.assertLess(abs(wall - told), 0.01 * wall + ROUNDED, status)

    def condition(self, job, kind):
        """(reason, message) of a condition, which must be true."""
        found = [
            condition
            for condition in job["status"]["conditions"]
            if condition["type"] == kind and condition["status"] == "True"
        ]
        self.assertEqual(len(found), 1, f"{kind} among {job['status']['conditions']}")
        return found[0]["reason"], found[0]["message"]

    def logs(self, job):
        """The logs of all nodes by rank: of the container `node` in the newest pod."""
        pods = self.cluster.get(
            "pods",
            "-n",
            self.namespace,
            "-l",
            f"jobset.sigs.k8s.io/jobset-name={job},jobset.sigs.k8s.io/replicatedjob-name=node",
        )
        newest = {}
        for pod in sorted(pods["items"], key=lambda pod: pod["metadata"]["creationTimestamp"]):
            newest[int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])] = pod["metadata"]["name"]
        return [
            self.cluster.kubectl("logs", "-n", self.namespace, newest[rank], "-c", "node") for rank in sorted(newest)
        ]
