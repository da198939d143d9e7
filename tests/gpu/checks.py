# SPDX-License-Identifier: Apache-2.0
"""The checks of tests/gpu/run. Each is a case of unittest that waits for events, each with the deadline of muster_case.

The file `run` sets SETTING before it runs them.
"""

import glob
import os
import re
import select
import shutil
import signal
import threading
import time
import types

from muster_case import DEADLINE, HERE as OUTER, MusterCase, Worker, wait_gone

HERE = os.path.dirname(os.path.abspath(__file__))
READY = r"a standby worker is ready"
LIST_ENDS = "standby workers (?:import neither|leave out)"
STANDBY = ("--standby-workers", "auto", "--standby-delay", "0s")
SLACK = 64 << 20  # bytes of the device's memory; a process that has it open takes several times as much

# machine: machine.Machine. kills: of each kind of restart. figures: name -> a list of seconds, or a number. notes:
# sentences. log: a file that gets the output of all agents, or None.
SETTING = types.SimpleNamespace(machine=None, kills=3, figures={}, notes=[], log=None)


class DeviceWorker(Worker):
    """worker.py. `said`: the messages that have come, by their names."""

    def __init__(self, link, lines, hello):
        super().__init__(link, lines, hello)
        self.said = {"hello": hello}

    def until(self, what):
        """Waits for a message of that name, and returns it."""
        while what not in self.said:
            message = self.next_message()
            if message is None:
                raise AssertionError(f"the worker {self.pid} has ended, or is silent, before it said {what!r}")
            self.said[message["what"]] = message
        return self.said[what]

    def memory(self):
        """The bytes that the device has free now."""
        self.until("opened")
        return self.ask("memory")["memory"][0]


class DeviceCase(MusterCase):
    worker_class = DeviceWorker

    def tearDown(self):
        super().tearDown()
        if SETTING.log:
            for agent in self.agents:
                SETTING.log.write(f"==== {self.id()}: {os.path.basename(agent.output_path)}\n{agent.output()}\n")
            SETTING.log.flush()

    def begin(self, *flags, mode="train"):
        """`muster run` of worker.py, with an empty state folder."""
        shutil.rmtree(os.path.join(self.dir, "state"), ignore_errors=True)
        script = (os.path.join(HERE, "worker.py"), SETTING.machine.kind, mode)
        words = ("--log-level", "debug", "--log-dir", os.path.join(self.dir, f"logs-{len(self.agents)}"))
        return self.start(*words, *flags, *script, worker=False, env=self.variables())

    def variables(self):
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if SETTING.machine.kind == "cpu" else {}
        return {"PYTHON_EXEC": SETTING.machine.python, **hidden}

    def next_worker(self):
        """Fails at once if the agent ends."""
        agent = self.agents[-1]
        self.assertIsNone(agent.process.poll(), agent.output())
        end = os.pidfd_open(agent.pid)
        self.addCleanup(os.close, end)
        ready, _, _ = select.select([self._listener, end], [], [], DEADLINE)
        self.assertIn(self._listener, ready, f"the agent has ended, or no worker has come:\n{agent.output()}")
        (worker,) = self.workers(1)
        return worker

    def end(self, agent, *workers):
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(DEADLINE), 0, agent.output())

    def await_standby(self, agent):
        """Waits until a standby has imported all that worker.py in the mode `train` imports. Returns its pid."""
        self.await_names(agent)
        gone = "began in a standby|standby workers (?:do not import|import neither)"  # lines after which there is none
        output = self.wait_for_output(agent, rf"(?s){READY}(?!.*({gone}))")
        pid, memory = re.findall(READY + r" pid=(\d+) .*private_bytes=(\d+)", output)[-1]
        SETTING.figures["memory of the machine that a standby has alone, MiB"] = int(memory) / (1 << 20)
        return int(pid)

    def await_names(self, agent):
        """Waits until a standby has imported the last name that the worker has told, or the list has ended before."""

        def names():
            for path in glob.glob(os.path.join(self.dir, "state", "muster", "imports", "*[!t]")):  # no .part
                with open(path) as file:
                    yield from file.read().split()

        end, ticker = time.monotonic() + DEADLINE, threading.Event()
        while "sched" not in names() and not re.search(LIST_ENDS, agent.output()):
            self.assertIsNone(agent.process.poll(), agent.output())
            self.assertLess(time.monotonic(), end, "no standby has imported what the worker has named")
            ticker.wait(0.01)

    def note(self, text):
        SETTING.notes.append(f"{self.id().rpartition('.')[2]}: {text}")

    def note_left_out(self, agent):
        for line in re.findall(rf"(?:standby workers do not import|{LIST_ENDS}).*", agent.output()):
            self.note(line)

    def gone_from_device(self, pid):
        """A process that has ended is not among those on the GPU."""
        self.assertTrue(wait_gone(pid))
        self.assertNotIn(pid, SETTING.machine.smi_pids())


class WorkersPerNode(DeviceCase):
    def count(self, word):
        """How many workers `--nproc-per-node WORD` starts."""
        agent = self.start("--nproc-per-node", word, os.path.join(OUTER, "obedient_worker.py"), worker=False)
        first = self.next_worker()
        others = self.workers(first.world_size - 1)
        self.end(agent, first, *others)
        return first.world_size

    def start(self, *arguments, **more):
        return super().start(*arguments, **{"env": self.variables(), **more})

    def test_auto(self):
        gpus = SETTING.machine.facts["gpus"] if SETTING.machine.kind == "cuda" else 0
        self.assertEqual(self.count("auto"), gpus or self.count("cpu"))

    def test_gpu(self):
        if SETTING.machine.kind == "cuda":
            self.assertEqual(self.count("gpu"), SETTING.machine.facts["gpus"])
        hidden = {**self.variables(), "CUDA_VISIBLE_DEVICES": ""}
        agent = self.start("--nproc-per-node", "gpu", "worker.py", worker=False, env=hidden)
        self.assertEqual(agent.wait(DEADLINE), 64, agent.output())
        self.assertIn("no GPU was found", agent.output())


class Training(DeviceCase):
    def test_one_rank(self):
        """NCCL's group of one."""
        agent = self.begin()
        worker = self.next_worker()
        backend = worker.until("reduced")["backend"]
        self.assertEqual(backend, {"cuda": "nccl", "cpu": "gloo"}[SETTING.machine.kind])
        worker.until("stepped")
        self.end(agent, worker)


class Failures(DeviceCase):
    def test_out_of_memory_is_the_cause(self):
        """Of one of two workers, while the other waits."""
        agent = self.begin("--nproc-per-node", "2", mode="idle")
        workers = self.workers(2)
        for worker in workers:
            worker.until("opened")
        workers[1].tell("exhaust")
        self.assertEqual(agent.wait(DEADLINE), 1, agent.output())
        self.assertRegex(
            agent.output(),
            r"worker rank 1 ended with exit code 1 \(stderr: torch\S*OutOfMemoryError: CUDA out of memory\. Tried to",
        )

    def kill_in_a_kernel(self, *flags):
        """Kills a worker while a kernel runs. The memory is free when the next one opens the device."""
        agent = self.begin("--max-restarts", "1", *flags)
        worker = self.next_worker()
        before = worker.until("opened")["memory"][0]
        worker.until("stepped")
        if flags:
            standby = self.await_standby(agent)
        worker.tell("kernel")
        worker.until("runs")
        os.kill(worker.pid, signal.SIGKILL)
        following = self.next_worker()
        after = following.until("opened")["memory"][0]
        self.assertGreater(after, before - SLACK, agent.output())
        self.gone_from_device(worker.pid)
        if flags:
            self.assertEqual(following.pid, standby, agent.output())
        following.until("stepped")
        self.end(agent, following)

    def test_a_kill_while_a_kernel_runs(self):
        self.kill_in_a_kernel()

    def test_a_kill_while_a_kernel_runs_and_a_standby_follows(self):
        self.kill_in_a_kernel(*STANDBY)

    def test_the_memory_that_is_held_is_seen(self):
        """A second process that holds memory is seen, else the checks above would show nothing."""
        agent = self.begin("--nproc-per-node", "2", mode="idle")
        first, second = self.workers(2)
        if SETTING.machine.kind == "cuda" and SETTING.machine.facts["gpus"] > 1:
            self.skipTest("the two workers have a GPU each")
        before = first.memory()
        second.until("opened")
        second.tell("kernel")
        second.until("runs")
        self.assertLess(first.memory(), before - SLACK)
        os.kill(second.pid, signal.SIGKILL)
        self.assertNotEqual(agent.wait(DEADLINE), 0)

    def test_a_hang_in_a_kernel(self):
        """It is found, its stacks name the function, and the next attempt has the memory."""
        agent = self.begin("--max-restarts", "1", "--hang-timeout", "1s", "--hang-signal", "USR1")
        worker = self.next_worker()
        before = worker.until("opened")["memory"][0]
        worker.until("stepped")
        worker.tell("kernel")
        worker.until("runs")
        following = self.next_worker()
        self.assertGreater(following.until("opened")["memory"][0], before - SLACK)
        self.gone_from_device(worker.pid)
        self.end(agent, following)
        output = agent.output()
        self.assertRegex(output, r"worker rank 0 hangs: no step reported for [\d.]+ s \(last step 1\); stacks are in /")
        self.assertIn("in stuck_in_a_kernel", output, "the words of faulthandler")
        (path,) = glob.glob(os.path.join(self.dir, "logs-0", "**", "hang.txt"), recursive=True)
        with open(path) as file:
            self.assertRegex(file.read(), rf"process {worker.pid} \(.*\n.*thread \d+ ")


class Restarts(DeviceCase):
    PARTS = {"hello": "first line", "opened": "device open", "reduced": "first all_reduce", "stepped": "first step"}

    def measure(self, name, *flags):
        """Kills the worker SETTING.kills times, and notes the seconds from each kill to each part of the next start."""
        agent = self.begin("--max-restarts", str(SETTING.kills), *flags)
        worker = self.next_worker()
        worker.until("stepped")
        for _ in range(SETTING.kills):
            standby = self.await_standby(agent) if flags else None
            killed = time.monotonic()
            os.kill(worker.pid, signal.SIGKILL)
            worker = self.next_worker()
            worker.until("stepped")
            for what, part in self.PARTS.items():
                SETTING.figures.setdefault(f"{name}: {part}", []).append(worker.said[what]["at"] - killed)
            if flags:
                self.assertEqual(worker.pid, standby, agent.output())
                self.wait_for_output(agent, "1 of 1 worker began in a standby")
        self.end(agent, worker)
        self.note_left_out(agent)

    def test_cold(self):
        self.measure("cold restart")

    def test_standby(self):
        self.measure("restart from a standby", *STANDBY)


class Standbys(DeviceCase):
    def test_they_take_no_memory_of_the_device(self):
        """What is free beside a standby is what is free without one, and it has no file of the device open."""
        free = []
        for flags in ((), ("--max-restarts", "1", *STANDBY)):
            agent = self.begin(*flags)
            worker = self.next_worker()
            worker.until("stepped")
            if flags:
                self.look_at(self.await_standby(agent), worker.pid)
            free.append(worker.memory())
            self.end(agent, worker)
            self.gone_from_device(worker.pid)
        without, beside = free
        SETTING.figures["memory of the device that a standby takes, MiB"] = (without - beside) / (1 << 20)
        self.assertLess(abs(without - beside), SLACK)

    def look_at(self, standby, worker):
        self.assertTrue(SETTING.machine.device_files(worker, self.dir), "the worker has the device open")
        self.assertEqual(SETTING.machine.device_files(standby, self.dir), [])
        pids = SETTING.machine.smi_pids()
        if worker in pids:
            self.assertNotIn(standby, pids)
        elif SETTING.machine.kind == "cuda":
            self.note("nvidia-smi does not show the worker, so it says nothing about the standby")
