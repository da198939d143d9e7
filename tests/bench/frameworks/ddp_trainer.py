# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own example of DDP with torchrun: a Trainer with a snapshot, DataLoader processes, a DistributedSampler.

A step is an epoch."""

import os

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import scenario


class Trainer:
    def __init__(self, model, loader, optimizer, snapshot_path):
        self.loader = loader
        self.optimizer = optimizer
        self.epochs_run = 0
        self.snapshot_path = snapshot_path
        if os.path.exists(snapshot_path):
            snapshot = torch.load(snapshot_path)
            model.load_state_dict(snapshot["MODEL_STATE"])
            optimizer.load_state_dict(snapshot["OPTIMIZER_STATE"])
            self.epochs_run = snapshot["EPOCHS_RUN"]
        self.model = DDP(model)

    def run_epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        total = 0.0
        for source, targets in self.loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(source), targets)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        scenario.done(epoch, total)

    def save_snapshot(self, epoch):
        snapshot = {
            "MODEL_STATE": self.model.module.state_dict(),
            "OPTIMIZER_STATE": self.optimizer.state_dict(),
            "EPOCHS_RUN": epoch + 1,
        }
        torch.save(snapshot, self.snapshot_path + ".new")
        os.replace(self.snapshot_path + ".new", self.snapshot_path)

    def train(self):
        for epoch in range(self.epochs_run, scenario.STEPS):
            scenario.about_to_do(epoch)
            self.run_epoch(epoch)
            if int(os.environ["RANK"]) == 0:
                self.save_snapshot(epoch)


def main():
    scenario.begin(torch.__version__)
    init_process_group("gloo")
    images, targets = load_digits(return_X_y=True)
    dataset = TensorDataset(torch.tensor(images[:256], dtype=torch.float32) / 16, torch.tensor(targets[:256]))
    loader = DataLoader(dataset, batch_size=32, num_workers=2, sampler=DistributedSampler(dataset))
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    trainer = Trainer(model, loader, optimizer, os.path.join(scenario.checkpoints(), "snapshot.pt"))
    trainer.train()
    scenario.end(model.named_parameters())
    destroy_process_group()


if __name__ == "__main__":
    main()
