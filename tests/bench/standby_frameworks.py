#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with real frameworks through two failures, from cold starts and from standbys, and compares the results.

    tests/bench/standby_frameworks.py [--only nanogpt,lightning] [--keep FOLDER]

Each program of tests/bench/frameworks runs three times with 2 workers: without a failure; with a SIGKILL of rank 1 and
an exit of rank 0, and standbys off; with the same failures, and standbys on. A worker fails when all standbys are
ready. The losses of all steps, the hash of the final parameters, the exit code and the number of attempts must be
those that are expected. What a program sees of its process (scenario.facts) must be the same in a standby and in a
cold start. Exit code 1: a difference. The first run sets up 2.3 GB in the cache; what cannot be set up is skipped.
"""

import argparse
import dataclasses
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
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import launchers

PROGRAMS = os.path.join(launchers.HERE, "frameworks")
# The program, and the venv of build-support/setup-venv that it needs.
FRAMEWORKS = {
    "nanogpt": "training-frameworks",
    "ddp_trainer": "training-frameworks",
    "dcp_fsdp": "training-frameworks",
    "accelerate_loop": "training-frameworks",
    "lightning_fit": "training-frameworks",
    "hf_trainer": "training-frameworks",
    "deepspeed_engine": "deepspeed",
}
FAILURES = "3:1:kill 6:0:exit"
STEPS = 8
WORKERS = 2
LIMIT = 300  # seconds for one wait
# What a start has for itself.
OF_ROUND = {
    f"variable {name}"
    for name in (
        "MASTER_PORT",
        "MUSTER_HEARTBEAT_FILE",
        "MUSTER_NODE",
        "TORCHELASTIC_ERROR_FILE",
        "TORCHELASTIC_RUN_ID",
    )
}


@dataclasses.dataclass
class Outcome:
    code: int = -1
    attempts: int = 0
    from_standby: int = 0
    version: str = ""
    losses: dict = dataclasses.field(default_factory=dict)  # (rank, step): those that were reported
    hashes: set = dataclasses.field(default_factory=set)
    seconds: list = dataclasses.field(default_factory=list)  # from each failure to the first step of the last rank
    off: str = ""  # the line of the log that says why there are no standbys
    facts: dict = dataclasses.field(default_factory=dict)  # by (attempt, rank, "begun" or "end")


class Run:
    """One run of a program in `folder`, which is empty."""

    def __init__(self, program, python, folder, failures, standbys):
        self.folder, self.failures, self.standbys = folder, failures, standbys
        self.outcome = Outcome()
        self.failed = None  # (attempt, moment)
        self.stepped = set()  # ranks that have done a step since
        self.log = os.path.join(folder, "log")
        self.pipe, self.gate = (self.fifo(name) for name in ("pipe", "gate"))
        environment = {
            **launchers.muster(LIMIT).environment(),
            "PYTHON_EXEC": python,
            "SCENARIO_FOLDER": folder,
            "SCENARIO_PIPE": os.path.join(folder, "pipe"),
            "SCENARIO_GATE": os.path.join(folder, "gate"),
            "SCENARIO_FAILURES": failures,
            "SCENARIO_STEPS": str(STEPS),
            "TMPDIR": folder,
            "XDG_STATE_HOME": os.path.join(folder, "state"),
            "HF_HOME": os.path.join(folder, "huggingface"),
            "HF_HUB_OFFLINE": "1",
        }
        self.command = [
            *launchers.muster(LIMIT).command,
            f"--nproc-per-node={WORKERS}",
            "--max-restarts=4",
            f"--standby-workers={'auto' if standbys else 'off'}",
            "--standby-delay=0s",
            "--log-level=debug",
            "--http-port=127.0.0.1:0",
            f"--log-dir={folder}/logs",
            "--tee=3",
            os.path.join(PROGRAMS, program + ".py"),
        ]
        with open(self.log, "w") as output:
            self.agent = subprocess.Popen(
                self.command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def fifo(self, name):
        path = os.path.join(self.folder, name)
        os.mkfifo(path)
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def finish(self):
        try:
            self.follow()
        finally:
            self.agent.terminate()
            self.outcome.code = self.agent.wait()
            os.close(self.pipe)
            os.close(self.gate)
        for path, _, files in os.walk(os.path.join(self.folder, "logs")):
            if "attempt.json" in files:
                with open(os.path.join(path, "attempt.json")) as file:
                    self.outcome.from_standby += json.load(file)["standby_workers"]
                self.outcome.attempts += 1
        return self.outcome

    def follow(self):
        ended = os.pidfd_open(self.agent.pid)
        try:
            rest = b""
            while True:
                ready = select.select([self.pipe, ended], [], [], LIMIT)[0]
                if not ready:
                    raise launchers.TooLong(LIMIT)
                if self.pipe not in ready:
                    return
                *lines, rest = (rest + os.read(self.pipe, 1 << 16)).split(b"\n")
                for line in lines:
                    self.take(json.loads(line))
        finally:
            os.close(ended)

    def take(self, report):
        what, rank, attempt = report["what"], report["rank"], report["attempt"]
        if "facts" in report:
            with open(report["facts"]) as file:
                self.outcome.facts[attempt, rank, what] = json.load(file)
        if what == "begun":
            self.outcome.version = report["version"]
        elif what == "step":
            self.outcome.losses.setdefault((rank, report["step"]), set()).add(report["loss"])
            if self.failed and attempt > self.failed[0]:
                self.stepped.add(rank)
                if len(self.stepped) == WORKERS:
                    self.outcome.seconds.append(report["at"] - self.failed[1])
                    self.failed = None
        elif what == "failing":
            if self.standbys:
                self.await_standbys()
            self.failed, self.stepped = (attempt, time.monotonic()), set()
            os.write(self.gate, b"\n")
        elif what == "end":
            self.outcome.hashes.add(report["hash"])

    def read_log(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def await_standbys(self):
        """Until each worker has a standby, and these have done nothing for two seconds: the last names come late."""
        port = re.search(r"/metrics, .* on (?:127\.0\.0\.1 )?port (\d+)", self.read_log())[1]
        begin = since = time.monotonic()
        used = {}
        while time.monotonic() - since < 2:
            if time.monotonic() - begin > LIMIT:
                raise launchers.TooLong(LIMIT)
            off = re.search("no standby workers from now on.*", self.read_log())
            if off:
                self.outcome.off = off[0]
                return
            time.sleep(0.05)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT) as answer:
                ready = f"\nmuster_standby_workers {WORKERS}\n" in answer.read().decode()
            before = used
            try:
                used = {pid: launchers.cpu_seconds(pid) for pid in standbys_of(self.agent.pid)}
            except OSError:  # one has ended meanwhile
                used = {}
            if not ready or len(used) != WORKERS or used != before:
                since = time.monotonic()


def standbys_of(agent):
    """The pids of an agent's standbys."""
    with open(f"/proc/{agent}/task/{agent}/children") as file:
        children = file.read().split()
    found = []
    for child in children:
        with open(f"/proc/{child}/oom_score_adj") as score:
            if score.read().strip() == "1000":  # the kernel takes a standby first
                found.append(int(child))
    return found


def differences(calm, cold, warm):
    """Sentences about what is not as it must be. `calm`: the run without a failure."""
    found = []
    for name, outcome, attempts in (("no failure", calm, 1), ("cold", cold, 3), ("standby", warm, 3)):
        if outcome.code != 0:
            found.append(f"{name}: exit code {outcome.code}")
        if outcome.attempts != attempts:
            found.append(f"{name}: {outcome.attempts} attempts, not {attempts}")
        if len(outcome.hashes) != 1 or outcome.hashes != calm.hashes:
            found.append(f"{name}: the final parameters have the hashes {sorted(outcome.hashes)}")
        for place in [(rank, step) for rank in range(WORKERS) for step in range(STEPS)]:
            losses = outcome.losses.get(place, set())
            if len(losses) != 1 or losses != calm.losses.get(place):
                found.append(f"{name}: rank {place[0]} has the losses {sorted(losses)} in step {place[1]}")
    if warm.from_standby != (warm.attempts - 1) * WORKERS:
        found.append(f"standby: {warm.from_standby} workers began in a standby {warm.off}".rstrip())
    return found + different_facts(cold, warm)


def different_facts(cold, warm):
    found = []
    for place in sorted(cold.facts.keys() & warm.facts.keys()):
        if place[0] == 0:
            continue
        ours, theirs = warm.facts[place], cold.facts[place]
        for name in sorted(ours.keys() | theirs.keys()):
            if name in OF_ROUND or ours.get(name) == theirs.get(name):
                continue
            if place[2] == "begun" and (name not in theirs or name == "warnings"):
                continue  # of a module that the program has not imported yet
            if name.startswith("logger ") and name not in theirs:
                continue  # of one that it imported only in the attempts before
            found.append(f"{name}: {ours.get(name)} in a standby, {theirs.get(name)} in a cold start {place}")
    return found


def measure(program, python, parent):
    """The row of the table, and the differences. `parent`: an empty folder."""
    outcomes = []
    for name, failures, standbys in (("calm", "", False), ("cold", FAILURES, False), ("standby", FAILURES, True)):
        folder = os.path.join(parent, "run")  # the same for all: the programs see it
        os.mkdir(folder)
        run = Run(program, python, folder, failures, standbys)
        try:
            outcomes.append(run.finish())
        except launchers.TooLong as error:
            print(run.read_log()[-3000:], file=sys.stderr)
            return [program, "-", "-", "-", "-", "-", "no"], [f"{name}: {error}"]
        if outcomes[-1].code != 0:
            print(run.read_log()[-3000:], file=sys.stderr)
        os.rename(folder, os.path.join(parent, name))
    calm, cold, warm = outcomes
    found = differences(calm, cold, warm)
    seconds = [f"{statistics.mean(outcome.seconds):.2f}" if outcome.seconds else "-" for outcome in (cold, warm)]
    starts = f"{warm.from_standby} of {(warm.attempts - 1) * WORKERS}"
    return [program, calm.version, str(warm.attempts), starts, *seconds, "no" if found else "yes"], found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FRAMEWORKS))
    parser.add_argument("--keep", metavar="FOLDER", help="leave logs and checkpoints there; it must not exist")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    head = [
        "program",
        "version",
        "attempts",
        "from standbys",
        "failure to first step, cold (s)",
        "standby (s)",
        "equal",
    ]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    wrong = False
    for program in options.only.split(","):
        if program not in FRAMEWORKS:
            raise SystemExit(f"'{program}' is not a program: choose among {', '.join(FRAMEWORKS)}")
        python = launchers.venv_python(FRAMEWORKS[program])
        if python is None:
            print(
                f"SKIPPED: {program}: the venv {FRAMEWORKS[program]} could not be set up", file=sys.stderr, flush=True
            )
            continue
        with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
            if options.keep:
                folder = os.path.join(options.keep, program)
                os.makedirs(folder)
            row, found = measure(program, python, folder)
        print(f"| {' | '.join(row)} |", flush=True)
        for sentence in found:
            print(f"  {program}: {sentence}", flush=True)
        wrong = wrong or bool(found)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
