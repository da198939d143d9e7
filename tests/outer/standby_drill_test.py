# SPDX-License-Identifier: Apache-2.0
"""Kills workers and standbys at random. The job must end as if nothing had happened, and leave nothing.

MUSTER_DRILL_KILLS=200 makes a long drill, MUSTER_DRILL_SEED another one. Each 20 kills it prints the descriptors and
the resident memory of the launcher and of both agents.
"""

import json
import os
import random
import re
import select
import signal

from muster_case import DEADLINE, HERE, MusterCase, alive, main

import drill_worker

KILLS = int(os.environ.get("MUSTER_DRILL_KILLS", 10))
SEED = int(os.environ.get("MUSTER_DRILL_SEED", 1))
NODES, WORKERS = 2, 2
WORLD = NODES * WORKERS
AHEAD = 20  # steps from the last kill to the end


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def load(pid):
    """(descriptors, KiB of resident memory)"""
    with open(f"/proc/{pid}/status") as status:
        (memory,) = [int(line.split()[1]) for line in status if line.startswith("VmRSS")]
    return len(os.listdir(f"/proc/{pid}/fd")), memory


class Drill(MusterCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.path = lambda name: os.path.join(self.dir, name)
        os.mkfifo(self.path("pipe"))
        self.pipe = os.open(self.path("pipe"), os.O_RDWR)
        self.addCleanup(os.close, self.pipe)
        self.rest = b""
        self.attempt, self.pids, self.steps = -1, {}, {}  # by rank, of the newest attempt

    def reports(self, count):
        """Waits for so many steps of the newest attempt."""
        while count > 0:
            while b"\n" not in self.rest:
                self.assertTrue(select.select([self.pipe], [], [], DEADLINE)[0], "no worker does a step")
                self.rest += os.read(self.pipe, 65536)
            line, _, self.rest = self.rest.partition(b"\n")
            attempt, rank, pid, step = map(int, line.split())
            if attempt > self.attempt:
                self.attempt, self.pids = attempt, {}
            self.steps[rank] = step
            if attempt == self.attempt:
                self.pids[rank] = pid
                count -= 1

    def whole_attempt(self, after):
        """Waits until all workers of an attempt that is newer than `after` run."""
        while self.attempt <= after or len(self.pids) < WORLD:
            self.reports(1)

    def standbys(self, nodes):
        """Standbys of all nodes, also such that still import, and perhaps a worker that has not reported yet."""
        found = [child for node in nodes for child in children(node)]
        return [pid for pid in found if pid not in self.pids.values() and alive(pid)]

    def kill_some(self, nodes):
        """Returns whether one of them was a worker."""
        # A standby that was killed is replaced after 10 s: if many were, there would be none.
        kind = self.random.choice(["worker"] * 16 + ["two workers"] * 4 + ["standby", "both"])
        targets = self.random.sample(sorted(self.pids.values()), 2 if kind == "two workers" else 1)
        standbys = self.standbys(nodes)
        if kind in ("standby", "both") and standbys:
            targets = [self.random.choice(standbys)] + (targets if kind == "both" else [])
        for pid in targets:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the kill before has stopped its round
        return not standbys or kind != "standby"

    def left_processes(self):
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as environment:
                    if f"TMPDIR={self.dir}".encode() in environment.read().split(b"\0") and alive(entry):
                        found.append(int(entry))
            except OSError:
                pass  # gone, or not ours
        return found

    def test_random_kills(self):
        words = ("--standby-workers", "auto", "--standby-delay", "0s", "--max-restarts", str(2 * KILLS))
        place = ("--nodes-on-this-machine", str(NODES), "--nproc-per-node", str(WORKERS), "--log-level", "debug")
        agent = self.start(*place, *words, os.path.join(HERE, "drill_worker.py"), worker=False)
        self.whole_attempt(-1)
        nodes = children(agent.pid)
        self.assertEqual(len(nodes), NODES)
        loads = []
        for number in range(KILLS + 1):
            if number % 20 == 0 or number == KILLS:
                loads.append([load(pid) for pid in (agent.pid, *nodes)])
                print(f"{number} kills, attempt {self.attempt}: (descriptors, KiB): {loads[-1]}", flush=True)
            if number < KILLS:
                self.reports(self.random.randrange(300))
                attempt = self.attempt
                if self.kill_some(nodes):
                    self.whole_attempt(attempt)
        goal = max(self.steps.values()) + AHEAD
        with open(self.path("goal.new"), "w") as file:
            file.write(str(goal))
        os.rename(self.path("goal.new"), self.path("goal"))
        self.assertEqual(agent.wait(), 0, agent.output())
        self.check_states(goal)
        self.assertEqual(self.left_processes(), [])
        expected = {"agent-0.txt", "goal", "pipe", "socket", "state", *(f"checkpoint-{rank}" for rank in range(WORLD))}
        self.assertLessEqual(set(os.listdir(self.dir)), expected)
        begun = sum(map(int, re.findall(r"(\d) of 2 workers began in a standby", agent.output())))
        print(f"{begun} of {self.attempt * WORLD} workers began in a standby", flush=True)
        self.assertGreater(begun, 0)
        for before, now in zip(loads[min(1, len(loads) - 2)], loads[-1]):
            self.assertLessEqual(now[0], before[0] + 8)  # standbys may be ready now, and not then
            self.assertLess(now[1], before[1] + (16 << 10))

    def check_states(self, goal):
        for rank in range(WORLD):
            with open(self.path(f"checkpoint-{rank}")) as file:
                state = json.load(file)
            link = b""
            for step in range(state["step"]):
                link = drill_worker.link_after(link, rank, step)
            self.assertEqual(state["link"], link.hex())
            self.assertGreaterEqual(state["step"], goal)


if __name__ == "__main__":
    main()
