# SPDX-License-Identifier: Apache-2.0
"""Objects and messages that are huge, deep, forged or wrong. The status of their job says so, and other jobs go on."""

import copy
import json
import sys

from admission_case import AdmissionCase
from controller_case import TRUE, ControllerCase, is_true
from pytorch_case import PyTorchCase

import class_runner
from api_client import Refused
from scenario import runtime, train_job

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"


def nested(depth):
    """JSON text of so many levels. Python's json module cannot write so many."""
    return '{"a":' * depth + "1" + "}" * depth


def written(code, kind="fatal", **more):
    """A termination message of the agent, or one like it."""
    return json.dumps({"version": 1, "exit_code": code, "class": kind, "reason": "a worker failed", **more})


def variables(count):
    return [{"name": f"V{number}", "value": "x" * 9000} for number in range(count)]


def mpi():
    """A TrainingRuntime whose launcher needs a list of all hosts."""
    made = runtime("", 1, policy={"mpi": {"numProcPerNode": 1}}, container=TRUE)
    (nodes,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    launcher = copy.deepcopy(nodes)
    launcher["name"] = "launcher"
    del nodes["template"]["metadata"]
    made["spec"]["template"]["spec"]["replicatedJobs"] = [launcher, nodes]
    return made


def replicated(replicas, size, pods=1):
    """A TrainingRuntime with a job `side` of so many replicas, each with a variable of `size` bytes."""
    made = runtime("", 1, container=TRUE)
    side = copy.deepcopy(made["spec"]["template"]["spec"]["replicatedJobs"][0])
    side.update(name="side", replicas=replicas)
    del side["template"]["metadata"]
    side["template"]["spec"]["parallelism"] = pods
    side["template"]["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "V", "value": "x" * size}]
    made["spec"]["template"]["spec"]["replicatedJobs"].insert(0, side)
    return made


# (name, runtime, spec of the TrainJob, what the refusal or the status says). The definitions accept all of them.
TOO_MANY = [
    (
        "hosts",
        mpi(),
        {"trainer": {"numNodes": 100000}},
        "spec.trainer.numNodes: 100000: the list of the hosts would have",
    ),
    ("pods", replicated(9000, 1, 100000), {}, "900000001 pods together, and 100000 are the most"),
    ("jobs", replicated(20000, 1), {}, "their replicas are 20001 Jobs together, and 10000 are the most"),
    ("bytes", replicated(9990, 100000), {}, "are more than the 67108864 bytes that one job may make"),
    ("none", runtime("", 0, container=TRUE), {}, "spec.mlPolicy.numNodes: 0: a job without nodes trains nothing"),
]
MOST_MEMORY = 512 << 20  # bytes: the limit of the Deployment


def peak(process):
    """The most memory that the process has had, in bytes."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))


class Hostile(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.controller = cls.start_controller()

    def tearDown(self):
        """The same process still serves another job."""
        name = "after-" + self.id().rpartition("_")[2]
        self.make(name, runtime("", 1, container=TRUE))
        self.running(name)
        self.finish(name)
        self.await_job(name, is_true("Complete"))
        self.assertIsNone(self.controller.poll())

    def message(self, name, words):
        self.await_job(name, lambda job: words in job.get("status", {}).get("message", ""))

    def test_a_runtime_without_a_trainer(self):
        made = copy.deepcopy(runtime("", 1, container=TRUE))
        del made["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["metadata"]["labels"][ANCESTOR]
        self.make("no-trainer", made)
        self.await_job("no-trainer", lambda job: (job.get("status", {}).get("jobsStatus") or [{}])[0].get("ready") == 1)
        self.finish("no-trainer")
        self.await_job("no-trainer", is_true("Complete"))

    def test_nearly_a_megabyte(self):
        more = [{"name": f"W{number}", "value": "z" * 9000} for number in range(50)]
        self.make(
            "large",
            runtime("", 1, container={**TRUE, "env": variables(50)}),
            {"note": "y" * 250000},
            trainer={"env": more},
        )
        self.running("large")

    def test_a_list_of_many_megabytes(self):
        """The list is longer than the controller accepts as one page."""
        for number in range(75):
            made = runtime(f"big-{number}", 1, container={**TRUE, "env": variables(100)})
            self.api.create("trainingruntimes", made)
        self.cluster.processes.stop("controller")
        type(self).controller = self.start_controller()

    def test_too_large_for_a_snapshot(self):
        self.make("larger", runtime("", 1, container={**TRUE, "env": variables(150)}))
        self.message("larger", "TrainingRuntime larger: it has 13")

    def test_a_deep_object_is_said_to_be_too_deep(self):
        """A deep object arrives by a watch, and by the first list of a later controller."""
        sys.setrecursionlimit(20000)  # for this test's own JSON reader
        self.api.create("trainingruntimes", {**runtime("", 1, container=TRUE), "metadata": {"name": "deep"}})
        for depth in (100, 300, 3000):
            made = train_job(
                f"deep-{depth}",
                "deep",
                podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"x": "DEEP"}}],
            )
            self.api.create("trainjobs", json.dumps(made).replace('"DEEP"', nested(depth)))
            self.message(f"deep-{depth}", "it is nested more than 100 levels deep")
        self.cluster.processes.stop("controller")
        type(self).controller = self.start_controller()

    def test_messages_that_are_not_the_agents(self):
        """They are shown as text on one line, 1 KiB at most."""
        rows = {
            "text": "no JSON at all\n" * 200,
            "other": '{"kind": "Status", "code": 3}',
            "types": written("3", kind=7, cause=[]),
            "number": written(3, restart_count=10**30),
            "longer": written(3, reason="r" * 200000),
            "success": written(0, kind="success"),
            "class": written(3, kind="none"),
            "controls": written(3, reason="\u0000\u0001\ud800\u202e"),
        }
        for row in rows:
            self.make(f"forged-{row}", runtime("", 1, container=TRUE))
        for row, text in rows.items():
            self.running(f"forged-{row}")
            self.finish(f"forged-{row}", "failed", code=3, message=text)
        for row, text in rows.items():
            job = self.await_job(f"forged-{row}", is_true("Failed"))
            (failure,) = job["status"]["failures"]
            begins = text.strip()[:1000].replace("\n", " / ")[:1000]
            self.assertEqual((failure["message"][:1000], failure["exitCode"]), (begins, 3), row)
            self.assertEqual(self.condition(job, "Failed")[0], "FailedJobs", row)
            self.assertLess(len(failure["message"]), 2048, row)
            self.assertNotIn("\n", failure["message"], row)

    def test_forged_messages_of_the_agent(self):
        """They cannot change how the pod ended, and the job ends by the pod's real exit code."""
        rows = {
            "negative": written(3, restart_count=-5, max_restarts=-1, round=-9, node_rank=-2),
            "many": written(3, restart_count=2**31 - 1, max_restarts=2**31 - 1),
            "long": written(3, reason="r" * 3500),
            "cause": written(
                3, cause={"rank": 1, "exit_code": 3, "message": "m" * 3000, "stderr_tail": ["x" * 100] * 30}
            ),
            "deep": '{"version": 1, "exit_code": 3, "class": "fatal", "x":' + nested(500) + "}",
        }
        for row in rows:
            self.make(f"agent-{row}", runtime("", 1, container=TRUE))
        for row, text in rows.items():
            self.running(f"agent-{row}")
            self.finish(f"agent-{row}", "failed", code=3, message=text)
        for row in rows:
            job = self.await_job(f"agent-{row}", is_true("Failed"))
            (failure,) = job["status"]["failures"]
            self.assertEqual(
                (failure["exitCode"], failure["nodeRank"], self.condition(job, "Failed")[0]), (3, 0, "FailedJobs"), row
            )
            self.assertLess(len(failure.get("message", "")), 5000, row)

    def test_more_than_possible(self):
        """Such a job may have been stored before these limits, or while no webhook was asked."""
        for name, made, spec, _words in TOO_MANY:
            self.make(name, made, **spec)
        for name, _made, _spec, words in TOO_MANY:
            self.message(name, words)
        self.assertLess(peak(self.controller), MOST_MEMORY)

    def test_as_much_as_a_job_may_make(self):
        """The objects of the job are made while another job begins."""
        self.make("whole", replicated(60, 1000000))
        self.make("beside", runtime("", 1, container=TRUE))
        self.running("beside")
        self.api.await_items("jobs", "jobset.sigs.k8s.io/jobset-name=whole", lambda jobs: len(jobs) == 61, seconds=300)
        self.api.delete("trainjobs", "whole")
        self.assertLess(peak(self.controller), MOST_MEMORY)


class HostileReviews(AdmissionCase):
    """The webhooks refuse what no job may make, and serve other users with the same process and within its memory."""

    def refused(self, kind, made, words, status=403):
        with self.assertRaises(Refused) as caught:
            self.api.create(kind, made)
        self.assertEqual(caught.exception.status, status, caught.exception)
        self.assertIn(words, json.loads(str(caught.exception).partition(": ")[2])["message"])

    def test_more_than_a_job_may_make(self):
        process = self.cluster.processes.children["one"]
        self.refused("trainjobs", train_job("a", "b", trainer={"numNodes": 2000000000}), "100000", 422)
        self.refused("trainjobs", train_job("a", "b", trainer={"numNodes": 0}), "greater than or equal to 1", 422)
        for name, made, spec, words in TOO_MANY:
            made = {**made, "metadata": {"name": name}}
            try:
                self.api.create("trainingruntimes", made)
            except Refused as refused:
                self.assertEqual(refused.status, 403, refused)
                continue
            self.refused("trainjobs", train_job(name, name, **spec), words)
        self.make("beside", runtime("", 1, container=TRUE))
        self.running("beside")
        self.assertIs(self.cluster.processes.children["one"], process)
        self.assertIsNone(process.poll())
        self.assertLess(peak(process), MOST_MEMORY)


class HostilePyTorchJobs(PyTorchCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.controller = cls.serve()

    def test_more_than_a_job_may_make(self):
        large = {"env": [{"name": "V", "value": "x" * 20000}]}
        self.create_job("many", workers=100000, container=large)
        self.create_job("large", workers=9000, container=large)
        self.create_job("beside", workers=1)
        for name, words in (
            ("many", "Worker.replicas: 100000 is more than 10000"),
            ("large", "are more than the 67108864 bytes that one job may make"),
        ):
            self.await_pytorch(name, lambda job: words in job.get("status", {}).get("message", ""))
        self.await_running("beside")
        self.assertIsNone(self.controller.poll())
        self.assertLess(peak(self.controller), MOST_MEMORY)

    def test_pods_are_made_in_slices(self):
        self.create_job("sliced", workers=150)
        self.await_running("sliced")


class Tenants(ControllerCase):
    def test_the_jobs_of_one_delay_no_other(self):
        """One tenant's jobs make so many objects that all of them take minutes. Another's job begins meanwhile."""
        self.cluster.kubectl("create", "namespace", "other")
        self.start_controller("controller", "--workers", "4", "--qps", "20", "--burst", "10")
        for number in range(12):
            self.make(f"large-{number}", replicated(150, 1))
        self.api.await_items("jobs", "jobset.sigs.k8s.io/jobset-name", lambda jobs: len(jobs) > 20)
        self.other().create("trainingruntimes", runtime("small", 1, container=TRUE))
        self.other().create("trainjobs", train_job("small", "small"))
        (small,) = self.other().await_items("jobs", "jobset.sigs.k8s.io/jobset-name=small", lambda jobs: len(jobs) == 1)
        made = [
            job["metadata"]["creationTimestamp"] for job in self.api.items("jobs", "jobset.sigs.k8s.io/jobset-name")
        ]
        before = [time for time in made if time <= small["metadata"]["creationTimestamp"]]
        self.assertLess(len(before), 900, "half of what the first tenant wants")

    def other(self):
        made = copy.copy(self.api)
        made.namespace = "other"
        return made


if __name__ == "__main__":
    class_runner.main()
