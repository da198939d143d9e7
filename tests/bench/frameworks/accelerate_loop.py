# SPDX-License-Identifier: Apache-2.0
"""A loop with accelerate: save_state after each step, load_state and skip_first_batches after a restart.

The DataLoader's processes are started anew ("spawn"), so that they import this file."""

import os

import accelerate
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, ProjectConfiguration, set_seed
from torch.utils.data import DataLoader, TensorDataset

import scenario

PER_EPOCH = 4


def main():
    scenario.begin(accelerate.__version__)
    set_seed(42)
    project = ProjectConfiguration(project_dir=scenario.checkpoints(), automatic_checkpoint_naming=True)
    accelerator = Accelerator(
        cpu=True, project_config=project, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True)
    )
    x = torch.randn(2 * PER_EPOCH * 8, 16)
    dataset = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=1, multiprocessing_context="spawn")
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, scenario.STEPS)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    folder = os.path.join(scenario.checkpoints(), "checkpoints")
    complete = len(os.listdir(folder)) if os.path.isdir(folder) else 0
    if complete:
        accelerator.load_state(os.path.join(folder, f"checkpoint_{complete - 1}"))
        accelerator.project_configuration.iteration = complete
    step = complete
    while step < scenario.STEPS:
        loader.set_epoch(step // PER_EPOCH)
        batches = accelerator.skip_first_batches(loader, step % PER_EPOCH) if step % PER_EPOCH else loader
        for source, target in batches:
            scenario.about_to_do(step)
            torch.manual_seed(2 * step + accelerator.process_index)  # a new DataLoader has drawn a number since
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(source), target)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            scenario.done(step, loss)
            step += 1
            accelerator.save_state()
    scenario.end(accelerator.unwrap_model(model).named_parameters())
    accelerator.end_training()


if __name__ == "__main__":
    main()
