# SPDX-License-Identifier: Apache-2.0
"""How long PyTorchJobs, their pods and their Services exist, who may change them, and what they wait for."""

from pytorch_case import FLAGS, PyTorchCase, conditions, counts

import class_runner
from api_client import Refused
from fake_clock import FakeClock

POLICIES = ("None", "Running", "All")


class Lifetime(PyTorchCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve()

    def test_what_is_left(self):
        """What each cleanPodPolicy leaves. The master and a worker have ended, another worker runs."""
        rows = [(policy, how) for policy in POLICIES for how in ("Succeeded", "Failed")]
        for policy, how in rows:
            self.create_job(f"left-{policy}-{how}".lower(), workers=2, policy={"cleanPodPolicy": policy})
        for policy, how in rows:
            name = f"left-{policy}-{how}".lower()
            self.await_running(name)
            self.end(f"{name}-worker-0")
            self.await_pytorch(name, lambda job: counts(job, "Worker") == (1, 1, 0))
            self.end(f"{name}-master-0", 0 if how == "Succeeded" else 3)
        for policy, how in rows:
            name = f"left-{policy}-{how}".lower()
            job = self.await_end(name, how)
            gone = {"None": [], "Running": ["worker-1"], "All": ["master-0", "worker-0", "worker-1"]}[policy]
            for replica in gone:
                self.api.await_gone("pods", f"{name}-{replica}")
                self.api.await_gone("services", f"{name}-{replica}")
            left = [f"{name}-{replica}" for replica in ("master-0", "worker-0", "worker-1") if replica not in gone]
            self.assertEqual((sorted(self.of("pods", name)), sorted(self.of("services", name))), (left, left), name)
            self.assertEqual(conditions(job), ["Created", how], name)
            if how == "Succeeded":
                self.assertEqual((counts(job, "Master"), counts(job, "Worker")), ((0, 1, 0), (0, 2, 0)), name)

    def test_a_pod_that_never_ran_goes_with_the_running_ones(self):
        template = {"resources": {"requests": {"cpu": "1000"}}}
        self.create_job("wide", policy={"cleanPodPolicy": "Running", "activeDeadlineSeconds": 1}, container=template)
        job = self.await_end("wide", "Failed")
        self.assertEqual(
            self.message(job, "Failed"), "Job wide has failed because it was active longer than specified deadline"
        )
        for kind in ("pods", "services"):
            self.api.await_gone(kind, "wide-master-0")

    def test_a_deadline_that_has_passed_already(self):
        self.create_job("over", policy={"activeDeadlineSeconds": 0})
        self.await_end("over", "Failed")

    def test_times_to_live(self):
        for how, code in (("succeeded", 0), ("failed", 1), ("limit", 137)):
            self.create_job(f"ttl-{how}", policy={"ttlSecondsAfterFinished": 1, "backoffLimit": 0})
            self.await_running(f"ttl-{how}")
            self.end(f"ttl-{how}-master-0", code)
        for how in ("succeeded", "failed", "limit"):
            self.api.await_gone("pytorchjobs", f"ttl-{how}")
        # A TTL that is changed after the end.
        self.create_job("ttl-late", policy={"ttlSecondsAfterFinished": 2000000000})
        self.await_running("ttl-late")
        self.end("ttl-late-master-0")
        self.await_end("ttl-late", "Succeeded")
        self.api.patch("pytorchjobs", "ttl-late", {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}})
        self.api.await_gone("pytorchjobs", "ttl-late")

    def test_jobs_of_others(self):
        """Muster writes not even a condition. The last job shows that the controller had time to do so."""
        for name, manager in (("kueues", "kueue.x-k8s.io/multikueue"), ("nobodys", "")):
            self.create_job(name, policy={"managedBy": manager})
        self.create_job("mine", policy={"managedBy": "kubeflow.org/training-operator"})
        self.await_running("mine")
        for name in ("kueues", "nobodys"):
            job = self.api.get("pytorchjobs", name)
            self.assertFalse(job.get("status"), name)
            self.assertEqual((self.of("pods", name), self.of("services", name), self.reasons(name)), ({}, {}, []))

    def test_a_quota_of_pods(self):
        hard = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus"},
            "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
        }
        self.api.create("resourcequotas", hard)
        self.api.await_object("resourcequotas", "gpus", lambda made: "hard" in made.get("status", {}))
        self.create_job("no-room", workers=1, container={"resources": {"limits": {"nvidia.com/gpu": "1"}}})
        job = self.await_pytorch(
            "no-room", lambda job: "exceeded quota: gpus" in job.get("status", {}).get("message", "")
        )
        self.assertEqual((conditions(job), self.of("pods", "no-room")), (["Created"], {}))
        self.api.await_event("no-room", "FailedCreatePod", words="exceeded quota: gpus")
        self.api.delete("resourcequotas", "gpus")
        job = self.await_running("no-room")
        self.assertEqual(job["status"].get("message", ""), "")

    def test_evictions_cost_nothing(self):
        self.create_job("moved", workers=2, policy={"backoffLimit": 0})
        self.create_job("spared", master="Never", policy={"backoffLimit": 0})
        self.await_running("moved")
        self.await_running("spared")
        uid = self.uid("moved-worker-0")
        self.evict("moved-worker-0")
        self.await_other("moved-worker-0", uid)
        # An eviction by the kubelet: the pod has failed without an exit code.
        uid = self.uid("moved-worker-1")
        self.api.patch(
            "pods",
            "moved-worker-1",
            {
                "status": {
                    "phase": "Failed",
                    "reason": "Evicted",
                    "message": "The node was low on resource: memory.",
                    "containerStatuses": [],
                }
            },
            "status",
        )
        self.await_other("moved-worker-1", uid)
        job = self.await_running("moved")
        self.assertEqual(job["status"]["restarts"], 0)
        failure = job["status"]["failures"][-1]
        self.assertEqual((failure["pod"], failure["reason"], failure["counted"]), ("moved-worker-1", "Evicted", False))
        self.api.await_event("moved", "PodDisrupted", words="moved-worker-1")
        self.end("moved-master-0")
        self.await_end("moved", "Succeeded")
        # A drain does not fail a job whose pods never restart.
        uid = self.uid("spared-master-0")
        self.evict("spared-master-0")
        self.await_other("spared-master-0", uid)
        job = self.await_running("spared")
        self.assertEqual((conditions(job), job["status"]["restarts"]), (["Created", "Running"], 0))

    def evict(self, pod):
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod},
            "deleteOptions": {"gracePeriodSeconds": 1},
        }
        self.api.ask("POST", self.api.path("pods", pod, "eviction"), body)

    def whole(self, name, agent=None, **spec):
        """Starts a job with whole-job restart. Returns its pods' uids by name when it runs."""
        annotations = {"muster.dev/restart": "job", **({"muster.dev/agent": agent} if agent else {})}
        self.create_job(name, workers=2, annotations=annotations, policy={"backoffLimit": 2}, **spec)
        self.await_running(name)
        return {pod: made["metadata"]["uid"] for pod, made in self.of("pods", name).items()}

    def test_all_pods_are_made_anew(self):
        uids = self.whole("anew", agent="off", master="OnFailure", worker="OnFailure")
        self.assertEqual({pod["spec"]["restartPolicy"] for pod in self.of("pods", "anew").values()}, {"Never"})
        for attempt in (1, 2):
            self.end("anew-worker-1", 143)
            for pod, uid in uids.items():
                self.await_other(pod, uid)
            job = self.await_running("anew")
            self.assertEqual((job["status"]["attempt"], job["status"]["restarts"]), (attempt, attempt))
            uids = {pod: made["metadata"]["uid"] for pod, made in self.of("pods", "anew").items()}
        self.end("anew-master-0", 137)
        job = self.await_end("anew", "Failed")
        for part in ("reached the specified backoff limit: ", "pod anew-master-0, container pytorch"):
            self.assertIn(part, self.message(job, "Failed"))
        self.assertEqual((job["status"]["attempt"], job["status"]["restarts"]), (2, 2))

    def test_a_pod_is_lost_and_all_are_made_anew(self):
        """The lost pod costs no restart."""
        uids = self.whole("lost", agent="off")
        self.api.delete("pods", "lost-worker-0")
        for pod, uid in uids.items():
            self.await_other(pod, uid)
        job = self.await_running("lost")
        self.assertEqual((job["status"]["attempt"], job["status"]["restarts"]), (1, 0))

    def test_only_the_lost_pod_where_there_are_agents(self):
        uids = self.whole("agents", container={"command": ["torchrun", "train.py"]})
        self.end("agents-worker-1", 137)
        self.await_other("agents-worker-1", uids["agents-worker-1"])
        job = self.await_running("agents")
        self.assertEqual((job["status"]["attempt"], job["status"]["restarts"]), (0, 1))
        for pod in ("agents-master-0", "agents-worker-0"):
            self.assertEqual(self.uid(pod), uids[pod])

    def test_agents_of_another_command_do_not_meet(self):
        uids = self.whole("plain", container={"command": ["python", "train.py"]})
        self.end("plain-worker-1", 137)
        for pod, uid in uids.items():
            self.await_other(pod, uid)
        job = self.await_running("plain")
        self.assertEqual((job["status"]["attempt"], job["status"]["restarts"]), (1, 1))

    def test_a_limit_ends_what_runs(self):
        """Running pods are deleted under every cleanPodPolicy. Pods that have ended stay."""
        self.create_job("limit", workers=1, policy={"backoffLimit": 0})
        self.create_job("late", workers=1, policy={"activeDeadlineSeconds": 3600})
        self.await_running("limit")
        self.end("limit-worker-0", 137)
        self.await_running("late")
        self.api.patch("pytorchjobs", "late", {"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}})
        for name, left in (("limit", ["limit-worker-0"]), ("late", [])):
            self.await_end(name, "Failed")
            for replica in {f"{name}-master-0", f"{name}-worker-0"} - set(left):
                self.api.await_gone("pods", replica)
                self.api.await_gone("services", replica)
            self.assertEqual(sorted(self.of("pods", name)), left)

    def test_an_autoscaler(self):
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }
        job = self.create_job(
            "scaled", workers=2, elasticPolicy={"minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}
        )
        self.await_running("scaled")
        made = self.api.get("horizontalpodautoscalers", "scaled")
        self.assertEqual(
            (made["spec"]["minReplicas"], made["spec"]["maxReplicas"], made["spec"]["metrics"]), (1, 3, [metric])
        )
        self.assertEqual(
            made["spec"]["scaleTargetRef"], {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "scaled"}
        )
        (owner,) = made["metadata"]["ownerReferences"]
        self.assertEqual(owner["uid"], job["metadata"]["uid"])
        self.api.patch("pytorchjobs", "scaled", {"spec": {"elasticPolicy": {"maxReplicas": 5}}})
        self.api.await_object("horizontalpodautoscalers", "scaled", lambda made: made["spec"]["maxReplicas"] == 5)
        # An edit is put right, and a deleted one is made again.
        self.api.patch("horizontalpodautoscalers", "scaled", {"spec": {"maxReplicas": 9}})
        made = self.api.await_object(
            "horizontalpodautoscalers", "scaled", lambda made: made["spec"]["maxReplicas"] == 5
        )
        self.api.delete("horizontalpodautoscalers", "scaled")
        self.api.await_object(
            "horizontalpodautoscalers", "scaled", lambda again: again["metadata"]["uid"] != made["metadata"]["uid"]
        )
        self.api.patch("pytorchjobs", "scaled", {"spec": {"runPolicy": {"suspend": True}}})
        self.api.await_gone("horizontalpodautoscalers", "scaled")
        self.api.patch("pytorchjobs", "scaled", {"spec": {"runPolicy": {"suspend": False}}})
        self.api.await_object("horizontalpodautoscalers", "scaled", lambda made: made["spec"]["maxReplicas"] == 5)
        self.await_running("scaled")
        self.create_job("fixed", workers=1, elasticPolicy={"minReplicas": 1, "maxReplicas": 3})
        self.await_running("fixed")
        self.assertIsNone(self.api.find("horizontalpodautoscalers", "fixed"))


class Clock(PyTorchCase):
    """The machine's clock is set back by an hour while jobs run."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.clock = FakeClock(cls.cluster.folder)
        cls.proxy, cls.through_proxy = cls.start_proxy()  # without TLS: certificates are not yet valid an hour ago
        cls.controller = cls.start_controller(
            "controller", *FLAGS, "--no-leader-elect", kubeconfig=cls.through_proxy, command=cls.clock.command
        )

    def test_time_goes_back(self):
        self.create_job("before", workers=1, policy={"backoffLimit": 3, "ttlSecondsAfterFinished": 3000})
        self.create_job(
            "whole",
            workers=1,
            policy={"backoffLimit": 3},
            annotations={"muster.dev/restart": "job", "muster.dev/agent": "off"},
        )
        self.create_job("bound", policy={"activeDeadlineSeconds": 3000})
        started = self.await_running("before")["status"]["startTime"]
        self.await_running("whole")
        self.await_running("bound")
        self.clock.set("-3600")
        # The failures are an hour in the future. Their pods are replaced without waiting for an hour.
        for count in (1, 2):
            uid = self.uid("before-worker-0")
            self.end("before-worker-0", 137)
            self.await_other("before-worker-0", uid)
            job = self.await_pytorch(
                "before", lambda job: job["status"]["restarts"] == count and conditions(job)[-1] == "Running"
            )
        self.assertEqual(job["status"]["startTime"], started)
        uids = {pod: made["metadata"]["uid"] for pod, made in self.of("pods", "whole").items()}
        self.end("whole-master-0", 143)
        for pod, uid in uids.items():
            self.await_other(pod, uid)
        # Deadlines and TTLs of new jobs use the new time.
        self.create_job("late", policy={"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0})
        self.api.await_gone("pytorchjobs", "late")
        self.create_job("after", policy={"ttlSecondsAfterFinished": 1})
        self.assertLess(self.await_running("after")["status"]["startTime"], started)
        self.end("after-master-0")
        self.api.await_gone("pytorchjobs", "after")
        self.end("before-master-0")
        ended = self.await_end("before", "Succeeded")
        self.assertLess(ended["status"]["completionTime"], started)
        # The clock is set forward again. The deadline and the TTL of the older jobs still work.
        self.clock.set("+3600")
        self.api.patch("pytorchjobs", "bound", {"metadata": {"labels": {"look": "again"}}})
        try:
            self.api.patch("pytorchjobs", "before", {"metadata": {"labels": {"look": "again"}}})
        except Refused as refused:  # a pass of another cause has deleted it
            self.assertEqual(refused.status, 404)
        self.await_end("bound", "Failed")
        self.api.await_gone("pytorchjobs", "before")
        self.assertIsNone(self.controller.poll())


if __name__ == "__main__":
    class_runner.main()
