# SPDX-License-Identifier: Apache-2.0
"""PyTorchJobs that training-operator 1.9 has started go on under Muster, with the pods and Services that it made.

The test creates these objects itself, by training-operator's source; training-operator does not run.
"""

import copy

from pytorch_case import LABEL, OPERATOR, PyTorchCase, conditions, counts, pytorch_job

import class_runner

THEN, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
TEXTS = {
    "Created": "PyTorchJob {} is created.",
    "Running": "PyTorchJob {} is running.",
    "Succeeded": "PyTorchJob {} is successfully completed.",
    "Restarting": "PyTorchJob {} is restarting because 1 Worker replica(s) failed.",
    "Suspended": "PyTorchJob {} is suspended.",
    "Failed": 'job "{}" is failing because "Worker" replica(s) failed.',
}
INIT = {
    "name": "init-pytorch",
    "image": "alpine:3.10",
    "imagePullPolicy": "IfNotPresent",
    "resources": {"limits": {"cpu": "100m", "memory": "20Mi"}, "requests": {"cpu": "50m", "memory": "10Mi"}},
}


def condition(name, kind, status="True"):
    return {
        "type": kind,
        "status": status,
        "reason": f"PyTorchJob{kind}",
        "message": TEXTS[kind].format(name),
        "lastUpdateTime": THEN,
        "lastTransitionTime": THEN,
    }


def labels(name, kind, index):
    return {
        LABEL + "operator-name": OPERATOR,
        LABEL + "job-name": name,
        LABEL + "replica-type": kind,
        LABEL + "replica-index": str(index),
    }


class Takeover(PyTorchCase):
    """All jobs exist before the controller starts."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.uids = {}
        cls.started("going")
        cls.started("never", policy="Never")
        cls.started("torn", without=["worker-1"], last="Restarting")
        cls.started("half", without=["worker-0", "worker-1"], services=["master-0"], kinds=["Created"])
        cls.started("whole", annotations={"muster.dev/restart": "job"}, limit=2)
        cls.started("paused", without=["master-0", "worker-0", "worker-1"], services=[], last="Suspended", suspend=True)
        cls.started("done", last="Succeeded", status={"completionTime": LATER}, clean="All")
        cls.started("left", last="Failed", ttl=0)
        cls.started("kept", last="Failed", ttl=2000000000)
        cls.serve()

    @classmethod
    def started(
        cls,
        name,
        policy="ExitCode",
        without=(),
        services=None,
        kinds=None,
        last="Running",
        status=None,
        annotations=None,
        limit=None,
        clean=None,
        ttl=None,
        suspend=None,
    ):
        """Creates a job of one master and two workers as training-operator leaves it. `without`: missing pods.
        `services`: the existing Services; None: all."""
        run = {"backoffLimit": limit, "cleanPodPolicy": clean, "ttlSecondsAfterFinished": ttl, "suspend": suspend}
        job = cls.api.create(
            "pytorchjobs",
            pytorch_job(
                name,
                master=policy,
                worker=policy,
                workers=2,
                annotations=annotations,
                policy={key: value for key, value in run.items() if value is not None},
            ),
        )
        owner = {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            "name": name,
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        replicas = ["master-0", "worker-0", "worker-1"]
        for rank, replica in enumerate(replicas):
            kind, _, index = replica.partition("-")
            own = labels(name, kind, index)
            metadata = {"name": f"{name}-{replica}", "labels": own, "ownerReferences": [owner]}
            if services is None or replica in services:
                cls.api.create(
                    "services",
                    {
                        "apiVersion": "v1",
                        "kind": "Service",
                        "metadata": metadata,
                        "spec": {
                            "clusterIP": "None",
                            "selector": own,
                            "ports": [{"name": "pytorchjob-port", "port": 23456}],
                        },
                    },
                )
            if replica in without:
                continue
            made = copy.deepcopy(job["spec"]["pytorchReplicaSpecs"][kind.capitalize()]["template"])
            container = made["spec"]["containers"][0]
            container["ports"] = [{"name": "pytorchjob-port", "containerPort": 23456}]
            container["env"] = [
                {"name": key, "value": value}
                for key, value in (
                    ("PYTHONUNBUFFERED", "1"),
                    ("MASTER_PORT", "23456"),
                    ("PET_MASTER_PORT", "23456"),
                    ("MASTER_ADDR", f"{name}-master-0"),
                    ("PET_MASTER_ADDR", f"{name}-master-0"),
                    ("WORLD_SIZE", "3"),
                    ("RANK", str(rank)),
                    ("PET_NODE_RANK", str(rank)),
                    ("PET_NPROC_PER_NODE", "auto"),
                    ("PET_NNODES", "3"),
                )
            ]
            if kind == "master":
                metadata = {**metadata, "labels": {**own, LABEL + "job-role": "master"}}
            else:
                made["spec"]["initContainers"] = [
                    {**INIT, "command": ["sh", "-c", f"until nslookup {name}-master-0; do sleep 2; done"]}
                ]
            made["spec"]["restartPolicy"] = "Never"
            cls.api.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made["spec"]})
        for replica in replicas:
            if replica not in without:
                pod = cls.api.await_object(
                    "pods", f"{name}-{replica}", lambda pod: pod.get("status", {}).get("phase") == "Running"
                )
                cls.uids[f"{name}-{replica}"] = pod["metadata"]["uid"]
        kinds = kinds or ["Created", last] if last in ("Running", "Restarting") else ["Created", "Running", last]
        told = [condition(name, kind, "False" if kind == "Running" and last != "Running" else "True") for kind in kinds]
        there = [replica.partition("-")[0].capitalize() for replica in replicas if replica not in without]
        if last == "Succeeded":
            counted = {"Master": {"succeeded": 1}, "Worker": {"succeeded": 2}}
        else:
            counted = {
                kind: {
                    "active": there.count(kind),
                    "selector": f"{LABEL}job-name={name},{LABEL}operator-name={OPERATOR},"
                    f"{LABEL}replica-type={kind.lower()}",
                }
                for kind in ("Master", "Worker")
            }
        cls.api.patch(
            "pytorchjobs",
            name,
            {"status": {"conditions": told, "replicaStatuses": counted, "startTime": THEN, **(status or {})}},
            "status",
        )

    def check_pods(self, name, *replicas):
        """These must still be the old pods, and not be deleted."""
        for replica in replicas:
            pod = self.api.get("pods", f"{name}-{replica}")
            self.assertEqual(pod["metadata"]["uid"], self.uids[f"{name}-{replica}"], pod["metadata"]["name"])
            self.assertNotIn("deletionTimestamp", pod["metadata"])

    def has_no_agent(self, pod):
        made = self.api.get("pods", pod)["spec"]
        self.assertEqual([container["command"] for container in made["containers"]], [["/bin/sh", "-c", "true"]])
        self.assertEqual(
            [container["name"] for container in made.get("initContainers", [])],
            [] if "master" in pod else ["init-pytorch"],
        )

    def test_a_job_that_runs(self):
        # A failed pod is replaced by one that is made like its peers.
        uid = self.uid("going-worker-1")
        self.end("going-worker-1", 137)
        self.await_other("going-worker-1", uid)
        self.has_no_agent("going-worker-1")
        job = self.await_pytorch(
            "going", lambda job: job["status"].get("restarts") == 1 and conditions(job)[-1] == "Running"
        )
        self.assertEqual((counts(job, "Master"), counts(job, "Worker")), ((1, 0, 0), (2, 0, 0)))
        self.assertEqual(job["status"]["conditions"][0], condition("going", "Created"))
        self.assertEqual((conditions(job), job["status"]["startTime"]), (["Created", "Running"], THEN))
        self.assertEqual(len(self.of("services", "going")), 3)
        self.check_pods("going", "master-0", "worker-0")
        self.end("going-master-0")
        job = self.await_end("going", "Succeeded")
        self.assertEqual((job["status"]["startTime"], counts(job, "Worker")), (THEN, (0, 2, 0)))
        self.check_pods("going", "master-0", "worker-0")

    def test_one_that_fails_by_its_policy(self):
        self.check_pods("never", "master-0", "worker-0", "worker-1")
        self.end("never-worker-0", 143)
        job = self.await_end("never", "Failed")
        self.assertIn("PyTorchJob never is failed because 1 Worker replica(s) failed", self.message(job, "Failed"))
        self.assertIn("completionTime", job["status"])

    def test_one_that_was_restarting(self):
        """training-operator was removed after it had deleted a failed pod."""
        job = self.await_running("torn")
        self.assertEqual(conditions(job), ["Created", "Running"])
        self.has_no_agent("torn-worker-1")
        self.check_pods("torn", "master-0", "worker-0")
        self.end("torn-worker-1", 2)
        self.assertIn("exit code 2", self.message(self.await_end("torn", "Failed"), "Failed"))

    def test_one_that_was_half_made(self):
        self.await_running("half")
        self.check_pods("half", "master-0")
        self.assertEqual(sorted(self.of("services", "half")), ["half-master-0", "half-worker-0", "half-worker-1"])
        for worker in ("half-worker-0", "half-worker-1"):
            self.has_no_agent(worker)

    def test_a_whole_job(self):
        """Without agents a failure replaces all pods. No pod of training-operator is left, so new ones have agents."""
        self.check_pods("whole", "master-0", "worker-0", "worker-1")
        self.end("whole-worker-0", 143)
        for replica in ("master-0", "worker-0", "worker-1"):
            self.await_other(f"whole-{replica}", self.uids[f"whole-{replica}"])
        job = self.await_pytorch(
            "whole", lambda job: conditions(job)[-1] == "Running" and counts(job, "Worker") == (2, 0, 0)
        )
        self.assertEqual((job["status"]["attempt"], job["status"]["restarts"]), (1, 1))

    def test_one_that_is_suspended(self):
        self.assertEqual(self.of("pods", "paused"), {})
        self.api.patch("pytorchjobs", "paused", {"spec": {"runPolicy": {"suspend": False}}})
        job = self.await_running("paused")
        self.assertNotEqual(job["status"]["startTime"], THEN)

    def test_those_that_have_ended(self):
        """After a fatal code training-operator set no completionTime, so the TTL never ended. Muster sets it."""
        self.api.await_gone("pytorchjobs", "left")
        job = self.await_pytorch("kept", lambda job: "completionTime" in job["status"])
        self.assertEqual((job["status"]["completionTime"], conditions(job)), (THEN, ["Created", "Failed"]))
        self.assertEqual(self.message(job, "Failed"), TEXTS["Failed"].format("kept"))
        self.check_pods("kept", "master-0", "worker-0", "worker-1")
        for replica in ("master-0", "worker-0", "worker-1"):
            self.api.await_gone("pods", f"done-{replica}")
            self.api.await_gone("services", f"done-{replica}")
        job = self.api.get("pytorchjobs", "done")
        self.assertEqual((job["status"]["completionTime"], conditions(job)), (LATER, ["Created", "Succeeded"]))
        self.assertEqual((counts(job, "Master"), counts(job, "Worker")), ((0, 1, 0), (0, 2, 0)))


if __name__ == "__main__":
    class_runner.main()
