# SPDX-License-Identifier: Apache-2.0
"""A worker of the PyTorch tests: all ranks end at once except rank 0, which ends when the pipe argv[1] is opened."""

import sys

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
dist.barrier()
dist.destroy_process_group()
if rank == 0:
    print("waiting for the gate", flush=True)
    with open(sys.argv[1]):
        pass
