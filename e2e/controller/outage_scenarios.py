# SPDX-License-Identifier: Apache-2.0
"""The kubelet, the controller or the API server is killed while a job runs. The controller is upgraded."""

import contextlib
import os
import signal
import time

from cluster import json_stream
from digits import Digits
from images import BUSYBOX
from installation import BINARIES, LEASE, NAMESPACE, TAG, await_leader, install
from scenario import Scenario, runtime, shell, train_job

CONTROLLER = "muster-controller"
EPOCHS = 40
JOB_SECONDS = 300  # from the creation of a job to its end


def touch(path):
    with open(path, "w"):
        pass


class Kubelet(Scenario):
    def test_the_kubelet_is_killed(self):
        """The kubelet is away until its node is not ready. One pod runs on, one ends. None is replaced or counted."""
        folder = self.shared()
        self.create(
            runtime(
                "wait",
                2,
                pod={"volumes": [{"name": "shared", "hostPath": {"path": folder}}]},
                container={
                    "command": shell(
                        "until [ -e /shared/$JOB_COMPLETION_INDEX ]; do sleep 0.1; done; "
                        "touch /shared/$JOB_COMPLETION_INDEX.done"
                    ),
                    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
                },
            ),
            train_job("wait", "wait"),
        )
        self.cluster.await_object(
            "trainjob/wait", lambda job: job.get("status", {}).get("state") == "Running", self.namespace
        )
        before = self.pods()
        self.addCleanup(self.kubelet_runs)
        self.node.kill_kubelet()
        self.cluster.await_object(
            f"node/{self.node.name}",
            lambda node: any(
                condition["type"] == "Ready" and condition["status"] == "Unknown"
                for condition in node["status"]["conditions"]
            ),
        )
        touch(os.path.join(folder, "1"))
        self.node.start_kubelet()
        self.cluster.await_object("trainjob/wait", lambda job: job["status"]["state"] == "Running", self.namespace)
        touch(os.path.join(folder, "0"))
        job = self.finished("wait")
        self.condition(job, "Complete")
        self.assertEqual(
            (job["status"]["restarts"], job["status"]["attempt"], job["status"].get("failures", [])), (0, 0, [])
        )
        self.assertEqual(self.pods(), before)

    def pods(self):
        return sorted(pod["metadata"]["name"] for pod in self.cluster.get("pods", "-n", self.namespace)["items"])

    def kubelet_runs(self):
        if not self.node.alive("kubelet"):
            self.node.start_kubelet()


class Training:
    """The events of rank 0's training, from a pipe in a shared folder."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "events.pipe")
        os.mkfifo(self.path)
        # Opened also for writing, so that it reports no end of file between two writers.
        self.pipe = open(self.path, "rb+", buffering=0)
        self.events = json_stream(self.pipe, time.monotonic() + JOB_SECONDS)

    def await_event(self, **fields):
        """The next event with these fields."""
        for event in self.events:
            if fields.items() <= event.items():
                return event
        raise AssertionError(f"the training did not say {fields} within {JOB_SECONDS} s from its creation")

    def close(self):
        self.pipe.close()


class Outages(Digits):
    def test_the_controller_is_killed_in_each_phase(self):
        self.through_all_phases(self.without_controller, epoch_seconds=1.2)  # the other controller leads after 15 s

    def test_the_api_server_is_killed_in_each_phase(self):
        self.through_all_phases(self.without_api_server, epoch_seconds=0.5)

    def test_the_controller_is_upgraded(self):
        """Upgrades controller and agent image, and goes back. Pods stay. The training is stopped, so it cannot end."""
        for binary in BINARIES:
            self.node.tag_image(f"docker.io/library/{binary}:{TAG}", f"docker.io/library/{binary}:next")
        training = Training(self.checkpoints)
        self.addCleanup(training.close)
        self.train("--events", "/workspace/checkpoints/events.pipe", "--epoch-seconds", "0.2")
        training.await_event(event="epoch", epoch=1)
        before = self.pods()
        with self.held(3):
            self.upgrade("next")
        self.kill_worker(3)
        training.await_event(event="start", restart_count=1)
        with self.held(3):
            self.upgrade(TAG)
        training.await_event(event="end")
        job = self.finished("digits")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (1, 0))
        self.check_accuracy()
        self.assertEqual(self.pods(), before)

    def pods(self):
        """[(uid, image of the agent)]"""
        return sorted(
            (pod["metadata"]["uid"], pod["spec"]["initContainers"][0]["image"])
            for pod in self.cluster.get("pods", "-n", self.namespace)["items"]
        )

    def upgrade(self, tag):
        """Installs images of `tag`, and waits until a new controller leads, whose plans have the agent of that tag."""
        install(self.cluster, tag)
        await_leader(self.cluster, tag)

    @contextlib.contextmanager
    def held(self, rank):
        """Stops one worker, for which all others then wait."""
        (worker,) = self.node.processes_in_pods("train.py", f"RANK={rank}")
        os.kill(worker, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(worker, signal.SIGCONT)

    def through_all_phases(self, without, epoch_seconds):
        """Runs a job. In each phase `without` kills a program, and waits for its return while the phase goes on."""
        training, begin = Training(self.checkpoints), os.path.join(self.checkpoints, "begin")
        self.addCleanup(training.close)
        store = self.store_with_data()
        store.hold()
        wait = {
            "name": "wait",
            "image": BUSYBOX,
            "command": shell("until [ -e /workspace/checkpoints/begin ]; do sleep 0.1; done"),
            "volumeMounts": [{"name": "checkpoints", "mountPath": "/workspace/checkpoints"}],
        }
        self.train(
            "--events",
            "/workspace/checkpoints/events.pipe",
            "--epoch-seconds",
            str(epoch_seconds),
            store=store,
            epochs=EPOCHS,
            pod={"initContainers": [wait]},
        )

        self.await_job("dataset-initializer", lambda job: job["status"].get("ready") == 1)
        with without():
            pass
        with self.controllers_held() as go_on:
            store.release()
            self.await_job("dataset-initializer", lambda job: job["status"].get("succeeded") == 1)
            self.assertEqual(self.node_jobs(), [])
            with without():
                go_on()
        self.await_job("node", lambda job: job["status"].get("active") == 2)
        with without():
            touch(begin)
        training.await_event(event="epoch", epoch=1)
        with without():
            training.await_event(event="epoch")
        training.await_event(event="epoch")
        with without():
            self.kill_worker(3)
        training.await_event(event="start", restart_count=1)
        training.await_event(event="epoch", epoch=EPOCHS - 1)
        with without():
            training.await_event(event="end")

        job = self.finished("digits")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (1, 0))
        self.check_accuracy()
        self.assertEqual(len(self.cluster.get("pods", "-n", self.namespace)["items"]), 3)

    def await_job(self, step, wanted):
        return self.cluster.await_object(f"job/digits-{step}-0", wanted, self.namespace)

    def node_jobs(self):
        return [
            job
            for job in self.cluster.get("jobs", "-n", self.namespace)["items"]
            if job["metadata"]["name"] == "digits-node-0"
        ]

    def kill_worker(self, rank):
        (worker,) = self.node.processes_in_pods("train.py", f"RANK={rank}")
        os.kill(worker, signal.SIGKILL)

    def leader(self):
        """(pod of the leader, its identity in the Lease)"""
        name = self.cluster.get(LEASE, "-n", NAMESPACE)["spec"]["holderIdentity"]
        return name.rpartition("_")[0], name

    @contextlib.contextmanager
    def without_controller(self):
        """Kills the leader and deletes its pod, since the kubelet's back-off for its container grows each time."""
        pod, dead = self.leader()
        (process,) = self.node.processes_in_pods(CONTROLLER, f"HOSTNAME={pod}")
        os.kill(process, signal.SIGKILL)
        self.cluster.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--grace-period=0", "--force")
        yield
        self.cluster.await_object(
            LEASE, lambda lease: lease["spec"].get("holderIdentity") not in (None, "", dead), NAMESPACE
        )

    @contextlib.contextmanager
    def without_api_server(self):
        self.cluster.kill_api_server()
        try:
            yield
        finally:
            self.cluster.start_api_server()

    @contextlib.contextmanager
    def controllers_held(self):
        """Stops all controllers. Yields a function that continues them."""
        held = self.node.processes_in_pods(CONTROLLER)

        def go_on():
            for process in held:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

        for process in held:
            os.kill(process, signal.SIGSTOP)
        try:
            yield go_on
        finally:
            go_on()
