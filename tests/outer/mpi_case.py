# SPDX-License-Identifier: Apache-2.0
"""Pods of a launcher and of its workers, each with its own network, host name, /etc and /dev/shm, for a real mpirun."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from muster_case import MUSTER

import networks

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi_program.c")


class MpiPods:
    """A mixin of RshCase. Its class says `mpirun` and `mpicc`. Pod 0 is the launcher's, the others are the workers'."""

    pods = 3
    installed = {}  # variables of an image with this runtime

    @classmethod
    def setUpClass(cls):
        if reason := networks.permitted():
            raise unittest.SkipTest(f"SKIPPED: no network namespaces: {reason}")
        for tool in (cls.mpirun, cls.mpicc):
            if shutil.which(tool) is None:
                raise unittest.SkipTest(f"SKIPPED: `{tool}` is not installed")
        cls.folder = tempfile.mkdtemp(prefix="muster-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.program = os.path.join(cls.folder, "program")
        subprocess.run([cls.mpicc, "-O1", "-o", cls.program, PROGRAM], check=True, env={**os.environ, **cls.installed})
        cls.install_agents()
        cls.etc = networks.lay_etc(cls.folder)

    def setUp(self):
        super().setUp()
        self.network = networks.Network(self.pods)
        self.addCleanup(self.network.close)
        self.token = os.path.join(self.dir, "token")
        with open(self.token, "w") as file:
            file.write("s3cret")

    @classmethod
    def install_agents(cls):
        cls.muster = cls.install(MUSTER, "bin")

    @classmethod
    def install(cls, binary, name):
        """Installs an agent as an init container does, and returns its path."""
        folder = os.path.join(cls.folder, name)
        subprocess.run([binary, "install", folder], check=True, capture_output=True)
        return os.path.join(folder, "muster")

    def muster_of(self, _pod):
        """The agent in the pod."""
        return self.muster

    def inside(self, pod, arguments, env=None, etc=None):
        prefix = self.network.enter_pod(pod, etc or self.etc)
        return self.spawn(
            arguments,
            binary=self.muster_of(pod),
            prefix=prefix,
            env={"MUSTER_TOKEN_FILE": self.token, "TMPDIR": self.dir, **self.installed, **(env or {})},
        )

    def worker(self, pod, served=True, **more):
        worker = self.inside(pod, ["exec", "--serve-rsh", "--shutdown-timeout", "5"], **more)
        if served:
            self.wait_for_output(worker, "serving the remote shell")
        return worker

    def workers(self):
        return [self.worker(pod) for pod in range(1, self.pods)]

    @property
    def hosts(self):
        return ",".join(f"pod-{pod}:2" for pod in range(1, self.pods))

    def launcher(self, *arguments, flags=(), hosts=None, ranks=4, env=None, **more):
        """The launcher pod, whose mpirun starts the program with these arguments."""
        told = {"MUSTER_MPI_HOSTS": hosts or self.hosts, "OMPI_MCA_hwloc_base_binding_policy": "none"}
        return self.inside(
            0,
            ["exec", "--wire=mpi", *flags, "--", self.mpirun, "-n", str(ranks), self.program, *arguments],
            env={**told, **(env or {})},
            **more,
        )

    def ranks(self, launcher, ranks=4):
        """The process ids of the ranks of a program that hangs."""
        self.wait_for_output(launcher, r"(?s)(pid \d+.*?){%d}" % ranks)
        return [int(pid) for pid in re.findall(r"pid (\d+)", launcher.output())][-ranks:]

    def check_ring(self, launcher, ranks=4):
        output = launcher.output()
        self.assertIn(f"ring {ranks}", output)
        places = dict(re.findall(rf"rank (\d+) of {ranks} on (\S+) sum {ranks * (ranks - 1) // 2}\b", output))
        self.assertEqual(len(places), ranks, output)
        self.assertEqual(set(places.values()), {f"pod-{pod}" for pod in range(1, self.pods)}, output)

    def check_ends(self, launcher, workers, code):
        self.assertEqual(launcher.wait(), code, launcher.output())
        self.assertEqual([worker.wait() for worker in workers], [code] * len(workers), launcher.output())
