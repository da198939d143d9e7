"""A worker of the PyTorch tests: all ranks are done but the first, which ends once somebody opens the pipe argv[1]."""
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
