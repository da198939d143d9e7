# SPDX-License-Identifier: Apache-2.0
"""muster-controller on a real API server with fake nodes. It has only the rights of its ServiceAccount."""

import signal

from cluster_case import NAMESPACE
from controller_case import OFF, ONCE, TRUE, WAIT, ControllerCase, is_true

import class_runner
from scenario import runtime


class Controller(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()

    def test_a_job_completes(self):
        self.make("good", runtime("", 2, container=TRUE))
        running = self.running("good")
        self.assertEqual(
            (running["status"]["nodes"], running["status"]["readyNodes"], running["status"]["conditions"]), (2, 2, [])
        )
        self.assertEqual(
            running["status"]["jobsStatus"],
            [{"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}],
        )
        pods = sorted(pod["spec"]["hostname"] + "." + pod["spec"]["subdomain"] for pod in self.items("pods", "good"))
        self.assertEqual(pods, ["good-node-0-0.good", "good-node-0-1.good"])
        service = self.cluster.get("service", "good", "-n", NAMESPACE)
        self.assertEqual((service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]), ("None", True))
        for kind in ("service/good", "job/good-node-0", "configmap/good-runtime-snapshot"):
            (owner,) = self.cluster.get(kind, "-n", NAMESPACE)["metadata"]["ownerReferences"]
            self.assertEqual((owner["uid"], owner["controller"]), (running["metadata"]["uid"], True), kind)
        self.finish("good")
        job = self.await_job("good", is_true("Complete"))
        self.assertEqual(self.condition(job, "Complete"), ("AllJobsCompleted", "jobset completed successfully"))
        self.assertEqual(
            job["status"]["jobsStatus"],
            [{"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}],
        )
        self.assertIn("completionTime", job["status"])

    def test_a_job_fails_and_says_why(self):
        self.make("bad", runtime("", 2, container=TRUE, annotations=OFF, **ONCE))
        self.running("bad")
        self.finish("bad", "failed", rank=1, code=3)
        job = self.await_job("bad", is_true("Failed"))
        reason, message = self.condition(job, "Failed")
        self.assertEqual(reason, "FailedJobs")
        self.assertTrue(
            message.startswith("jobset failed due to one or more job failures (first failed job: bad-node-0)"), message
        )
        failure = job["status"]["failures"][0]
        self.assertEqual(
            (failure["exitCode"], failure["nodeRank"], failure["job"], failure["container"]),
            (3, 1, "bad-node-0", "node"),
        )

    def test_a_fatal_code_under_the_agent(self):
        self.make("fatal", runtime("", 2, container=TRUE))
        self.running("fatal")
        self.finish("fatal", "failed", rank=1, code=3)
        job = self.await_job("fatal", is_true("Failed"))
        self.assertEqual((job["status"]["failures"][0]["exitCode"], job["status"]["attempt"]), (3, 0))

    def test_the_step_is_made_anew(self):
        made = runtime("", 2, container=TRUE, annotations=OFF, **ONCE)
        made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 1}
        self.make("again", made)
        first = self.running("again")
        self.finish("again", "failed", rank=0)
        second = self.await_job(
            "again", lambda job: job["status"]["state"] == "Running" and job["status"]["attempt"] == 1
        )
        self.assertEqual((first["status"]["restarts"], second["status"]["restarts"]), (0, 1))
        (job,) = self.items("jobs", "again")
        self.assertEqual(
            (job["metadata"]["name"], job["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"]),
            ("again-node-0", "1"),
        )
        self.finish("again", "failed", rank=1)
        self.assertEqual(self.condition(self.await_job("again", is_true("Failed")), "Failed")[0], "ReachedMaxRestarts")

    def test_suspend_and_resume(self):
        self.make("later", runtime("", 2, container=TRUE), suspend=True)
        suspended = self.await_job("later", is_true("Suspended"))
        self.assertEqual(self.condition(suspended, "Suspended"), ("Suspended", "TrainJob is suspended"))
        self.assertEqual(self.items("pods", "later"), [])
        self.patch("later", {"suspend": False})
        resumed = self.running("later")
        self.assertEqual(
            [
                (condition["type"], condition["status"], condition["reason"])
                for condition in resumed["status"]["conditions"]
            ],
            [("Suspended", "False", "Resumed")],
        )
        self.patch("later", {"suspend": True})
        self.await_job("later", lambda job: is_true("Suspended")(job) and job["status"]["jobsStatus"][0]["active"] == 0)
        self.patch("later", {"suspend": False})
        self.running("later")
        self.finish("later")
        self.await_job("later", is_true("Complete"))

    def test_what_is_deleted_takes_its_own_along(self):
        self.make("gone", runtime("", 1, container=TRUE))
        self.running("gone")
        self.cluster.kubectl(
            "delete", "trainjob", "gone", "-n", NAMESPACE, "--cascade=foreground", f"--timeout={WAIT}s"
        )
        for kind in ("jobs", "services", "configmaps"):
            # A Service may have been recreated before the controller heard of the job's deletion.
            self.api.await_items(kind, "jobset.sigs.k8s.io/jobset-name=gone", lambda items: not items)

    def test_other_managers_jobs_are_left_alone(self):
        self.make("theirs", runtime("", 1, container=TRUE), managedBy="kueue.x-k8s.io/multikueue")
        self.make("after", runtime("", 1, container=TRUE))
        self.running("after")
        self.assertNotIn("status", self.cluster.get("trainjob", "theirs", "-n", NAMESPACE))
        self.assertEqual(self.items("jobs", "theirs"), [])

    def test_a_job_fails_at_its_deadline(self):
        self.make("slow", runtime("", 1, container=TRUE), activeDeadlineSeconds=1)
        job = self.await_job("slow", is_true("Failed"))
        self.assertEqual(self.condition(job, "Failed"), ("DeadlineExceeded", "TrainJob exceeded its active deadline"))

    def test_deadline_of_a_job_without_a_runtime(self):
        self.make("never", activeDeadlineSeconds=1)
        reason, message = self.condition(self.await_job("never", is_true("Failed")), "Failed")
        self.assertEqual(reason, "DeadlineExceeded")
        self.assertIn("there is no TrainingRuntime never", message)

    def test_jobs_that_the_api_server_refuses(self):
        """One message, though Jobs are created at the same time. The deadline holds while creations are retried."""
        made = runtime("", 1, container={"image": ""})
        node = made["spec"]["template"]["spec"]["replicatedJobs"][0]
        made["spec"]["template"]["spec"]["replicatedJobs"] = [
            {"name": f"part-{number}", "template": {"spec": node["template"]["spec"]}} for number in range(8)
        ]
        self.make("refused", made, activeDeadlineSeconds=3600)
        self.await_job("refused", lambda job: "refused-part-0-0" in job.get("status", {}).get("message", ""))
        self.patch("refused", {"activeDeadlineSeconds": 1})
        job = self.await_job("refused", is_true("Failed"))
        reason, message = self.condition(job, "Failed")
        self.assertEqual(reason, "DeadlineExceeded")
        self.assertRegex(message, "refused-part-0-0.*image: Required value")
        self.api.await_event("refused", "TrainJobResourcesCreationFailed", words="refused-part-0-0")
        self.api.await_event("refused", "DeadlineExceeded")  # the controller's last one about this job
        events = [
            event["message"]
            for event in self.api.about("refused")
            if event["reason"] == "TrainJobResourcesCreationFailed"
        ]
        # The controller may have heard of the job before it heard of its runtime.
        self.assertEqual(
            len([message for message in events if "there is no TrainingRuntime" not in message]), 1, events
        )

    def test_time_to_live(self):
        self.make("brief", runtime("", 1, container=TRUE), ttlSecondsAfterFinished=0)
        self.running("brief")
        self.finish("brief")
        self.cluster.kubectl("wait", "--for=delete", "trainjob/brief", "-n", NAMESPACE, f"--timeout={WAIT}s")

    def test_a_runtime_that_comes_later(self):
        self.make("early")
        self.await_job("early", lambda job: "TrainingRuntime early" in job.get("status", {}).get("message", ""))
        self.cluster.apply(
            [{**runtime("early", 1, container=TRUE), "metadata": {"name": "early", "namespace": NAMESPACE}}]
        )
        self.assertEqual(self.running("early")["status"].get("message", ""), "")

    def test_a_spec_that_cannot_be_read(self):
        """The status names the path, the value and what is allowed. A corrected spec starts the job."""
        self.make(
            "odd",
            runtime("", 1, container=TRUE),
            podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"containers": 7}}],
        )
        job = self.await_job("odd", lambda job: job.get("status", {}).get("message"))
        self.assertRegex(job["status"]["message"], r"^spec\..*\.containers: 7 is not a list")
        self.assertEqual(self.items("jobs", "odd"), [])
        self.patch("odd", {"podTemplateOverrides": None})
        self.running("odd")

    def test_somebody_elses_service(self):
        self.cluster.kubectl("create", "service", "clusterip", "taken", "-n", NAMESPACE, "--clusterip=None")
        self.make("taken", runtime("", 1, container=TRUE))
        self.await_job("taken", lambda job: "belongs to nobody" in job.get("status", {}).get("message", ""))
        self.cluster.kubectl("delete", "service", "taken", "-n", NAMESPACE)
        self.running("taken")

    def test_a_name_of_63_characters(self):
        name = "n" * 63
        self.make(name, runtime("", 1, container=TRUE))
        self.running(name)

    def test_the_api_server_comes_back(self):
        self.make("steady", runtime("", 1, container=TRUE))
        self.running("steady")
        self.cluster.restart_api_server()
        self.finish("steady")
        self.await_job("steady", is_true("Complete"), 120)


class Leaders(ControllerCase):
    def test_another_takes_over(self):
        first = self.start_controller("first")
        made = runtime("", 1, container=TRUE)
        made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 1}
        self.make("one", made)
        self.running("one")
        self.api.await_event("one", "AnyFailureRestarts")
        self.start_controller("second")
        first.send_signal(signal.SIGTERM)  # it releases the Lease
        self.assertEqual(first.wait(WAIT), 0)
        self.finish("one")
        self.await_job("one", is_true("Complete"))
        self.start_controller("third")
        self.cluster.processes.kill("second")
        self.make("two", runtime("", 1, container=TRUE))
        self.running("two")  # after the Lease has expired
        told = [each["count"] for each in self.api.about("one") if each["reason"] == "AnyFailureRestarts"]
        self.assertEqual(told, [1], "a new leader does not say it again")


if __name__ == "__main__":
    class_runner.main()
