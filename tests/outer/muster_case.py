# SPDX-License-Identifier: Apache-2.0
"""Tests of the real binary from outside: agents are started as a user would, workers do what the test tells them.

Everything waits for events (a worker's hello, a process's end) with one generous deadline; nothing sleeps.
"""

import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))

import class_runner
import free_port
from sanitizer import sanitizer_of

MUSTER = os.environ.get("MUSTER_BINARY", os.path.join(HERE, "..", "..", "build", "bin", "muster"))
WORKER = os.path.join(HERE, "obedient_worker.py")
PYTHON = "/usr/bin/python3"
DEADLINE = float(os.environ.get("MUSTER_TEST_DEADLINE", 240))

# Prefixes of variables around the tests that would change a launcher, a worker or an MPI.
FOREIGN = ("PET_", "MUSTER_", "TORCH", "KUBERNETES_", "OMPI_", "PRTE_", "HYDRA_", "I_MPI_", "PMIX_", "TRAINER_")


def clean(**more):
    """This process's environment without the FOREIGN variables, and with `more`."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}, **more}


def open_to_all(folder, *programs):
    """Copies of the programs, in `folder`, that every user can run: the checkout may be in a folder that others may not
    enter. Skips the test if `folder` is in such a place, too."""
    os.chmod(folder, 0o755)
    for above in pathlib.Path(folder).resolve().parents:
        if not above.stat().st_mode & stat.S_IXOTH:
            raise unittest.SkipTest(f"SKIPPED: other users may not enter {above}; set TMPDIR to a folder that they may")
    return [shutil.copy(program, folder) for program in programs]


def alive(pid):
    """True while the process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_gone(pid, deadline=DEADLINE):
    """Waits for the end of any process, not only of a child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], deadline)[0])
    finally:
        os.close(fd)


def sanitized():
    """The sanitizer in the build: "address", "thread", or None."""
    return sanitizer_of(MUSTER)


class Worker:
    def __init__(self, link, lines, hello):
        self.link = link
        self._lines = lines
        self.pid = hello["pid"]
        self.hello = hello
        self.env = hello["env"]
        self.find_place()

    def find_place(self):
        self.rank = int(self.env["RANK"])
        self.local_rank = int(self.env["LOCAL_RANK"])
        self.world_size = int(self.env["WORLD_SIZE"])
        self.round = int(self.env["MUSTER_ROUND"])
        self.node = self.env["MUSTER_NODE"]
        self.restarts = int(self.env["TORCHELASTIC_RESTART_COUNT"])

    def tell(self, command):
        self.link.sendall((command + "\n").encode())

    def ask(self, command):
        """Sends `command` and waits for the answer."""
        self.tell(command)
        return json.loads(self._lines.readline())

    def next_message(self):
        """The next message that the worker sends by itself (a signal), or None when it has ended."""
        try:
            line = self._lines.readline()
        except OSError:
            return None
        return json.loads(line) if line else None


class Agent:
    def __init__(self, process, output_path):
        self.process = process
        self.pid = process.pid
        self.output_path = output_path

    def wait(self, deadline=DEADLINE):
        """Exit code as a shell shows it: 128 + n for signal n."""
        code = self.process.wait(deadline)
        return code if code >= 0 else 128 - code

    def output(self):
        with open(self.output_path, errors="replace") as file:
            return file.read()

    def send(self, number):
        self.process.send_signal(number)


class MusterCase(unittest.TestCase):
    worker_class = Worker

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="muster-test-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)  # after every other cleanup: it may hold a mount
        self.addCleanup(self.kill_leftovers)  # as late as can be
        scratch = unittest.mock.patch.dict(os.environ, TMPDIR=self.dir)  # runs that fail leave their logs there
        scratch.start()
        self.addCleanup(scratch.stop)
        self.agents = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.path.join(self.dir, "socket"))
        self._listener.listen(512)
        self._seen = []

    def tearDown(self):
        for agent in self.agents:
            if agent.process.poll() is None:
                agent.process.kill()
                agent.process.wait()
        for worker in self._seen:
            worker.link.close()
            wait_gone(worker.pid)
        self._listener.close()
        failed = any(error for _, error in getattr(self._outcome, "errors", []) or []) or (
            getattr(self._outcome, "result", None) is not None
            and any(
                getattr(test, "test_case", test) is self
                for test, _ in self._outcome.result.failures + self._outcome.result.errors
            )
        )
        if failed or os.environ.get("MUSTER_TEST_SHOW"):
            for agent in self.agents:
                print(f"--- {agent.output_path}\n{agent.output()}")

    def with_pipes(self, command, **popen):
        """Starts `command` with pipes; killed at the end of the test or at the deadline: no read waits for ever."""
        popen = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        process = subprocess.Popen(command, **popen)
        deadline = threading.Timer(DEADLINE, process.kill)
        deadline.daemon = True
        deadline.start()

        def end():
            deadline.cancel()
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()

        self.addCleanup(end)
        return process

    def code(self, process):
        """Its exit code as a shell shows it."""
        code = process.wait(DEADLINE)
        return code if code >= 0 else 128 - code

    def kill_leftovers(self):
        """Kills processes that outlived their killed agent, found by the test's folder in their environment."""
        mark = f"TMPDIR={self.dir}".encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as environment:
                    if mark in environment.read().split(b"\0"):
                        os.kill(int(entry), signal.SIGKILL)
            except OSError:
                pass  # gone, or not ours

    def start(
        self,
        *arguments,
        worker=True,
        env=None,
        script_args=(),
        stdin=subprocess.DEVNULL,
        prefix=(),
        subcommand="run",
        binary=MUSTER,
        **popen,
    ):
        """Starts `muster run arguments`, or another subcommand, by default with the obedient worker as its script.

        `prefix`: a command that executes the words after it, in the same process. `binary`: another `muster`."""
        command = [*prefix, binary, subcommand, *arguments]
        if worker:
            command += [WORKER, *script_args]
        environment = clean(
            **{
                "MUSTER_TEST_SOCKET": os.path.join(self.dir, "socket"),
                "PYTHON_EXEC": PYTHON,
                "XDG_STATE_HOME": os.path.join(self.dir, "state"),
                **(env or {}),
            }
        )
        path = os.path.join(self.dir, f"agent-{len(self.agents)}.txt")
        with open(path, "w") as output:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=popen.pop("cwd", self.dir),
                **popen,
            )
        agent = Agent(process, path)
        self.agents.append(agent)
        return agent

    def workers(self, count, deadline=DEADLINE):
        """The next `count` workers that say hello, ordered by rank."""
        arrived = []
        end = time.monotonic() + deadline
        while len(arrived) < count:
            ready, _, _ = select.select([self._listener], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.fail(f"{len(arrived)} of {count} workers came in {deadline} s")
            link, _ = self._listener.accept()
            link.settimeout(deadline)
            lines = link.makefile()
            line = lines.readline()
            hello = json.loads(line) if line.endswith("\n") else {}
            if hello.get("what") != "hello":
                link.close()  # stopped before it could say hello
                continue
            worker = self.worker_class(link, lines, hello)
            self._seen.append(worker)
            arrived.append(worker)
        return sorted(arrived, key=lambda worker: worker.rank)

    def round_of(self, count, at_least):
        """The `count` workers of one round with a number >= at_least; skips hellos of rounds that ended early."""
        rounds = {}
        while True:
            (worker,) = self.workers(1)
            if worker.round < at_least:
                continue
            members = rounds.setdefault(worker.round, [])
            members.append(worker)
            if len(members) == count and worker.world_size == count:
                return sorted(members, key=lambda member: member.rank)

    free_port = staticmethod(free_port.free_port)

    def no_worker_waits(self):
        """True when no further worker has said hello."""
        return not select.select([self._listener], [], [], 0)[0]

    def wait_for_output(self, agent, pattern, deadline=DEADLINE):
        """Waits until the agent's output, a growing file, holds `pattern`."""
        end = time.monotonic() + deadline
        ticker = threading.Event()
        while True:
            ended = agent.process.poll() is not None  # checked first, so that all its output is read after it
            if re.search(pattern, agent.output()):
                break
            if ended or time.monotonic() > end:
                self.fail(f"{pattern!r} did not appear in:\n{agent.output()}")
            ticker.wait(0.01)
        return agent.output()

    def attempts(self, log_dir):
        """attempt.json of every attempt below a log folder, by path."""
        found = {}
        for folder, _, files in os.walk(log_dir):
            if "attempt.json" in files:
                with open(os.path.join(folder, "attempt.json")) as file:
                    found[os.path.relpath(folder, log_dir)] = json.load(file)
        return found


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    class_runner.main()
