# SPDX-License-Identifier: Apache-2.0
"""A test case with a cluster of fake nodes, and a controller that serves PyTorchJobs."""

import os

from cluster_case import MANIFESTS, NAMESPACE, establish
from controller_case import WAIT, ControllerCase

from scenario import shell

API = "kubeflow.org/v1"
LABEL = "training.kubeflow.org/"
OPERATOR = "pytorchjob-controller"
FLAGS = ("--serve-pytorchjobs",)


def pytorch_job(
    name, master="ExitCode", workers=0, worker="ExitCode", policy=None, annotations=None, container=None, **spec
):
    """A PyTorchJob. `master`, `worker`: restart policies; None: no master."""
    template = {
        "spec": {"containers": [{"name": "pytorch", "image": "busybox", "command": shell("true"), **(container or {})}]}
    }
    replicas = {}
    if master:
        replicas["Master"] = {"replicas": 1, "restartPolicy": master, "template": template}
    if workers:
        replicas["Worker"] = {"replicas": workers, "restartPolicy": worker, "template": template}
    return {
        "apiVersion": API,
        "kind": "PyTorchJob",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"runPolicy": policy or {}, "pytorchReplicaSpecs": replicas, **spec},
    }


def conditions(job):
    """The types of the true conditions, in order: ["Created", "Running"]."""
    return [
        condition["type"]
        for condition in job.get("status", {}).get("conditions") or []
        if condition["status"] == "True"
    ]


def counts(job, kind):
    """(active, succeeded, failed)"""
    found = job.get("status", {}).get("replicaStatuses", {}).get(kind, {})
    return found.get("active", 0), found.get("succeeded", 0), found.get("failed", 0)


def all_run(job):
    specs = job["spec"]["pytorchReplicaSpecs"]
    return "Running" in conditions(job) and all(
        counts(job, kind)[0] == spec.get("replicas", 1) for kind, spec in specs.items()
    )


class PyTorchCase(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.kubectl(
            "apply", "--server-side", "-f", os.path.join(MANIFESTS, "components", "pytorchjob", "rbac.yaml")
        )

    @classmethod
    def install_definitions(cls):
        super().install_definitions()
        cls.cluster.kubectl(
            "apply", "--server-side", "-f", os.path.join(MANIFESTS, "components", "pytorchjob", "crd.yaml")
        )
        establish(cls.cluster)

    @classmethod
    def serve(cls, name="controller", *flags, **others):
        return cls.start_controller(name, *FLAGS, *flags, **others)

    def create_job(self, *args, **spec):
        return self.api.create("pytorchjobs", pytorch_job(*args, **spec))

    def await_pytorch(self, name, wanted, seconds=WAIT):
        return self.api.await_object("pytorchjobs", name, wanted, seconds)

    def await_running(self, name):
        """Waits until all replicas run. After a deletion or a failure, await the new pod first: the status comes
        later."""
        return self.await_pytorch(name, all_run)

    def await_end(self, name, how):
        job = self.await_pytorch(name, lambda job: {"Succeeded", "Failed"} & set(conditions(job)))
        self.assertEqual(conditions(job)[-1], how, job["status"])
        return job

    def message(self, job, kind):
        return next(condition["message"] for condition in job["status"]["conditions"] if condition["type"] == kind)

    def of(self, kind, name):
        """The objects of the kind with the labels of the job, by name."""
        return {item["metadata"]["name"]: item for item in self.api.items(kind, f"{LABEL}job-name={name}")}

    def end(self, pod, code=0, message=None, reason=None):
        """Ends a running pod."""
        how = {"finish": "succeeded" if code == 0 else "failed", "exit-code": str(code), "message": message}
        change = {f"e2e.muster.dev/{key}": value for key, value in how.items() if value is not None}
        self.api.patch("pods", pod, {"metadata": {"annotations": change}})

    def await_other(self, pod, uid):
        """Waits until another pod of that name runs."""
        return self.api.await_object(
            "pods",
            pod,
            lambda made: made["metadata"]["uid"] != uid and made.get("status", {}).get("phase") == "Running",
            WAIT,
        )

    def uid(self, pod):
        return self.api.get("pods", pod)["metadata"]["uid"]

    def reasons(self, name):
        """The reasons of the Events about the job. More may come: to say that there is none, await a later one
        first."""
        return [event["reason"] for event in self.api.about(name)]


__all__ = [
    "API",
    "FLAGS",
    "LABEL",
    "NAMESPACE",
    "OPERATOR",
    "PyTorchCase",
    "all_run",
    "conditions",
    "counts",
    "pytorch_job",
]
