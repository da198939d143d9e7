# SPDX-License-Identifier: Apache-2.0
"""The device of worker.py: a GPU, or a stand-in on the CPU, so that the checks can be tried without a GPU."""

import fcntl
import os

import torch

HELD = 1 << 30  # bytes that hold() takes
KERNEL_CYCLES = 600_000_000_000  # minutes on any GPU, and not for ever: a process that is left over ends


class Cuda:
    backend = "nccl"

    def __init__(self):
        self.place = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(self.place)

    def memory(self):
        """(free bytes, all bytes) of the GPU, for all processes."""
        return torch.cuda.mem_get_info(self.place)

    def hold(self):
        self.held = torch.empty(HELD, dtype=torch.uint8, device=self.place)

    def exhaust(self):
        self.held = torch.empty(self.memory()[1], dtype=torch.uint8, device=self.place)  # this process has some already

    def wait(self):
        torch.cuda.synchronize(self.place)

    def begin_kernel(self):
        """Returns when everything before the kernel has ended."""
        before = torch.cuda.Event()
        before.record()
        torch.cuda._sleep(KERNEL_CYCLES)
        before.synchronize()

    wait_for_kernel = wait


class Cpu:
    """Its memory is a file of 64 cells of 64 MiB. A cell is taken by a lock, which the kernel frees with its process,
    as the driver of a GPU frees memory."""

    backend = "gloo"
    CELLS, CELL = 64, 64 << 20

    def __init__(self):
        self.place = torch.device("cpu")
        self.file = open(os.path.join(os.environ["TMPDIR"], "device"), "a")
        self.held = 0

    def memory(self):
        free = 0
        for cell in range(self.held, self.CELLS):
            try:
                fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, cell)
            except OSError:
                continue  # another process has it
            fcntl.lockf(self.file, fcntl.LOCK_UN, 1, cell)
            free += self.CELL
        return free, self.CELLS * self.CELL

    def hold(self):
        self.held = HELD // self.CELL
        fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, self.held)

    def exhaust(self):
        kind = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
        raise kind(
            "CUDA out of memory. Tried to allocate 80.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 78.60 "
            "GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch "
            "but unallocated."
        )

    def wait(self):
        pass

    def begin_kernel(self):
        pass

    def wait_for_kernel(self):
        while True:
            pass
