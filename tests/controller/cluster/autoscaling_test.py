# SPDX-License-Identifier: Apache-2.0
"""The real HorizontalPodAutoscaler controller makes an elastic TrainJob larger and smaller, by metrics that the test
sets."""

import urllib.parse

from admission_case import AdmissionCase
from controller_case import is_true

import class_runner
from metrics_server import MetricsServer
from scenario import runtime, shell

NODES = "muster.dev/nodes"
NEVER_LONG = "1s"
LONG = 300  # s; the autoscaler's controller learns of a new kind within half a minute


def external(name):
    """An external metric with a target of 10 for each node."""
    return {
        "type": "External",
        "external": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": "10"}},
    }


class Autoscaling(AdmissionCase):
    FLAGS = {
        "apiserver": ["--enable-aggregator-routing=false"],
        "controller-manager": [
            "--horizontal-pod-autoscaler-sync-period",
            NEVER_LONG,
            "--horizontal-pod-autoscaler-downscale-stabilization",
            NEVER_LONG,
            "--horizontal-pod-autoscaler-cpu-initialization-period",
            NEVER_LONG,
            "--horizontal-pod-autoscaler-initial-readiness-delay",
            NEVER_LONG,
        ],
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.metrics = MetricsServer(cls.cluster, cls.api)
        cls.addClassCleanup(cls.metrics.close)

    def make_elastic(self, name, metric, most=4):
        command = {"command": shell("torchrun train.py"), "resources": {"requests": {"cpu": "1"}}}
        made = runtime("", 1, container=command)
        made["spec"]["mlPolicy"] = {"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": most, "metrics": [metric]}}}
        self.make(name, made, trainer={"numNodes": 1})
        self.settled(name, 1)

    def settled(self, name, nodes):
        """Waits until the TrainJob asks for `nodes` nodes, its Job has as many, and all pods know the number."""

        def is_so(job):
            status = job.get("status", {})
            return job["spec"]["trainer"]["numNodes"] == status.get("nodes") == status.get("readyNodes") == nodes

        job = self.await_job(name, is_so, LONG)
        self.api.await_object(
            "jobs",
            f"{name}-node-0",
            lambda job: (job["spec"]["parallelism"], job["spec"]["completions"]) == (nodes, nodes),
        )
        self.api.await_items(
            "pods",
            f"jobset.sigs.k8s.io/jobset-name={name}",
            lambda pods: [pod["metadata"]["annotations"][NODES] for pod in pods] == [str(nodes)] * nodes,
        )
        return job

    def scaled_by(self, job):
        return {field["manager"] for field in job["metadata"]["managedFields"] if field.get("subresource") == "scale"}

    def completes(self, name):
        self.finish(name)
        job = self.await_job(name, is_true("Complete"))
        self.assertEqual(
            (job["status"]["restarts"], job["status"]["attempt"], job["status"].get("failures", [])), (0, 0, [])
        )

    def test_by_what_its_pods_use(self):
        self.metrics.cpu = "500m"
        self.make_elastic(
            "busy",
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            },
        )
        (first,) = (pod["metadata"]["uid"] for pod in self.items("pods", "busy"))
        self.metrics.cpu = "1"
        job = self.settled("busy", 4)
        self.assertEqual(self.scaled_by(job), {"kube-controller-manager"})
        self.assertIn(first, {pod["metadata"]["uid"] for pod in self.items("pods", "busy")})
        # The autoscaler measures the pods that status.selector matches.
        selectors = {
            urllib.parse.parse_qs(path.partition("?")[2])["labelSelector"][0]
            for path in self.metrics.asked
            if "/pods?" in path
        }
        self.assertEqual(selectors, {job["status"]["selector"]})
        self.metrics.cpu = "50m"
        self.settled("busy", 1)
        self.completes("busy")

    def test_by_a_metric_of_the_cluster(self):
        """The metric asks for more nodes than the maximum."""
        self.metrics.external["samples"] = "10"
        self.make_elastic("queue", external("samples"), 3)
        self.metrics.external["samples"] = "1000"
        self.settled("queue", 3)
        self.metrics.external["samples"] = "20"
        self.settled("queue", 2)
        self.completes("queue")

    def test_not_where_the_job_is_suspended(self):
        """The number may be changed, but no pod is created."""
        self.metrics.external["late"] = "10"
        self.make_elastic("late", external("late"))
        self.patch("late", {"suspend": True})
        self.await_job(
            "late",
            lambda job: (
                job["status"]["state"] == "Suspended"
                and not any(count["active"] for count in job["status"]["jobsStatus"])
            ),
        )
        self.metrics.external["late"] = "30"
        self.await_job("late", lambda job: job["spec"]["trainer"]["numNodes"] == 3, LONG)
        self.assertEqual(
            [pod["metadata"]["name"] for pod in self.items("pods", "late") if pod["status"]["phase"] == "Running"], []
        )
        self.patch("late", {"suspend": False})
        self.settled("late", 3)
        self.completes("late")


if __name__ == "__main__":
    class_runner.main()
