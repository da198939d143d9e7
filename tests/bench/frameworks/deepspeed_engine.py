# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed on the CPU: ZeRO stage 1 over gloo, with its own checkpoints."""

import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch

import scenario

scenario.begin(deepspeed.__version__)
deepspeed.init_distributed("gloo")
rank = int(os.environ["RANK"])
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
engine, optimizer, _, scheduler = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
    config={
        "train_micro_batch_size_per_gpu": 8,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    },
)
folder = scenario.checkpoints()
_, state = engine.load_checkpoint(folder)
for step in range(state["step"] + 1 if state else 0, scenario.STEPS):
    scenario.about_to_do(step)
    x = torch.randn(8, 16, generator=torch.Generator().manual_seed(2 * step + rank))
    loss = torch.nn.functional.mse_loss(engine(x), x.sum(1, keepdim=True))
    engine.backward(loss)
    engine.step()
    scenario.done(step, loss)
    engine.save_checkpoint(folder, client_state={"step": step})

scenario.end(engine.module.named_parameters())
deepspeed.comm.destroy_process_group()
