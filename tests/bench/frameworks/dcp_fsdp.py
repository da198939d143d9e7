# SPDX-License-Identifier: Apache-2.0
"""FSDP (fully_shard) with torch.distributed.checkpoint: each rank writes its part, in the background."""

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import scenario


class AppState(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


scenario.begin(torch.__version__)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Sequential(
    torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
)
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
for layer in model:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
app = AppState(model, optimizer)

folder = scenario.checkpoints()
steps = [int(name) for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, ".metadata"))]
first = max(steps, default=-1) + 1
if steps:
    dcp.load({"app": app}, checkpoint_id=os.path.join(folder, str(first - 1)))

for step in range(first, scenario.STEPS):
    scenario.about_to_do(step)
    generator = torch.Generator().manual_seed(2 * step + rank)
    x = torch.randn(16, 32, generator=generator)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    scenario.done(step, loss)
    dcp.async_save({"app": app}, checkpoint_id=os.path.join(folder, str(step))).result()

scenario.end((name, parameter.full_tensor()) for name, parameter in model.named_parameters())
dist.destroy_process_group()
