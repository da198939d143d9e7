# SPDX-License-Identifier: Apache-2.0
"""`muster init`: each file that it writes can be planned, and runs."""

import os
import re
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import BIN, DEADLINE, LocalCase, clean, free_port

import class_runner  # local_case.py says where it is

KINDS = ("torch", "mpi", "jax", "pytorchjob")


class InitCase(LocalCase):
    def init(self, *arguments, code=0):
        ran = subprocess.run(
            [os.path.join(BIN, "muster"), "init", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=clean(),
        )
        self.assertEqual(ran.returncode, code, ran.stderr)
        return ran


class Writes(InitCase):
    def test_the_usual_file(self):
        ran = self.init()
        self.assertIn("Run it: muster local -f job.yaml", ran.stderr)
        self.assertEqual(ran.stdout, "")
        with open(os.path.join(self.folder, "job.yaml")) as file:
            text = file.read()
        self.assertEqual(text, self.init("torch", "--output", "-").stdout)
        ran = self.init(code=78)
        self.assertIn("'job.yaml': it exists already; move it away, or give another name with --output", ran.stderr)
        with open(os.path.join(self.folder, "job.yaml")) as file:
            self.assertEqual(file.read(), text)

    def test_what_it_cannot(self):
        self.assertIn(
            "'pytorch' is not a kind of job (the nearest is 'torch'); there are torch, mpi, jax, pytorchjob",
            self.init("pytorch", code=64).stderr,
        )
        self.assertIn(
            "'/nowhere/job.yaml': it cannot be made: No such file", self.init("-o", "/nowhere/job.yaml", code=78).stderr
        )
        os.symlink("/nowhere/else", os.path.join(self.folder, "link"))
        self.assertIn("'link': it exists already", self.init("-o", "link", code=78).stderr)

    def test_each_is_a_plan_that_says_nothing(self):
        for kind in KINDS:
            with self.subTest(kind):
                said = self.run_job(self.init(kind, "-o", "-").stdout, arguments=["--dry-run"])
                self.assertNotIn("it is ignored", said)
                self.assertIn("kind: Job" if kind != "pytorchjob" else "kind: Pod", said)


class Runs(InitCase):
    """The files run unchanged, except for the port of the PyTorchJob."""

    def runs(self, kind, expected, path=None):
        text = self.init(kind, "-o", "-").stdout
        port = str(free_port())
        if kind == "pytorchjob":
            text = re.sub(
                r"( +)- name: pytorch\b", rf"\g<0>\n\1  ports: [{{name: pytorchjob-port, containerPort: {port}}}]", text
            )
        said = self.run_job(text, env={"PATH": path or os.environ["PATH"]})
        for line in expected:
            self.assertIn(line, said)
        return said

    def test_the_torch_example_runs(self):
        said = self.runs("torch", [f"rank {rank} of 4" for rank in range(4)], "/usr/bin:/bin")
        self.assertRegex(said, "step 19 loss|PyTorch is not installed")

    def test_the_jax_example_runs(self):
        self.runs("jax", ["[jax-example-node-0-0] process 0 of 2", "[jax-example-node-0-1] process 1 of 2"])

    def test_the_pytorchjob_example_runs(self):
        said = self.runs(
            "pytorchjob",
            ["[pytorch-example-master-0] rank 0 of 2", "[pytorch-example-worker-0] rank 1 of 2"],
            "/usr/bin:/bin",
        )
        self.assertRegex(said, "the sum of all ranks is 1|PyTorch is not installed")

    def test_the_mpi_example_runs(self):
        if shutil.which("mpirun") is None:
            raise unittest.SkipTest("SKIPPED: Open MPI is not installed")
        self.runs("mpi", [f"rank {rank} of 4 on mpi-example-" for rank in range(4)])


if __name__ == "__main__":
    class_runner.main()
