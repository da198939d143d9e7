#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the remote shell, MPI over it, and the cost of `muster exec`. Prints a table of medians (lowest-highest).

    tests/bench/rsh_bench.py [--repeat N] [--megabytes N] [--only REGEX]

It is compared with plain `sh -c` and, if sshd is installed (openssh-server), with ssh over loopback. The MPI row needs
Open MPI, network namespaces and root. It also has mpirun with a remote shell that only forks (a script that runs the
pod's daemon in the pod's namespaces), and mpirun with all ranks on one host, without daemons.
"""

import argparse
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "outer"))
os.environ.setdefault("MUSTER_BINARY", os.path.join(ROOT, "build", "bin", "muster"))

from muster_case import MUSTER

import networks
from mpi_test import PROGRAM
from remote_shells import clean

HOSTS = 4


def seconds(command, limit=300, **more):
    """Seconds of the whole process. Python's own timeout polls at 1, 3, 7, 15 ms ..., and would round up to these."""
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more}
    began = time.monotonic()
    process = subprocess.Popen(command, **more)
    guard = threading.Timer(limit, process.kill)
    guard.start()
    try:
        code = process.wait()
        took = time.monotonic() - began
    finally:
        guard.cancel()
    if code != 0:
        raise subprocess.CalledProcessError(code, command)
    return took


class Bench:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.running = []

    def close(self):
        for process in self.running:
            process.kill()
            process.wait()

    def start(self, command, words, env=None):
        """Starts a server and waits until it has printed `words`. Returns its output."""
        path = os.path.join(self.folder, f"server-{len(self.running)}.txt")
        with open(path, "w") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env or clean()
            )
        self.running.append(process)
        while True:
            with open(path) as file:
                said = file.read()
            if re.search(words, said):
                return said
            if process.poll() is not None:
                raise RuntimeError(said)
            time.sleep(0.01)

    def several(self, measure):
        return [measure() for _ in range(self.options.repeat)]

    def alternately(self, commands):
        """Each command's times, measured in turns."""
        times = {name: [] for name in commands}
        for _ in range(self.options.repeat):
            for name, command in commands.items():
                times[name].append(seconds(command[0], **command[1]) * 1000)
        return times

    def pod(self):
        """Starts a pod on this machine. Returns the prefix that runs a command in it."""
        said = self.start([MUSTER, "exec", "--serve-rsh", "--rsh-listen", "127.0.0.1:0"], r"port \d+")
        port = re.search(r"serving the remote shell.*port (\d+)", said)[1]
        return [MUSTER, "rsh", "-p", port, "127.0.0.1"]

    def sshd(self, prefix=(), address="127.0.0.1", port="22022"):
        """Starts an sshd. Returns ssh's options for it, or None if ssh or sshd is not installed."""
        sshd = shutil.which("sshd") or "/usr/sbin/sshd"
        if not os.access(sshd, os.X_OK) or shutil.which("ssh") is None:
            return None
        key = os.path.join(self.folder, "key")
        if not os.path.exists(key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
            shutil.copy(key + ".pub", os.path.join(self.folder, "authorized_keys"))
            os.makedirs("/run/sshd", exist_ok=True)
        self.start(
            [
                *prefix,
                sshd,
                "-D",
                "-e",
                "-f",
                "/dev/null",
                "-h",
                key,
                "-p",
                port,
                "-o",
                f"ListenAddress={address}",
                "-o",
                f"AuthorizedKeysFile={self.folder}/authorized_keys",
                "-o",
                "StrictModes=no",
                "-o",
                "UsePAM=no",
            ],
            "Server listening",
        )
        return ["-p", port, "-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-q"]

    def session(self):
        commands = {"muster rsh": ([*self.pod(), "true"], {}), "sh -c": (["sh", "-c", "true"], {})}
        if ssh := self.sshd():
            commands["ssh"] = (["ssh", *ssh, "127.0.0.1", "true"], {})
        return "a session of `true`, ms (<= 15)", self.alternately(commands)

    def stream(self):
        size = self.options.megabytes
        shells = {"": self.pod()}
        if ssh := self.sshd():
            shells["ssh "] = ["ssh", *ssh, "127.0.0.1"]

        def rate(command):
            return size * 1.048576 / seconds(["sh", "-c", command], env=clean())

        figures = {}
        for name, shell in shells.items():
            words = " ".join(shell)
            figures[name + "out"] = self.several(lambda: rate(f"{words} 'head -c {size}M /dev/zero' | cat >/dev/null"))
            figures[name + "in"] = self.several(lambda: rate(f"head -c {size}M /dev/zero | {words} 'cat >/dev/null'"))
        return "a stream, MB/s (>= 500)", figures

    def forks(self, inside):
        """A remote shell that only forks: the lowest possible cost."""
        path = os.path.join(self.folder, "forks")
        with open(path, "w") as script:
            cases = [f'pod-{pod}) exec {shlex.join(inside[pod])} sh -c "$*";;\n' for pod in range(1, HOSTS + 1)]
            script.write("".join(["#!/bin/sh\nhost=$1; shift\ncase $host in\n", *cases, "esac\n"]))
        os.chmod(path, 0o755)
        return path

    def mpi(self):
        if networks.permitted() or os.geteuid() != 0 or shutil.which("mpirun.openmpi") is None:
            return "mpirun: no network namespaces, not root, or no Open MPI here", {}
        program = os.path.join(self.folder, "program")
        subprocess.run(["mpicc.openmpi", "-O1", "-o", program, PROGRAM], check=True)
        subprocess.run([MUSTER, "install", self.folder], check=True, capture_output=True)
        etc = networks.lay_etc(self.folder)
        network = networks.Network(HOSTS + 1, every_user=True)
        try:
            inside = [network.enter_pod(pod, etc) for pod in range(HOSTS + 1)]
            ssh = None
            for pod in range(1, HOSTS + 1):
                self.start(
                    [
                        *inside[pod],
                        os.path.join(self.folder, "muster"),
                        "exec",
                        "--serve-rsh",
                        "--rsh-listen",
                        ":29522",
                    ],
                    "serving the remote shell",
                )
                ssh = self.sshd(inside[pod], network.address(pod), "22")
            remote = ",".join(f"pod-{pod}:2" for pod in range(1, HOSTS + 1))
            env = clean(
                OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_hwloc_base_binding_policy="none",
                OMPI_MCA_rmaps_base_oversubscribe="1",
            )

            def mpirun(hosts, agent):
                return (
                    [
                        *inside[0],
                        "mpirun.openmpi",
                        "--mca",
                        "plm_rsh_agent",
                        agent,
                        "--host",
                        hosts,
                        "-n",
                        "8",
                        program,
                    ],
                    {"env": env},
                )

            commands = {
                "muster rsh": mpirun(remote, os.path.join(self.folder, "muster-rsh")),
                "local forks": mpirun(remote, self.forks(inside)),
                "one host": mpirun("localhost:8", "/bin/false"),
            }
            if ssh:
                commands["sshd"] = mpirun(remote, " ".join(["ssh", *ssh]))
            return f"mpirun -n 8 over {HOSTS} pods, ms (<= 1.3x local forks, < sshd)", self.alternately(commands)
        finally:
            self.close()
            network.close()

    def overhead(self):
        return "exec, ms (<= 5 over the bare command)", self.alternately(
            {"muster exec": ([MUSTER, "exec", "--", "true"], {"env": clean()}), "bare": (["true"], {})}
        )

    def ending(self):
        def once():
            process = subprocess.Popen(
                [MUSTER, "exec", "--", "sh", "-c", "echo x; exec sleep 1000"],
                stdout=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=clean(),
            )
            process.stdout.readline()
            with open(f"/proc/{process.pid}/status") as file:
                memory.append(int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1000)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait()
            process.stdout.close()
            return (time.monotonic() - began) * 1000

        memory = []
        times = self.several(once)
        return "SIGTERM to the end, ms (<= 50); RSS of an idle exec, MB (<= 14)", {"SIGTERM": times, "RSS": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--only", default="", help="session, stream, mpi, overhead, ending")
    options = parser.parse_args()
    print("| what | figures |\n|---|---|")
    for row in ("session", "stream", "mpi", "overhead", "ending"):
        if not re.search(options.only, row):
            continue
        with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
            bench = Bench(folder, options)
            try:
                title, figures = getattr(bench, row)()
            finally:
                bench.close()
        cells = [
            f"{name} {statistics.median(values):.4g} ({min(values):.4g}-{max(values):.4g})"
            for name, values in figures.items()
        ]
        print(f"| {title} | {', '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
