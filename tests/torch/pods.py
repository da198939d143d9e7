# SPDX-License-Identifier: Apache-2.0
"""Training as in a TrainJob's pods: `muster exec` as the main process, with its own network, host name and /etc.

The pods have the environment that Kubeflow's controller gives: PET_* in its static form, pod-0 named as the master.
"""

import json
import os
import shlex
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "e2e", "digits"), os.path.join(ROOT, "tests", "outer")]

import networks
from training_run import MUSTER, RUN_ID, Broken, TrainingRun


def pods_folder(folder):
    """The pods' own part of the machine (network, /etc); made once for several runs."""
    with open(f"{folder}/token", "w") as file:
        file.write("s3cret")
    networks.lay_etc(folder)
    subprocess.run([MUSTER, "install", f"{folder}/bin"], check=True, stdout=subprocess.DEVNULL)
    return folder


def direct(python, script):
    """The arguments of `muster exec` for a training script."""
    return ["--wire=torch", "--", python, *script]


def through_a_shell(_, script):
    """The arguments of `muster exec` in an image made for torchrun: a shell starts torchrun."""
    return ["--", "sh", "-c", f"echo installing; torchrun {shlex.join(script)}"]


class PodRun(TrainingRun):
    """Nodes are called pod-0, pod-1 ...; a replacement of a lost pod has the same name."""

    def __init__(self, folder, *, machine, pods=2, started=direct, **options):
        """machine: from pods_folder(). started: `direct` or `through_a_shell`."""
        super().__init__(folder, **options)
        self._machine = machine
        self._started = started
        self._network = networks.Network(pods)

    def _agent(self, name, host):
        pod = int(name.rpartition("-")[2])
        command = [
            *self._network.enter_pod(pod, f"{self._machine}/etc"),
            f"{self._machine}/bin/muster",
            "exec",
            *self._started(self.python, self._command),
        ]
        return command, self._clean_environment(
            PET_NNODES=self._nnodes,
            PET_NPROC_PER_NODE=str(self._nproc),
            PET_NODE_RANK=str(pod),
            PET_MASTER_ADDR="pod-0",
            PET_MASTER_PORT="29500",
            PET_RDZV_ID=RUN_ID,
            PET_LOG_DIR=f"{self.folder}/logs/{name}",
            PET_TEE="3",
            PET_MAX_RESTARTS="3",
            MUSTER_TERMINATION_LOG=self._log(name),
            MUSTER_TOKEN_FILE=f"{self._machine}/token",
        )

    def start_node(self, name, *, host=False):
        open(self._log(name), "w").close()
        return super().start_node(name, host=host)

    def left(self, name):
        """The pod's termination message."""
        with open(self._log(name)) as file:
            return json.load(file)

    def said(self, name, text, deadline, times=1):
        """Waits until the pod has printed `text` `times` times; its output is a growing file."""
        ticker = threading.Event()
        while self.nodes[name].tail(10**6).count(text) < times:
            if time.monotonic() > deadline:
                raise Broken(f"{name} did not say {text!r}\n{self.tails()}")
            ticker.wait(0.01)

    def close(self):
        super().close()
        self._network.close()

    def _log(self, name):
        return f"{self.folder}/{name}.termination-log"
