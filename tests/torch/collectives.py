# SPDX-License-Identifier: Apache-2.0
"""A worker of the PyTorch tests: uses what torch's own code needs of the launcher's environment and of its store."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
assert (rank, world) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
assert dist.is_torchelastic_launched() if hasattr(dist, "is_torchelastic_launched") else True

value = torch.tensor([float(rank + 1)])
dist.all_reduce(value)
assert value.item() == world * (world + 1) / 2, value

everyone = [None] * world
dist.all_gather_object(everyone, (rank, os.environ["GROUP_RANK"], os.environ["LOCAL_RANK"]))
assert [entry[0] for entry in everyone] == list(range(world))
assert len({entry[1:] for entry in everyone}) == world, everyone

# Every subgroup is a rendezvous of its own over the same store.
pair = dist.new_group([0, world - 1])
if rank in (0, world - 1):
    dist.broadcast(value, src=world - 1, group=pair)

model = DistributedDataParallel(torch.nn.Linear(8, 1))
torch.manual_seed(rank)
model(torch.randn(4, 8)).sum().backward()
gradients = [torch.zeros_like(model.module.weight.grad) for _ in range(world)]
dist.all_gather(gradients, model.module.weight.grad)
assert all(torch.equal(gradients[0], other) for other in gradients), "DDP left different gradients"

dist.barrier()
print(f"rank {rank} of {world}: collectives agree", flush=True)
dist.destroy_process_group()

# gloo's threads may still hold tensors of the subgroup and of DDP. If Python shuts down at that time, it unwinds those
# threads and C++ ends the process ("terminate called without an active exception"), with any launcher.
os._exit(0)
