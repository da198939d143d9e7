# SPDX-License-Identifier: Apache-2.0
"""A tiny GPT in the manner of nanoGPT: globals are the configuration, DDP, one file as checkpoint."""

import math
import os
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import scenario

batch_size = 4
learning_rate = 1e-3
min_learning_rate = 1e-4
warmup_iters = 2
grad_clip = 1.0
gradient_accumulation_steps = 2


@dataclass
class GPTConfig:
    block_size: int = 32
    vocab_size: int = 128
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32
    dropout: float = 0.1


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.projection = nn.Linear(config.n_embd, config.n_embd, bias=False)
        self.n_head, self.dropout = config.n_head, config.dropout

    def forward(self, x):
        batch, time, width = x.size()
        q, k, v = (
            part.view(batch, time, self.n_head, width // self.n_head).transpose(1, 2)
            for part in self.attention(x).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.projection(y.transpose(1, 2).contiguous().view(batch, time, width))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attention = SelfAttention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd),
            nn.GELU(),
            nn.Linear(4 * config.n_embd, config.n_embd),
            nn.Dropout(config.dropout),
        )

    def forward(self, x):
        x = x + self.attention(self.first_norm(x))
        return x + self.mlp(self.second_norm(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.n_embd)
        self.positions = nn.Embedding(config.block_size, config.n_embd)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm = nn.LayerNorm(config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.tokens.weight = self.head.weight

    def forward(self, idx, targets):
        x = self.tokens(idx) + self.positions(torch.arange(idx.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (scenario.STEPS - warmup_iters)
    return min_learning_rate + 0.5 * (1 + math.cos(math.pi * ratio)) * (learning_rate - min_learning_rate)


scenario.begin(torch.__version__)
init_process_group("gloo")
rank, master = int(os.environ["RANK"]), os.environ["RANK"] == "0"
with open(__file__, "rb") as file:
    data = np.frombuffer(file.read(), dtype=np.uint8).astype(np.int64) % 128


def get_batch(block_size):
    starts = torch.randint(len(data) - block_size - 1, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + block_size]) for i in starts])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block_size]) for i in starts])
    return x, y


checkpoint_path = os.path.join(scenario.checkpoints(), "ckpt.pt")
iter_num, config = 0, GPTConfig()
checkpoint = torch.load(checkpoint_path) if os.path.exists(checkpoint_path) else None
if checkpoint:
    iter_num, config = checkpoint["iter_num"], GPTConfig(**checkpoint["config"])
raw_model = GPT(config)
optimizer = torch.optim.AdamW(raw_model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
if checkpoint:
    raw_model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
model = DistributedDataParallel(raw_model)

while iter_num < scenario.STEPS:
    scenario.about_to_do(iter_num)
    torch.manual_seed(1337 + 2 * iter_num + rank)  # a batch, and its dropout, depend on the step alone
    for group in optimizer.param_groups:
        group["lr"] = get_lr(iter_num)
    for micro_step in range(gradient_accumulation_steps):
        model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        with torch.amp.autocast("cpu", dtype=torch.bfloat16):
            loss = model(*get_batch(config.block_size)) / gradient_accumulation_steps
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    scenario.done(iter_num, loss)
    iter_num += 1
    if master:
        state = {"model": raw_model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "iter_num": iter_num, "config": asdict(config)}, checkpoint_path + ".new")
        os.replace(checkpoint_path + ".new", checkpoint_path)

scenario.end(raw_model.named_parameters())
destroy_process_group()
