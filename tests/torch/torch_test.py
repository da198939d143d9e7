#!/usr/bin/python3
"""Real PyTorch under `muster run`: collectives and DDP in several shapes, and a loss curve that survives each kind of death.

    torch_test.py {debian|newest} [unittest's arguments]

The launcher is judged by the curve: train.py's losses depend on neither the number of workers nor on interruptions, so each
run is held against one process without any launcher. Ends with 77 (ctest: skipped) and the reason when that torch is missing.
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
sys.path.insert(0, os.path.join(ROOT, "e2e", "digits"))

from training_run import MUSTER, TRAIN, TrainingRun, digits_file, epochs_done, free_port  # noqa: E402

SKIPPED = 77
DEADLINE = 400.0
EPOCHS = 8
PYTHON = "/usr/bin/python3"  # set by main()


def skip(reason):
    print(f"SKIPPED: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


def find_python(which):
    if not os.access(MUSTER, os.X_OK):
        sys.exit(f"{MUSTER} is missing: build it first, or set MUSTER_BINARY")
    if which == "debian":
        found = subprocess.run([PYTHON, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('torch'))"]).returncode
        return PYTHON if found == 0 else skip("Debian's python3-torch is not installed: run `make deps`")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.environ.get("MUSTER_TEST_NEWEST_TORCH") == "1":
        script = os.path.join(ROOT, "build-support", "setup-newest-torch")
        return subprocess.run([script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if not os.path.exists(f"{cache}/muster/torch-newest/muster-ready"):
        skip("the newest torch is not set up; MUSTER_TEST_NEWEST_TORCH=1 fetches it (0.6 GB), build-support/setup-newest-torch does too")
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

    def training(self, nnodes, **options):
        options.setdefault("train_options", ["--data", digits_file(), "--epochs", str(EPOCHS), "--min-accuracy", "0"])
        run = TrainingRun(self.folder + "/run", python=PYTHON, nnodes=nnodes, **options)
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

    def test_1x2(self):
        self.collectives("1", 1, 2)

    def test_2x2(self):
        self.collectives("2", 2, 2)

    def test_elastic_1_to_3(self):
        self.collectives("1:3", 3, 1)


class RunPath(TorchCase):
    def test_an_exception_reaches_the_error_file(self):
        script = self.folder + "/script.py"
        with open(script, "w") as file:
            file.write("import sys\nassert sys.argv == [__file__, '--epochs', '3'], sys.argv\nraise ValueError('no such data')\n")
        ended = subprocess.run([MUSTER, "run", "--standalone", "--run-path", "--log-dir", self.folder, script, "--epochs", "3"],
                               env={**os.environ, "PYTHON_EXEC": PYTHON}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=DEADLINE)
        self.assertEqual(ended.returncode, 1, ended.stdout)
        self.assertRegex(ended.stdout, r"error_file: *\S+error\.json")
        self.assertRegex(ended.stdout, r"traceback *: [^\n]*(\n.*)*ValueError: no such data")


class Hangs(TorchCase):
    def test_a_collective_that_one_rank_leaves_out(self):
        ended = subprocess.run([MUSTER, "run", "--standalone", "--nproc-per-node", "2", "--hang-timeout", "3s",
                                "--hang-signal", "USR1", "--max-restarts", "1", "--redirects", "3", "--log-dir", self.folder,
                                os.path.join(HERE, "hanging.py")],
                               env={**os.environ, "PYTHON_EXEC": PYTHON}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=DEADLINE)
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
            environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
            subprocess.run([PYTHON, TRAIN, "--data", digits_file(), "--epochs", str(EPOCHS), "--min-accuracy", "0", "--checkpoints",
                            f"{folder}/checkpoints", "--events", f"{folder}/events"], env=environment, check=True, stdout=subprocess.DEVNULL)
            with open(f"{folder}/events") as file:
                cls.reference = json.loads(file.readlines()[-1])["history"]

    def check_curve(self):
        """Each epoch once, and every loss as if nothing had happened."""
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

    def test_1x2(self):
        self.shape("1", 1, 2)

    def test_2x2(self):
        self.shape("2", 2, 2)

    def test_elastic_1_to_3(self):
        self.shape("1:3", 3, 1)


class Resume(Curve):
    """A death in the middle of an epoch: each waits for epoch 3, and epoch 4 is held up so that it is still going on."""
    PACE = ["--epoch-seconds", "0.3"]

    def paced(self, nnodes, **options):
        train = ["--data", digits_file(), "--epochs", str(EPOCHS), "--min-accuracy", "0", *self.PACE, *options.pop("train_options", [])]
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
        run = self.paced("2", nproc=1, train_options=["--fault", "kill:rank=0,epoch=3", "--fault", "kill:rank=0,epoch=5,attempt=1"])
        self.finish(run, ["node-0", "node-1"])
        self.assertEqual(self.worlds(), [2, 2, 2])
        self.check_curve()

    def test_worker_raises(self):
        run = self.paced("2", nproc=1, train_options=["--fault", "raise:rank=1,epoch=4"])
        self.finish(run, ["node-0", "node-1"])
        self.check_curve()
        failed = [worker for record in run.attempts() for worker in record["workers"] if "injected fault" in worker.get("error_message", "")]
        self.assertEqual([worker["rank"] for worker in failed], [1])

    def test_agent_killed_and_back(self):
        run = self.paced("1:2", nproc=1)
        self.until_epoch(run, 3)
        run.kill_node("node-1", self.deadline)
        self.until_start(run, 1)
        run.start_node("node-1", host=False)
        self.finish(run, ["node-0", "node-1"])
        self.assertIn(self.worlds(), ([2, 1, 2], [2, 1]))  # [2, 1]: the rest was done before it was back
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


def main():
    global PYTHON
    if len(sys.argv) < 2 or sys.argv[1] not in ("debian", "newest"):
        sys.exit(f"usage: {sys.argv[0]} debian|newest [TestClass ...]")
    PYTHON = find_python(sys.argv.pop(1))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended from outside: the nodes are ended too
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
