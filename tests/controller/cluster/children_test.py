# SPDX-License-Identifier: Apache-2.0
"""Children of a TrainJob that runs are deleted or edited by hand, and its runtime goes."""

from controller_case import TRUE, ControllerCase, is_true

import class_runner
from api_client import Refused
from scenario import runtime

ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
INDEX = "batch.kubernetes.io/job-completion-index"
OWNER = "jobset.sigs.k8s.io/jobset-name"


class Children(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()

    def begin(self, name):
        """Starts a TrainJob of two nodes, and returns its Job when it runs."""
        self.make(name, runtime("", 2, container=TRUE))
        self.running(name)
        (job,) = self.items("jobs", name)
        return job

    def made_anew(self, job):
        """Waits for a Job of the same name with another uid."""
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        return self.api.await_object("jobs", name, lambda same: same["metadata"]["uid"] != uid)

    def completes(self, name):
        """Ends the two nodes when they run, in one Job, and waits until the TrainJob is Complete."""

        def both_run(pods):
            (job,) = self.items("jobs", name)
            own = [pod for pod in pods if pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]]
            return [pod["status"]["phase"] for pod in own if pod["status"]["phase"] != "Failed"] == ["Running"] * 2

        self.api.await_items("pods", f"{OWNER}={name}", both_run)
        self.finish(name)
        return self.await_job(name, is_true("Complete"))["status"]

    def test_a_services_label_comes_back(self):
        """Without its label the watch does not see the Service, which exists: the controller patches it."""
        self.begin("labelled")
        self.api.patch("services", "labelled", {"metadata": {"labels": {OWNER: None}}})
        self.api.await_object("services", "labelled", lambda service: OWNER in service["metadata"].get("labels", {}))
        self.completes("labelled")

    def test_a_failed_pod_is_made_anew(self):
        """Muster replaces the pod from the Job's template. The Job controller accepts it and creates no second pod."""
        self.begin("comes-back")
        self.finish("comes-back", "failed", rank=1, code=143)
        pods = self.api.await_items(
            "pods",
            f"{OWNER}=comes-back,{INDEX}=1",
            lambda pods: sorted(pod["status"]["phase"] for pod in pods) == ["Failed", "Running"],
        )
        (new,) = (pod for pod in pods if pod["status"]["phase"] == "Running")
        (old,) = (pod for pod in pods if pod["status"]["phase"] == "Failed")
        self.assertEqual(
            {field["manager"] for field in new["metadata"]["managedFields"] if "subresource" not in field}, {"muster"}
        )
        for pod in (old, new):  # they differ only in names, times and nodes
            for key in (
                "name",
                "generateName",
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "managedFields",
                "generation",
            ):
                pod["metadata"].pop(key, None)
            pod["metadata"]["annotations"] = {
                key: value for key, value in pod["metadata"]["annotations"].items() if "e2e.muster.dev" not in key
            }
            pod["metadata"]["finalizers"] = None  # the Job controller removes it from a pod that it has counted
            pod["spec"].pop("nodeName")
            for volume in pod["spec"]["volumes"]:
                volume["name"] = volume["name"].partition("kube-api-access")[1] or volume["name"]
            for container in pod["spec"]["containers"] + pod["spec"]["initContainers"]:
                for mount in container["volumeMounts"]:
                    mount["name"] = mount["name"].partition("kube-api-access")[1] or mount["name"]
        self.assertEqual(
            {key: new[key] for key in ("metadata", "spec")}, {key: old[key] for key in ("metadata", "spec")}
        )
        status = self.completes("comes-back")
        self.assertEqual((status["restarts"], status["attempt"]), (1, 0))
        job = self.api.await_object(
            "jobs", "comes-back-node-0", is_true("Complete")
        )  # its counts come after SuccessCriteriaMet
        self.assertEqual((job["status"]["failed"], job["status"]["succeeded"]), (1, 2))

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

    def test_the_services_selector_is_edited(self):
        self.begin("edited")
        before = self.api.get("services", "edited")["spec"]["selector"]
        self.api.patch("services", "edited", {"spec": {"selector": {OWNER: "other", "more": "x"}}})
        self.api.await_object("services", "edited", lambda service: service["spec"]["selector"] == before)
        self.completes("edited")

    def deletes_the_snapshot(self, name):
        """Deletes the snapshot and edits the runtime. Returns what the snapshot held."""
        found = self.api.get("configmaps", f"{name}-runtime-snapshot")
        self.api.patch("trainingruntimes", name, {"metadata": {"annotations": {"edited": "since"}}})
        self.api.delete("configmaps", f"{name}-runtime-snapshot")
        return found["metadata"]["uid"], found["data"]

    def test_the_snapshot_is_deleted(self):
        """It is written again at once, from the runtime that the job was planned by."""
        job = self.begin("no-snapshot")
        uid, data = self.deletes_the_snapshot("no-snapshot")
        again = self.api.await_object(
            "configmaps", "no-snapshot-runtime-snapshot", lambda made: made["metadata"]["uid"] != uid
        )
        self.assertEqual(again["data"], data)
        self.assertEqual(again["metadata"]["ownerReferences"][0]["uid"], job["metadata"]["ownerReferences"][0]["uid"])
        self.completes("no-snapshot")

    def test_the_snapshot_is_deleted_while_no_controller_runs(self):
        """No runtime but the edited one is left: an event says so, and the job goes on."""
        self.begin("lost-snapshot")
        self.cluster.processes.stop("controller")
        uid, data = self.deletes_the_snapshot("lost-snapshot")
        self.start_controller()
        again = self.api.await_object(
            "configmaps", "lost-snapshot-runtime-snapshot", lambda made: made["metadata"]["uid"] != uid
        )
        self.assertNotEqual(again["data"], data)
        self.api.await_event("lost-snapshot", "SnapshotLost")
        self.completes("lost-snapshot")

    def test_a_snapshots_label_comes_back(self):
        """Snapshots of earlier versions have none."""
        self.begin("plain-snapshot")
        self.api.patch("configmaps", "plain-snapshot-runtime-snapshot", {"metadata": {"labels": {OWNER: None}}})
        self.api.await_object(
            "configmaps", "plain-snapshot-runtime-snapshot", lambda made: OWNER in made["metadata"].get("labels", {})
        )
        self.completes("plain-snapshot")

    def test_the_snapshot_is_edited(self):
        """The API server refuses it: nothing else holds the runtime that the job began with."""
        self.begin("kept")
        for edit in ("]", None):
            with self.assertRaisesRegex(Refused, "immutable"):
                self.api.patch("configmaps", "kept-runtime-snapshot", {"data": {"runtime": edit}})
        self.completes("kept")

    def test_the_snapshot_of_another_version_is_spoiled(self):
        """A controller that begins reports what is wrong until the snapshot is deleted."""
        self.begin("spoiled")
        self.cluster.processes.stop("controller")
        found = self.api.get("configmaps", "spoiled-runtime-snapshot")
        self.api.delete("configmaps", "spoiled-runtime-snapshot")
        metadata = {name: found["metadata"][name] for name in ("name", "labels", "ownerReferences")}
        self.api.create("configmaps", {**found, "metadata": metadata, "immutable": False, "data": {"runtime": "]"}})
        self.start_controller()
        job = self.await_job("spoiled", lambda job: "spoiled-runtime-snapshot" in job["status"].get("message", ""))
        self.assertIn("delete the ConfigMap and it is recreated", job["status"]["message"])
        self.api.delete("configmaps", "spoiled-runtime-snapshot")
        self.completes("spoiled")

    def test_a_pods_label_is_removed(self):
        """The Job controller still counts the pod."""
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
        self.start_controller()  # this controller has never seen the runtime
        self.completes("no-runtime")

    def test_a_job_is_suspended(self):
        job = self.begin("asleep")
        self.api.patch("jobs", "asleep-node-0", {"spec": {"suspend": True}})
        self.assertFalse(self.made_anew(job)["spec"].get("suspend"))
        self.completes("asleep")

    def test_somebody_elses_snapshot(self):
        self.api.create(
            "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs-runtime-snapshot"}}
        )
        self.make("theirs", runtime("", 2, container=TRUE))
        self.await_job("theirs", lambda job: "is owned by another object" in job.get("status", {}).get("message", ""))
        self.assertEqual(self.items("jobs", "theirs"), [])
        self.api.delete("configmaps", "theirs-runtime-snapshot")
        self.running("theirs")
        self.completes("theirs")

    def test_a_jobs_attempt_is_edited(self):
        """A Job with a higher attempt counts as current, and goes on."""
        job = self.begin("no-attempt")
        self.api.patch("jobs", "no-attempt-node-0", {"metadata": {"labels": {ATTEMPT: "7"}}})
        self.completes("no-attempt")
        self.assertEqual(self.api.get("jobs", "no-attempt-node-0")["metadata"]["uid"], job["metadata"]["uid"])

    def test_a_jobs_label_is_removed(self):
        self.begin("no-owner")
        self.api.patch("jobs", "no-owner-node-0", {"metadata": {"labels": {OWNER: None}}})
        self.api.await_object("jobs", "no-owner-node-0", lambda job: job["metadata"]["labels"].get(OWNER) == "no-owner")
        self.completes("no-owner")

    def test_a_job_is_woken_in_a_suspended_train_job(self):
        self.begin("woken")
        self.patch("woken", {"suspend": True})
        self.await_job("woken", lambda job: (job["status"].get("jobsStatus") or [{}])[0].get("suspended") == 1)
        self.api.patch("jobs", "woken-node-0", {"spec": {"suspend": False}})
        self.api.await_object(
            "jobs", "woken-node-0", lambda job: job["spec"]["suspend"] and not job["status"].get("active")
        )
        self.patch("woken", {"suspend": False})
        self.running("woken")
        self.completes("woken")


if __name__ == "__main__":
    class_runner.main()
