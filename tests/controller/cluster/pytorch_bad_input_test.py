# SPDX-License-Identifier: Apache-2.0
"""Without a webhook, wrong PyTorchJobs are stored. The status says what is wrong, and the corrected job starts."""

import json

from cluster_case import changed
from pytorch_case import LABEL, PyTorchCase, conditions, counts, pytorch_job

import class_runner

SPECS = "spec.pytorchReplicaSpecs"
MASTER, WORKER = f"{SPECS}.Master", f"{SPECS}.Worker"
CONTAINERS = f"{MASTER}.template.spec.containers"
FIRST = [{"name": "pytorch", "image": "busybox"}]
HUGE = [{"name": f"V{number}", "value": "x" * 9000} for number in range(50)]

# name: (changes of a valid job, what the status says)
WRONG = {
    "processes": ({"spec.nprocPerNode": "0"}, "spec.nprocPerNode: '0' is not a whole number"),
    "both": (
        {"spec.nprocPerNode": "2", "spec.elasticPolicy": {"minReplicas": 1, "maxReplicas": 1, "nProcPerNode": 2}},
        None,
    ),
    "chief": ({f"{SPECS}.Chief": {"template": {"spec": {"containers": FIRST}}}}, "Chief"),
    "twice": ({f"{SPECS}.master": {"template": {"spec": {"containers": FIRST}}}}, "aster"),
    "no-pods": ({CONTAINERS: []}, "containers"),
    "policy": (
        {"metadata.annotations": {"muster.dev/restart": "maybe"}},
        "metadata.annotations.muster.dev/restart: 'maybe' is neither pod nor job",
    ),
    "agent": (
        {"metadata.annotations": {"muster.dev/agent": "perhaps"}},
        "metadata.annotations.muster.dev/agent: 'perhaps' is neither on nor off",
    ),
    "standbys": (
        {"metadata.annotations": {"muster.dev/standby-workers": "2"}},
        "metadata.annotations.muster.dev/standby-workers: '2' is neither auto nor off",
    ),
    "gangs": (
        {"metadata.annotations": {"muster.dev/gang": "volcano"}},
        "metadata.annotations.muster.dev/gang: 'volcano' is neither native nor off",
    ),
    "a" * 56: ({}, "is too long: the Service"),
    # The API server's refusal of a pod.
    "image": ({CONTAINERS: [{"name": "pytorch"}]}, "image"),
    "volume": ({f"{CONTAINERS}.0.volumeMounts": [{"name": "none", "mountPath": "/data"}]}, "volumeMounts"),
    "label": ({f"{MASTER}.template.metadata": {"labels": {"a": "no label!"}}}, "metadata.labels"),
    "port": ({f"{CONTAINERS}.0.ports": [{"name": "pytorchjob-port", "containerPort": 99999}]}, "port"),
    "large": ({f"{CONTAINERS}.0.env": HUGE}, None),
}
CANNOT_BE_MENDED = ("a" * 56,)  # a name cannot be changed


class BadInput(PyTorchCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.controller = cls.serve()

    def tearDown(self):
        """The same process still serves another job."""
        name = "after-" + self.id().rpartition("_")[2]
        self.create_job(name)
        self.await_running(name)
        self.assertIsNone(self.controller.poll())

    def test_what_is_said_and_mended(self):
        for name, (changes, _) in WRONG.items():
            made = pytorch_job(name, workers=1)
            for path, value in changes.items():
                made = changed(made, path, value)
            self.api.create("pytorchjobs", made)
        for name, (_, words) in WRONG.items():
            with self.subTest(name):
                if words:
                    job = self.await_pytorch(name, lambda job: words in job.get("status", {}).get("message", ""))
                    self.assertEqual(conditions(job), ["Created"], name)
                    self.api.await_event(name, "InvalidPyTorchJob", "FailedCreatePod", words=words)
                else:
                    self.await_running(name)
        for name, (_, words) in WRONG.items():
            if not words or name in CANNOT_BE_MENDED:
                continue
            with self.subTest(name + " mended"):
                good, there = pytorch_job(name, workers=1), self.api.get("pytorchjobs", name)
                self.api.ask(
                    "PUT",
                    self.api.path("pytorchjobs", name),
                    {**there, "spec": good["spec"], "metadata": {**there["metadata"], "annotations": {}}},
                )
                job = self.await_running(name)
                self.assertEqual(job["status"].get("message", ""), "", name)

    def test_what_is_served_all_the_same(self):
        """Jobs that training-operator serves, though its webhook refuses them. Service names may begin with digits."""
        rows = {
            "masters": {f"{MASTER}.replicas": 2},
            "no-worker": {"spec.elasticPolicy": {"minReplicas": 1, "maxReplicas": 2}, WORKER: None},
            "1st": {},
        }
        for name, changes in rows.items():
            made = pytorch_job(name, workers=1)
            for path, value in changes.items():
                made = changed(made, path, value)
            self.api.create("pytorchjobs", made)
        for name in rows:
            self.await_running(name)
        for name in ("masters-master-0", "masters-master-1", "no-worker-master-0", "1st-master-0"):
            self.end(name)
        for name in rows:
            self.await_end(name, "Succeeded")

    def test_keys_in_any_letter_case(self):
        made = pytorch_job("case", workers=1)
        specs = made["spec"]["pytorchReplicaSpecs"]
        made["spec"]["pytorchReplicaSpecs"] = {"MASTER": specs["Master"], "worker": specs["Worker"]}
        self.api.create("pytorchjobs", made)
        job = self.await_pytorch(
            "case", lambda job: (counts(job, "Master"), counts(job, "Worker")) == ((1, 0, 0), (1, 0, 0))
        )
        self.assertEqual(conditions(job), ["Created", "Running"])

    def test_without_a_container_of_that_name(self):
        """The first container is used instead, as in training-operator."""
        made = changed(pytorch_job("unnamed", workers=1), f"{CONTAINERS}.0.name", "main")
        self.api.create("pytorchjobs", made)
        self.await_running("unnamed")
        (container,) = self.api.get("pods", "unnamed-master-0")["spec"]["containers"]
        self.assertEqual([port["name"] for port in container["ports"]], ["pytorchjob-port"])

    def test_it_becomes_wrong_while_it_runs(self):
        """The pods of the job stay as they are."""
        self.create_job("spoilt", workers=1)
        self.await_running("spoilt")
        uids = {pod: made["metadata"]["uid"] for pod, made in self.of("pods", "spoilt").items()}
        self.api.patch(
            "pytorchjobs",
            "spoilt",
            {"metadata": {"annotations": {"muster.dev/restart": "maybe"}}, "spec": {"nprocPerNode": "0"}},
        )
        self.await_pytorch("spoilt", lambda job: "spec.nprocPerNode" in job["status"].get("message", ""))
        self.api.patch("pytorchjobs", "spoilt", {"spec": {"nprocPerNode": "1"}})
        self.await_pytorch("spoilt", lambda job: "muster.dev/restart" in job["status"].get("message", ""))
        self.api.patch("pytorchjobs", "spoilt", {"metadata": {"annotations": {"muster.dev/restart": None}}})
        self.await_pytorch("spoilt", lambda job: job["status"].get("message", "") == "")
        self.assertEqual({pod: made["metadata"]["uid"] for pod, made in self.of("pods", "spoilt").items()}, uids)
        self.end("spoilt-master-0")
        self.await_end("spoilt", "Succeeded")

    def test_a_status_of_others(self):
        """The job goes on whatever another writer puts into its status."""
        self.create_job("forged", workers=1, policy={"backoffLimit": 3, "suspend": True})
        self.await_pytorch("forged", lambda job: "Suspended" in conditions(job))
        forged = {
            "restarts": 2,
            "attempt": 7,
            "startTime": "2026-01-01T00:00:00Z",
            "message": "forged",
            "countedPods": [{"uid": "none", "restarts": 3}],
            "replicaStatuses": {"Master": {"active": 5, "succeeded": 1}},
        }
        self.api.patch("pytorchjobs", "forged", {"status": forged}, "status")
        self.api.patch("pytorchjobs", "forged", {"spec": {"runPolicy": {"suspend": False}}})
        job = self.await_running("forged")
        self.assertEqual(job["status"]["restarts"], 2)
        self.end("forged-master-0")
        self.await_end("forged", "Succeeded")

    def test_pods_with_labels_that_are_wrong(self):
        """Such pods belong to no job and disturb none."""
        for number, index in enumerate(("-1", "99999999999999999999", "", "x")):
            own = {
                LABEL + "operator-name": "pytorchjob-controller",
                LABEL + "job-name": "beset",
                LABEL + "replica-type": "worker",
                LABEL + "replica-index": index,
            }
            if index == "-1":  # it is not valid as a label
                own[LABEL + "replica-index"], own[LABEL + "replica-type"] = "0", "chief"
            self.api.create(
                "pods",
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"beset-{number}", "labels": own},
                    "spec": {"containers": FIRST},
                },
            )
        self.create_job("beset", workers=1)
        self.await_running("beset")
        self.assertLessEqual({"beset-master-0", "beset-worker-0"}, set(self.of("pods", "beset")))
        self.assertLessEqual({f"beset-{number}" for number in range(4)}, set(self.of("pods", "beset")))

    def test_a_message_that_is_no_agents(self):
        texts = {
            "text": "no JSON at all\n" * 200,
            "other": '{"kind": "Status"}',
            "forged": json.dumps({"version": 1, "exit_code": 137, "class": "retryable"}),
            "controls": "\u0001\u001b[31mred\u202e",
        }
        for row in texts:
            self.create_job(f"said-{row}")
        for row, text in texts.items():
            self.await_running(f"said-{row}")
            self.end(f"said-{row}-master-0", 3, text)
        for row in texts:
            job = self.await_end(f"said-{row}", "Failed")
            message = self.message(job, "Failed")
            self.assertIn("exit code 3", message)
            self.assertFalse(set("\n\u0001\u001b") & set(message), message)
            self.assertLess(len(message), 2048)


if __name__ == "__main__":
    class_runner.main()
