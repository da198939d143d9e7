# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch by `muster local`: nodes meet as in a cluster, and reduce a number over all ranks."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import LocalCase, pytorch_job, train_job

import class_runner  # local_case.py says where it is

# Debian's PyTorch, and the newest one, which build-support/setup-newest-torch installs.
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
PYTHONS = {"Debian's": "/usr/bin/python3", "the newest": os.path.join(CACHE, "muster", "torch-newest", "bin", "python")}

REDUCE = """import os, torch, torch.distributed as dist
if os.environ.get("DIES") == os.environ["RANK"] and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0":
    dist.init_process_group("gloo")
    os.kill(os.getpid(), 9)
dist.init_process_group("gloo")
sum = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(sum)
place = f"rank {dist.get_rank()} of {dist.get_world_size()} local {os.environ.get('LOCAL_RANK')}"
os.write(1, f"{place} sum {sum.item():.0f}\\n".encode())
dist.destroy_process_group()
"""


def has_torch(python):
    return (
        os.path.exists(python)
        and subprocess.run([python, "-c", "import torch.distributed"], capture_output=True).returncode == 0
    )


class Torch(LocalCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pythons = {name: python for name, python in PYTHONS.items() if has_torch(python)}
        if not cls.pythons:
            cls.skipTest(
                cls, "SKIPPED: there is no PyTorch: install python3-torch, or run build-support/setup-newest-torch"
            )

    def setUp(self):
        super().setUp()
        self.script = self.file("reduce.py", REDUCE)

    def check_ranks(self, said, size):
        ranks = re.findall(rf"\[(\S+)\] (?:\[rank\d\]:)?rank (\d) of {size} local (\S+) sum (\d+)", said)
        self.assertEqual(sorted(int(rank) for _, rank, _, _ in ranks), list(range(size)), said)
        self.assertEqual({total for *_, total in ranks}, {str(size * (size + 1) // 2)}, said)
        return ranks

    def test_two_nodes_of_two(self):
        for name, python in self.pythons.items():
            with self.subTest(name):
                said = self.run_job(
                    train_job("reduce", f"[torchrun, {self.script}]", processes=2),
                    arguments=["--env", f"PYTHON_EXEC={python}"],
                )
                places = {rank: (host, local) for host, rank, local, _ in self.check_ranks(said, 4)}
                self.assertEqual(
                    places, {str(rank): (f"reduce-node-0-{rank // 2}", str(rank % 2)) for rank in range(4)}, said
                )

    def test_a_worker_dies(self):
        """After a worker's death all ranks meet again."""
        python = next(iter(self.pythons.values()))
        said = self.run_job(
            train_job("dies", f"[torchrun, {self.script}]", processes=2),
            arguments=["--env", f"PYTHON_EXEC={python}", "--env", "DIES=3"],
        )
        self.check_ranks(said, 4)
        self.assertIn("TrainJob dies: Complete, 1 restart", said)

    def test_a_pytorch_job_without_torchrun(self):
        for name, python in self.pythons.items():
            with self.subTest(name):
                said = self.run_job(pytorch_job("alone", f"[{python}, {self.script}]", workers=2))
                self.assertEqual(
                    {host for host, *_ in self.check_ranks(said, 3)},
                    {"alone-master-0", "alone-worker-0", "alone-worker-1"},
                )


if __name__ == "__main__":
    class_runner.main()
