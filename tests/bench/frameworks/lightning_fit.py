# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer with DDP: a checkpoint after each epoch, and fit() that continues from the last. A step is an
epoch."""

import os

import lightning
import torch
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

import scenario


class Model(lightning.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))

    def training_step(self, batch, batch_index):
        source, target = batch
        loss = torch.nn.functional.mse_loss(self.layers(source), target)
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)}


class Scenario(Callback):
    def on_train_epoch_start(self, trainer, module):
        scenario.about_to_do(trainer.current_epoch)

    def on_train_epoch_end(self, trainer, module):
        scenario.done(trainer.current_epoch, trainer.callback_metrics["loss"])


def main():
    scenario.begin(lightning.__version__)
    lightning.seed_everything(7, workers=True)
    x = torch.randn(64, 16)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
    folder = scenario.checkpoints()
    saving = ModelCheckpoint(dirpath=folder, filename="{epoch}", save_top_k=-1, save_last=True)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=scenario.STEPS,
        deterministic=True,
        log_every_n_steps=1,
        enable_progress_bar=False,
        logger=CSVLogger(os.path.join(folder, "logs")),
        callbacks=[Scenario(), LearningRateMonitor(), saving],
    )
    last = os.path.join(folder, "last.ckpt")
    model = Model(width=32)
    trainer.fit(model, loader, ckpt_path=last if os.path.exists(last) else None)
    scenario.end(model.named_parameters())


if __name__ == "__main__":
    main()
