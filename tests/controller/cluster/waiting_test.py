# SPDX-License-Identifier: Apache-2.0
"""The status, and an event that the SDK shows, say why a TrainJob does not start. It starts when the reason is gone."""

from cluster_case import changed, tries
from controller_case import TRUE, ControllerCase, is_true

import class_runner
from api_client import Refused
from scenario import runtime

EVENT = "TrainJobResourcesCreationFailed"


class Waiting(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()

    def told(self, name, words):
        """The status, when its message contains `words`."""
        return self.await_job(name, lambda job: words in job.get("status", {}).get("message", ""))["status"]

    def warned(self, name, words):
        """Waits for a warning with `words`, and firstTimestamp for the SDK. One about the runtime may come first."""
        event = self.api.await_event(name, EVENT, words=words)
        self.assertTrue(event["firstTimestamp"])
        self.assertEqual((event["type"], event["involvedObject"]["kind"]), ("Warning", "TrainJob"))

    def begins(self, name):
        job = self.running(name)
        self.assertEqual((job["status"].get("message", ""), job["status"].get("reason", "")), ("", ""))
        self.finish(name)
        self.await_job(name, is_true("Complete"))

    def test_a_quota_of_jobs(self):
        self.api.create(
            "resourcequotas",
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "none"},
                "spec": {"hard": {"count/jobs.batch": "0"}},
            },
        )
        self.api.await_object("resourcequotas", "none", lambda made: "hard" in made.get("status", {}))
        self.make("no-room", runtime("", 1, container=TRUE))
        self.assertEqual(self.told("no-room", "exceeded quota: none")["state"], "Waiting")
        self.warned("no-room", "exceeded quota: none")
        self.api.delete("resourcequotas", "none")
        self.begins("no-room")

    def test_a_quota_of_pods(self):
        """Kubernetes' Job controller may not create pods. It reports this only in an event about the Job."""
        self.api.create(
            "resourcequotas",
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "one-pod"},
                "spec": {"hard": {"pods": "1"}},
            },
        )
        self.api.await_object("resourcequotas", "one-pod", lambda made: "hard" in made.get("status", {}))
        self.make("too-many", runtime("", 2, container=TRUE))
        status = self.told("too-many", "exceeded quota: one-pod")
        self.assertEqual((status["state"], status["reason"]), ("Waiting", "FailedCreate"))
        self.assertRegex(
            status["message"],
            r'^Job too-many-node-0: its pods cannot be made: pods "too-many-node-0-[01]-\w+" is forbidden',
        )
        self.api.delete("resourcequotas", "one-pod")
        self.begins("too-many")

    def test_a_policy_of_the_cluster(self):
        """A ValidatingAdmissionPolicy refuses Jobs, as a foreign webhook might."""
        rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
        kind = "ValidatingAdmissionPolicy"
        self.cluster.apply(
            [
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": kind,
                    "metadata": {"name": "closed"},
                    "spec": {
                        "failurePolicy": "Fail",
                        "matchConstraints": {"resourceRules": [rule]},
                        "validations": [{"expression": "false", "message": "no jobs at night"}],
                    },
                },
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": f"{kind}Binding",
                    "metadata": {"name": "closed"},
                    "spec": {"policyName": "closed", "validationActions": ["Deny"]},
                },
            ]
        )
        self.addCleanup(self.cluster.try_kubectl, "delete", f"{kind},{kind}Binding", "closed")
        with self.assertRaisesRegex(Refused, "no jobs at night"):
            for _ in tries():  # until the API server knows of the policy
                self.api.ask(
                    "POST",
                    f"{self.api.path('jobs')}?dryRun=All",
                    {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "metadata": {"name": "probe"},
                        "spec": {
                            "template": {
                                "spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "x"}]}
                            }
                        },
                    },
                )
        self.make("at-night", runtime("", 1, container=TRUE))
        self.assertEqual(self.told("at-night", "no jobs at night")["state"], "Waiting")
        self.warned("at-night", "no jobs at night")
        self.cluster.kubectl("delete", f"{kind},{kind}Binding", "closed")
        self.begins("at-night")

    def test_a_scheduling_gate(self):
        """Nobody reports an error: the pods themselves say what they wait for."""
        gates = [{"name": "example.com/wait"}]
        self.make("gated", runtime("", 1, container=TRUE, pod={"schedulingGates": gates}))
        status = self.told("gated", "its scheduling gates are not removed: example.com/wait")
        self.assertEqual((status["state"], status["reason"]), ("Waiting", "SchedulingGated"))
        pod = self.items("pods", "gated")[0]["metadata"]["name"]
        self.api.patch("pods", pod, {"spec": {"schedulingGates": []}})
        self.begins("gated")

    def test_a_claim_that_cannot_be_made(self):
        """Kubernetes reports it in an event about the pod alone."""
        claims = [{"name": "gpu", "resourceClaimTemplateName": "nosuch"}]
        container = {**TRUE, "resources": {"claims": [{"name": "gpu"}]}}
        self.make("claims", runtime("", 1, container=container, pod={"resourceClaims": claims}))
        status = self.told("claims", "nosuch")
        self.assertEqual(status["state"], "Waiting")
        self.assertRegex(status["message"], r"^pod claims-node-0-0-\w+: FailedResourceClaimCreation: ")

    def test_a_field_that_kubernetes_would_refuse(self):
        """The message has the field's path in the runtime."""
        container = "spec.template.spec.replicatedJobs.0.template.spec.template.spec.containers.0"
        self.make("wrong", changed(runtime("", 1, container=TRUE), f"{container}.ports", [{"containerPort": 70000}]))
        words = "template.spec.containers[0].ports[0].containerPort: 70000 is more than 65535"
        self.told("wrong", words)
        self.warned("wrong", words)
        self.api.patch("trainingruntimes", "wrong", {"spec": runtime("", 1, container=TRUE)["spec"]})
        self.begins("wrong")


if __name__ == "__main__":
    class_runner.main()
