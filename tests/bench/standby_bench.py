#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a restart costs a DDP training of 2 nodes x 2 workers: cold, from standbys, and under torchrun.

    tests/bench/standby_bench.py [--kills N] [--only off,auto,spare,torchrun] [--transformers] [--json FILE]

A worker is killed; the figures are the seconds until the last of the four workers has done its first all_reduce, and
its first step, in the next attempt. Under `auto` a worker is killed when all standbys are ready. Under `spare` a node
is killed, with its agent, and a third one that has waited takes its place. Also: the memory that a standby has alone,
the CPU time that it uses while it waits, and 500 steps beside four of them over 500 steps beside none, in pairs: they
are killed between the two, and made again 10 s later. The torch is the newest if
build-support/setup-newest-torch has been run, else Debian's. With --transformers the script also imports transformers,
datasets and accelerate, and trains a small GPT-2; their venv is set up in the cache.
"""

import argparse
import json
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import launchers

WORKER = os.path.join(launchers.HERE, "ddp_worker.py")
WORLD = 4
LIMIT = 120  # seconds for one attempt
PAIRS = 6


class Lines:
    """The reports of the workers. A line is (attempt, rank, what, seconds)."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "pipe")
        os.mkfifo(self.path)
        self.pipe = os.open(self.path, os.O_RDWR)
        self.rest = b""

    def next(self, deadline):
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.pipe], [], [], left)[0]:
                raise launchers.TooLong(LIMIT)
            self.rest += os.read(self.pipe, 65536)
        line, _, self.rest = self.rest.partition(b"\n")
        attempt, rank, what, seconds = line.decode().split()
        return int(attempt), int(rank), what, float(seconds)

    def attempt(self, number):
        """The moments of an attempt's workers: {what: {rank: seconds}}, when all have stepped."""
        seen = {}
        deadline = time.monotonic() + LIMIT
        while len(seen.get("stepped", {})) < WORLD:
            attempt, rank, what, seconds = self.next(deadline)
            if attempt >= number:
                seen.setdefault(what.partition(":")[0], {})[rank] = seconds
                if what.startswith("pid:"):
                    seen.setdefault("pids", {})[rank] = int(what[4:])
        return seen

    def loops(self, count):
        """How long rank 0 took for 500 steps, `count` times from now on."""
        deadline = time.monotonic() + LIMIT
        while select.select([self.pipe], [], [], 0)[0]:
            self.next(deadline)
        found = []
        while len(found) < count:
            _, rank, what, seconds = self.next(deadline)
            if rank == 0 and what == "500":
                found.append(seconds)
        return found


def await_standbys(log, count, begin=0):
    """The pids of the standbys, when `count` have been ready since the last start, and the memory that one has.

    What the log has before the byte `begin` does not count."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        with open(log, "rb") as file:
            text = file.read()[begin:].decode(errors="replace")
        since = text[text.rfind("began in a standby") + 1 :]
        ready = re.findall(r"a standby worker is ready pid=(\d+) .*private_bytes=(\d+)", since)
        newest = dict(ready)
        if len(newest) >= count:
            return [int(pid) for pid in newest], max(int(memory) for memory in newest.values())
        time.sleep(0.05)
    raise launchers.TooLong(LIMIT)


def stat_of(pid):
    """The fields of /proc/PID/stat after the name of the program: state, parent, ..."""
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        ticks += sum(map(int, stat_of(pid)[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def command_of(mode, kills, worker):
    restarts = f"--max-restarts={kills + 1}"
    if mode == "torchrun":
        port = launchers.free_port()
        torchrun = launchers.torchrun(LIMIT)
        place = ["--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{port}", "--rdzv_id=bench"]
        return [[*torchrun.command, "--nnodes=2", "--nproc_per_node=2", restarts, *place, *worker]] * 2
    muster = launchers.muster(LIMIT)
    flags = ["--nodes-on-this-machine=2", "--nproc-per-node=2", restarts, f"--standby-workers={mode}"]
    return [[*muster.command, *flags, "--standby-delay=0s", "--log-level=debug", *worker]]


def environment_of(lines, folder, python):
    given = {"BENCH_PIPE": lines.path, "TMPDIR": folder, "PYTHON_EXEC": python}
    return {**launchers.muster(LIMIT).environment(), **given}


def kill_and_measure(pid, lines, attempt, figures):
    """Kills the process, notes what passed until the next attempt had reduced and stepped, and returns its moments."""
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    seen = lines.attempt(attempt)
    for what in ("reduced", "stepped"):
        figures[what].append(max(seen[what].values()) - killed)
    return seen


def end(processes):
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def ready_in(log):
    with open(log) as file:
        return len(re.findall(r"a standby worker is ready", file.read()))


def await_quiet(logs, each):
    """Waits until each log has told of `each` standbys, and of nothing more for longer than an import takes."""
    deadline = time.monotonic() + LIMIT
    before = None
    while time.monotonic() < deadline:
        now = [ready_in(log) for log in logs]
        if min(now) >= each and now == before:
            return
        before = now
        time.sleep(8)
    raise launchers.TooLong(LIMIT)


def measure_spare(kills, worker, python):
    """As measure(). The first node stays: it holds the endpoint."""
    figures = {"reduced": [], "stepped": []}
    with tempfile.TemporaryDirectory() as folder:
        lines = Lines(folder)
        muster = launchers.muster(LIMIT)
        place = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{launchers.free_port()}", "--rdzv-id=bench"]
        flags = ["--nnodes=2", "--nproc-per-node=2", f"--max-restarts={kills + 1}", *place]
        flags += ["--standby-workers=auto", "--standby-delay=0s", "--log-level=debug"]
        nodes = {}  # by the agent's pid

        def begin():
            log = os.path.join(folder, f"log-{len(os.listdir(folder))}")
            environment = environment_of(lines, folder, python)
            environment["XDG_STATE_HOME"] = log + "-state"  # as on another machine
            with open(log, "w") as output:
                command = [*muster.command, *flags, *worker]
                node = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
            nodes[node.pid] = (node, log)
            return node.pid

        try:
            stays = begin()
            await_quiet([nodes[stays][1]], 2)
            begin()
            seen = lines.attempt(0)
            for kill in range(kills):
                begin()
                await_quiet([log for _, log in nodes.values()], 2)
                (lost,) = {int(stat_of(pid)[1]) for pid in seen["pids"].values()} - {stays}
                seen = kill_and_measure(lost, lines, kill + 1, figures)
                nodes.pop(lost)[0].wait()
        except launchers.TooLong as error:
            return str(error)
        finally:
            end([node for node, _ in nodes.values()])
    return figures


def measure_cost(log, pids, lines):
    """What standbys that wait cost the workers."""
    lines.loops(2)  # they import what their workers have imported since
    used = cpu_seconds(pids)
    lines.loops(2)
    figures = {"CPU of four that wait": cpu_seconds(pids) - used, "500 steps, with over without": []}
    for _ in range(PAIRS):
        (beside,) = lines.loops(2)[1:]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        mark = os.path.getsize(log)
        (alone,) = lines.loops(2)[1:]
        figures["500 steps, with over without"].append(beside / alone)
        pids, _ = await_standbys(log, WORLD, mark)
        lines.loops(2)
    return figures


def measure(mode, kills, worker, python):
    """{"reduced": [s], "stepped": [s], "500 steps": [s], ...}, or a sentence."""
    figures = {"reduced": [], "stepped": []}
    with tempfile.TemporaryDirectory() as folder:
        lines = Lines(folder)
        log = os.path.join(folder, "log")
        environment = environment_of(lines, folder, python)
        with open(log, "w") as output:
            launched = [
                subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
                for command in command_of(mode, kills, worker)
            ]
        try:
            seen = lines.attempt(0)
            for kill in range(kills):
                if mode == "auto":
                    pids, figures["private bytes"] = await_standbys(log, WORLD)
                if kill == 0 and mode == "auto":
                    figures.update(measure_cost(log, pids, lines))
                seen = kill_and_measure(seen["pids"][WORLD - 1], lines, kill + 1, figures)
        except launchers.TooLong as error:
            return str(error)
        finally:
            end(launched)
    return figures


def text_of(value):
    if isinstance(value, list):
        return f"{statistics.median(value):.3f} ({min(value):.3f}-{max(value):.3f}, {len(value)} times)"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--only", default="off,auto,spare,torchrun")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    python = launchers.venv_python("training-frameworks") if options.transformers else launchers.torch_python()
    worker = [WORKER, "transformers"] if options.transformers else [WORKER]
    print(f"python: {python}")
    results = {}
    for mode in options.only.split(","):
        if mode == "spare":
            results[mode] = measure_spare(options.kills, worker, python)
        else:
            results[mode] = measure(mode, options.kills, worker, python)
        if isinstance(results[mode], str):
            print(f"{mode}: {results[mode]}")
            continue
        for what, value in results[mode].items():
            print(f"{mode}: {what}: {text_of(value)}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
