# SPDX-License-Identifier: Apache-2.0
"""A test case with a cluster of fake nodes, and controllers that have only the rights of their ServiceAccount."""

import os
import unittest

from cluster_case import BIN, MANIFESTS, NAMESPACE, ClusterCase

from api_client import WAIT, Api, Refused
from api_proxy import ApiProxy
from scenario import shell, train_job

ACCOUNT = ("kubeflow-system", "kubeflow-trainer-controller-manager")
PROGRAM = os.path.join(BIN, "muster-controller")
WEBHOOKS = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
OFF = {"muster.dev/agent": "off"}
ONCE = {"job": {"backoffLimit": 0}, "pod": {"restartPolicy": "Never"}}
TRUE = {"command": shell("true")}


def is_true(kind):
    return lambda job: any(
        condition["type"] == kind and condition["status"] == "True"
        for condition in job.get("status", {}).get("conditions") or []
    )


class ControllerCase(ClusterCase):
    @classmethod
    def setUpClass(cls):
        if not os.access(PROGRAM, os.X_OK):
            raise unittest.SkipTest(f"SKIPPED: {BIN} has no muster-controller")
        super().setUpClass()
        cls.cluster.kubectl("apply", "--server-side", "-k", os.path.join(MANIFESTS, "overlays", "default"))
        cls.cluster.kubectl("delete", "deployment", ACCOUNT[1], "-n", ACCOUNT[0])  # fake nodes would not run it
        cls.cluster.kubectl("delete", WEBHOOKS, "--all")  # no controller serves them
        cls.cluster.add_fake_nodes(2)
        cls.kubeconfig = cls.cluster.account_kubeconfig(*ACCOUNT)
        cls.api = Api(cls.cluster, NAMESPACE)

    @classmethod
    def start_controller(cls, name="controller", *flags, kubeconfig=None, command=(), program=PROGRAM):
        """Returns when the controller is ready: it leads, or waits for the Lease."""
        port = cls.cluster.port(name)
        child = cls.cluster.start_program(
            name,
            [
                *command,
                program,
                "run",
                "--kubeconfig",
                kubeconfig or cls.kubeconfig,
                "--listen",
                f"{cls.cluster.address}:{port}",
                "--lease-namespace",
                ACCOUNT[0],
                *flags,
            ],
        )
        cls.cluster.processes.await_url(name, f"http://{cls.cluster.address}:{port}/healthz", seconds=WAIT)
        return child

    @classmethod
    def start_proxy(cls, name="proxy"):
        """Starts a proxy. Returns it, and the path of a kubeconfig with which a controller uses it."""
        proxy = ApiProxy(cls.cluster)
        cls.addClassCleanup(proxy.close)
        token = cls.cluster.kubectl("create", "token", ACCOUNT[1], "-n", ACCOUNT[0], "--duration=24h").strip()
        return proxy, cls.cluster.certificates.write_kubeconfig(name, proxy.url, f"token: {token}")

    def make(self, name, made=None, annotations=None, **spec):
        """Creates a TrainJob `name` and its runtime `made`, which gets the same name."""
        if made:
            self.api.create("trainingruntimes", {**made, "metadata": {**made["metadata"], "name": name}})
        return self.api.create("trainjobs", train_job(name, name, annotations, **spec))

    def await_job(self, name, wanted, seconds=WAIT):
        return self.api.await_object("trainjobs", name, wanted, seconds)

    def running(self, name, attempt=0):
        return self.await_job(
            name, lambda job: job.get("status", {}).get("state") == "Running" and job["status"]["attempt"] == attempt
        )

    def items(self, kind, name):
        return self.api.items(kind, f"jobset.sigs.k8s.io/jobset-name={name}")

    def finish(self, name, how="succeeded", rank=None, code=None, message=None):
        """Ends the pods of a job, or only the pod of that rank."""
        for pod in self.items("pods", name):
            its_rank = int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
            if pod["status"]["phase"] == "Running" and rank in (None, its_rank):
                how_it_ends = {"finish": how, "exit-code": None if code is None else str(code), "message": message}
                change = {f"e2e.muster.dev/{key}": value for key, value in how_it_ends.items() if value is not None}
                try:
                    self.api.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": change}})
                except Refused as refused:
                    if refused.status != 404:  # 404: the pod was deleted with its Job meanwhile
                        raise

    def condition(self, job, kind):
        found = [
            condition
            for condition in job["status"]["conditions"]
            if condition["type"] == kind and condition["status"] == "True"
        ]
        self.assertEqual(len(found), 1, job["status"])
        return found[0]["reason"], found[0]["message"]

    def patch(self, name, spec):
        self.api.patch("trainjobs", name, {"spec": spec})

    def log(self, name="controller"):
        with open(self.cluster.processes.log(name), errors="replace") as file:
            return file.read()
