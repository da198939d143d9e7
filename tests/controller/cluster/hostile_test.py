"""Objects and messages that are huge, deep, forged or wrong. The status of their job says so, and other jobs go on."""
import copy
import json
import sys

from controller_case import TRUE, ControllerCase, is_true
import class_runner
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
        self.make("large", runtime("", 1, container={**TRUE, "env": variables(50)}), {"note": "y" * 250000}, trainer={"env": more})
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
        self.message("larger", 'ConfigMap "larger-runtime-snapshot" is invalid')

    def test_deep(self):
        """A deep object arrives by a watch, and by the first list of a later controller."""
        sys.setrecursionlimit(20000)  # for this test's own JSON reader
        self.api.create("trainingruntimes", {**runtime("", 1, container=TRUE), "metadata": {"name": "deep"}})
        for depth in (100, 300, 3000):
            made = train_job(f"deep-{depth}", "deep", podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"x": "DEEP"}}])
            self.api.create("trainjobs", json.dumps(made).replace('"DEEP"', nested(depth)))
            self.message(f"deep-{depth}", "it is nested more than 100 levels deep")
        self.cluster.processes.stop("controller")
        type(self).controller = self.start_controller()

    def test_messages_that_are_not_the_agents(self):
        """They are shown as text on one line, 1 KiB at most."""
        rows = {
            "text": "no JSON at all\n" * 200, "other": '{"kind": "Status", "code": 3}', "types": written("3", kind=7, cause=[]),
            "number": written(3, restart_count=10**30), "longer": written(3, reason="r" * 200000), "success": written(0, kind="success"),
            "class": written(3, kind="none"), "controls": written(3, reason="\u0000\u0001\ud800\u202e"),
        }
        for row, text in rows.items():
            self.make(f"forged-{row}", runtime("", 1, container=TRUE))
        for row, text in rows.items():
            self.running(f"forged-{row}")
            self.finish(f"forged-{row}", "failed", code=3, message=text)
        for row, text in rows.items():
            job = self.await_job(f"forged-{row}", is_true("Failed"))
            failure, = job["status"]["failures"]
            begins = text.strip()[:1000].replace("\n", " / ")[:1000]
            self.assertEqual((failure["message"][:1000], failure["exitCode"]), (begins, 3), row)
            self.assertEqual(self.condition(job, "Failed")[0], "FailedJobs", row)
            self.assertLess(len(failure["message"]), 2048, row)
            self.assertNotIn("\n", failure["message"], row)

    def test_forged_messages_of_the_agent(self):
        """They cannot change how the pod ended, and the job ends by the pod's real exit code."""
        rows = {
            "negative": written(3, restart_count=-5, max_restarts=-1, round=-9, node_rank=-2),
            "many": written(3, restart_count=2**31 - 1, max_restarts=2**31 - 1), "long": written(3, reason="r" * 3500),
            "cause": written(3, cause={"rank": 1, "exit_code": 3, "message": "m" * 3000, "stderr_tail": ["x" * 100] * 30}),
            "deep": '{"version": 1, "exit_code": 3, "class": "fatal", "x":' + nested(500) + "}",
        }
        for row in rows:
            self.make(f"agent-{row}", runtime("", 1, container=TRUE))
        for row, text in rows.items():
            self.running(f"agent-{row}")
            self.finish(f"agent-{row}", "failed", code=3, message=text)
        for row in rows:
            job = self.await_job(f"agent-{row}", is_true("Failed"))
            failure, = job["status"]["failures"]
            self.assertEqual((failure["exitCode"], failure["nodeRank"], self.condition(job, "Failed")[0]), (3, 0, "FailedJobs"), row)
            self.assertLess(len(failure.get("message", "")), 5000, row)


if __name__ == "__main__":
    class_runner.main()
