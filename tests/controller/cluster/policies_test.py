# SPDX-License-Identifier: Apache-2.0
"""Policies of JobSet and Kubeflow Trainer: failure rules, volume claims, pod groups, and jobs that wait for jobs."""

from cluster_case import NAMESPACE, pod_group_definition
from controller_case import OFF, ONCE, TRUE, WAIT, ControllerCase, is_true

import class_runner
from scenario import runtime


def waits(reason):
    return lambda job: job.get("status", {}).get("state") == "Waiting" and job["status"].get("reason") == reason


class Policies(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()

    def job_set(self, name, annotations=None, made=None, **spec):
        """Creates a TrainJob of two nodes. `spec`: fields beside the runtime's replicatedJobs."""
        made = made or runtime("", 2, container=TRUE, annotations=OFF, **ONCE)
        made["spec"]["template"]["spec"].update(spec)
        return self.make(name, made, annotations)

    def goes(self, resource, name):
        self.cluster.kubectl("wait", "--for=delete", f"{resource}/{name}", "-n", NAMESPACE, f"--timeout={WAIT}s")

    def test_rules_of_failures(self):
        rules = [
            {
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": ["exit code 42 "],
            },
            {"name": "noMore", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
        ]
        self.job_set("rules", made=runtime("", 2, container=TRUE), failurePolicy={"maxRestarts": 1, "rules": rules})
        self.running("rules")
        self.finish("rules", "failed", rank=0, code=42)
        job = self.running("rules", attempt=1)
        self.assertEqual(job["status"]["restarts"], 0)
        self.finish("rules", "failed", rank=1, code=3)
        reason, message = self.condition(self.await_job("rules", is_true("Failed")), "Failed")
        self.assertEqual(reason, "FailJobSetFailurePolicyAction")
        self.assertTrue(
            message.startswith("applying FailJobSet failure policy action (first failed job: rules-node-0): "), message
        )
        self.assertIn("(rule noMore of the failurePolicy)", message)

    def test_claims_are_created_and_deleted_or_retained(self):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        made = runtime("", 1, container={**TRUE, "volumeMounts": [{"name": "data", "mountPath": "/data"}]})
        policies = [
            {"templates": [{"metadata": {"name": "data"}, "spec": spec}]},
            {"templates": [{"metadata": {"name": "kept"}, "spec": spec}], "retentionPolicy": {"whenDeleted": "Retain"}},
        ]
        kept = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "kept-claims", "annotations": {"made": "before"}},
            "spec": spec,
        }
        self.api.create("persistentvolumeclaims", kept)
        self.job_set("claims", made=made, volumeClaimPolicies=policies)
        job = self.api.await_object("jobs", "claims-node-0", lambda job: True)
        self.assertIn(
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-claims"}},
            job["spec"]["template"]["spec"]["volumes"],
        )
        (owner,) = self.api.get("persistentvolumeclaims", "data-claims")["metadata"]["ownerReferences"]
        self.assertEqual(owner["name"], "claims")
        self.assertEqual(
            self.api.get("persistentvolumeclaims", "kept-claims")["metadata"]["annotations"], {"made": "before"}
        )

    def test_a_group_of_pods(self):
        made = runtime("", 2, container={**TRUE, "resources": {"requests": {"cpu": "500m"}}})
        made["spec"]["podGroupPolicy"] = {"coscheduling": {}}
        self.make("group", made)
        self.await_job(
            "group",
            lambda job: (
                "the cluster knows no PodGroup of scheduling.x-k8s.io/v1alpha1: install its scheduler with the "
                "CustomResourceDefinition podgroups.scheduling.x-k8s.io" in job.get("status", {}).get("message", "")
            ),
        )
        self.assertEqual(self.items("jobs", "group"), [])
        self.cluster.apply([pod_group_definition("scheduling.x-k8s.io", "v1alpha1")])
        self.running("group")
        group = self.cluster.get("podgroups.scheduling.x-k8s.io", "group", "-n", NAMESPACE)
        self.assertEqual(group["spec"], {"minMember": 2, "minResources": {"cpu": "1"}, "scheduleTimeoutSeconds": 60})
        self.assertEqual(
            [pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in self.items("pods", "group")],
            ["group"] * 2,
        )
        # A change while the job is suspended also changes its group.
        self.patch("group", {"suspend": True})
        self.await_job("group", is_true("Suspended"))
        self.patch("group", {"trainer": {"numNodes": 1}})
        self.patch("group", {"suspend": False})
        self.cluster.await_object(
            "podgroups.scheduling.x-k8s.io/group", lambda group: group["spec"]["minMember"] == 1, NAMESPACE
        )
        self.running("group")

    def test_a_gang_that_the_cluster_does_not_know(self):
        self.make("gang", runtime("", 2, container=TRUE), {"muster.dev/gang": "native"})
        self.await_job(
            "gang",
            lambda job: (
                "the cluster does not serve Workload of scheduling.k8s.io/v1alpha2"
                in job.get("status", {}).get("message", "")
            ),
        )
        self.assertEqual(self.items("jobs", "gang"), [])

    def test_a_job_waits_for_another(self):
        self.make("second", runtime("", 1, container=TRUE), {"muster.dev/after": "first"})
        told = self.await_job("second", waits("TrainJobMissing"))
        self.assertIn(
            "it waits for TrainJob first to complete, and there is no such TrainJob", told["status"]["message"]
        )
        self.make("first", runtime("", 1, container=TRUE))
        told = self.await_job("second", waits("WaitingForTrainJob"))
        self.assertEqual(self.items("jobs", "second"), [])
        self.assertNotIn("startTime", told["status"])
        self.assertFalse(told["spec"]["suspend"])
        self.running("first")
        self.finish("first")
        self.await_job("first", is_true("Complete"))
        self.running("second")
        self.api.delete("trainjobs", "first")
        self.api.await_gone("trainjobs", "first")
        self.finish("second")
        self.await_job("second", is_true("Complete"))

    def test_jobs_that_wait_for_each_other(self):
        self.make("hen", runtime("", 1, container=TRUE), {"muster.dev/after": "egg"})
        self.await_job("hen", waits("TrainJobMissing"))
        self.make("egg", runtime("", 1, container=TRUE), {"muster.dev/after": "hen=Any"})
        told = self.await_job("egg", waits("AfterCycle"))
        self.assertIn("egg -> hen -> egg", told["status"]["message"])
        self.await_job("hen", waits("AfterCycle"))
        self.api.patch("trainjobs", "egg", {"metadata": {"annotations": {"muster.dev/after": None}}})
        self.running("egg")
        self.await_job("hen", waits("WaitingForTrainJob"))

    def test_times_to_live(self):
        made = runtime("", 1, container=TRUE)
        made["spec"]["runPolicy"] = {"ttlSecondsAfterFinished": 3600}
        self.job_set("short", made=made, ttlSecondsAfterFinished=0)
        self.running("short")
        self.finish("short")
        ended = self.await_job("short", is_true("Complete"))
        self.assertEqual(ended["status"]["ttlSecondsAfterFinished"], 3600)
        self.goes("jobs", "short-node-0")
        self.assertTrue(self.api.find("trainjobs", "short"))
        self.patch("short", {"ttlSecondsAfterFinished": 0})  # the job's value goes before the runtime's
        self.goes("trainjobs", "short")


if __name__ == "__main__":
    class_runner.main()
