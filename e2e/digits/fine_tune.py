# SPDX-License-Identifier: Apache-2.0
"""Trains a new head of a model on handwritten digits, with DistributedDataParallel (gloo). Started by torchrun.

A model is a folder with config.json (`width` of its features) and pytorch_model.bin: a table with a row for each value
of each pixel. `--make` writes a model with random weights; its features are good enough for digits.
"""

import argparse
import hashlib
import json
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from train import MODEL_SEED, load_digits, train_epoch

PIXELS, VALUES, DIGITS = 64, 17, 10
CONFIG, WEIGHTS = "config.json", "pytorch_model.bin"


def make(folder, width):
    torch.manual_seed(MODEL_SEED)
    with open(f"{folder}/{CONFIG}", "w") as file:
        json.dump({"width": width}, file)
    table = torch.linspace(0, 1, VALUES)[None, :, None] * torch.randn(PIXELS, 1, width)
    torch.save({"weight": table.reshape(PIXELS * VALUES, width)}, f"{folder}/{WEIGHTS}")


def load(folder):
    with open(f"{folder}/{CONFIG}") as file:
        body = torch.nn.EmbeddingBag(PIXELS * VALUES, json.load(file)["width"], mode="sum")
    body.load_state_dict(torch.load(f"{folder}/{WEIGHTS}"))
    return body


def features(body, images):
    rows = (images * (VALUES - 1)).round().long() + torch.arange(PIXELS) * VALUES
    with torch.no_grad():
        return torch.nn.functional.relu(body(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, metavar="DIR")
    parser.add_argument("--make", type=int, metavar="WIDTH", help="make the model, with so many features, and end")
    parser.add_argument("--data", metavar="FILE", help="as train.py takes it")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--min-accuracy", type=float, default=0.95, help="end with 1 below it")
    options = parser.parse_args()
    if options.make:
        return make(options.model, options.make)

    torch.set_num_threads(1)
    torch.manual_seed(MODEL_SEED)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    body = load(options.model)
    train_images, train_labels, test_images, test_labels = load_digits(options.data)
    train_features, test_features = features(body, train_images), features(body, test_images)
    head = torch.nn.Linear(body.embedding_dim, DIGITS)
    model = DistributedDataParallel(head)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = argparse.Namespace(batch=64, fault=[])
    for epoch in range(1, options.epochs + 1):
        loss = train_epoch(model, optimizer, train_features, train_labels, epoch, steps)
        if rank == 0:
            print(f"epoch {epoch:3d}/{options.epochs}  loss {loss:.4f}", flush=True)
    with torch.no_grad():
        final = (head(test_features).argmax(1) == test_labels).float().mean().item()
    if rank == 0:
        with open(f"{options.model}/{WEIGHTS}", "rb") as file:
            print(f"weights of sha256 {hashlib.sha256(file.read()).hexdigest()}")
        print(f"test accuracy {final:.4f} after {options.epochs} epochs with {world} workers", flush=True)
    dist.barrier()
    del model  # before the group: see train.py
    dist.destroy_process_group()
    if final < options.min_accuracy:
        sys.exit(f"test accuracy {final:.4f} is below {options.min_accuracy}")


if __name__ == "__main__":
    main()
