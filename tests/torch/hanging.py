# SPDX-License-Identifier: Apache-2.0
"""A worker of the PyTorch tests: in the first round the last rank leaves out a collective, and all ranks hang."""

import faulthandler
import os
import signal

import torch
import torch.distributed as dist

faulthandler.register(signal.SIGUSR1, all_threads=True)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def beat(step):
    with open(os.environ["MUSTER_HEARTBEAT_FILE"], "w") as file:
        file.write(f"{step}\n")


def leave_out_the_collective():
    while True:
        signal.pause()


def reduce_gradients():
    value = torch.tensor([1.0])
    dist.all_reduce(value)
    assert value.item() == world


for step in range(1, 6):
    if step == 4 and rank == world - 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        leave_out_the_collective()
    reduce_gradients()
    beat(step)
dist.destroy_process_group()
