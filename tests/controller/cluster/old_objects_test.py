# SPDX-License-Identifier: Apache-2.0
"""Muster is installed over Kubeflow Trainer v2.0 or v2.1, which has stored TrainJobs and runtimes. Each job is served,
or its status says what to change. No field of it is lost."""

import json
import os

from admission_case import AdmissionCase
from cluster_case import HERE, NAMESPACE, changed, establish
from controller_case import is_true

import class_runner
from old_definitions import MULTI_KUEUE, OLD_DEFINITIONS, ONLY_NEW, ONLY_OLD
from scenario import runtime, shell, train_job

IN_USE = "trainer.kubeflow.org/resource-in-use"  # a finalizer of Kubeflow Trainer
SELECTOR = {"type": "kwok"}
OVERRIDES = [
    {
        "targetJobs": [{"name": "node"}],
        "metadata": {"annotations": {"note": "kept"}},
        "spec": {"nodeSelector": SELECTOR},
    }
]
ASTRAY = [{"targetJobs": [{"name": "nodes"}], "spec": {"nodeSelector": SELECTOR}}]
OLD_OVERRIDES = [{"targetJobs": [{"name": "node"}], "nodeSelector": SELECTOR}]
SUSPENDED = {
    "type": "Suspended",
    "status": "True",
    "reason": "Suspended",
    "message": "TrainJob is suspended",
    "lastTransitionTime": "2025-01-01T00:00:00Z",
}
RESUMED = {**SUSPENDED, "status": "False", "reason": "Resumed", "message": "TrainJob is resumed"}
COMPLETE = {
    "type": "Complete",
    "status": "True",
    "reason": "AllJobsCompleted",
    "message": "jobset completed successfully",
    "lastTransitionTime": "2025-01-01T00:00:00Z",
}
NODE = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}

# name: (spec, conditions, jobsStatus)
STORED = {
    "auto": (
        {"trainer": {"numProcPerNode": "auto"}, "podTemplateOverrides": OVERRIDES, "labels": {"team": "vision"}},
        [],
        [],
    ),
    "four": ({"trainer": {"numProcPerNode": "4"}}, [], []),
    "oldest": ({"podSpecOverrides": OLD_OVERRIDES}, [], []),
    "halted": ({"suspend": True, "podTemplateOverrides": OVERRIDES}, [SUSPENDED], [{**NODE, "suspended": 1}]),
    "going": ({}, [RESUMED], [{**NODE, "active": 1}]),  # its JobSet was deleted with JobSet's definition
    "over": ({}, [RESUMED, COMPLETE], [{**NODE, "succeeded": 1}]),
    "mended": ({"podTemplateOverrides": ASTRAY}, [], []),
    "theirs": ({"managedBy": MULTI_KUEUE}, [], [{**NODE, "active": 1}]),
    **{
        name: ({"suspend": True, "podTemplateOverrides": OVERRIDES, "labels": {"team": "vision"}}, [SUSPENDED], [])
        for name in ("kept-by-old", "kept-by-new", "kept-by-both", "dropped")
    },
}
# name: (spec, what its status says)
WRONG = {
    "many": ({"trainer": {"numProcPerNode": "many"}}, "spec.trainer.numProcPerNode: 'many' is neither a whole number"),
    "astray": ({"podTemplateOverrides": ASTRAY}, "the runtime has no job 'nodes'; there are: node"),
    "list": (
        {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"containers": 7}}]},
        "containers: 7 is not a list",
    ),
    "1st": ({}, "metadata.name: '1st' must match RFC 1035 DNS label format"),
}


def as_old(job):
    """The job as a client of v2.1 writes it back, without unknown fields. as_new: one of v2.3."""
    return {**job, "spec": {key: value for key, value in job["spec"].items() if key not in ONLY_NEW}}


def as_new(job):
    return {**job, "spec": {key: value for key, value in job["spec"].items() if key not in ONLY_OLD}}


class OldObjects(AdmissionCase):
    maxDiff = None

    @classmethod
    def install_definitions(cls):
        """Installs the old definitions, and objects. The controller's installation then replaces the definitions."""
        cls.cluster.apply(OLD_DEFINITIONS)
        establish(cls.cluster)
        made = runtime("plain", 2, {"torch": {"numProcPerNode": "auto"}}, container={"command": shell("torchrun x.py")})
        made["metadata"].update(namespace=NAMESPACE, finalizers=[IN_USE])
        cls.cluster.apply([made, changed(made, "metadata.name", "old")])
        for folder in (
            os.path.join(HERE, "accepted", name)
            for name in ("runtime-with-data-v21.yaml", "runtime-elastic-v21.yaml", "trainjob-v21.yaml")
        ):
            cls.cluster.kubectl("create", "-f", folder)
        specs = {
            **{name: spec for name, (spec, *_) in STORED.items()},
            **{name: spec for name, (spec, _) in WRONG.items()},
        }
        cls.cluster.apply(
            [changed(train_job(name, "plain", **spec), "metadata.namespace", NAMESPACE) for name, spec in specs.items()]
        )
        for name, (_, conditions, counts) in STORED.items():
            if conditions or counts:
                cls.cluster.kubectl(
                    "patch",
                    "trainjob",
                    name,
                    "-n",
                    NAMESPACE,
                    "--type=merge",
                    "--subresource=status",
                    "--field-manager=upstream",
                    "-p",
                    json.dumps({"status": {"conditions": conditions, "jobsStatus": counts}}),
                )
        cls.before = {job["metadata"]["name"]: job for job in cls.cluster.get("trainjobs", "-n", NAMESPACE)["items"]}

    def node_pods(self, name):
        return [pod for pod in self.items("pods", name) if "deletionTimestamp" not in pod["metadata"]]

    def completes(self, name):
        self.running(name)
        self.finish(name)
        return self.await_job(name, is_true("Complete"))

    def write(self, job):
        """Replaces the whole object, as a typed client does."""
        return self.api.ask("PUT", self.api.path("trainjobs", job["metadata"]["name"]), job)

    def test_they_are_served(self):
        for name in ("auto", "four", "oldest", "going"):
            with self.subTest(name):
                self.running(name)
                for pod in self.node_pods(name):
                    self.assertEqual(pod["spec"].get("nodeSelector"), SELECTOR if name in ("auto", "oldest") else None)
                    self.assertEqual(pod["metadata"]["labels"].get("team"), "vision" if name == "auto" else None)
                self.assertEqual(self.api.get("trainjobs", name)["spec"], self.before[name]["spec"])
                self.completes(name)

    def test_an_initialized_one_is_served(self):
        """The job from the documentation of v2.1, with all its fields."""
        job = self.await_job("digits", lambda job: job.get("status", {}).get("state"))
        self.assertIn(job["status"]["state"], ("Initializing", "Waiting"))
        self.assertEqual(
            [made["metadata"]["name"] for made in self.items("jobs", "digits")], ["digits-dataset-initializer-0"]
        )
        self.assertEqual(self.api.get("trainjobs", "digits")["spec"], self.before["digits"]["spec"])

    def test_what_is_wrong_is_said(self):
        for name, (_, words) in WRONG.items():
            with self.subTest(name):
                job = self.await_job(name, lambda job: words in job.get("status", {}).get("message", ""))
                self.assertEqual((job["status"]["state"], job["spec"]), ("Waiting", self.before[name]["spec"]))
                self.assertEqual(self.items("jobs", name), [])
        lines = self.cluster.kubectl("get", "trainjobs", "-n", NAMESPACE).splitlines()
        self.assertEqual({line.split()[0] for line in lines[1:]} & self.before.keys(), self.before.keys())

    def test_what_is_wrong_is_mended(self):
        """A deleted field comes back: a client that does not know it may have dropped it. An empty one is removed."""
        self.await_job("dropped", is_true("Suspended"))
        gone = '{"spec": {"podTemplateOverrides": null, "labels": null}}'
        done = self.cluster.try_kubectl("patch", "trainjob", "dropped", "-n", NAMESPACE, "--type=merge", "-p", gone)
        self.assertIn("to remove one, set it to", done.stderr)
        self.assertEqual(self.api.get("trainjobs", "dropped")["spec"]["podTemplateOverrides"], OVERRIDES)
        self.patch("dropped", {"podTemplateOverrides": [], "labels": None})
        self.assertNotIn("runtimePatches", self.api.get("trainjobs", "dropped")["spec"])
        self.patch("dropped", {"suspend": False})
        self.running("dropped")
        for pod in self.node_pods("dropped"):
            self.assertEqual((pod["spec"].get("nodeSelector"), pod["metadata"]["labels"].get("team")), (None, None))
        self.completes("dropped")
        self.await_job("mended", lambda job: job.get("status", {}).get("message"))
        with self.refused(403, "suspend it first"):
            self.patch("mended", {"podTemplateOverrides": []})
        self.patch("mended", {"podTemplateOverrides": [], "suspend": True})
        self.patch("mended", {"suspend": False})
        self.assertEqual(self.completes("mended")["status"].get("message", ""), "")

    def test_what_has_ended_stays(self):
        self.assertEqual(self.api.get("trainjobs", "over")["status"], self.before["over"]["status"])
        self.assertEqual(self.items("jobs", "over"), [])
        theirs = self.api.get("trainjobs", "theirs")
        del theirs["metadata"]["managedFields"]  # kubectl does not show it
        self.assertEqual(theirs, self.before["theirs"])

    def test_a_suspended_one_is_resumed(self):
        job = self.await_job("halted", lambda job: job.get("status", {}).get("state") == "Suspended")
        self.assertEqual(
            [(each["type"], each["lastTransitionTime"]) for each in job["status"]["conditions"]],
            [("Suspended", SUSPENDED["lastTransitionTime"])],
        )
        self.patch("halted", {"suspend": False})
        job = self.completes("halted")
        self.assertEqual(
            [(each["type"], each["status"], each["reason"]) for each in job["status"]["conditions"]],
            [("Suspended", "False", "Resumed"), ("Complete", "True", "AllJobsCompleted")],
        )
        self.assertEqual({pod["metadata"]["annotations"].get("note") for pod in self.items("pods", "halted")}, {"kept"})

    def test_clients_of_both_generations_write_it_back(self):
        """A client drops the fields that it does not know. The job still runs with them."""
        for name, clients in (
            ("kept-by-old", [as_old]),
            ("kept-by-new", [as_new]),
            ("kept-by-both", [as_old, as_new, as_old, as_new]),
        ):
            with self.subTest(name):
                self.await_job(name, lambda job: job.get("status", {}).get("state") == "Suspended")
                for turn, client in enumerate(clients):
                    self.write(client(changed(self.api.get("trainjobs", name), "metadata.labels", {"turn": str(turn)})))
                resumed = client(changed(self.api.get("trainjobs", name), "spec.suspend", False))
                del resumed["metadata"]["resourceVersion"]  # the status may be written meanwhile
                self.cluster.kubectl("replace", "-n", NAMESPACE, "-f", "-", content=json.dumps(resumed))
                self.running(name)
                for pod in self.node_pods(name):
                    self.assertEqual(
                        (
                            pod["spec"].get("nodeSelector"),
                            pod["metadata"]["annotations"].get("note"),
                            pod["metadata"]["labels"].get("team"),
                        ),
                        (SELECTOR, "kept", "vision"),
                    )
                self.assertEqual(self.api.get("trainjobs", name)["spec"]["podTemplateOverrides"], OVERRIDES)
                self.completes(name)

    def test_a_runtime_in_use_may_go(self):
        """It is deleted after Kubeflow Trainer's finalizer is removed, as docs/install.md says."""
        self.cluster.kubectl("delete", "trainingruntime", "old", "-n", NAMESPACE, "--wait=false")
        self.assertIn("deletionTimestamp", self.api.get("trainingruntimes", "old")["metadata"])
        self.cluster.kubectl(
            "patch",
            "trainingruntime",
            "old",
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            '{"metadata": {"finalizers": null}}',
        )
        self.assertIsNone(self.api.find("trainingruntimes", "old"))


if __name__ == "__main__":
    class_runner.main()
