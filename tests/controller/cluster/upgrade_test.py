# SPDX-License-Identifier: Apache-2.0
"""Another version of the controller, with another image of the agent, takes over while jobs run. It does not touch
running pods. Objects that it creates are of the new version."""

import os

from cluster_case import ROOT, changed
from controller_case import PROGRAM, TRUE, WAIT, ControllerCase, is_true

import class_runner
from scenario import runtime

VERSION = "muster.dev/version"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
OLD_IMAGE, NEW_IMAGE = "agent:old", "agent:new"
# After this exit code the whole step is restarted, although its pods have the agent.
ANEW = {
    "maxRestarts": 2,
    "rules": [
        {
            "action": "RestartJobSet",
            "onJobFailureReasons": ["PodFailurePolicy"],
            "onJobFailureMessagePatterns": ["exit code 42 "],
        }
    ],
}


class Upgrade(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.proxy, cls.through_proxy = cls.start_proxy()
        cls.old_version, cls.new_version = cls.make_new_version()

    @classmethod
    def make_new_version(cls):
        """Makes a copy of the program that reports another version. Returns both versions."""
        cls.new_program = os.path.join(cls.cluster.folder, "muster-controller")
        with open(os.path.join(ROOT, "CMakeLists.txt")) as sources:
            old = sources.read().partition("project(muster VERSION ")[2].split()[0]
        new = old[:-1] + ("8" if old.endswith("9") else "9")
        with open(PROGRAM, "rb") as program:
            code = program.read()
        if code.count(old.encode() + b"\0") != 1:
            raise AssertionError(f"{PROGRAM} has the text {old} {code.count(old.encode())} times")
        with open(os.open(cls.new_program, os.O_WRONLY | os.O_CREAT, 0o755), "wb") as program:
            program.write(code.replace(old.encode() + b"\0", new.encode() + b"\0"))
        return old, new

    def setUp(self):
        self.start_controller("old", "--agent-image", OLD_IMAGE)
        self.addCleanup(self.cluster.processes.stop, "old", "new")

    def upgrade(self):
        """Starts the new controller, then stops the old one. Returns when the new one has started a job."""
        self.proxy.obey()
        self.start_controller(
            "new", "--agent-image", NEW_IMAGE, kubeconfig=self.through_proxy, program=self.new_program
        )
        self.cluster.processes.stop("old")
        name = "first-" + self.id().rpartition("_")[2]
        self.make(name, runtime("", 1, container=TRUE))
        self.running(name)
        self.assertEqual(self.made_by(name), [(self.new_version, NEW_IMAGE, "0")])

    def begin(self, name):
        self.make(name, changed(runtime("", 2, container=TRUE), "spec.template.spec.failurePolicy", ANEW))
        self.running(name)
        self.assertEqual(self.made_by(name), [(self.old_version, OLD_IMAGE, "0")])

    def made_by(self, name):
        """For each Job of the TrainJob: version, agent's image, attempt."""
        return [
            (
                job["metadata"]["annotations"][VERSION],
                self.agent_image(job["spec"]["template"]),
                job["metadata"]["labels"][ATTEMPT],
            )
            for job in self.items("jobs", name)
        ]

    @staticmethod
    def agent_image(pod):
        (image,) = {container["image"] for container in pod["spec"]["initContainers"]}
        return image

    def children(self, name):
        """The parts of all children that a write would change."""
        return {
            (kind, item["metadata"]["uid"]): (
                item["spec"],
                item["metadata"].get("annotations"),
                item["metadata"].get("labels"),
            )
            for kind in ("jobs", "pods", "services")
            for item in self.items(kind, name)
        }

    def writes_to(self, name):
        return [
            request
            for request in self.proxy.writes()
            if request.resource != "events" and (f"/{name}" in request.path or f'"{name}'.encode() in request.body)
        ]

    def completes(self, name, attempt=0):
        self.running(name, attempt)
        self.finish(name)
        return self.await_job(name, is_true("Complete"))["status"]

    def test_what_runs_is_not_touched(self):
        self.begin("steady")
        before = self.children("steady")
        self.upgrade()
        self.assertEqual(self.children("steady"), before)
        self.assertEqual(self.writes_to("steady"), [])
        status = self.completes("steady")
        self.assertEqual((status["restarts"], status["attempt"], status.get("failures", [])), (0, 0, []))
        self.assertEqual(self.made_by("steady"), [(self.old_version, OLD_IMAGE, "0")])
        self.assertEqual({request.path.rpartition("/")[2] for request in self.writes_to("steady")}, {"status"})

    def test_a_lost_pod_is_made_from_its_job(self):
        """So the new pod has the same agent as its peers."""
        self.begin("lost")
        self.upgrade()
        self.finish("lost", "failed", rank=1, code=143)
        self.await_job("lost", lambda job: job["status"]["restarts"] == 1)
        # The state may still say Running: the Job counts the lost pod until its controller has seen the end.
        pods = self.api.await_items(
            "pods",
            "jobset.sigs.k8s.io/jobset-name=lost",
            lambda pods: sorted(pod["status"]["phase"] for pod in pods) == ["Failed", "Running", "Running"],
        )
        self.assertEqual({self.agent_image(pod) for pod in pods}, {OLD_IMAGE})
        self.assertEqual(self.completes("lost")["attempt"], 0)

    def test_a_step_that_begins_anew(self):
        self.begin("anew")
        self.upgrade()
        self.finish("anew", "failed", rank=0, code=42)
        status = self.completes("anew", attempt=1)
        self.assertEqual(status["restarts"], 1)
        self.assertEqual(self.made_by("anew"), [(self.new_version, NEW_IMAGE, "1")])

    def test_a_resume(self):
        """The old controller suspends one job, the new one the other, and resumes both."""
        for name in ("sleeps", "wakes"):
            self.begin(name)
        self.suspend("sleeps")
        self.upgrade()
        self.assertEqual(self.made_by("sleeps"), [(self.old_version, OLD_IMAGE, "0")])
        self.suspend("wakes")
        for name in ("sleeps", "wakes"):
            self.patch(name, {"suspend": False})
            status = self.completes(name)
            self.assertEqual((status["restarts"], status.get("failures", [])), (0, []))
            self.assertEqual(self.made_by(name), [(self.new_version, NEW_IMAGE, "0")])

    def suspend(self, name):
        self.patch(name, {"suspend": True})
        self.await_job(
            name,
            lambda job: (
                job["status"]["state"] == "Suspended"
                and not any(count["active"] for count in job["status"]["jobsStatus"])
            ),
        )

    def test_back_to_the_old_one(self):
        """The old controller goes on with the new one's objects."""
        self.upgrade()
        self.make("back", runtime("", 2, container=TRUE))
        self.running("back")
        before = self.children("back")
        self.start_controller("old", "--agent-image", OLD_IMAGE)
        new = self.cluster.processes.children["new"]
        new.terminate()
        self.assertEqual(new.wait(WAIT), 0)
        self.make("after", runtime("", 1, container=TRUE))
        self.running("after")
        self.assertEqual(self.children("back"), before)
        self.completes("back")
        self.assertEqual(self.made_by("back"), [(self.new_version, NEW_IMAGE, "0")])


if __name__ == "__main__":
    class_runner.main()
