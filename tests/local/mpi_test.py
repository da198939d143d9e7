# SPDX-License-Identifier: Apache-2.0
"""Debian's Open MPI by `muster local`: a launcher and its nodes over `muster rsh`, with the built-in runtime."""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import LocalCase

import class_runner  # local_case.py says where it is

PROGRAM = os.path.join(HERE, "..", "outer", "mpi_program.c")
MPIRUN, MPICC = "mpirun.openmpi", "mpicc.openmpi"
QUIET = "--mca btl tcp,self --mca pml ob1"  # does not search for InfiniBand


class Mpi(LocalCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        missing = [tool for tool in (MPIRUN, MPICC) if not shutil.which(tool)]
        if missing:
            cls.skipTest(
                cls, f"SKIPPED: there is no {' and no '.join(missing)}: install libopenmpi-dev and openmpi-bin"
            )

    def solve(self, nodes):
        """Starts the program on `nodes` nodes with two processes each; the launcher is one of the nodes."""
        program = os.path.join(self.folder, "program")
        subprocess.run([MPICC, "-o", program, PROGRAM], check=True)
        return self.start(f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: solve}}
spec:
  runtimeRef: {{name: deepspeed-distributed}}
  trainer: {{numNodes: {nodes}, numProcPerNode: 2, command: [sh, -c, "{MPIRUN} {QUIET} {program}"]}}
""")

    def check_ranks(self, nodes):
        job = self.solve(nodes)
        self.assertEqual(job.wait(), 0, job.said)
        size = 2 * nodes
        ranks = re.findall(rf"rank (\d+) of {size} on (\S+) sum {size * (size - 1) // 2}", job.said)
        self.assertEqual(sorted(int(rank) for rank, _ in ranks), list(range(size)), job.said)
        self.assertEqual(
            {host for _, host in ranks},
            {"solve-launcher-0-0", *(f"solve-node-0-{i}" for i in range(nodes - 1))},
            job.said,
        )
        with open(os.path.join(self.folder, "state", "muster", "jobs", "solve", "run.json")) as file:
            numbers = {pod["host"]: pod["node_rank"] for pod in json.load(file)["pods"]}
        self.assertEqual(sorted(numbers.values()), list(range(nodes)), numbers)

    def test_one_node(self):
        """The launcher is the only node."""
        self.check_ranks(1)

    def test_two_nodes(self):
        self.check_ranks(2)

    def test_three_nodes(self):
        self.check_ranks(3)


if __name__ == "__main__":
    class_runner.main()
