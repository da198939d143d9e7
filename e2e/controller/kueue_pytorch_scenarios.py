# SPDX-License-Identifier: Apache-2.0
"""The real Kueue and PyTorchJobs."""

import json

from images import BUSYBOX
from kueue_scenarios import NODE_LABEL, QUEUE_NAME, SHARED, Queued, until, verdict
from pytorch_jobs import PyTorchJobs, is_true, pytorch_job
from scenario import shell


def is_suspended(job):
    return job["spec"]["runPolicy"].get("suspend") is True and is_true(job, "Suspended")


class PyTorchQueue(Queued, PyTorchJobs):
    configuration = {"integrations": {"frameworks": ["kubeflow.org/pytorchjob"]}}

    def submit_job(self, name, script):
        """Creates a job with a Master and a Worker, which request 0.1 CPU each."""
        container = {"image": BUSYBOX, "command": shell(script), "resources": {"requests": {"cpu": "100m"}}, **SHARED}
        job = pytorch_job(
            name, 1, container, pod={"volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}]}
        )
        job["metadata"]["labels"] = {QUEUE_NAME: "team"}
        self.create(job)

    def await_pytorch(self, name, wanted):
        return self.cluster.await_object(f"pytorchjob/{name}", wanted, self.namespace)

    def test_pytorchjobs_of_a_queue(self):
        """A job is queued, admitted with the node selector, evicted, admitted again. Kueue sees it ready and ended."""
        self.queue("200m")
        self.submit_job("first", until("first"))
        self.await_running("first", 1)
        workload = self.workload("first")
        self.await_workload(workload, lambda found: verdict(found, "Admitted")[0] == "True")
        self.submit_job("second", until("second"))
        self.await_pytorch("second", is_suspended)
        self.cluster.kubectl(
            "patch", workload, "-n", self.namespace, "--type=merge", "-p", json.dumps({"spec": {"active": False}})
        )
        self.await_pytorch(
            "first",
            lambda job: (
                is_suspended(job)
                and not any(counts.get("active") for counts in job["status"]["replicaStatuses"].values())
            ),
        )
        self.await_running("second", 1)
        pods = self.cluster.get("pods", "-n", self.namespace, "-l", "training.kubeflow.org/job-name=second")["items"]
        selectors = [pod["spec"]["nodeSelector"] for pod in pods]
        self.assertEqual(selectors, [{NODE_LABEL: "linux"}] * 2)
        self.let_go("second", "first")
        self.succeeded("second")
        self.cluster.kubectl(
            "patch", workload, "-n", self.namespace, "--type=merge", "-p", json.dumps({"spec": {"active": True}})
        )
        self.succeeded("first")
        self.await_workload(workload, lambda found: verdict(found, "Finished")[0] == "True")


del Queued, PyTorchJobs  # the runner would run these classes, too
