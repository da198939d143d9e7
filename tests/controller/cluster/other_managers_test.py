# SPDX-License-Identifier: Apache-2.0
"""TrainJobs of another manager, like those of MultiKueue on its management cluster. Muster does not touch them."""

from admission_case import AdmissionCase
from cluster_case import NAMESPACE
from controller_case import TRUE, WAIT, is_true

import class_runner
from scenario import runtime, train_job

MULTI_KUEUE = "kueue.x-k8s.io/multikueue"
END = {
    "type": "Complete",
    "status": "True",
    "reason": "AllJobsCompleted",
    "message": "jobset completed successfully",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
COUNTS = [{"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]


class MultiKueue(AdmissionCase):
    def make_theirs(self, name, made=None, **spec):
        self.api.create("trainingruntimes", {**(made or runtime("", 2, container=TRUE)), "metadata": {"name": name}})
        return self.api.create("trainjobs", train_job(name, name, managedBy=MULTI_KUEUE, **spec))

    def untouched(self, name):
        """Checks that the job stays as it is while another job runs, under this controller and then under a new one."""
        before = self.api.get("trainjobs", name)
        for turn in range(2):
            other = f"own-{name}-{before['metadata']['resourceVersion']}-{turn}"
            self.make(other, runtime("", 1, container=TRUE))
            self.running(other)
            self.finish(other)
            self.await_job(other, is_true("Complete"))
            self.assertEqual(self.api.get("trainjobs", name), before)
            self.cluster.processes.stop("one")
            self.serve("one")
            self.await_webhooks()
        for kind in ("jobs", "services", "configmaps", "secrets", "pods", "horizontalpodautoscalers"):
            made = [
                item["metadata"]["name"]
                for item in self.api.items(kind)
                if any(owner["name"] == name for owner in item["metadata"].get("ownerReferences", []))
            ]
            self.assertEqual(made, [], kind)
        self.assertEqual(
            [event["message"] for event in self.api.items("events") if event["involvedObject"]["name"] == name], []
        )

    def test_it_is_left_alone(self):
        self.assertNotIn("status", self.make_theirs("runs"))
        self.untouched("runs")
        self.make_theirs("waits", suspend=True)
        self.patch("waits", {"suspend": False})
        self.untouched("waits")
        self.patch("waits", {"suspend": True, "trainer": {"numNodes": 4}})
        self.untouched("waits")
        self.cluster.kubectl(
            "delete", "trainjob", "runs", "-n", NAMESPACE, f"--timeout={WAIT}s"
        )  # no finalizer is left

    def test_an_elastic_job_has_no_autoscaler(self):
        metrics = [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ]
        made = runtime("", 1, container=TRUE)
        made["spec"]["mlPolicy"] = {"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 4, "metrics": metrics}}}
        self.make_theirs("elastic", made)
        self.untouched("elastic")

    def test_what_another_writes_stays(self):
        """MultiKueue copies the status from the worker cluster, also the job's end. Muster deletes nothing then."""
        self.make_theirs("copied", ttlSecondsAfterFinished=0)
        self.api.patch("trainjobs", "copied", {"status": {"conditions": [], "jobsStatus": COUNTS}}, "status")
        self.untouched("copied")
        self.api.patch("trainjobs", "copied", {"status": {"conditions": [END]}}, "status")
        self.untouched("copied")
        self.assertEqual(self.api.get("trainjobs", "copied")["status"], {"conditions": [END], "jobsStatus": COUNTS})

    def test_who_may_manage(self):
        """The definition has the same rules as Kubeflow Trainer's."""
        self.api.create("trainingruntimes", {**runtime("", 1, container=TRUE), "metadata": {"name": "managed"}})
        words = "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set"
        for manager in ("somebody", "", "kueue.x-k8s.io/multikueue2", "Kueue.x-k8s.io/multikueue"):
            with self.subTest(manager), self.refused(422, "spec.managedBy", words):
                self.api.create("trainjobs", train_job("managed", "managed", managedBy=manager))
        self.api.create(
            "trainjobs", train_job("managed", "managed", managedBy="trainer.kubeflow.org/trainjob-controller")
        )
        self.running("managed")
        with self.refused(422, "spec.managedBy", "field is immutable"):
            self.patch("managed", {"managedBy": MULTI_KUEUE})


if __name__ == "__main__":
    class_runner.main()
