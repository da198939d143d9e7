# SPDX-License-Identifier: Apache-2.0
"""A real PyTorch that fails, for the table of causes: two ranks reduce by gloo, and rank 1 does something else."""

import functools
import os
import subprocess

from scenario import DEBIAN, host_folders

PYTHON = "/usr/bin/python3"  # with Debian's python3-torch
TIMEOUT = 5  # s; of the operation that rank 1 does not join
# Rank 0 is in the operation when rank 1 goes on. All have met before, so the timeout holds for the operation alone.
# The groups are destroyed at the end: PyTorch 2.15 aborts after one exception in six when its threads still run then.
PROGRAM = f"""
import os, signal, time, torch, torch.distributed as dist
from datetime import timedelta
from torch.distributed.distributed_c10d import _get_default_store
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 1
    def __getitem__(self, index):
        raise ValueError("no such sample")

dist.init_process_group("gloo")
try:
    group = dist.new_group(timeout=timedelta(seconds={TIMEOUT}))
    for each in (None, group):
        dist.all_reduce(torch.ones(1), group=each)
    store = _get_default_store()
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(1), group=WHICH, async_op=True)
        store.set("reduces", "1")
        work.wait()
    else:
        store.wait(["reduces"])
        FAULT
finally:
    dist.destroy_process_group()
"""
RAISES = "{}['step']"
DIES = "os.kill(os.getpid(), signal.SIGKILL)"
LOADS = "next(iter(DataLoader(Data(), num_workers=1)))"
SLEEPS = "time.sleep(1000)"


def command(fault, python=PYTHON):
    group = "group" if fault == SLEEPS else "None"
    return [python, "-B", "-c", PROGRAM.replace("WHICH", group).replace("FAULT", fault)]


@functools.lru_cache
def missing(python=PYTHON):
    """Why that Python cannot run the programs; "" if it has PyTorch."""
    has_torch = (
        os.path.exists(python)
        and subprocess.run([python, "-c", "import torch.distributed"], capture_output=True).returncode == 0
    )
    return "" if has_torch else f"no PyTorch of {python}"


def on_debian(pod, container):
    """Mounts the machine's Debian."""
    volumes, mounts = host_folders(DEBIAN)
    pod["volumes"] += volumes
    container["volumeMounts"] += mounts
    container["env"].append({"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"})
