# SPDX-License-Identifier: Apache-2.0
"""What the programs of standby_frameworks.py share: reports to it, failures that it has ordered, a hash of the result.

A program does the steps 0 to STEPS - 1. A report is a line of JSON to the pipe SCENARIO_PIPE. SCENARIO_FAILURES orders
failures, "STEP:RANK:HOW" with spaces between: HOW is kill (SIGKILL) or exit (code 1). Each happens once in a run, when
standby_frameworks.py has written a byte to SCENARIO_GATE.
"""

import gc
import hashlib
import json
import logging
import os
import signal
import sys
import threading
import time
import warnings

import torch
import torch.distributed as dist

STEPS = int(os.environ["SCENARIO_STEPS"])
FOLDER = os.environ["SCENARIO_FOLDER"]
RANK = int(os.environ["RANK"])
FAILURES = [failure.split(":") for failure in os.environ["SCENARIO_FAILURES"].split()]


def checkpoints():
    path = os.path.join(FOLDER, "checkpoints")
    os.makedirs(path, exist_ok=True)
    return path


def report(what, **values):
    values.update(what=what, attempt=int(os.environ["TORCHELASTIC_RESTART_COUNT"]), rank=RANK, at=time.monotonic())
    line = (json.dumps(values) + "\n").encode()
    pipe = os.open(os.environ["SCENARIO_PIPE"], os.O_WRONLY)
    os.write(pipe, line)
    os.close(pipe)


def begin(version, **more):
    """All imports are done, nothing else: notes what the program finds, with `more`, and sets the seed."""
    report("begun", version=version, facts=write_facts("begun", more))
    torch.manual_seed(1337)


def about_to_do(step):
    """All ranks call this when the checkpoint of the step before is complete."""
    for at, rank, how in FAILURES:
        mark = os.path.join(FOLDER, f"failed-at-{at}")
        if int(at) != step or os.path.exists(mark):
            continue
        dist.barrier()
        if int(rank) == RANK:
            fail(mark, how)


def fail(mark, how):
    with open(mark, "x"):
        report("failing")
    with open(os.environ["SCENARIO_GATE"], "rb", buffering=0) as gate:
        gate.read(1)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(1)


def done(step, loss):
    report("step", step=step, loss=float(loss).hex())


def end(parameters):
    """`parameters`: (name, tensor) of the trained model."""
    digest = hashlib.sha256()
    for name, tensor in sorted(parameters, key=lambda pair: pair[0]):
        digest.update(name.encode())
        digest.update(tensor.detach().float().contiguous().numpy().tobytes())
    report("end", hash=digest.hexdigest(), facts=write_facts("end", {}))


def write_facts(when, more):
    """The path of a file with facts() and `more`: they are too long for a line that a pipe takes as a whole."""
    path = os.path.join(FOLDER, f"facts-{os.environ['TORCHELASTIC_RESTART_COUNT']}-{RANK}-{when}")
    with open(path, "w") as file:
        json.dump({**facts(), **{name: str(value) for name, value in more.items()}}, file)
    return path


def facts():
    """What a program may see of its process, as text by name. Equal in attempts that begin in different ways."""
    found = {
        "argv": sys.argv,
        "flags": sys.flags,
        "path": sys.path,
        "executable": sys.executable,
        "recursion limit": sys.getrecursionlimit(),
        "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__],
        "garbage collector": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "threads of python": sorted(thread.name for thread in threading.enumerate()),
        "torch threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "torch types": [torch.get_default_dtype(), torch.get_default_device()],
        "torch modes": [
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            torch.backends.mkldnn.enabled,
            torch.multiprocessing.get_sharing_strategy(),
        ],
        "start method": torch.multiprocessing.get_start_method(allow_none=True),
        "warnings": sorted(map(str, warnings.filters)),
        "umask": os.umask(0o22),
        "affinity": sorted(os.sched_getaffinity(0)),
        "priority": [os.nice(0), os.getpriority(os.PRIO_PROCESS, 0)],
        "folder": os.getcwd(),
        "group and session": [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getppid()],
    }
    os.umask(int(found["umask"]))
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        found[f"signal {number}"] = getattr(handler, "__qualname__", handler)
    for number in range(3):
        found[f"descriptor {number}"] = os.stat(number).st_mode >> 12
    for name, value in os.environ.items():
        found[f"variable {name}"] = value
    for name in ["root", *logging.root.manager.loggerDict]:
        logger = logging.getLogger(name) if name != "root" else logging.root
        handlers = [f"{type(handler).__name__} {handler.level}" for handler in logger.handlers]
        found[f"logger {name}"] = [logger.level, logger.propagate, logger.disabled, handlers]
    with open("/proc/self/status") as status:
        for line in status:
            name, _, value = line.partition(":")
            if name in ("SigBlk", "SigIgn", "SigCgt"):
                found[name] = hex(int(value, 16) & ~(3 << 31))  # without glibc's own, for threads
            elif name in ("CapEff", "NoNewPrivs", "Seccomp", "THP_enabled", "CoreDumping"):
                found[name] = value.strip()
    with open("/proc/self/oom_score_adj") as score:
        found["oom score"] = score.read().strip()
    return {name: str(value) for name, value in found.items()}
