# SPDX-License-Identifier: Apache-2.0
"""A worker of tests/gpu/run: opens its device, trains one step, then obeys. It reports over the test's socket.

    worker.py cuda|cpu train|idle

A message is one line of JSON, with the moment of the monotonic clock at which it was true:

  hello    the first line of this script has run
  opened   the device is open; "memory" is what it had free then, and what it has in all
  reduced  the first all_reduce has ended (train)
  stepped  the first step of a DDP training has ended (train)

Commands, one a line: memory (answers) | kernel (beats, begins an endless kernel, says "runs", waits for its end) |
exhaust (asks for more memory than there is) | exit N
"""

import time

BEGAN = time.monotonic()

import faulthandler
import json
import os
import signal
import socket
import sys

import devices
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

link = socket.socket(socket.AF_UNIX)


def say(what, at=None, **facts):
    line = json.dumps(dict(what=what, at=time.monotonic() if at is None else at, pid=os.getpid(), **facts))
    link.sendall((line + "\n").encode())


def train(device):
    dist.init_process_group(device.backend)
    value = torch.ones(1, device=device.place)
    dist.all_reduce(value)
    assert value.item() == dist.get_world_size()
    say("reduced", backend=dist.get_backend())
    model = DistributedDataParallel(torch.nn.Linear(64, 64).to(device.place))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model(torch.randn(32, 64, device=device.place)).sum().backward()
    optimizer.step()
    device.wait()
    say("stepped")
    # The test waits until a standby has heard of the first: it then has all names before it. A name is sent when the
    # next one is looked for.
    import sched  # noqa: F401
    import wave  # noqa: F401


def beat():
    if "MUSTER_HEARTBEAT_FILE" in os.environ:
        with open(os.environ["MUSTER_HEARTBEAT_FILE"], "w") as file:
            file.write("1\n")


def stuck_in_a_kernel(device):
    device.begin_kernel()
    beat()
    say("runs")
    device.wait_for_kernel()


def main():
    kind, mode = sys.argv[1:]
    link.connect(os.environ["MUSTER_TEST_SOCKET"])
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    say("hello", BEGAN, env=dict(os.environ))
    device = devices.Cuda() if kind == "cuda" else devices.Cpu()
    say("opened", memory=device.memory())
    if mode == "train":
        train(device)
    for line in link.makefile():
        command, _, rest = line.strip().partition(" ")
        if command == "memory":
            say("memory", memory=device.memory())
        elif command == "kernel":
            device.hold()
            stuck_in_a_kernel(device)
        elif command == "exhaust":
            device.exhaust()
        elif command == "exit":
            os._exit(int(rest))


main()
