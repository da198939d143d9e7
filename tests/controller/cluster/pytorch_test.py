# SPDX-License-Identifier: Apache-2.0
"""PyTorchJobs on a real API server: which objects are created, how jobs end, and what restarts cost."""

from pytorch_case import LABEL, OPERATOR, PyTorchCase, conditions, counts, pytorch_job

import class_runner


def labels(name, kind, index):
    return {
        LABEL + "operator-name": OPERATOR,
        LABEL + "job-name": name,
        LABEL + "replica-type": kind,
        LABEL + "replica-index": str(index),
    }


class PyTorch(PyTorchCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve()

    def test_what_is_made(self):
        self.create_job("made", workers=2)
        job = self.await_running("made")
        self.assertEqual(conditions(job), ["Created", "Running"])
        self.assertEqual((counts(job, "Master"), counts(job, "Worker")), ((1, 0, 0), (2, 0, 0)))
        names = ["made-master-0", "made-worker-0", "made-worker-1"]
        pods, services = self.of("pods", "made"), self.of("services", "made")
        self.assertEqual((sorted(pods), sorted(services)), (names, names))
        for name in names:
            _, kind, index = name.split("-")
            for made in (pods[name], services[name]):
                (owner,) = made["metadata"]["ownerReferences"]
                self.assertEqual(
                    (owner["kind"], owner["uid"], owner["controller"]), ("PyTorchJob", job["metadata"]["uid"], True)
                )
            role = {LABEL + "job-role": "master"} if kind == "master" else {}
            own = {key: value for key, value in pods[name]["metadata"]["labels"].items() if key.startswith(LABEL)}
            self.assertEqual(own, {**labels("made", kind, index), **role})
            self.assertEqual(services[name]["spec"]["selector"], labels("made", kind, index))
            self.assertEqual(services[name]["spec"]["clusterIP"], "None")
        self.end("made-master-0")
        job = self.await_end("made", "Succeeded")
        self.assertEqual((counts(job, "Master"), counts(job, "Worker")), ((0, 1, 0), (0, 2, 0)))
        self.assertIn("completionTime", job["status"])
        self.assertEqual(len(self.of("pods", "made")), 3, "cleanPodPolicy is None")

    def test_a_fatal_code_fails_the_job_at_once(self):
        self.create_job("fatal", workers=2, policy={"backoffLimit": 3})
        self.await_running("fatal")
        self.end("fatal-worker-1", 2, message="no such file: data.bin")
        job = self.await_end("fatal", "Failed")
        self.assertEqual(conditions(job), ["Created", "Failed"])
        message = self.message(job, "Failed")
        for part in (
            "PyTorchJob fatal is failed because 1 Worker replica(s) failed",
            "pod fatal-worker-1",
            "container pytorch",
            "exit code 2",
            "data.bin",
        ):
            self.assertIn(part, message)
        self.assertIn("completionTime", job["status"])
        self.assertEqual(
            [(failure["pod"], failure["exitCode"]) for failure in job["status"]["failures"]], [("fatal-worker-1", 2)]
        )
        self.assertEqual(job["status"]["restarts"], 0)
        self.api.await_event("fatal", "PyTorchJobFailed")
        self.assertNotIn("PyTorchJobRestarting", self.reasons("fatal"))

    def test_a_retryable_code_makes_the_pod_anew_until_the_limit(self):
        self.create_job("again", workers=1, policy={"backoffLimit": 1})
        self.await_running("again")
        uid, master = self.uid("again-worker-0"), self.uid("again-master-0")
        self.end("again-worker-0", 137)
        self.await_other("again-worker-0", uid)
        job = self.await_pytorch(
            "again", lambda job: conditions(job) == ["Created", "Running"] and counts(job, "Worker") == (1, 0, 0)
        )
        self.assertEqual(job["status"]["restarts"], 1)
        self.assertEqual(self.uid("again-master-0"), master)
        self.end("again-worker-0", 137)
        job = self.await_end("again", "Failed")
        self.assertIn("reached the specified backoff limit: rank 1 on pod again-worker-0", self.message(job, "Failed"))

    def test_workers_only(self):
        self.create_job("workers", master=None, workers=2)
        self.await_running("workers")
        self.end("workers-worker-0")
        self.await_pytorch("workers", lambda job: counts(job, "Worker") == (1, 1, 0))
        self.end("workers-worker-1")
        job = self.await_end("workers", "Succeeded")
        self.assertEqual(self.message(job, "Succeeded"), "PyTorchJob vision/workers successfully completed.")

    def test_suspend_and_resume(self):
        self.api.create("pytorchjobs", pytorch_job("sus", workers=1, policy={"suspend": True}))
        job = self.await_pytorch("sus", lambda job: "Suspended" in conditions(job))
        self.assertEqual(conditions(job)[-1], "Suspended")
        self.assertEqual(self.of("pods", "sus"), {})
        self.api.patch("pytorchjobs", "sus", {"spec": {"runPolicy": {"suspend": False}}})
        self.await_running("sus")
        self.api.patch("pytorchjobs", "sus", {"spec": {"runPolicy": {"suspend": True}}})
        self.await_pytorch("sus", lambda job: "Suspended" in conditions(job))
        self.api.await_gone("pods", "sus-worker-0")
        self.assertEqual(self.of("services", "sus"), {})
        self.api.patch("pytorchjobs", "sus", {"spec": {"runPolicy": {"suspend": False}}})
        self.await_running("sus")

    def test_a_deleted_pod_is_made_anew_and_costs_nothing(self):
        self.create_job("gone", workers=1, policy={"backoffLimit": 0})
        self.await_running("gone")
        uid = self.uid("gone-worker-0")
        self.api.delete("pods", "gone-worker-0")
        self.await_other("gone-worker-0", uid)
        job = self.await_running("gone")
        self.assertEqual(job["status"]["restarts"], 0)
        self.end("gone-master-0")
        self.await_end("gone", "Succeeded")

    def test_deadline_and_time_to_live_are_kept(self):
        self.create_job("late", policy={"activeDeadlineSeconds": 1, "cleanPodPolicy": "All"})
        job = self.await_end("late", "Failed")
        self.assertIn("active longer than specified deadline", self.message(job, "Failed"))
        self.api.await_gone("pods", "late-master-0")
        self.create_job("brief", policy={"ttlSecondsAfterFinished": 0})
        self.await_running("brief")
        self.end("brief-master-0")
        self.api.await_gone("pytorchjobs", "brief")

    def test_an_elastic_job_is_scaled(self):
        self.create_job("wide", workers=1, elasticPolicy={"minReplicas": 1, "maxReplicas": 3})
        self.await_running("wide")
        self.cluster.kubectl("scale", "pytorchjob/wide", "--replicas=3", "-n", "vision")
        self.await_running("wide")
        self.assertEqual(len(self.of("pods", "wide")), 4)
        self.cluster.kubectl("scale", "pytorchjob/wide", "--replicas=1", "-n", "vision")
        self.api.await_gone("pods", "wide-worker-2")
        self.await_running("wide")
        self.assertEqual(sorted(self.of("services", "wide")), ["wide-master-0", "wide-worker-0"])


if __name__ == "__main__":
    class_runner.main()
