# SPDX-License-Identifier: Apache-2.0
"""The controller is upgraded and rolled back while jobs of each kind run, on a real Kubernetes. The definitions are
applied before it, as docs/install.md says, or after it."""

import json
import os
import signal

from await_file import await_file
from installation import await_leader, install_controller, install_definitions
from pytorch_jobs import pytorch_job
from running_jobs import KINDS, SECONDS, STEPS, RunningJobs
from scenario import runtime, shell, train_job
from versions import NEW, OLD


class ByKubectl(RunningJobs):
    def begin_with(self, version, agent=None):
        install_definitions(self.cluster, version.sources)
        self.lead(version, agent)

    def lead(self, version, agent=None):
        """Installs the controller of that version. `agent`: the version of the agents in new pods, if it is another."""
        agent = (agent or version).name
        install_controller(self.cluster, version.name, version.sources, agent)
        await_leader(self.cluster, version.name)


class Upgrades(ByKubectl):
    def test_rolled_back(self):
        """New definitions, the new controller, jobs of it; then all of the old version, which ends all jobs."""
        self.begin_with(OLD)
        self.begin("old")
        before = self.pods()
        install_definitions(self.cluster, NEW.sources)
        self.lead(NEW)
        self.step(1)
        self.assertEqual(self.pods(), before)
        names = self.begin("new", ("torch", "pytorch"))
        self.assertEqual(self.agents_of(*names), {NEW.name})
        before = self.pods()
        install_definitions(self.cluster, OLD.sources)
        self.lead(OLD)
        self.step(2)
        self.assertEqual(self.pods(), before)
        self.all_succeed()

    def test_definitions_last(self):
        """The new controller meets the old definitions. Jobs of the old one are ended by the new one."""
        self.begin_with(OLD)
        self.begin("old")
        before = self.pods()
        self.assertEqual(self.agents_of(), {OLD.name})
        self.lead(NEW)
        self.step(1)
        install_definitions(self.cluster, NEW.sources)
        self.step(2)
        self.assertEqual(self.pods(), before)
        self.all_succeed()

    def runs_with_agents_of(self, controller, agent):
        self.begin_with(controller, agent)
        names = self.begin("mixed")
        self.assertEqual(self.agents_of(*names), {agent.name})
        before = self.pods()
        self.step(1)
        self.cluster.await_object(  # the controller asks the agents
            "trainjob/mixed-torch",
            lambda job: job["status"].get("trainerStatus", {}).get("progressPercentage") == 100 // STEPS,
            self.namespace,
            SECONDS,
        )
        self.step(2)
        self.assertEqual(self.pods(), before)
        self.all_succeed()

    def test_old_agents_of_the_new_controller(self):
        self.runs_with_agents_of(NEW, OLD)

    def test_new_agents_of_the_old_controller(self):
        self.runs_with_agents_of(OLD, NEW)


class Changes(ByKubectl):
    """What changes a job after another version has taken it over. The jobs are of busybox."""

    # Each start of a worker makes a file: round-ROUND.RANK.
    WAITS = "touch /shared/round-$MUSTER_ROUND.$RANK; until [ -e /shared/go ]; do sleep 0.1; done"
    SHARED = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}

    def create_job(self, kind, command):
        """A job `job` of two nodes."""
        pod = {"volumes": [{"name": "shared", "hostPath": {"path": self.folder}}]}
        self.jobs["job"] = kind
        if kind == "pytorch":
            self.create(pytorch_job("job", 1, {**self.SHARED, "command": command}, pod=pod))
        else:
            self.create(
                runtime("job", 2, {"torch": {}}, pod, container={**self.SHARED, "command": command}),
                train_job("job", "job"),
            )

    def await_round(self, number):
        for rank in range(2):
            await_file(os.path.join(self.folder, f"round-{number}.{rank}"), SECONDS)

    def running_pair(self, kind):
        self.create_job(kind, ["torchrun", "--no-python", *shell(self.WAITS)])
        self.await_round(0)
        self.await_state("job", "Running")

    def go(self):
        with open(os.path.join(self.folder, "go"), "w"):
            pass

    def pod_is_replaced(self, first, second):
        """The pods of a PyTorchJob are made one by one. So after the upgrade a job has agents of both versions."""
        self.begin_with(first)
        self.running_pair("pytorch")
        self.lead(second)
        self.cluster.kubectl("delete", "pod", "job-worker-0", "-n", self.namespace, "--timeout=180s")
        self.await_round(1)
        self.assertEqual(self.agents_of("job"), {first.name, second.name})
        self.go()
        status = self.await_state("job", "Succeeded")["status"]
        failures = [(one["pod"], one["reason"], one["counted"]) for one in status["failures"]]
        self.assertEqual((status["restarts"], failures), (0, [("job-worker-0", "Deleted", False)]), status)

    def test_a_pod_is_replaced_after_the_upgrade(self):
        self.pod_is_replaced(OLD, NEW)

    def test_a_pod_is_replaced_after_the_rollback(self):
        self.pod_is_replaced(NEW, OLD)

    def worker_is_killed(self, first, second):
        """The agents of the first version restart the workers in their pods; the second controller counts it."""
        self.begin_with(first)
        self.running_pair("torch")
        before = self.pods()
        self.lead(second)
        (worker,) = self.node.processes_in_pods("sh", "RANK=1")
        os.kill(worker, signal.SIGKILL)
        self.await_round(1)
        self.go()
        job = self.finished("job", SECONDS)
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (1, 0), job["status"])
        self.assertEqual([pod[:2] for pod in self.pods()], [pod[:2] for pod in before])

    def test_a_worker_is_killed_after_the_upgrade(self):
        self.worker_is_killed(OLD, NEW)

    def test_a_worker_is_killed_after_the_rollback(self):
        self.worker_is_killed(NEW, OLD)

    def suspend(self, wanted):
        spec = {"suspend": wanted}
        kind = KINDS[self.jobs["job"]]
        patch = json.dumps({"spec": {"runPolicy": spec} if kind == "pytorchjob" else spec})
        self.cluster.kubectl("patch", kind, "job", "-n", self.namespace, "--type=merge", "-p", patch)

    def suspended_and_resumed(self, kind, first, second):
        """The first controller suspends the job, the second one resumes it, with its own agents."""
        self.begin_with(first)
        self.running_pair(kind)
        self.assertEqual(self.agents_of("job"), {first.name})
        self.suspend(True)
        self.cluster.kubectl("wait", "--for=delete", "pod", "--all", "-n", self.namespace, "--timeout=180s")
        for rank in range(2):
            os.unlink(os.path.join(self.folder, f"round-0.{rank}"))
        self.lead(second)
        self.suspend(False)
        self.await_round(0)
        self.assertEqual(self.agents_of("job"), {second.name})
        self.go()
        status = self.await_state("job", "Succeeded" if kind == "pytorch" else "Complete")["status"]
        self.assertEqual((status["restarts"], status.get("failures", [])), (0, []), status)

    def test_a_trainjob_is_resumed_by_the_new_one(self):
        self.suspended_and_resumed("torch", OLD, NEW)

    def test_a_trainjob_is_resumed_by_the_old_one(self):
        self.suspended_and_resumed("torch", NEW, OLD)

    def test_a_pytorchjob_is_resumed_by_the_new_one(self):
        self.suspended_and_resumed("pytorch", OLD, NEW)

    def failure_is_told(self, controller, agent):
        """What an agent of another version leaves in its termination message is in the status."""
        self.begin_with(controller, agent)
        told = '[ $RANK = 0 ] && exec sleep 600; echo "no such data" >&2; exit 7'
        self.create_job("torch", ["torchrun", "--no-python", *shell(told)])
        job = self.finished("job", SECONDS)
        _, message = self.condition(job, "Failed")
        self.assertIn("no such data", message)
        cause = job["status"]["failures"][-1]
        self.assertEqual((cause["exitCode"], cause["rank"]), (7, 1), job["status"])
        self.assertIn("no such data", cause["message"])

    def test_a_failure_that_an_old_agent_tells(self):
        self.failure_is_told(NEW, OLD)

    def test_a_failure_that_a_new_agent_tells(self):
        self.failure_is_told(OLD, NEW)
