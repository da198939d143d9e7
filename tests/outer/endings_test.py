# SPDX-License-Identifier: Apache-2.0
"""How an end is judged: steps in heartbeat files (no-progress limit), core dumps, the cause in every pod's message."""

import json
import os
import resource
import signal
import subprocess
import unittest

from exec_case import ExecCase
from muster_case import MUSTER, PYTHON, clean, main
from nodes_case import Nodes

NO_PROGRESS = 93
BUDGET = ("--max-restarts", "20", "--no-progress-limit", "2")


class Progress(Nodes):
    """`--no-progress-limit 2`: two restarts in a row without a higher step end the job, whatever the budget."""

    def live(self, *steps):
        """One round of all workers, by rank: each writes its step, if it has one; then the first fails."""
        workers = self.workers(len(steps))
        for worker, step in zip(workers, steps):
            if step is not None:
                worker.ask(f"file $MUSTER_HEARTBEAT_FILE {step}")
        workers[0].tell("exit 1")

    def check_end(self, agent, restarts):
        self.assertEqual(agent.wait(), NO_PROGRESS, agent.output())
        self.assertIn("no progress over 2 restarts in a row", agent.output())
        self.assertTrue(self.no_worker_waits())
        lives = self.attempts(os.path.join(self.dir, "logs"))
        self.assertEqual(len(lives), restarts + 1)

    def begin(self):
        return self.start("--standalone", *BUDGET, "--log-dir", os.path.join(self.dir, "logs"))

    def test_steps_that_go_on_use_nothing_up_and_steps_that_stand_do(self):
        agent = self.begin()
        for step in (10, 20, 30, 40, 50):
            self.live(step)
        self.live(50)
        self.live(50)
        self.check_end(agent, 6)

    def test_one_step_more_starts_the_count_again(self):
        agent = self.begin()
        for step in (10, 10, 11, 11, 12, 3, 12):  # back to an older checkpoint is not progress either
            self.live(step)
        self.check_end(agent, 6)

    def test_a_success_ends_it_at_any_count(self):
        agent = self.begin()
        for step in (10, 10):
            self.live(step)
        (worker,) = self.workers(1)
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_the_highest_step_of_any_node_counts(self):
        endpoint = self.endpoint()
        agents = [
            self.node(
                endpoint, "2", *BUDGET, "--node-name", f"n{node}", "--log-dir", os.path.join(self.dir, f"logs-{node}")
            )
            for node in range(2)
        ]
        for steps in ((5, None), (5, 6), (None, 7), (8, 7), (8, 8), (None, 8)):
            self.live(*steps)
        self.assertEqual([agent.wait() for agent in agents], [NO_PROGRESS] * 2)
        self.assertTrue(self.no_worker_waits())

    def test_what_is_no_step_is_none(self):
        """Text that is not a step, or too large a number: the round is judged by how long it lived."""
        agent = self.start(
            "--standalone",
            "--max-restarts",
            "5",
            "--no-progress-limit",
            "50",
            "--log-dir",
            os.path.join(self.dir, "logs"),
        )
        for text in ("epoch three", "9" * 40, "-", "\\udcff\\x00"):
            self.live(text)
        self.live(7)
        (worker,) = self.workers(1)
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())


class PlainProgress(ExecCase):
    def test_of_a_plain_command(self):
        logs, message, steps = (os.path.join(self.dir, name) for name in ("logs", "message", "steps"))
        open(message, "w").close()
        with open(steps, "w") as file:
            file.writelines(f"{step}\n" for step in (1, 2, 3, 4, 4, 4, 5))
        script = f'head -n 1 {steps} > "$MUSTER_HEARTBEAT_FILE"; sed -i 1d {steps}; exit 130'
        done = self.run_exec("--log-dir", logs, "--termination-log", message, *BUDGET, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, NO_PROGRESS, done.stderr)
        with open(steps) as file:
            self.assertEqual(file.read(), "5\n", "the last life was the sixth")
        with open(message) as file:
            left = json.load(file)
        self.assertEqual(
            (left["exit_code"], left["class"], left["restart_count"], left["cause"]["exit_code"]),
            (NO_PROGRESS, "fatal", 5, 130),
        )
        self.assertIn("no progress over 2 restarts in a row", left["reason"])


# Leaves what PyTorch's `record` leaves at the path in its variable, with a traceback longer than a message may be.
RECORDED = """
import json, os, sys
trace = "Traceback (most recent call last):\\n" + "  File 'train.py', in forward\\n" * 1000 + "ValueError: batch size 0"
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    more = {"py_callstack": trace, "timestamp": "1"}
    json.dump({"message": {"message": "ValueError: batch size 0", "extraInfo": more}}, file)
sys.exit(9)
"""


class ErrorFileInTheMessagesPlace(ExecCase):
    """TORCHELASTIC_ERROR_FILE=/dev/termination-log, as Kubeflow's and TorchX's pages say: Muster's message is whole."""

    def ended(self, *command):
        path = os.path.join(self.dir, "termination-log")
        open(path, "w").close()
        done = self.run_exec(
            *command, env=clean(MUSTER_TERMINATION_LOG=path, TORCHELASTIC_ERROR_FILE=path, PYTHON_EXEC=PYTHON)
        )
        with open(path) as file:
            text = file.read()
        self.assertLessEqual(len(text.encode()), 4096)
        left = json.loads(text)
        self.assertEqual((done.returncode, left["exit_code"], left["class"]), (9, 9, "fatal"), done.stderr)
        self.assertIn("ValueError: batch size 0", left["cause"]["error_message"])
        self.assertIn("ended with exit code 9 (ValueError: batch size 0)", left["reason"])
        self.assertNotIn("cannot be understood", done.stderr)

    def test_of_a_plain_command(self):
        self.ended("--", *self.script(RECORDED))

    def test_of_workers(self):
        self.ended("--wire=torch", "--nproc-per-node", "2", "--", *self.script(RECORDED))

    def test_of_a_torchrun_inside(self):
        _, script = self.script(RECORDED)
        self.ended("--", "sh", "-c", f"'{MUSTER}' run {script}")


def no_core():
    """Why a process that dies of SIGABRT leaves no core here, or None."""

    def allow():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        os.chdir("/tmp")

    with open("/proc/sys/kernel/core_pattern") as file:
        pattern = file.read().strip()
    try:
        process = subprocess.Popen(
            [PYTHON, "-c", "import os, signal; signal.pthread_sigmask(0, []); os.kill(os.getpid(), 6)"],
            preexec_fn=allow,
        )
    except subprocess.SubprocessError as why:
        return f"SKIPPED: the limit of cores cannot be lifted: {why}"
    _, status = os.waitpid(process.pid, 0)
    process.returncode = 0
    core = f"/tmp/{pattern}"
    for path in (core, f"{core}.{process.pid}"):
        if not pattern.startswith(("/", "|")) and os.path.exists(path):
            os.unlink(path)
    return (
        None
        if os.WCOREDUMP(status)
        else f"SKIPPED: the kernel leaves no core of a process that aborts (core_pattern is {pattern!r})"
    )


class Cores(Nodes, ExecCase):
    """If the kernel reports a core dump, every report of the death says so."""

    ABORT = "ulimit -c {}; kill -{} 0"

    @classmethod
    def setUpClass(cls):
        if reason := no_core():
            raise unittest.SkipTest(reason)

    def ended(self, limit, name):
        message, logs = (os.path.join(self.dir, f"{word}-{limit}-{name}") for word in ("message", "logs"))
        open(message, "w").close()
        done = self.run_exec(
            "--termination-log",
            message,
            "--log-dir",
            logs,
            "--",
            "sh",
            "-c",
            self.ABORT.format(limit, name),
            cwd=self.dir,
        )
        with open(message) as file:
            left = json.load(file)
        (record,) = self.attempts(logs).values()
        return done, left, record["workers"][0]

    def test_of_a_plain_command(self):
        for name in ("ABRT", "SEGV", "BUS"):
            done, left, worker = self.ended("unlimited", name)
            self.assertEqual(
                (done.returncode, left["cause"]["signal"]), (128 + signal.Signals["SIG" + name], "SIG" + name)
            )
            self.assertTrue(left["cause"]["core_dumped"])
            self.assertTrue(worker["core_dumped"])
            self.assertIn("core dumped", left["reason"])
            self.assertIn("core dumped", done.stderr)

    def test_where_none_is_left_none_is_told(self):
        for limit, name in (("0", "ABRT"), ("unlimited", "KILL")):
            done, left, worker = self.ended(limit, name)
            self.assertEqual(done.returncode, 128 + signal.Signals["SIG" + name])
            self.assertNotIn("core_dumped", left["cause"])
            self.assertFalse(worker.get("core_dumped", False))
            self.assertNotIn("core dumped", done.stderr)

    def test_on_another_node(self):
        endpoint = self.endpoint()
        logs = [os.path.join(self.dir, f"message-{node}") for node in range(2)]
        for log in logs:
            open(log, "w").close()
        script = f"test $RANK = 0 && {{ {self.ABORT.format('unlimited', 'ABRT')}; }}; exec sleep 1000"
        agents = [
            self.node(
                endpoint,
                "2",
                "--node-name",
                f"n{node}",
                "--termination-log",
                logs[node],
                "--no-python",
                "sh",
                "-c",
                script,
                worker=False,
            )
            for node in range(2)
        ]
        self.assertEqual([agent.wait() for agent in agents], [134, 134])
        for log in logs:
            with open(log) as file:
                cause = json.load(file)["cause"]
            self.assertEqual((cause["rank"], cause["signal"], cause["core_dumped"]), (0, "SIGABRT", True))


if __name__ == "__main__":
    main()
