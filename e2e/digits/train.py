# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier of handwritten digits with DistributedDataParallel (gloo); works with torch 1.13 and the newest.

Started by `muster run` or torchrun: reads only their environment. What makes it a fair test of elasticity:
- A step is one global batch for every world size. Each rank takes every world-th sample of it, and the loss is scaled
  so that the averaged gradient is that of the whole batch. So the loss curve does not depend on the number of workers
  or restarts, and an interrupted run can be compared with an undisturbed one, epoch by epoch.
- Rank 0 writes a checkpoint after each epoch (temp file, fsync, rename): epoch, model, optimizer, loss history. A
  restart goes on from the newest readable one, which rank 0 chooses and sends to all.

Faults for tests, any number of `--fault KIND:rank=R,epoch=E[,attempt=A]` (attempt: TORCHELASTIC_RESTART_COUNT, default
0): `exit` ends with code 3, `raise` raises, `kill` sends itself SIGKILL; in the middle of that epoch.
"""

import argparse
import gzip
import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

SPLIT_SEED = 20
MODEL_SEED = 1
TEST_PART = 5  # every fifth sample of the shuffled set is test data
KEEP_CHECKPOINTS = 3


def parse_fault(text):
    kind, _, rest = text.partition(":")
    fields = {"attempt": 0, **{key: int(value) for key, value in (part.split("=") for part in rest.split(","))}}
    if kind not in ("exit", "raise", "kill") or not {"rank", "epoch"} <= set(fields):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not KIND:rank=R,epoch=E[,attempt=A] with KIND exit, raise or kill"
        )
    return kind, fields


def parse_arguments():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", default=f"{cache}/muster/data/digits.csv.gz", help="build-support/setup-torch-data puts it there"
    )
    parser.add_argument("--checkpoints", required=True, metavar="DIR")
    parser.add_argument(
        "--events", metavar="FILE", help="append one JSON line per start, epoch and end (rank 0); a file or a pipe"
    )
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64, help="samples of one step, over all workers")
    parser.add_argument("--epoch-seconds", type=float, default=0, help="an epoch takes at least this long")
    parser.add_argument("--min-accuracy", type=float, default=0.95, help="end with 1 below it")
    parser.add_argument("--fault", type=parse_fault, action="append", default=[])
    return parser.parse_args()


def load_digits(path):
    """(train images, train labels, test images, test labels); the same split for every process and version."""
    with gzip.open(path, "rt") as file:
        rows = torch.tensor([[float(number) for number in line.split(",")] for line in file])
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(SPLIT_SEED))
    rows = rows[order]
    is_test = torch.arange(len(rows)) % TEST_PART == 0
    images, labels = rows[:, :64] / 16, rows[:, 64].long()
    return images[~is_test], labels[~is_test], images[is_test], labels[is_test]


class Events:
    """Writes events, one per line, for a program that follows the training."""

    def __init__(self, path, rank, world):
        self.path = path if rank == 0 else None
        self.common = {
            "world": world,
            "restart_count": int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)),
            "round": int(os.environ.get("MUSTER_ROUND", 0)),
        }

    def add(self, event, **fields):
        if not self.path:
            return
        line = json.dumps({"event": event, "unix_ms": time.time_ns() // 10**6, **self.common, **fields}) + "\n"
        try:  # a pipe without a reader must not stop the training
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)
            os.write(file, line.encode())
            os.close(file)
        except OSError as error:
            print(f"--events {self.path}: {error}", file=sys.stderr, flush=True)


def checkpoint_path(folder, epoch):
    return f"{folder}/epoch_{epoch:04d}.pt"


def save_checkpoint(folder, state):
    path = checkpoint_path(folder, state["epoch"])
    temporary = f"{path}.tmp{os.getpid()}"
    with open(temporary, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".pt"))[:-KEEP_CHECKPOINTS]:
        os.unlink(f"{folder}/{name}")


def newest_good_checkpoint(folder):
    """The newest readable checkpoint; None: there is none. An unreadable one is reported and skipped."""
    os.makedirs(folder, exist_ok=True)
    for name in sorted((name for name in os.listdir(folder) if name.endswith(".pt")), reverse=True):
        try:
            state = torch.load(f"{folder}/{name}", map_location="cpu")
            if len(state["history"]) == state["epoch"]:
                return state
            print(f"checkpoint {name}: its history does not fit its epoch; an older one is taken", flush=True)
        except Exception as error:  # a damaged or foreign file: torch raises many types
            print(f"checkpoint {name} cannot be read ({error}); an older one is taken", flush=True)
    return None


def beat(epoch, step, steps):
    """Reports progress to the agent: replaces the file with the step count."""
    path = os.environ.get("MUSTER_HEARTBEAT_FILE")
    if path:
        with open(path + ".tmp", "w") as file:
            file.write(f"{(epoch - 1) * steps + step}\n")
        os.replace(path + ".tmp", path)


def strike(faults, epoch, rank):
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    for kind, at in faults:
        if (at["rank"], at["epoch"], at["attempt"]) != (rank, epoch, attempt):
            continue
        print(f"rank {rank}: fault {kind} in epoch {epoch}", file=sys.stderr, flush=True)
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "raise":
            raise RuntimeError(f"injected fault of rank {rank} in epoch {epoch}")
        os._exit(3)


def train_epoch(model, optimizer, images, labels, epoch, options):
    """The mean loss over all samples. It is the same number on every rank."""
    rank, world = dist.get_rank(), dist.get_world_size()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    batches = order.split(options.batch)
    total = torch.zeros(1)
    for step, batch in enumerate(batches, 1):
        if step == len(batches) // 2:
            strike(options.fault, epoch, rank)
        mine = batch[rank::world]
        loss = torch.nn.functional.cross_entropy(model(images[mine]), labels[mine], reduction="sum")
        optimizer.zero_grad()
        (loss * world / len(batch)).backward()  # DDP averages over ranks: the whole batch's mean gradient
        optimizer.step()
        total += loss.detach()
        beat(epoch, step, len(batches))
    dist.all_reduce(total)
    return total.item() / len(images)


@record
def main():
    options = parse_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(MODEL_SEED)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    events = Events(options.events, rank, world)
    train_images, train_labels, test_images, test_labels = load_digits(options.data)

    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    found = [newest_good_checkpoint(options.checkpoints) if rank == 0 else None]
    dist.broadcast_object_list(found)
    state = found[0] or {"epoch": 0, "history": []}
    if state["epoch"]:
        network.load_state_dict(state["model"])
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    if state["epoch"]:
        optimizer.load_state_dict(state["optimizer"])
    history = state["history"]

    def accuracy():
        with torch.no_grad():
            return (network(test_images).argmax(1) == test_labels).float().mean().item()

    if rank == 0:
        print(
            f"{'resumed after' if history else 'started at'} epoch {len(history)} with {world} workers, "
            f"torch {torch.__version__}",
            flush=True,
        )
    events.add("start", epoch=len(history), history=history)
    for epoch in range(len(history) + 1, options.epochs + 1):
        began = time.monotonic()
        history.append(train_epoch(model, optimizer, train_images, train_labels, epoch, options))
        time.sleep(max(0.0, began + options.epoch_seconds - time.monotonic()))
        if rank == 0:
            save_checkpoint(
                options.checkpoints,
                {
                    "epoch": epoch,
                    "history": history,
                    "model": network.state_dict(),
                    "optimizer": optimizer.state_dict(),
                },
            )
            events.add("epoch", epoch=epoch, loss=history[-1], accuracy=accuracy(), seconds=time.monotonic() - began)
            print(
                f"epoch {epoch:3d}/{options.epochs}  loss {history[-1]:.4f}  accuracy {accuracy():.3f}  "
                f"{world} workers",
                flush=True,
            )
    final = accuracy()
    if rank == 0:
        print(f"test accuracy {final:.4f} after {len(history)} epochs", flush=True)
        events.add("end", epoch=len(history), accuracy=final, history=history)
    dist.barrier()
    # The model has references to the process group, and its destruction must not drop the last one: PyTorch 1.13 then
    # ends the group's threads while it holds the GIL, and waits for ever if one of these threads needs the GIL.
    del model
    dist.destroy_process_group()
    if final < options.min_accuracy:
        sys.exit(f"test accuracy {final:.4f} is below {options.min_accuracy}")


if __name__ == "__main__":
    main()
