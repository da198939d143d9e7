# SPDX-License-Identifier: Apache-2.0
"""The cluster of a chaos run: three real nodes, controllers behind answers.py, servers of data, Kueue, and the jobs.

Not thread-safe. stop() ends everything, also after a failure in the middle of start().
"""

import json
import os
import platform
import shutil
import subprocess
import sys

import installation
import kueue
import object_store
from answers import PORT
from cluster import Cluster, binaries
from digits import BUCKET, KEY_OF_DATA, SETUP_DATA
from images import BUSYBOX
from jobs import QUEUE, Makers, secret_of_store, serve_model
from network import ADDRESS
from node import Node
from place import Place, clean_leftovers

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = 3
PRIORITY = "chaos-first"
# A node that does not report for 20 s is not ready, and its pods are moved 10 s later: faults last no longer than that.
FLAGS = {
    "controller-manager": ["--node-monitor-grace-period", "20s"],
    # Without fsync etcd forgets its last writes when it is killed. Then revisions mean two things.
    "etcd": ["--unsafe-no-fsync=false"],
    "apiserver": ["--default-not-ready-toleration-seconds=10", "--default-unreachable-toleration-seconds=10"],
}
SECONDS = 20  # of a kubectl
# Debian's libfaketime. The kubelet and the control plane are Go programs, which read the clock without the C library.
# So only Muster's clock can be set.
CLOCK = f"/usr/lib/{platform.machine()}-linux-gnu/faketime/libfaketimeMT.so.1"


def replace(path, text):
    """Writes a file as a whole, for a reader that may come at any time."""
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


class World:
    namespace = "chaos"

    def __init__(self):
        self.place = self.cluster = None
        self.nodes = []
        self.struck = set()  # nodes and components that a fault has taken away

    def start(self, binaries_folder, steps):
        clean_leftovers()
        kueue.binary()  # the first call of each of these builds for minutes
        object_store.binary()
        self.place = Place()
        self.cluster = Cluster(self.place.folder, binaries(build=True), self.place.name, FLAGS)
        self.cluster.start()
        for number in range(NODES):
            self.nodes.append(Node(self.cluster, self.place, number))
            self.nodes[-1].start()
            installation.load_images(self.nodes[-1], binaries_folder)
        installation.install(self.cluster)
        self._start_answers()
        self.starts = {
            "kube-apiserver": self.cluster.start_api_server,
            "etcd": self.cluster.start_etcd,
            "coredns": self.cluster.start_dns,
            "kube-scheduler": self.cluster.start_scheduler,
            "kube-controller-manager": self.cluster.start_controller_manager,
        }
        self.cluster.kubectl("create", "namespace", self.namespace)
        data = subprocess.run([SETUP_DATA], check=True, capture_output=True, text=True).stdout.strip()
        store = object_store.ObjectStore(self.cluster)
        store.put(BUCKET, KEY_OF_DATA, data)
        folder = os.path.join(self.place.folder, "shared")
        os.makedirs(folder)
        self.makers = Makers(folder, data, steps, store, serve_model(self.cluster, self.place.folder))
        kueue.Kueue(self.cluster)
        self._queue()
        self.jobs = self.makers.all()
        self.kubectl("create", "-f", "-", content=json.dumps(secret_of_store()))
        for job in self.jobs:
            for made in job.objects:
                self.kubectl("create", "-f", "-", content=json.dumps(made))

    def revive(self):
        """Starts the parts that have ended by themselves, as their machines would: of the control plane and of nodes. A
        kubelet ends at its start if its containerd is not ready yet. Returns them."""
        starts = {name: start for name, start in self.starts.items() if not self.cluster.processes.alive(name)}
        for node in self.nodes:
            for program, start in (("containerd", node.start_containerd), ("kubelet", node.start_kubelet)):
                if node.name not in self.struck and not node.alive(program):
                    starts[f"{program} of {node.name}"] = start
        ended = [name for name in starts if name not in self.struck]
        for name in ended:
            starts[name]()
        return ended

    def stop(self):
        if self.cluster:
            self.place.thaw()
            self.cluster.stop()
        if self.place:
            self.place.clean()

    # ---- the parts

    def _start_answers(self):
        """Lets the controllers reach the API server only by answers.py, and take their time from set_clock()."""
        folder = os.path.join(self.place.folder, "answers")
        os.makedirs(folder, mode=0o755)
        shutil.copy(self.cluster.certificates.path("ca.crt"), folder)
        self.answers = os.path.join(folder, "answers.json")
        self.answer({})
        shutil.copy(CLOCK, folder)
        for node in self.nodes:
            self.set_clock(node.name, 0)
        self.cluster.start_program("answers", [sys.executable, "-B", os.path.join(HERE, "answers.py"), folder])
        token = self.cluster.kubectl(
            "create", "token", installation.DEPLOYMENT, "-n", installation.NAMESPACE, "--duration=24h"
        ).strip()
        made = self.cluster.certificates.write_kubeconfig("answers", f"http://{ADDRESS}:{PORT}", f"token: {token}")
        shutil.copy(made, os.path.join(folder, "kubeconfig"))
        at = "/spec/template/spec"
        security = "pod-security.kubernetes.io/enforce=privileged"  # the pods mount a folder of the machine
        self.cluster.kubectl("label", "namespace", installation.NAMESPACE, security, "--overwrite")
        patch = [
            {
                "op": "add",
                "path": f"{at}/volumes",
                "value": [{"name": "answers", "hostPath": {"path": folder}}],
            },
            {
                "op": "add",
                "path": f"{at}/containers/0/volumeMounts",
                "value": [{"name": "answers", "mountPath": "/answers"}],
            },
            *(
                {"op": "add", "path": f"{at}/containers/0/env/-", "value": variable}
                for variable in (
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "LD_PRELOAD", "value": f"/answers/{os.path.basename(CLOCK)}"},
                    {"name": "FAKETIME_TIMESTAMP_FILE", "value": "/answers/clock-$(NODE)"},
                    {"name": "FAKETIME_CACHE_DURATION", "value": "1"},  # s until the file is read again
                    {"name": "FAKETIME_DONT_FAKE_MONOTONIC", "value": "1"},
                    {"name": "NO_FAKE_STAT", "value": "1"},
                )
            ),
            *(
                {"op": "add", "path": f"{at}/containers/0/args/-", "value": word}
                for word in ("--kubeconfig=/answers/kubeconfig", f"--lease-namespace={installation.NAMESPACE}")
            ),
        ]
        deployment = ["deployment", installation.DEPLOYMENT, "-n", installation.NAMESPACE]
        self.cluster.kubectl("patch", *deployment, "--type=json", "-p", json.dumps(patch))
        self.cluster.kubectl("rollout", "status", *deployment, "--timeout=60s", seconds=200)

    def answer(self, shares):
        """Sets what answers.py answers."""
        replace(self.answers, json.dumps(shares))

    def set_clock(self, node, offset):
        """Sets the wall clock of the controllers on a node: `offset` s from the machine's."""
        replace(os.path.join(os.path.dirname(self.answers), f"clock-{node}"), f"{offset:+d}\n")

    def _queue(self):
        quota = {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "30m"}]}],
        }
        api = kueue.API
        self.cluster.apply(
            [
                {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": "any"}},
                {
                    "apiVersion": api,
                    "kind": "ClusterQueue",
                    "metadata": {"name": QUEUE},
                    "spec": {"namespaceSelector": {}, "resourceGroups": [quota]},
                },
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": PRIORITY},
                    "value": 1000,
                },
            ]
        )
        queue = {
            "apiVersion": api,
            "kind": "LocalQueue",
            "metadata": {"name": QUEUE, "namespace": self.namespace},
            "spec": {"clusterQueue": QUEUE},
        }
        self.cluster.apply([queue])

    def preemptor(self, name, node, requests):
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "priorityClassName": PRIORITY,
                "terminationGracePeriodSeconds": 0,
                "nodeSelector": {"kubernetes.io/hostname": node},
                "containers": [
                    {
                        "name": "wait",
                        "image": BUSYBOX,
                        "command": ["sleep", "1000"],
                        "resources": {"requests": requests},
                    }
                ],
            },
        }

    # ---- objects

    def kubectl(self, *arguments, content=None, namespace=None):
        """Broken: it failed, or took longer than SECONDS."""
        return self.cluster.kubectl(*arguments, "-n", namespace or self.namespace, content=content, seconds=SECONDS)

    def get(self, kind, namespace=None):
        return json.loads(self.kubectl("get", kind, "-o", "json", namespace=namespace))["items"]
