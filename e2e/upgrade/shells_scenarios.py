# SPDX-License-Identifier: Apache-2.0
"""`muster rsh` between versions, and an mpirun whose launcher has one version and whose pods have the other one."""

import os
import signal
import socket

from mpi_case import MpiPods
from muster_case import DEADLINE, wait_gone

import versions
from http2_frames import PREFACE, SETTINGS, answer, field, headers, message
from remote_shells import RshCase

WRONG_PROTOCOL = 99


class Mpi(MpiPods):
    """Beside OldFirst or NewFirst: the launcher is of the first version."""

    mpirun, mpicc = "mpirun.openmpi", "mpicc.openmpi"

    @classmethod
    def install_agents(cls):
        cls.agents_of = {version: cls.install(version.muster, version.name) for version in (cls.first, cls.second)}

    def muster_of(self, pod):
        return self.agents_of[self.second if pod else self.first]

    def test_a_program_over_all_pods(self):
        workers = self.workers()
        launcher = self.launcher()
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)

    def test_a_rank_that_fails(self):
        workers = self.workers()
        launcher = self.launcher("abort", "3", "7")
        self.check_ends(launcher, workers, 7)

    def test_a_restart_inside_the_launcher(self):
        workers = self.workers()
        marker = os.path.join(self.dir, "marker")
        launcher = self.launcher("once", marker, "130", flags=["--max-restarts", "1"])
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)
        self.assertTrue(os.path.exists(marker))

    def test_a_killed_pod_is_replaced(self):
        workers = self.workers()
        launcher = self.launcher("firsthangs", os.path.join(self.dir, "marker"), flags=["--max-restarts", "1"])
        pids = self.ranks(launcher)
        workers[-1].send(signal.SIGKILL)
        self.wait_for_output(launcher, "round 1: ")
        for pid in pids:
            self.assertTrue(wait_gone(pid))
        workers[-1] = self.worker(self.pods - 1)
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)

    def test_the_launcher_is_told_to_go(self):
        workers = self.workers()
        launcher = self.launcher("hang")
        pids = self.ranks(launcher)
        launcher.send(signal.SIGTERM)
        self.assertEqual(launcher.wait(), 143, launcher.output())
        for pid in pids:
            self.assertTrue(wait_gone(pid))
        again = self.launcher()
        self.check_ends(again, workers, 0)


class OldLauncher(Mpi, versions.OldFirst, RshCase):
    pass


class NewLauncher(Mpi, versions.NewFirst, RshCase):
    pass


class Shells:
    """A mixin of RshCase, beside OldFirst or NewFirst: the pod is of the first version."""

    def setUp(self):
        super().setUp()
        self.served = self.pod(binary=self.first.muster)

    def test_streams_and_the_exit_code(self):
        done = self.rsh(
            self.served, "cat; echo to stderr >&2; exit 7", binary=self.second.muster, input=b"x" * 3_000_000
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"x" * 3_000_000, b"to stderr\n"))

    def test_a_signal(self):
        caller = self.begin(
            self.served, "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done", binary=self.second.muster
        )
        self.assertEqual(caller.stdout.readline(), b"up\n")
        caller.send_signal(signal.SIGTERM)
        self.assertEqual(caller.stdout.read(), b"bye\n")
        self.assertEqual(self.code(caller), 5)

    def test_another_protocol_is_refused(self):
        """By the bytes of a caller, and of a launcher, that speak it."""
        for method in ("Session", "Attend"):
            with socket.create_connection((self.served.host, self.served.port), DEADLINE) as link:
                link.sendall(
                    PREFACE
                    + SETTINGS
                    + headers(f"/muster.rsh.v1.RemoteShell/{method}")
                    + message(field(1, field(1, WRONG_PROTOCOL) + field(2, b"true")))
                )
                said = answer(link).decode(errors="replace").replace("%20", " ")
            self.assertRegex(
                said,
                rf"speaks version {WRONG_PROTOCOL} of the remote shell's protocol, this .*\d+.*; "
                "run the same muster in every pod",
            )
        self.assertEqual(self.rsh(self.served, "true", binary=self.second.muster).returncode, 0)


class OldPod(Shells, versions.OldFirst, RshCase):
    pass


class NewPod(Shells, versions.NewFirst, RshCase):
    pass
