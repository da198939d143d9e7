# SPDX-License-Identifier: Apache-2.0
"""Services and pods with the labels or the names of a PyTorchJob that the controller did not create."""

from pytorch_case import LABEL, OPERATOR, PyTorchCase, all_run, conditions, counts

import class_runner


def labels(name, kind="master", index=0):
    return {
        LABEL + "operator-name": OPERATOR,
        LABEL + "job-name": name,
        LABEL + "replica-type": kind,
        LABEL + "replica-index": str(index),
    }


def service(name, own, selector=None, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": own},
        "spec": {"selector": selector or own, "ports": [{"port": 6006}], **spec},
    }


def owner(job, **more):
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
        **more,
    }


class Services(PyTorchCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve()

    def versions(self, *names):
        return [self.api.get("services", name)["metadata"]["resourceVersion"] for name in names]

    def warned(self, name, words=""):
        """Waits for a warning of a conflict."""
        self.assertEqual(self.api.await_event(name, "ServiceConflict", words=words)["type"], "Warning")

    def succeeds(self, name):
        self.end(f"{name}-master-0")
        return self.await_end(name, "Succeeded")

    def await_message(self, name, *parts):
        return self.await_pytorch(
            name, lambda job: all(part in job.get("status", {}).get("message", "") for part in parts)
        )

    def test_several_that_were_there_before(self):
        for number in range(2):
            self.api.create("services", service(f"before-{number}", labels("before"), type="NodePort"))
        versions = self.versions("before-0", "before-1")
        # A watch reports Services in their order: a controller that knows this last one knows those above.
        self.create_job("fence")
        self.await_running("fence")
        self.api.create("services", service("last", labels("fence")))
        self.await_message("fence", "Services fence-master-0, last all")
        self.create_job("before", workers=1, policy={"cleanPodPolicy": "All"})
        told = (
            "Services before-0, before-1 all have the labels of replica before-master-0: none of them is made, "
            "changed or deleted"
        )
        job = self.await_running("before")
        self.assertIn(told, job["status"]["message"])
        self.assertIn("Take the labels", job["status"]["message"])
        self.assertEqual(conditions(job), ["Created", "Running"])
        self.warned("before", told)
        self.assertEqual(sorted(self.of("services", "before")), ["before-0", "before-1", "before-worker-0"])
        self.succeeds("before")
        self.api.await_gone("pods", "before-worker-0")
        self.assertEqual(self.versions("before-0", "before-1"), versions)

    def test_one_that_was_there_before(self):
        """A user's Service with another name. The job needs its own, because pods reach the master by that name."""
        self.api.create("services", service("board", labels("early"), type="NodePort"))
        version = self.versions("board")
        self.create_job("early", workers=1, policy={"cleanPodPolicy": "All"})
        self.await_running("early")
        self.await_message("early", "Services board, early-master-0 all have the labels")
        own = self.versions("early-master-0")
        self.warned("early")
        # The conflict ends when the labels are removed, as the message says.
        self.api.patch(
            "services", "board", {"metadata": {"labels": {LABEL + "replica-index": None, LABEL + "job-name": None}}}
        )
        job = self.await_pytorch("early", lambda job: job["status"].get("message", "") == "")
        self.assertEqual(conditions(job), ["Created", "Running"])
        self.assertEqual(self.versions("early-master-0"), own)
        self.succeeds("early")
        self.api.await_gone("services", "early-master-0")
        self.assertNotEqual(self.versions("board"), version)
        self.assertEqual(self.api.get("services", "board")["spec"]["selector"], labels("early"))

    def test_one_that_comes_later(self):
        self.create_job("later", workers=1)
        self.await_running("later")
        versions = self.versions("later-master-0", "later-worker-0")
        self.api.create("services", service("a-later-one", labels("later", "worker")))
        self.await_message(
            "later", "Services later-worker-0, a-later-one all have the labels of replica later-worker-0"
        )
        self.warned("later")
        uid = self.uid("later-worker-0")
        self.end("later-worker-0", 137)
        self.await_other("later-worker-0", uid)
        self.assertEqual(self.versions("later-master-0", "later-worker-0"), versions)
        # During a conflict no Service is created for that replica.
        self.api.create("services", service("another", labels("later", "worker")))
        self.await_message("later", "another")
        self.api.delete("services", "later-worker-0")
        self.await_message("later", "Services a-later-one, another all")
        self.assertIsNone(self.api.find("services", "later-worker-0"))
        for name in ("a-later-one", "another"):
            self.api.delete("services", name)
        self.api.await_object("services", "later-worker-0", lambda made: True)
        self.await_pytorch("later", lambda job: job["status"].get("message", "") == "")
        self.succeeds("later")

    def test_those_of_monitoring(self):
        """Services with only some of the job's labels are not touched."""
        job = {LABEL + "job-name": "seen", LABEL + "operator-name": OPERATOR}
        given = {
            "metrics": {"app": "metrics"},
            "all-of-seen": job,
            "masters": {**job, LABEL + "replica-type": "master"},
            "third": {**labels("seen", "worker", 2)},
            "chief": labels("seen", "chief"),
            "number": {**labels("seen"), LABEL + "replica-index": "zero"},
        }
        for name, own in given.items():
            self.api.create("services", service(name, own, selector=job))
        versions = self.versions(*given)
        self.create_job("seen", workers=1, policy={"cleanPodPolicy": "All"})
        told = self.await_running("seen")
        self.assertEqual(told["status"].get("message", ""), "")
        for suspend in (True, False):
            self.api.patch("pytorchjobs", "seen", {"spec": {"runPolicy": {"suspend": suspend}}})
            self.await_pytorch("seen", lambda job: conditions(job)[-1] == ("Suspended" if suspend else "Running"))
        self.await_running("seen")
        self.succeeds("seen")
        self.api.await_gone("pods", "seen-worker-0")
        self.assertEqual(self.versions(*given), versions)
        self.api.await_event("seen", "PyTorchJobSucceeded")  # the last of the job's events
        self.assertNotIn("ServiceConflict", self.reasons("seen"))

    def test_somebody_elses_of_a_name_that_is_needed(self):
        """A user's Service has a name that the job needs, without its labels. The status says so until its deletion."""
        self.api.create("services", service("taken-master-0", {"app": "other"}))
        version = self.versions("taken-master-0")
        self.create_job("taken", workers=1)
        self.await_message(
            "taken",
            "services vision/taken-master-0 is needed, and belongs to nobody; delete it, "
            "or give the PyTorchJob another name",
        )
        self.assertEqual(self.versions("taken-master-0"), version)
        self.api.delete("services", "taken-master-0")
        job = self.await_running("taken")
        self.assertEqual(job["status"].get("message", ""), "")
        self.succeeds("taken")

    def test_somebody_elses_of_that_name_with_the_labels(self):
        """A user's Service with name and labels is used: it leads to the pod. It stays when the job's own go."""
        self.api.create("services", service("used-master-0", labels("used"), clusterIP="None"))
        version = self.versions("used-master-0")
        self.create_job("used", workers=1, policy={"cleanPodPolicy": "All"})
        job = self.await_running("used")
        self.assertEqual(job["status"].get("message", ""), "")
        self.succeeds("used")
        for kind in ("pods", "services"):
            self.api.await_gone(kind, "used-worker-0")
        self.api.await_gone("pods", "used-master-0")
        self.assertEqual(self.versions("used-master-0"), version)

    def orphan(self, name, own, **metadata):
        return self.api.create(
            "pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": own, **metadata},
                "spec": {"containers": [{"name": "pytorch", "image": "busybox"}], "terminationGracePeriodSeconds": 1},
            },
        )

    def test_a_pod_without_an_owner_is_adopted(self):
        """The job adopts a pod that has its labels and no owner."""
        mine = self.orphan("found-worker-0", labels("found", "worker"))
        stray = self.orphan("found-worker-7", labels("found", "worker", 7))
        job = self.create_job("found", workers=1, policy={"cleanPodPolicy": "All"})
        self.await_running("found")
        pod = self.api.get("pods", "found-worker-0")
        self.assertEqual(pod["metadata"]["uid"], mine["metadata"]["uid"])
        self.assertEqual(pod["metadata"]["ownerReferences"], [owner(job)])
        self.api.await_event("found", "AdoptedPod")
        self.assertNotIn("ownerReferences", self.api.get("pods", "found-worker-7")["metadata"])
        self.succeeds("found")
        self.api.await_gone("pods", "found-worker-0")
        self.assertEqual(self.uid("found-worker-7"), stray["metadata"]["uid"])

    def test_a_pod_that_loses_its_labels_is_released(self):
        """A pod that loses the labels is released. Its replacement waits until the name is free."""
        self.create_job("let", workers=1)
        self.await_running("let")
        uid = self.uid("let-worker-0")
        self.api.patch("pods", "let-worker-0", {"metadata": {"labels": {LABEL + "job-name": None}}})
        # First "lost the labels of the job and was released"; after the next try "belongs to nobody".
        self.await_message("let", "vision/let-worker-0", "delete it")
        pod = self.api.get("pods", "let-worker-0")
        self.assertEqual((pod["metadata"]["uid"], pod["metadata"].get("ownerReferences")), (uid, None))
        self.assertNotIn("deletionTimestamp", pod["metadata"])
        self.api.delete("pods", "let-worker-0")
        self.await_other("let-worker-0", uid)
        # The status says Running since before the release, so its message is awaited, too.
        job = self.await_pytorch("let", lambda job: all_run(job) and not job["status"].get("message"))
        self.assertEqual(job["status"]["restarts"], 0)
        self.succeeds("let")

    def test_another_owners_pod(self):
        """A pod of another owner is not the job's, even with the job's labels and name."""
        other = self.api.create(
            "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other-owner"}}
        )
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "other-owner",
            "uid": other["metadata"]["uid"],
            "controller": True,
        }
        theirs = self.orphan("their-worker-0", labels("their", "worker"), ownerReferences=[reference])
        self.create_job("their", workers=1)
        job = self.await_message("their", "pods vision/their-worker-0 is needed, and belongs to ConfigMap other-owner")
        self.assertEqual(counts(job, "Worker")[0], 0)
        self.assertEqual(self.api.get("pods", "their-worker-0")["metadata"]["ownerReferences"], [reference])
        self.assertEqual(self.uid("their-worker-0"), theirs["metadata"]["uid"])
        self.api.delete("pods", "their-worker-0")
        self.await_running("their")
        self.succeeds("their")


if __name__ == "__main__":
    class_runner.main()
