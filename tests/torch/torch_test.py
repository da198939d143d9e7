#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch under `muster run`: collectives, DDP in several shapes, a loss curve that survives each kind of death.

    torch_test.py {debian|newest} [unittest's arguments]

The curve shows whether the launcher works: train.py's losses depend neither on the number of workers nor on
interruptions, so each run is compared with one process without a launcher. If that torch is missing, the test prints
the reason and ends with 77 (ctest: skipped).
"""

import atexit
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "e2e", "digits"), os.path.join(ROOT, "tests", "outer"), os.path.join(ROOT, "tests")]

import class_runner
import networks
import pods
from training_run import MUSTER, TRAIN, TrainingRun, digits_file, epochs_done, free_port

DEADLINE = float(os.environ.get("MUSTER_TEST_DEADLINE", 400))
EPOCHS = 8
PYTHON = "/usr/bin/python3"  # set by main()


def skip(reason):
    print(f"SKIPPED: {reason}", file=sys.stderr)
    sys.exit(class_runner.SKIPPED)


def find_python(which):
    if not os.access(MUSTER, os.X_OK):
        sys.exit(f"{MUSTER} is missing: build it first, or set MUSTER_BINARY")
    if which == "debian":
        found = subprocess.run(
            [PYTHON, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('torch'))"]
        ).returncode
        return PYTHON if found == 0 else skip("Debian's python3-torch is not installed: run `make deps`")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.environ.get("MUSTER_TEST_NEWEST_TORCH") == "1":
        script = os.path.join(ROOT, "build-support", "setup-newest-torch")
        return subprocess.run([script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if not os.path.exists(f"{cache}/muster/torch-newest/muster-ready"):
        skip(
            "the newest torch is not set up; MUSTER_TEST_NEWEST_TORCH=1 fetches it (0.6 GB), "
            "build-support/setup-newest-torch does too"
        )
    return f"{cache}/muster/torch-newest/bin/python"


def end_nodes(run):
    for node in run.nodes.values():
        if node.process.poll() is None:
            node.process.kill()


class TorchCase(unittest.TestCase):
    def setUp(self):
        self.deadline = time.monotonic() + DEADLINE
        folder = tempfile.TemporaryDirectory(prefix="muster-torch-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def training(self, nnodes, kind=TrainingRun, **options):
        options.setdefault("train_options", ["--data", digits_file(), "--epochs", str(EPOCHS), "--min-accuracy", "0"])
        run = kind(self.folder + "/run", python=PYTHON, nnodes=nnodes, **options)
        self.addCleanup(run.close)
        atexit.register(end_nodes, run)  # an interrupted unittest runs no cleanup
        self.events = []
        return run

    def until(self, run, wanted):
        return run.wait_for(wanted, self.deadline, self.events.append)

    def until_epoch(self, run, number):
        return self.until(run, lambda event: event["event"] == "epoch" and event["epoch"] >= number)

    def until_start(self, run, world):
        return self.until(run, lambda event: event["event"] == "start" and event["world"] == world)

    def finish(self, run, nodes):
        """All of `nodes` end with 0."""
        left = set(nodes)
        while left:
            event = self.until(run, lambda event: event["event"] == "node_ended")
            if event["node"] in left and not (event["code"] == 137 and run.nodes[event["node"]].killed):
                self.assertEqual(event["code"], 0, run.tails())
                left.remove(event["node"])

    def start(self, run, names):
        for index, name in enumerate(names):
            run.start_node(name, host=index == 0)


class Collectives(TorchCase):
    def collectives(self, nnodes, nodes, nproc):
        run = self.training(nnodes, nproc=nproc, script=os.path.join(HERE, "collectives.py"), train_options=[])
        names = [f"node-{index}" for index in range(nodes)]
        self.start(run, names)
        self.finish(run, names)
        said = "".join(node.tail(10**6) for node in run.nodes.values())
        for rank in range(nodes * nproc):
            self.assertIn(f"rank {rank} of {nodes * nproc}: collectives agree", said)

    def test_1_node_of_2_workers(self):
        self.collectives("1", 1, 2)

    def test_2_nodes_of_2_workers(self):
        self.collectives("2", 2, 2)

    def test_elastic_1_to_3(self):
        self.collectives("1:3", 3, 1)


class RunPath(TorchCase):
    def test_an_exception_reaches_the_error_file(self):
        script = self.folder + "/script.py"
        with open(script, "w") as file:
            file.write(
                "import sys\nassert sys.argv == [__file__, '--epochs', '3'], sys.argv\n"
                "raise ValueError('no such data')\n"
            )
        ended = subprocess.run(
            [MUSTER, "run", "--standalone", "--run-path", "--log-dir", self.folder, script, "--epochs", "3"],
            env={**os.environ, "PYTHON_EXEC": PYTHON},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
        )
        self.assertEqual(ended.returncode, 1, ended.stdout)
        self.assertRegex(ended.stdout, r"error_file: *\S+error\.json")
        self.assertRegex(ended.stdout, r"traceback *: [^\n]*(\n.*)*ValueError: no such data")


class Hangs(TorchCase):
    def test_a_collective_that_one_rank_leaves_out(self):
        ended = subprocess.run(
            [
                MUSTER,
                "run",
                "--standalone",
                "--nproc-per-node",
                "2",
                "--hang-timeout",
                "10s",
                "--hang-signal",
                "USR1",
                "--max-restarts",
                "1",
                "--redirects",
                "3",
                "--log-dir",
                self.folder,
                os.path.join(HERE, "hanging.py"),
            ],
            env={**os.environ, "PYTHON_EXEC": PYTHON},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
        )
        self.assertEqual(ended.returncode, 0, ended.stdout)

        def read(pattern):
            (path,) = glob.glob(f"{self.folder}/*/attempt_0/{pattern}")
            with open(path) as file:
                return file.read()

        first = json.loads(read("attempt.json"))
        self.assertRegex(first["reason"], r"no step reported for \d.* \(last step 3\)")
        self.assertIn("reduce_gradients", read("0/stderr.log"))
        self.assertIn("leave_out_the_collective", read("1/stderr.log"))
        for rank in (0, 1):
            self.assertIn("thread ", read(f"{rank}/hang.txt"))


class Curve(TorchCase):
    """The undisturbed curve, from one process that no launcher started."""

    reference = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="muster-torch-") as folder:
            environment = {
                **os.environ,
                "RANK": "0",
                "WORLD_SIZE": "1",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(free_port()),
            }
            subprocess.run(
                [
                    PYTHON,
                    TRAIN,
                    "--data",
                    digits_file(),
                    "--epochs",
                    str(EPOCHS),
                    "--min-accuracy",
                    "0",
                    "--checkpoints",
                    f"{folder}/checkpoints",
                    "--events",
                    f"{folder}/events",
                ],
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            with open(f"{folder}/events") as file:
                cls.reference = json.loads(file.readlines()[-1])["history"]

    def check_curve(self):
        """Checks that each epoch comes once, and that every loss is that of the undisturbed run."""
        done = epochs_done(self.events)
        self.assertEqual([epoch for epoch, _ in done], list(range(1, EPOCHS + 1)))
        for (epoch, loss), expected in zip(done, self.reference):
            self.assertAlmostEqual(loss, expected, delta=1e-4, msg=f"epoch {epoch}")
        end = self.events[[event["event"] for event in self.events].index("end")]
        self.assertEqual(end["history"], [loss for _, loss in done])

    def worlds(self):
        return [event["world"] for event in self.events if event["event"] == "start"]


class Shapes(Curve):
    def shape(self, nnodes, nodes, nproc):
        run = self.training(nnodes, nproc=nproc)
        names = [f"node-{index}" for index in range(nodes)]
        self.start(run, names)
        self.finish(run, names)
        self.assertEqual(self.worlds(), [nodes * nproc])
        self.check_curve()

    def test_1_node_of_2_workers(self):
        self.shape("1", 1, 2)

    def test_2_nodes_of_2_workers(self):
        self.shape("2", 2, 2)

    def test_elastic_1_to_3(self):
        self.shape("1:3", 3, 1)


class Resume(Curve):
    """A death in the middle of an epoch: each test waits for epoch 3; epoch 4 is held up so that it still runs."""

    PACE = ["--epoch-seconds", "0.6"]

    def paced(self, nnodes, **options):
        train = [
            "--data",
            digits_file(),
            "--epochs",
            str(EPOCHS),
            "--min-accuracy",
            "0",
            *self.PACE,
            *options.pop("train_options", []),
        ]
        run = self.training(nnodes, run_options=["--max-restarts", "3"], train_options=train, **options)
        self.start(run, ["node-0", "node-1"])
        return run

    def test_worker_killed(self):
        run = self.paced("2", nproc=2)
        self.until_epoch(run, 3)
        run.kill_worker(3, signal.SIGKILL)
        self.finish(run, ["node-0", "node-1"])
        self.assertEqual(self.worlds(), [4, 4])
        self.check_curve()

    def test_rank_zero_killed_twice(self):
        run = self.paced(
            "2", nproc=1, train_options=["--fault", "kill:rank=0,epoch=3", "--fault", "kill:rank=0,epoch=5,attempt=1"]
        )
        self.finish(run, ["node-0", "node-1"])
        self.assertEqual(self.worlds(), [2, 2, 2])
        self.check_curve()

    def test_worker_raises(self):
        run = self.paced("2", nproc=1, train_options=["--fault", "raise:rank=1,epoch=4"])
        self.finish(run, ["node-0", "node-1"])
        self.check_curve()
        failed = [
            worker
            for record in run.attempts()
            for worker in record["workers"]
            if "injected fault" in worker.get("error_message", "")
        ]
        self.assertEqual([worker["rank"] for worker in failed], [1])

    def test_agent_killed_and_back(self):
        run = self.paced("1:2", nproc=1)
        self.until_epoch(run, 3)
        run.kill_node("node-1", self.deadline)
        self.until_start(run, 1)
        run.start_node("node-1", host=False)
        self.finish(run, ["node-0", "node-1"])
        self.assertIn(self.worlds(), ([2, 1, 2], [2, 1]))  # [2, 1]: training ended before the node was back
        self.check_curve()

    def test_coordinator_killed(self):
        run = self.paced("1:2", nproc=1)
        self.until_epoch(run, 3)
        run.kill_node("node-0", self.deadline)
        self.finish(run, ["node-1"])
        self.assertEqual(self.worlds(), [2, 1])
        self.check_curve()

    def test_node_replaced(self):
        run = self.paced("2", nproc=1)
        self.until_epoch(run, 3)
        run.kill_node("node-1", self.deadline)
        run.start_node("node-2", host=False)
        self.finish(run, ["node-0", "node-2"])
        self.assertEqual(self.worlds(), [2, 2])
        self.check_curve()


class Pods(Curve):
    """A pod is killed at each stage of its life; the test starts a new one of the same name and address."""

    NAMES = ["pod-0", "pod-1"]
    PACE = ["--epoch-seconds", "0.6"]

    @classmethod
    def setUpClass(cls):
        if reason := networks.permitted():
            raise unittest.SkipTest(f"SKIPPED: no network namespaces: {reason}")
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="muster-torch-")
        cls.addClassCleanup(folder.cleanup)
        cls.machine = pods.pods_folder(folder.name)

    def pods(self, *train_options, names=NAMES, **options):
        train = ["--data", digits_file(), "--epochs", str(EPOCHS), "--min-accuracy", "0", *self.PACE, *train_options]
        options.setdefault("train_options", train)
        run = self.training("2", kind=pods.PodRun, machine=self.machine, **options)
        self.start(run, names)
        return run

    def kill(self, run, name):
        run.kill_node(name, self.deadline)
        self.until(run, lambda event: event["event"] == "node_ended" and event["node"] == name)

    def replace(self, run, name):
        """Kills the pod and starts its replacement."""
        self.kill(run, name)
        run.start_node(name)

    def check_finish(self, run, worlds):
        self.finish(run, self.NAMES)
        self.assertEqual(self.worlds(), worlds)
        self.check_curve()
        for name in self.NAMES:
            self.assertEqual(run.left(name)["class"], "success")

    def test_pods_finish_without_disturbance(self):
        self.check_finish(self.pods(nproc=2), [4])

    def test_torchrun_in_a_shell(self):
        run = self.pods(started=pods.through_a_shell, nproc=2)
        self.until_epoch(run, 3)
        run.kill_worker(3, signal.SIGKILL)
        self.check_finish(run, [4, 4])

    def test_killed_while_it_waits_for_the_first(self):
        run = self.pods(names=["pod-1"], nproc=1)
        run.said("pod-1", "waiting for ", self.deadline)
        self.kill(run, "pod-1")
        self.start(run, self.NAMES)
        self.check_finish(run, [2])

    def test_the_first_is_killed_while_it_waits(self):
        run = self.pods(names=["pod-0"], nproc=1)
        run.said("pod-0", "have 1 of 2", self.deadline)
        self.kill(run, "pod-0")
        self.start(run, self.NAMES)
        self.check_finish(run, [2])

    def test_killed_as_the_workers_start(self):
        run = self.pods(nproc=1)
        self.until_start(run, 2)
        self.replace(run, "pod-1")
        self.check_finish(run, [2, 2])

    def test_killed_in_training(self):
        run = self.pods(nproc=1)
        self.until_epoch(run, 3)
        self.replace(run, "pod-1")
        self.check_finish(run, [2, 2])

    def test_the_first_is_killed_in_training(self):
        run = self.pods(nproc=1)
        self.until_epoch(run, 3)
        self.replace(run, "pod-0")
        self.check_finish(run, [2, 2])

    def test_preempted_then_killed(self):
        run = self.pods(nproc=1)
        self.until_epoch(run, 3)
        run.nodes["pod-1"].process.terminate()
        self.replace(run, "pod-1")
        self.check_finish(run, [2, 2])

    def test_a_preempted_pod_is_replaced(self):
        run = self.pods(nproc=1)
        self.until_epoch(run, 3)
        run.nodes["pod-1"].killed = True  # its end is expected
        run.nodes["pod-1"].process.terminate()
        ended = self.until(run, lambda event: event["event"] == "node_ended")
        self.assertEqual((ended["node"], ended["code"]), ("pod-1", 143))
        left = run.left("pod-1")
        self.assertEqual((left["class"], left["reason"]), ("retryable", "preempted: SIGTERM"))
        run.start_node("pod-1")
        self.check_finish(run, [2, 2])

    def test_killed_when_its_workers_are_done(self):
        gate = f"{self.folder}/gate"
        os.mkfifo(gate)
        run = self.pods(script=os.path.join(HERE, "gated.py"), train_options=[gate], nproc=1)
        run.said("pod-0", "waiting for the gate", self.deadline)
        self.replace(run, "pod-1")
        run.said("pod-0", "waiting for the gate", self.deadline, times=2)
        with open(gate, "w"):
            pass
        self.finish(run, self.NAMES)

    def test_a_fatal_code_ends_all_pods_at_once(self):
        run = self.pods("--fault", "exit:rank=3,epoch=3", nproc=2)
        for node in run.nodes.values():
            node.killed = True  # both end with a failure, as they should
        ended = [self.until(run, lambda event: event["event"] == "node_ended") for _ in self.NAMES]
        self.assertEqual(sorted((event["node"], event["code"]) for event in ended), [("pod-0", 3), ("pod-1", 3)])
        for name in self.NAMES:
            left = run.left(name)
            self.assertEqual((left["class"], left["cause"]["rank"], left["cause"]["host"]), ("fatal", 3, "pod-1"))
        self.assertEqual(self.worlds(), [4])


def main():
    global PYTHON
    if len(sys.argv) < 2 or sys.argv[1] not in ("debian", "newest"):
        sys.exit(f"usage: {sys.argv[0]} debian|newest [TestClass ...]")
    PYTHON = find_python(sys.argv.pop(1))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a SIGTERM ends the nodes, too
    class_runner.main()


if __name__ == "__main__":
    main()
