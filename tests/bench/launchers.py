# SPDX-License-Identifier: Apache-2.0
"""The launchers that are measured, and the workers that report their start.

A Scene is one measurement: it starts agents of one launcher, reads the reports of its workers (probe.c) from a pipe,
and ends all processes. Times are seconds of the monotonic clock. A wait that is too long raises TooLong: "not in N s".
"""

import dataclasses
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests"))

from free_port import free_port


class TooLong(Exception):
    def __init__(self, limit):
        super().__init__(f"not in {limit:.0f} s")


@dataclasses.dataclass
class Launcher:
    """A command that takes torchrun's flags (spelled with underscores, which all launchers know)."""

    name: str
    command: list
    python: str  # runs the python workers
    limit: float  # seconds after which a row is given up

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "MUSTER_", "TORCHELASTIC"))}
        return {**kept, "PYTHON_EXEC": self.python, "OMP_NUM_THREADS": "1"}


@dataclasses.dataclass
class Probe:
    started: float
    pid: int
    parent: int
    rank: int
    world: int
    group_rank: int
    epoch: tuple  # differs between rounds if the launcher shows them to its workers


def muster(limit):
    binary = os.environ.get("MUSTER_BINARY", os.path.join(ROOT, "build", "bin", "muster"))
    if not os.access(binary, os.X_OK):
        raise SystemExit(f"{binary} is missing: run `make build` first, or set MUSTER_BINARY")
    return Launcher("muster", [binary, "run"], torch_python() or "/usr/bin/python3", limit)


def torch_python():
    """The newest torch's venv, else Debian's python if it has torch, else None."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.exists(f"{cache}/muster/torch-newest/muster-ready"):
        return f"{cache}/muster/torch-newest/bin/python"
    code = "import importlib.util as u, sys; sys.exit(not u.find_spec('torch'))"
    return "/usr/bin/python3" if subprocess.run(["/usr/bin/python3", "-c", code]).returncode == 0 else None


def venv_python(name):
    """The python of a venv of build-support/setup-venv, or None: it cannot be set up."""
    setup = os.path.join(ROOT, "build-support", "setup-venv")
    made = subprocess.run([setup, name], stdout=subprocess.PIPE, text=True)
    return os.path.join(made.stdout.strip(), "python") if made.returncode == 0 else None


def torchrun(limit):
    """None if there is no torch here."""
    python = torch_python()
    if not python:
        return None
    version = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True, text=True
    )
    version = version.stdout.split("+")[0].strip()
    command = [python, "-m", "torch.distributed.run"]
    if version.startswith("1."):  # else it cannot start with python 3.11, and polls every 5 s
        command += ["-r", "1", "-t", "1", "--monitor_interval", "0.1"]
    return Launcher(f"torchrun {version}", command, python, limit)


def build(name, folder):
    """Compiles NAME.c of this folder; returns the path of the program."""
    path = os.path.join(folder, name)
    source = os.path.join(HERE, f"{name}.c")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-static", "-o", path, source], check=True)
    return path


def cpu_seconds(pid):
    """User and system time of a process, its ended children not counted."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wake_ups(pid):
    """Voluntary context switches of all its threads."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return total


class Scene:
    """Use as a context manager. Not thread-safe."""

    def __init__(self, launcher, probe):
        self.launcher = launcher
        self.agents = []
        self._probe = probe
        self._folder = tempfile.mkdtemp(prefix="muster-bench-")
        self._port = free_port()
        path = f"{self._folder}/pipe"
        os.mkfifo(path)
        self._pipe_path = path
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._text = b""
        self._pids = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
        for agent in self.agents:
            agent.wait()
        try:
            self._read(0)
        except TooLong:
            pass
        for pid in self._pids:  # torchrun's workers outlive it
            try:
                if os.readlink(f"/proc/{pid}/exe") == self._probe:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        os.close(self._pipe)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, *flags, worker=None):
        """One agent; `worker`: a command other than the probe."""
        command = [*self.launcher.command, "--log_dir", f"{self._folder}/log{len(self.agents)}", *flags]
        command += worker or ["--no_python", self._probe]
        with open(f"{self._folder}/agent{len(self.agents)}.txt", "w") as output:
            agent = subprocess.Popen(
                command,
                env={**self.launcher.environment(), "PROBE_PIPE": self._pipe_path},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.agents.append(agent)
        return agent

    def node(self, nnodes, nproc, *flags):
        """One agent of a dynamic rendezvous; the first one hosts the endpoint."""
        conf = f"is_host={int(not self.agents)},last_call_timeout=1"
        return self.start(
            "--nnodes",
            nnodes,
            "--nproc_per_node",
            str(nproc),
            "--rdzv_backend",
            "c10d",
            "--rdzv_endpoint",
            f"127.0.0.1:{self._port}",
            "--rdzv_id",
            "bench",
            "--rdzv_conf",
            conf,
            *flags,
        )

    def static_node(self, rank, nnodes, nproc, *flags):
        return self.start(
            "--nnodes",
            nnodes,
            "--nproc_per_node",
            str(nproc),
            "--node_rank",
            str(rank),
            "--master_addr",
            "127.0.0.1",
            "--master_port",
            str(self._port),
            *flags,
        )

    def workers(self, world, since=0.0):
        """Waits for a round of `world` workers that all started after `since`. Returns these workers by rank."""
        end = time.monotonic() + self.launcher.limit
        rounds = {}
        while True:
            for probe in self._read(end):
                if probe.world != world or probe.started <= since:
                    continue
                members = rounds.setdefault(probe.epoch, {})
                members[probe.rank] = probe
                if len(members) == world:
                    return [members[rank] for rank in range(world)]

    def wait_ended(self, agents):
        """Waits for all agents. Returns the exit codes as a shell shows them."""
        end = time.monotonic() + self.launcher.limit
        for agent in agents:
            try:
                agent.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise TooLong(self.launcher.limit) from None
        return [agent.returncode if agent.returncode >= 0 else 128 - agent.returncode for agent in agents]

    def said(self):
        texts = []
        for index in range(len(self.agents)):
            with open(f"{self._folder}/agent{index}.txt", errors="replace") as file:
                texts.append(file.read()[-2000:])
        return "\n".join(texts)

    def _read(self, end):
        ready, _, _ = select.select([self._pipe], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TooLong(self.launcher.limit)
        self._text += os.read(self._pipe, 1 << 16)
        *lines, self._text = self._text.split(b"\n")
        probes = []
        for line in lines:
            started, pid, parent, rank, world, group_rank, *epoch = line.decode().split()
            probes.append(
                Probe(int(started) / 1e9, int(pid), int(parent), int(rank), int(world), int(group_rank), tuple(epoch))
            )
            self._pids.add(int(pid))
        return probes
