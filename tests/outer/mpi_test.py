"""Real MPI runtimes over `muster rsh`, between pods: network, host name, /etc and /dev/shm of their own, and no sshd.

Pod 0 is the launcher. Every pod has the binary at the same path, as from a shared mount.
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import networks
from muster_case import MUSTER, main, wait_gone
from remote_shells import RshCase

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi_program.c")
NOT_REACHED = 200


class Runtime:
    """The tests of every runtime."""
    pods = 3

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
        subprocess.run([cls.mpicc, "-O1", "-o", cls.program, PROGRAM], check=True)
        bin_folder = os.path.join(cls.folder, "bin")
        subprocess.run([MUSTER, "install", bin_folder], check=True, capture_output=True)
        cls.muster = os.path.join(bin_folder, "muster")
        cls.etc = networks.lay_etc(cls.folder)

    def setUp(self):
        super().setUp()
        self.network = networks.Network(self.pods)
        self.addCleanup(self.network.close)
        self.token = os.path.join(self.dir, "token")
        with open(self.token, "w") as file:
            file.write("s3cret")

    def inside(self, pod, arguments, env=None, etc=None):
        prefix = self.network.enter_pod(pod, etc or self.etc)
        return self.spawn(arguments, binary=self.muster, prefix=prefix,
                          env={"MUSTER_TOKEN_FILE": self.token, "TMPDIR": self.dir, **(env or {})})

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
        return self.inside(0, ["exec", "--wire=mpi", *flags, "--", self.mpirun, "-n", str(ranks), self.program, *arguments],
                           env={**told, **(env or {})}, **more)

    def ranks(self, launcher, ranks=4):
        """The process ids of a program that hangs."""
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

    def test_a_program_over_all_pods(self):
        workers = self.workers()
        launcher = self.launcher()
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)

    def test_hosts_from_the_file_that_kubeflow_mounts(self):
        etc = os.path.join(self.dir, "etc")
        subprocess.run(["cp", "-a", self.etc, etc], check=True)
        os.mkdir(os.path.join(etc, "mpi"))
        with open(os.path.join(etc, "mpi", "hostfile"), "w") as file:
            file.writelines(f"pod-{pod}.job.default.svc slots=2\n" for pod in range(1, self.pods))
        workers = self.workers()
        launcher = self.launcher(etc=etc, env={"MUSTER_MPI_HOSTS": ""})
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)

    def test_workers_that_come_after_the_launcher(self):
        launcher = self.launcher()
        self.wait_for_output(launcher, "waiting for pod-1")
        workers = self.workers()
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)

    def test_a_rank_that_fails(self):
        workers = self.workers()
        launcher = self.launcher("abort", "3", "7")
        self.check_ends(launcher, workers, 7)

    def test_a_rank_that_is_killed(self):
        workers = self.workers()
        launcher = self.launcher("signal", "2", str(int(signal.SIGSEGV)))
        self.assertIn(launcher.wait(), self.signal_codes, launcher.output())
        self.check_ends(launcher, workers, launcher.wait())

    def test_a_pod_that_is_not_there(self):
        workers = self.workers()
        launcher = self.launcher(hosts=f"{self.hosts},pod-7:2", ranks=6, env={"MUSTER_RSH_TIMEOUT": "1"})
        self.check_ends(launcher, workers, NOT_REACHED)
        self.assertIn("pod-7", launcher.output())

    def test_a_worker_pod_is_killed(self):
        workers = self.workers()
        launcher = self.launcher("hang")
        pids = self.ranks(launcher)
        workers[-1].send(signal.SIGKILL)
        code = launcher.wait()
        self.assertGreaterEqual(code, 128, launcher.output())
        self.assertIn(f"pod-{self.pods - 1}", launcher.output())
        self.assertEqual([worker.wait() for worker in workers[:-1]], [code] * (len(workers) - 1))
        for pid in pids:
            self.assertTrue(wait_gone(pid))

    def test_the_launcher_is_killed_and_comes_again(self):
        workers = self.workers()
        launcher = self.launcher("hang")
        pids = self.ranks(launcher)
        launcher.send(signal.SIGKILL)
        for pid in pids:
            self.assertTrue(wait_gone(pid))
        again = self.launcher()
        self.check_ends(again, workers, 0)
        self.check_ring(again)

    def test_the_launcher_is_told_to_go(self):
        workers = self.workers()
        launcher = self.launcher("hang")
        pids = self.ranks(launcher)
        launcher.send(signal.SIGTERM)
        self.assertEqual(launcher.wait(), 143, launcher.output())
        for pid in pids:
            self.assertTrue(wait_gone(pid))
        again = self.launcher()  # that was no verdict
        self.check_ends(again, workers, 0)

    def test_a_restart_inside_the_launcher(self):
        workers = self.workers()
        marker = os.path.join(self.dir, "marker")
        launcher = self.launcher("once", marker, "130", flags=["--max-restarts", "1"])
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)
        self.assertTrue(os.path.exists(marker))

    def test_a_wrong_token(self):
        other = os.path.join(self.dir, "other")
        with open(other, "w") as file:
            file.write("guess")
        workers = [self.worker(1), self.worker(2, env={"MUSTER_TOKEN_FILE": other})]
        launcher = self.launcher()
        self.assertEqual(launcher.wait(), 78, launcher.output())
        self.assertIn("pod-2", launcher.output())
        self.assertEqual(workers[0].wait(), 78)


class OpenMpi(Runtime, RshCase):
    mpirun, mpicc = "mpirun.openmpi", "mpicc.openmpi"
    signal_codes = (139,)

    # MPICH 4.0.2 waits for ever, or tells another code: whatever starts its proxies.
    def test_a_rank_that_ends_without_a_word(self):
        workers = self.workers()
        launcher = self.launcher("exit", "3", "7")
        self.check_ends(launcher, workers, 7)


class OpenMpiTree(Runtime, RshCase):
    """Daemons that start each other, as they do beyond 64 hosts: pod 3 is reached from pod 2."""
    mpirun, mpicc = "mpirun.openmpi", "mpicc.openmpi"
    pods = 4
    signal_codes = (139,)

    def launcher(self, *arguments, env=None, **more):
        return super().launcher(*arguments, env={"OMPI_MCA_routed_radix": "1", **(env or {})}, ranks=more.pop("ranks", 6), **more)

    def ranks(self, launcher, ranks=6):
        return super().ranks(launcher, ranks)

    def check_ring(self, launcher, ranks=6):
        super().check_ring(launcher, ranks)

    def test_a_pod_that_is_not_there(self):
        workers = [self.worker(pod, env={"MUSTER_RSH_TIMEOUT": "1"}) for pod in range(1, self.pods)]
        launcher = self.launcher(hosts=f"{self.hosts},pod-7:2", ranks=8)
        code = launcher.wait()
        self.assertIn(code, (1, NOT_REACHED), launcher.output())  # the report of a pod's remote shell does not get here
        self.assertIn("pod-7", launcher.output())
        self.assertEqual([worker.wait() for worker in workers], [code] * len(workers))

    test_a_wrong_token = None  # needs two workers


class Mpich(Runtime, RshCase):
    mpirun, mpicc = "mpiexec.mpich", "mpicc.mpich"
    signal_codes = (11, 255)  # the signal's bare number; or its proxies stumble over each other


if __name__ == "__main__":
    main()
