# SPDX-License-Identifier: Apache-2.0
"""Ranks that reduce one step after the other (gloo): steps.py NAME FOLDER STEPS

Before each step all ranks wait for the file FOLDER/go-STEP; after it rank 0 makes FOLDER/NAME.done-STEP. Each rank
makes FOLDER/NAME.start-RANK when it starts, and fails if that is there: it has been restarted.
"""

import os
import sys
import time

import torch
import torch.distributed as dist


def main():
    name, folder, steps = sys.argv[1:]
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    os.close(os.open(f"{folder}/{name}.start-{rank}", os.O_CREAT | os.O_EXCL))
    for step in range(1, int(steps) + 1):
        while not os.path.exists(f"{folder}/go-{step}"):
            time.sleep(0.1)
        total = torch.ones(1)
        dist.all_reduce(total)
        if int(total) != world:
            sys.exit(f"the ranks reduced to {int(total)}, not {world}")
        print(f"step {step}/{steps} world {world}", flush=True)
        if rank == 0:
            os.close(os.open(f"{folder}/{name}.done-{step}", os.O_CREAT | os.O_EXCL))
    dist.destroy_process_group()


main()
