"""Children of a TrainJob that runs are deleted or edited by hand, and its runtime goes."""
from controller_case import TRUE, ControllerCase, is_true
import class_runner
from scenario import runtime

ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
OWNER = "jobset.sigs.k8s.io/jobset-name"


class Children(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()

    def begin(self, name):
        """The Job of a TrainJob of two nodes that runs."""
        self.make(name, runtime("", 2, container=TRUE))
        self.running(name)
        job, = self.items("jobs", name)
        return job

    def made_anew(self, job):
        """The Job of that name with another uid."""
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        return self.api.await_object("jobs", name, lambda same: same["metadata"]["uid"] != uid)

    def completes(self, name):
        """Its two nodes run, by one Job; when they have ended, it is Complete."""
        for _ in self.api.events("pods", f"{OWNER}={name}", first=True):
            job, = self.items("jobs", name)
            pods = [pod for pod in self.items("pods", name) if pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]]
            if [pod["status"]["phase"] for pod in pods] == ["Running"] * 2:
                break
        self.finish(name)
        return self.await_job(name, is_true("Complete"))["status"]

    def test_a_job_is_deleted(self):
        job = self.begin("no-job")
        self.api.delete("jobs", "no-job-node-0")
        self.assertEqual(self.made_anew(job)["metadata"]["labels"][ATTEMPT], "0")
        status = self.completes("no-job")
        self.assertEqual((status["restarts"], status["attempt"]), (0, 0))

    def test_a_job_is_deleted_in_the_foreground(self):
        job = self.begin("front")
        self.api.delete("jobs", "front-node-0", "Foreground")
        self.made_anew(job)
        self.completes("front")

    def test_the_service_is_deleted(self):
        self.begin("no-service")
        before = self.api.get("services", "no-service")["metadata"]["uid"]
        self.api.delete("services", "no-service")
        self.api.await_object("services", "no-service", lambda service: service["metadata"]["uid"] != before)
        self.completes("no-service")

    def test_the_snapshot_is_deleted(self):
        """It is made anew by the runtime when the plan is needed next."""
        self.begin("no-snapshot")
        self.api.delete("configmaps", "no-snapshot-runtime-snapshot")
        self.completes("no-snapshot")

    def test_the_snapshot_is_spoiled(self):
        """A job goes on by the plan that was made of it; a controller that comes later says what is wrong, until it is deleted."""
        self.begin("spoiled")
        self.api.patch("configmaps", "spoiled-runtime-snapshot", {"data": {"runtime": "]"}})
        self.cluster.processes.stop("controller")
        self.start_controller()
        job = self.await_job("spoiled", lambda job: "spoiled-runtime-snapshot" in job["status"].get("message", ""))
        self.assertIn("delete the ConfigMap and it is made anew", job["status"]["message"])
        self.api.delete("configmaps", "spoiled-runtime-snapshot")
        self.completes("spoiled")

    def test_a_pods_label_is_removed(self):
        """The Job counts it all the same."""
        self.begin("no-label")
        pod = self.items("pods", "no-label")[0]["metadata"]["name"]
        self.api.patch("pods", pod, {"metadata": {"labels": {OWNER: None}}})
        self.api.patch("pods", pod, {"metadata": {"annotations": {"e2e.muster.dev/finish": "succeeded"}}})
        self.finish("no-label")
        self.assertEqual(self.await_job("no-label", is_true("Complete"))["status"]["restarts"], 0)

    def test_the_runtime_is_deleted(self):
        self.begin("no-runtime")
        self.api.delete("trainingruntimes", "no-runtime")
        self.cluster.processes.stop("controller")
        self.start_controller()  # it has not seen the runtime
        self.completes("no-runtime")


if __name__ == "__main__":
    class_runner.main()
