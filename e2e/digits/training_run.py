# SPDX-License-Identifier: Apache-2.0
"""Runs train.py on several nodes of this machine and reports its events. The PyTorch tests use it.

A node is a `muster run` agent in its own session, with its own log folder. Nothing is polled: the training writes its
events into a pipe, a pidfd shows the end of an agent, and next_event() waits for both. Not thread-safe.
"""

import collections
import glob
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests"))

from free_port import free_port

TRAIN = os.path.join(HERE, "train.py")
MUSTER = os.environ.get("MUSTER_BINARY", os.path.join(ROOT, "build", "bin", "muster"))
RUN_ID = "digits"


class Broken(Exception):
    """A promise of the launcher was broken. The text is for the user."""


def unix_ms():
    return time.time_ns() // 10**6


def digits_file():
    """The path of the data set. The first call downloads it."""
    script = os.path.join(ROOT, "build-support", "setup-torch-data")
    return subprocess.run([script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def wait_gone(pid, seconds):
    """True if the process, which need not be a child, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        gone = bool(selector.select(seconds))
    os.close(descriptor)
    return gone


def epochs_done(events):
    """[(epoch, loss)] in the order of the training. If rank 0 was stopped after it wrote a checkpoint and before it
    reported the epoch, the history of the next start shows that epoch."""
    done = []
    for event in events:
        if (
            event["event"] == "start"
            and event["epoch"] == len(done) + 1
            and event["history"][:-1] == [loss for _, loss in done]
        ):
            done.append((event["epoch"], event["history"][-1]))
        if event["event"] == "epoch":
            done.append((event["epoch"], event["loss"]))
    return done


class Node:
    def __init__(self, name, process, output):
        self.name = name
        self.process = process
        self.output = output  # path of the file with its output
        self.pidfd = os.pidfd_open(process.pid)
        self.killed = False

    def tail(self, lines=25):
        with open(self.output, errors="replace") as file:
            return "".join(file.readlines()[-lines:])


class TrainingRun:
    """folder: for checkpoints, logs and events. As a context manager it ends all processes that it started."""

    def __init__(
        self, folder, *, python, nnodes, nproc=2, run_options=(), train_options=(), script=None, environment=None
    ):
        """script: run this program, with train_options as its arguments, instead of train.py."""
        self.folder = folder
        self.python = python
        self.nodes = {}
        self._nnodes, self._nproc = nnodes, nproc
        self._run_options = list(run_options)
        self._environment = environment or {}
        self._port = free_port()
        self._starts = 0
        self._selector = selectors.DefaultSelector()
        self._pending = collections.deque()
        self._text = b""
        os.makedirs(f"{folder}/checkpoints", exist_ok=True)
        pipe_path = f"{folder}/events.pipe"
        os.mkfifo(pipe_path)
        self._command = (
            [script, *train_options]
            if script
            else [TRAIN, "--checkpoints", f"{folder}/checkpoints", "--events", pipe_path, *train_options]
        )
        # Opened also for writing, so that it reports no end of file between two writers.
        self._pipe = os.open(pipe_path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._pipe, selectors.EVENT_READ, None)
        self._journal = open(f"{folder}/events.jsonl", "a")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start_node(self, name, *, host):
        """host: this node serves the rendezvous endpoint. torchrun knows that by the host's name, here by a flag."""
        command, environment = self._agent(name, host)
        self._starts += 1
        output = f"{self.folder}/{name}.{self._starts}.txt"
        with open(output, "w") as file:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_no_core,
            )
        node = Node(name, process, output)
        self.nodes[name] = node
        self._selector.register(node.pidfd, selectors.EVENT_READ, node)
        return node

    def _agent(self, name, host):
        """(command, environment) of a node's agent. A subclass may override it."""
        command = [
            MUSTER,
            "run",
            "--nnodes",
            self._nnodes,
            "--nproc-per-node",
            str(self._nproc),
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            f"127.0.0.1:{self._port}",
            "--rdzv-id",
            RUN_ID,
            "--rdzv-conf",
            f"is_host={int(host)}",
            "--log-dir",
            f"{self.folder}/logs/{name}",
            "--tee",
            "3",
            *self._run_options,
            *self._command,
        ]
        return command, self._clean_environment(MUSTER_NODE=name)

    def _clean_environment(self, **more):
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("PET_", "MUSTER_", "TORCHELASTIC"))
        }
        return {**environment, "PYTHON_EXEC": self.python, "OMP_NUM_THREADS": "1", **self._environment, **more}

    def next_event(self, deadline):
        """The next event of the training, or {"event": "node_ended", "node", "code"}. deadline: by time.monotonic()."""
        while not self._pending:
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise Broken(f"nothing more was heard in time\n{self.tails()}")
            for key, _ in sorted(ready, key=lambda item: item[0].data is not None):  # the pipe first: older events
                if key.data is None:
                    self._read_pipe()
                else:
                    self._reap(key.data)
        return self._pending.popleft()

    def wait_for(self, wanted, deadline, seen=lambda event: None):
        """Passes events to `seen` until wanted(event), and returns that one. Broken: a node ended unexpectedly."""
        while True:
            event = self.next_event(deadline)
            seen(event)
            if wanted(event):
                return event
            if event["event"] == "node_ended" and event["code"] != 0 and not self.nodes[event["node"]].killed:
                raise Broken(f"{event['node']} ended with code {event['code']}\n{self.tails()}")

    def kill_worker(self, rank, number):
        """Sends the signal. Returns the time (Unix ms)."""
        record = max((r for r in self.attempts() if rank in [w["rank"] for w in r["workers"]]), key=_age)
        pid = next(w["pid"] for w in record["workers"] if w["rank"] == rank)
        now = unix_ms()
        os.kill(pid, number)
        return now

    def kill_node(self, name, deadline):
        """Sends SIGKILL to the agent, whose workers must not outlive it. Returns the time (Unix ms)."""
        node = self.nodes[name]
        workers = [worker for record in self.attempts(name)[-1:] for worker in record["workers"]]
        node.killed = True
        now = unix_ms()
        node.process.kill()
        for worker in workers:
            if not wait_gone(worker["pid"], max(0.0, deadline - time.monotonic())):
                raise Broken(f"worker {worker['pid']} outlived its killed node {name}")
        return now

    def attempts(self, name="*"):
        """attempt.json of all attempts of one node or of all nodes, oldest first."""
        records = []
        for path in glob.glob(f"{self.folder}/logs/{name}/{RUN_ID}/attempt_*/attempt.json"):
            with open(path) as file:
                records.append(json.load(file))
        return sorted(records, key=lambda record: (_age(record), record["node_rank"]))

    def tails(self):
        return "\n".join(
            f"--- last lines of {node.name} ({node.output})\n{node.tail()}" for node in self.nodes.values()
        )

    def close(self):
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes.values():
            try:
                node.process.wait(10)
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()
        self._selector.close()
        os.close(self._pipe)
        self._journal.close()

    def _read_pipe(self):
        self._text += os.read(self._pipe, 1 << 16)
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            self._journal.write(line.decode() + "\n")
            self._pending.append(json.loads(line))
        self._journal.flush()

    def _reap(self, node):
        self._selector.unregister(node.pidfd)
        os.close(node.pidfd)
        code = node.process.wait()
        self._pending.append(
            {"event": "node_ended", "unix_ms": unix_ms(), "node": node.name, "code": code if code >= 0 else 128 - code}
        )


def _age(record):
    return record["term"], record["round"]


def _no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
