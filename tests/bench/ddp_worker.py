# SPDX-License-Identifier: Apache-2.0
"""A small DDP training for standby_bench.py. Reports moments of the monotonic clock to the pipe BENCH_PIPE.

A line has attempt, rank, what, seconds. After the first step it trains on, and reports how long each 500 steps take.
With the argument "transformers" the model is a GPT-2 of that library, and accelerate and datasets are imported, too."""

import os
import sys
import time

start = time.monotonic()

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

GPT2 = sys.argv[1:] == ["transformers"]
if GPT2:
    import accelerate  # noqa: F401
    import datasets  # noqa: F401
    from transformers import GPT2Config, GPT2LMHeadModel

# The loss of a node is no restart that torchrun's variable counts.
ATTEMPT = os.environ.get("MUSTER_ROUND", os.environ["TORCHELASTIC_RESTART_COUNT"])
pipe = os.open(os.environ["BENCH_PIPE"], os.O_WRONLY)


def report(what, seconds):
    words = (ATTEMPT, os.environ["RANK"], what, repr(seconds))
    os.write(pipe, (" ".join(words) + "\n").encode())


report("script", start)
report(f"pid:{os.getpid()}", time.monotonic())
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
report("reduced", time.monotonic())
if GPT2:
    tokens = torch.zeros(2, 16, dtype=torch.long)
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2))
    model = DistributedDataParallel(gpt2)
else:
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def loss():
    return model(tokens, labels=tokens).loss if GPT2 else model(torch.randn(32, 64)).sum()


def step():
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


step()
report("stepped", time.monotonic())
while True:
    begin = time.monotonic()
    for _ in range(500):
        step()
    report("500", time.monotonic() - begin)
