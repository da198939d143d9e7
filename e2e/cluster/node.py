# SPDX-License-Identifier: Apache-2.0
"""Real nodes of a cluster: a containerd and a kubelet each, in a network namespace and a control group of their own.
Pod addresses, names, logs, exit codes, termination messages and memory limits are all real. Needs root, and the
packages of debian-packages-e2e.txt.

    place = Place()
    cluster = Cluster(place.folder, binaries(), place.name)
    cluster.start()
    nodes = [Node(cluster, place, number) for number in range(3)]
    for node in nodes:
        node.start()
    place.network.cut("node-0", "node-1")
    nodes[2].kill()
    ...
    place.thaw()
    cluster.stop()
    place.clean()
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import control_groups
import images
import network
from cluster import HERE
from processes import Broken

sys.path.insert(0, os.path.join(HERE, "..", "..", "packaging"))
import oci_image

CONTAINERD = """version = 3
root = "{node}/containerd/root"
state = "{node}/containerd/state"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.differ.v1.erofs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "{node}/containerd.sock"
[ttrpc]
  address = "{node}/containerd.sock.ttrpc"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  enable_selinux = false
  netns_mounts_under_state_dir = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["{plugins}"]
  conf_dir = "{node}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "{runc}"
  SystemdCgroup = false
"""


def why_not():
    """Why no node can run on this machine; None: it can."""
    if os.geteuid() != 0:
        return "a node takes root"
    missing = [
        name
        for name in ("curl", "runc", "ip", "tc", "nft", "nsenter", "setpriv", "openssl")
        if shutil.which(name) is None
    ]
    missing += [
        name
        for name in ("busybox-static", "containernetworking-plugins")
        if subprocess.run(["dpkg", "-L", name], capture_output=True).returncode
    ]
    return (
        f"missing: {', '.join(missing)}; build-support/install-deps debian-packages-e2e.txt installs them"
        if missing
        else None
    )


def read_words(path):
    """The words of a file of /proc that end with a zero byte each."""
    with open(path, "rb") as file:
        return file.read().decode(errors="replace").split("\0")


INSTANCES = "/proc/sys/fs/inotify/max_user_instances"
LEAST_INSTANCES = 1024  # of inotify, for all nodes, pods and control planes: Linux gives a user 128


def allow_watches():
    """Raises this machine's limit of inotify. Without it kubelets, containerd and others end at their start."""
    with open(INSTANCES) as file:
        if int(file.read()) >= LEAST_INSTANCES:
            return
    with contextlib.suppress(OSError), open(INSTANCES, "w") as file:  # a container may not be allowed to
        file.write(str(LEAST_INSTANCES))


class Node:
    """`number`: of the node in its place, from 0. The node is called node-NUMBER."""

    def __init__(self, cluster, place, number=0):
        self.cluster = cluster
        self.place = place
        self.number = number
        self.name = f"node-{number}"
        self.address = network.address(number)
        self.group = place.group(self.name)
        self.folder = os.path.join(cluster.folder, self.name)
        self.socket = self.path("containerd.sock")

    def path(self, name):
        return os.path.join(self.folder, name)

    def ctr(self, *arguments):
        return [self.cluster.program("ctr"), "--address", self.socket, "-n", "k8s.io", *arguments]

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def start(self):
        """Makes the node, and waits until it is ready."""
        allow_watches()
        self.place.add(self.name, self.number)
        self.start_containerd()
        self._load_busybox()
        self.start_kubelet()

    # ---- faults

    def kill_kubelet(self):
        """Kills the kubelet. Its containers live on, and start_kubelet() finds them again."""
        self.cluster.processes.kill(self._program("kubelet"))

    def kill_containerd(self):
        """Kills containerd. Its containers live on, and start_containerd() finds them again."""
        self.cluster.processes.kill(self._program("containerd"))

    def freeze(self):
        """Stops everything that runs on the node, until thaw(). The others get no packet and no error from it."""
        control_groups.freeze(self.group)

    def thaw(self):
        control_groups.thaw(self.group)

    def kill(self, power=True):
        """Kills everything that runs on the node at once. `power`: the others get no word of it, as when a machine
        loses its power; else the kernel still closes the connections. restart() brings the node back."""
        if power:
            self.place.network.isolate(self.name)
        control_groups.kill(self.group)
        for program in ("kubelet", "containerd"):
            self.cluster.processes.kill(self._program(program))
        self.place.unmount(self.folder)
        shutil.rmtree(self.path("containerd/state"), ignore_errors=True)

    def restart(self):
        """Starts a killed node again: without its containers, with its images and its links."""
        self.place.network.mend(self.name)
        self.start_containerd()
        self.start_kubelet()

    def alive(self, program):
        """Whether the node's "kubelet" or "containerd" runs."""
        return self.cluster.processes.alive(self._program(program))

    # ---- what runs on it

    def _program(self, name):
        return f"{name}-{self.name}"

    def inside(self, command):
        """The command line that runs `command` in the node's network."""
        return [*network.enter(self.place.network.namespace(self.name)), *command]

    def _run(self, program, command):
        inside = [*control_groups.join(f"{self.group}/system"), *self.inside([])]
        self.cluster.start_program(self._program(program), command, inside=inside)

    def processes_in_pods(self, program, variable=""):
        """The pids of processes in pods that have `program` as a word of their command line, with or without its
        folder, and `variable` ("NAME=VALUE") in their environment."""
        found = []
        for process in control_groups.processes(f"{self.group}/kubepods"):
            try:
                words, variables = (read_words(f"/proc/{process}/{name}") for name in ("cmdline", "environ"))
            except OSError:  # it has just ended
                continue
            if program in map(os.path.basename, words) and (not variable or variable in variables):
                found.append(process)
        return found

    def load_image(self, archive):
        self._images("import", "--local", archive)

    def tag_image(self, reference, another):
        self._images("tag", "--force", reference, another)

    def _images(self, *arguments):
        done = subprocess.run(self.ctr("images", *arguments), capture_output=True, text=True)
        if done.returncode:
            raise Broken(f"ctr images {' '.join(arguments)}: {done.stderr.strip()}")

    def start_containerd(self):
        plugins = subprocess.run(
            ["dpkg", "-L", "containernetworking-plugins"], check=True, capture_output=True, text=True
        ).stdout.split()
        self.write("cni/10-pods.conflist", json.dumps(self._pod_network()))
        config = self.write(
            "containerd.toml",
            CONTAINERD.format(
                node=self.folder,
                pause=images.PAUSE,
                runc=shutil.which("runc"),
                plugins=os.path.dirname(next(path for path in plugins if path.endswith("/bridge"))),
            ),
        )
        self._run("containerd", [self.cluster.program("containerd"), "--config", config])
        self.cluster.processes.await_socket(self._program("containerd"), self.socket)

    def _pod_network(self):
        gateway = network.gateway(self.number)
        bridge = {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": False,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "dataDir": self.path("addresses"),
                "routes": [{"dst": "0.0.0.0/0"}],
                "ranges": [[{"subnet": network.pods(self.number), "gateway": gateway}]],
            },
        }
        return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}

    def _load_busybox(self):
        root = self.path("busybox")
        images.busybox_root(root)
        layers = [oci_image.layer(root, 0)]
        for reference, name, command in (
            (images.BUSYBOX, "busybox", {"Cmd": ["sh"]}),
            (images.NONROOT, "nonroot", {"Cmd": ["sh"], "User": "65532:65532"}),
            (images.PAUSE, "pause", {"Entrypoint": ["sleep", "infinity"]}),
        ):
            folder = self.path(f"image-{name}")
            oci_image.write(folder, reference, layers, {"Env": ["PATH=/bin"], **command}, 0)
            self.load_image(f"{folder}.tar")

    def start_kubelet(self):
        cluster, keys = self.cluster, self.cluster.certificates.path
        user, server = f"system:node:{self.name}", f"kubelet-server-{self.number}"
        cluster.certificates.serve(
            server, f"/O=system:nodes/CN={user}", [f"DNS:{self.name}", f"IP:{self.address}", "IP:127.0.0.1"]
        )
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "port": 12250,
            "healthzPort": 12248,
            "readOnlyPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": keys("ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": keys(f"{server}.crt"),
            "tlsPrivateKeyFile": keys(f"{server}.key"),
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "podLogsDir": self.path("podlogs"),
            "volumePluginDir": self.path("kubelet/plugins"),
            "resolvConf": self.write("resolv.conf", ""),
            "clusterDNS": [network.ADDRESS],
            "clusterDomain": "cluster.local",
            # The machine may be a container itself: accept version 1 control groups, swap and the limits that exist.
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.group}",
            "failCgroupV1": False,
            "enforceNodeAllocatable": ["none"],
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "makeIPTablesUtilChains": False,
            "volumeStatsAggPeriod": "5s",
            "featureGates": {"KubeletInUserNamespace": True},
            "imageGCHighThresholdPercent": 100,
            "evictionHard": dict.fromkeys(
                (
                    "memory.available",
                    "nodefs.available",
                    "nodefs.inodesFree",
                    "imagefs.available",
                    "imagefs.inodesFree",
                ),
                "0%",
            ),
            "nodeStatusUpdateFrequency": "5s",
            "syncFrequency": "5s",
            "serializeImagePulls": False,
            "nodeLeaseDurationSeconds": 20,  # s; the kubelet renews it every 5 s
        }
        kubeconfig = cluster.certificates.kubeconfig(
            self._program("kubelet"), f"https://{network.ADDRESS}:443", user, ["system:nodes"]
        )
        self._run(
            "kubelet",
            [
                cluster.program("kubelet"),
                *("--config", self.write("kubelet.json", json.dumps(config))),
                *("--kubeconfig", kubeconfig),
                *("--hostname-override", self.name),
                *("--node-ip", self.address),
                *("--root-dir", self.path("kubelet")),
                *("--cert-dir", self.path("kubelet/pki")),
            ],
        )
        if not cluster.processes.patience:
            return
        cluster.processes.await_url(self._program("kubelet"), "http://127.0.0.1:12248/healthz", inside=self.inside([]))
        cluster.await_object(
            f"node/{self.name}",
            lambda node: any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in node["status"].get("conditions", [])
            ),
            seconds=cluster.processes.patience,
        )
