# SPDX-License-Identifier: Apache-2.0
"""Helpers for scenarios of PyTorchJobs: short ways to write a job, and the names of v1 for pods and conditions."""

from images import BUSYBOX
from scenario import Scenario

API = "kubeflow.org/v1"
CONTAINER = "pytorch"
LABEL = "training.kubeflow.org/"


def pytorch_job(name, workers, container, restart="ExitCode", policy=None, annotations=None, pod=None, processes=None):
    """A Master and `workers` Workers of one template. `policy`: runPolicy. `pod`, `container`: further fields."""
    template = {
        "spec": {
            "containers": [{"name": CONTAINER, "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", **container}],
            **(pod or {}),
        }
    }
    replicas = {"Master": {"replicas": 1, "restartPolicy": restart, "template": template}}
    if workers:
        replicas["Worker"] = {"replicas": workers, "restartPolicy": restart, "template": template}
    spec = {"runPolicy": policy or {}, "pytorchReplicaSpecs": replicas}
    if processes:
        spec["nprocPerNode"] = str(processes)
    return {
        "apiVersion": API,
        "kind": "PyTorchJob",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": spec,
    }


def is_true(job, kind):
    return any(
        (condition["type"], condition["status"]) == (kind, "True")
        for condition in job.get("status", {}).get("conditions", [])
    )


class PyTorchJobs(Scenario):
    """Like Scenario, with helpers for PyTorchJobs."""

    def finished(self, name, seconds=120):
        """The PyTorchJob when its last condition is Succeeded or Failed; then Running and Restarting are false."""
        job = self.cluster.await_object(
            f"pytorchjob/{name}",
            lambda job: is_true(job, "Succeeded") or is_true(job, "Failed"),
            self.namespace,
            seconds,
        )
        self.assertIn(job["status"]["conditions"][-1]["type"], ("Succeeded", "Failed"), job["status"])
        self.assertFalse(is_true(job, "Running") or is_true(job, "Restarting"), job["status"])
        return job

    def succeeded(self, name, seconds=120):
        """Waits until the PyTorchJob has succeeded, and returns its status."""
        job = self.finished(name, seconds)
        self.assertEqual(
            self.condition(job, "Succeeded"), ("PyTorchJobSucceeded", f"PyTorchJob {name} is successfully completed.")
        )
        self.assertEqual(job["status"]["replicaStatuses"]["Master"]["succeeded"], 1, job["status"])
        return job["status"]

    def await_running(self, name, workers):
        """Waits until the Master and all Workers run."""

        def wanted(job):
            counts = job.get("status", {}).get("replicaStatuses", {})
            return is_true(job, "Running") and [
                counts.get(kind, {}).get("active", 0) for kind in ("Master", "Worker")
            ] == [1, workers]

        return self.cluster.await_object(f"pytorchjob/{name}", wanted, self.namespace)

    def pods(self, name):
        """The pods, sorted by name, so the Master comes first."""
        found = self.cluster.get("pods", "-n", self.namespace, "-l", f"{LABEL}job-name={name}")["items"]
        found.sort(
            key=lambda pod: (
                pod["metadata"]["labels"][LABEL + "replica-type"],
                int(pod["metadata"]["labels"][LABEL + "replica-index"]),
            )
        )
        return {pod["metadata"]["name"]: pod for pod in found}

    def uids(self, name):
        return {pod: found["metadata"]["uid"] for pod, found in self.pods(name).items()}

    def await_gone(self, *names):
        """Waits until `names` (pod/x, service/y) are gone."""
        self.cluster.kubectl("wait", "--for=delete", "-n", self.namespace, "--timeout=180s", *names)

    def logs(self, job):
        """The logs of the existing pods. The Master's comes first."""
        return [self.cluster.kubectl("logs", "-n", self.namespace, pod, "-c", CONTAINER) for pod in self.pods(job)]

    def in_pod(self, pod, script):
        """Runs a shell script in a pod. Its exit code is ignored, as the script may end the pod."""
        self.cluster.try_kubectl("exec", "-n", self.namespace, pod, "-c", CONTAINER, "--", "/bin/sh", "-c", script)
