# SPDX-License-Identifier: Apache-2.0
"""Running elastic TrainJobs are scaled up and down by /scale, as kubectl and a HorizontalPodAutoscaler do."""

from controller_case import ControllerCase, is_true

import class_runner
from scenario import runtime, shell

NODES = "muster.dev/nodes"
COMMAND = {"command": shell("torchrun train.py")}


class Scale(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()

    def make_elastic(self, name, nodes, metrics=None, **spec):
        policy = {"minNodes": 1, "maxNodes": 4, **({"metrics": metrics} if metrics else {})}
        made = runtime("", nodes, policy={"torch": {"elasticPolicy": policy}}, container=COMMAND)
        del made["spec"]["mlPolicy"]["numNodes"]
        self.make(name, made, trainer={"numNodes": nodes}, **spec)

    def scale(self, name, nodes):
        self.api.patch("trainjobs", name, {"spec": {"replicas": nodes}}, "scale")

    def settled(self, name, nodes):
        """Waits until so many pods run and all of them know the number."""
        self.await_job(
            name, lambda job: job.get("status", {}).get("readyNodes") == job.get("status", {}).get("nodes") == nodes
        )
        return self.api.await_items(
            "pods",
            f"jobset.sigs.k8s.io/jobset-name={name}",
            lambda pods: [pod["metadata"]["annotations"][NODES] for pod in pods] == [str(nodes)] * nodes,
        )

    def test_up_and_down(self):
        self.make_elastic("updown", 2)
        first = {pod["metadata"]["uid"] for pod in self.settled("updown", 2)}
        job = self.api.get("trainjobs", "updown")
        self.assertEqual(
            job["status"]["selector"],
            "jobset.sigs.k8s.io/jobset-name=updown,jobset.sigs.k8s.io/replicatedjob-name=node",
        )
        scale = self.api.ask("GET", self.api.path("trainjobs", "updown", "scale"))
        self.assertEqual(
            (scale["spec"]["replicas"], scale["status"]["replicas"], scale["status"]["selector"]),
            (2, 2, job["status"]["selector"]),
        )
        self.scale("updown", 4)
        pods = self.settled("updown", 4)
        self.assertLess(first, {pod["metadata"]["uid"] for pod in pods})
        self.scale("updown", 1)
        (left,) = self.settled("updown", 1)
        self.assertIn(left["metadata"]["uid"], first)
        self.finish("updown")
        job = self.await_job("updown", is_true("Complete"))
        self.assertEqual(
            (job["status"]["restarts"], job["status"]["attempt"], job["status"].get("failures", [])), (0, 0, [])
        )

    def test_while_it_is_suspended(self):
        self.make_elastic("asleep", 2)
        self.settled("asleep", 2)
        self.patch("asleep", {"suspend": True})
        self.await_job(
            "asleep",
            lambda job: job["status"]["state"] == "Suspended" and job["status"]["jobsStatus"][0]["active"] == 0,
        )
        self.scale("asleep", 3)
        self.patch("asleep", {"suspend": False})
        self.settled("asleep", 3)

    def test_while_the_controller_is_away(self):
        self.make_elastic("alone", 1)
        self.settled("alone", 1)
        self.cluster.processes.kill("controller")
        self.scale("alone", 3)
        self.start_controller()
        self.settled("alone", 3)

    def test_a_job_with_metrics_has_an_autoscaler(self):
        metrics = [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ]
        self.make_elastic("metered", 2, metrics)
        self.settled("metered", 2)
        scaler = self.api.get("horizontalpodautoscalers", "metered")
        self.assertEqual(
            (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"], scaler["spec"]["metrics"]), (1, 4, metrics)
        )
        self.assertEqual(scaler["spec"]["scaleTargetRef"]["kind"], "TrainJob")
        self.assertEqual(scaler["metadata"]["ownerReferences"][0]["name"], "metered")
        # An edit is put right, what others added stays, and a deleted one is made again.
        behavior = {"scaleDown": {"stabilizationWindowSeconds": 7}}
        self.api.patch(
            "horizontalpodautoscalers",
            "metered",
            {
                "metadata": {"labels": {"team": "vision"}},
                "spec": {"minReplicas": 2, "maxReplicas": 9, "metrics": None, "behavior": behavior},
            },
        )
        scaler = self.api.await_object(
            "horizontalpodautoscalers", "metered", lambda made: made["spec"]["maxReplicas"] == 4
        )
        self.assertEqual(
            (scaler["spec"]["minReplicas"], scaler["spec"]["metrics"], scaler["metadata"]["labels"]["team"]),
            (1, metrics, "vision"),
        )
        self.assertEqual(scaler["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"], 7)
        self.api.delete("horizontalpodautoscalers", "metered")
        self.api.await_object(
            "horizontalpodautoscalers", "metered", lambda made: made["metadata"]["uid"] != scaler["metadata"]["uid"]
        )


if __name__ == "__main__":
    class_runner.main()
