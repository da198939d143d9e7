"""A real node of a cluster in a network namespace: containerd, kubelet and CoreDNS. Pod addresses, names, logs, exit
codes, termination messages and memory limits are all real. Needs root, and the packages of debian-packages-e2e.txt.

    place = Place()
    cluster = Cluster(place.folder, binaries(), place.name)
    cluster.start()
    Node(cluster).start()
    ...
    cluster.stop()
    place.clean()

A place is what a node uses on its machine: a temporary folder, a network namespace and control groups, all of the same
name. Several nodes can run at the same time. clean_leftovers() removes the places of killed runs: their mounts, and the
processes of their containers, which outlive a run.
"""

import fcntl
import glob
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile

import images
from cluster import API_SERVICE, BRIDGE, HERE, PODS
from processes import Broken, Processes

sys.path.insert(0, os.path.join(HERE, "..", "..", "build-support"))
import oci_image

PREFIX = "muster-e2e-"
NAME = "node"
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
# The bridge gets a fixed MAC address. Without one it takes the lowest address of its ports, which changes when that pod
# ends. The other pods would then not reach the bridge until their ARP entries expire, half a minute later.
BRIDGE_MAC = "0a:58:0a:55:00:01"
NETWORK = {
    "cniVersion": "1.0.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": False,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "routes": [{"dst": "0.0.0.0/0"}],
                "ranges": [[{"subnet": PODS, "rangeStart": "10.85.0.10", "gateway": BRIDGE}]],
            },
        }
    ],
}
COREDNS = """.:53 {{
  bind {bridge}
  errors
  ready 127.0.0.1:18181
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig} cluster
    pods insecure
    ttl 1
  }}
}}
"""


def why_not():
    """Why no node can run on this machine; None: it can."""
    if os.geteuid() != 0:
        return "a node takes root"
    missing = [name for name in ("curl", "runc", "ip", "nsenter", "setpriv", "openssl") if shutil.which(name) is None]
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


def control_group_roots():
    """The root of each control group hierarchy, of version 1 and of version 2."""
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file]
    return [mount[4] for mount in mounts if mount[mount.index("-") + 1] in ("cgroup", "cgroup2")]


class Place:
    """`folder`: of an earlier run; None: a new place. This object holds the lock of the folder."""

    def __init__(self, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix=PREFIX)
        self.name = os.path.basename(self.folder)
        self.lock = open(os.path.join(self.folder, "lock"), "a")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if folder else 0))
        except BlockingIOError:
            self.lock.close()
            raise
        if not folder:
            self._make_network()
            for root in control_group_roots():
                os.mkdir(os.path.join(root, self.name))

    def _make_network(self):
        """Makes the network namespace, with the bridge of the pods and the API server's service address."""
        name = self.name
        for command in (
            ["ip", "netns", "add", name],
            ["ip", "-n", name, "link", "set", "lo", "up"],
            ["ip", "-n", name, "addr", "add", f"{API_SERVICE}/32", "dev", "lo"],
            ["ip", "-n", name, "link", "add", "cni0", "address", BRIDGE_MAC, "type", "bridge"],
            ["ip", "-n", name, "addr", "add", f"{BRIDGE}/16", "dev", "cni0"],
            ["ip", "-n", name, "link", "set", "cni0", "up"],
            ["nsenter", f"--net=/run/netns/{name}", "sysctl", "-qw", "net.ipv4.ip_forward=1"],
        ):
            subprocess.run(command, check=True)

    def clean(self):
        """Ends all processes of the place, and removes it."""
        processes = Processes(self.folder)
        processes.stop("kubelet", "coredns", "containerd", seconds=5)
        self._kill_containers()
        processes.stop_all()
        self._unmount()
        for root in control_group_roots():
            for path, _, _ in os.walk(os.path.join(root, self.name), topdown=False):
                try:
                    os.rmdir(path)
                except OSError as error:  # a process in the group is still ending
                    print(f"{path}: {error.strerror}", file=sys.stderr)
        if os.path.exists(f"/run/netns/{self.name}"):
            subprocess.run(["ip", "netns", "del", self.name], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.close()

    def _kill_containers(self):
        """Kills the containers, and their shims, which have the socket among their arguments."""
        socket = os.path.join(self.folder, "node", "containerd.sock").encode()
        doomed = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    arguments = file.read().split(b"\0")
                with open(f"/proc/{process}/cgroup") as file:
                    groups = [line.rstrip().split(":", 2)[2] for line in file]
                if socket in arguments or any(group.startswith(f"/{self.name}/") for group in groups):
                    doomed.append(os.pidfd_open(int(process)))
                    signal.pidfd_send_signal(doomed[-1], signal.SIGKILL)
            except OSError:
                continue  # it has just ended
        for descriptor in doomed:
            with selectors.DefaultSelector() as selector:
                selector.register(descriptor, selectors.EVENT_READ)
                selector.select(10)
            os.close(descriptor)

    def _unmount(self):
        with open("/proc/self/mountinfo") as file:
            points = [line.split()[4] for line in file]
        for point in sorted((point for point in points if point.startswith(self.folder + "/")), reverse=True):
            subprocess.run(["umount", "-l", point], capture_output=True)


def clean_leftovers():
    """Removes the places of killed runs: their locks are free."""
    for folder in glob.glob(os.path.join(tempfile.gettempdir(), f"{PREFIX}*")):
        if os.path.exists(os.path.join(folder, "lock")):
            try:
                place = Place(folder)
            except BlockingIOError:
                continue
            place.clean()


class Node:
    def __init__(self, cluster):
        self.cluster = cluster
        self.folder = os.path.join(cluster.folder, "node")
        self.socket = os.path.join(self.folder, "containerd.sock")

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
        self._start_containerd()
        self._load_busybox()
        self._start_coredns()
        self.start_kubelet()

    def kill_kubelet(self):
        """Kills the kubelet. Its containers live on, and start_kubelet() finds them again."""
        self.cluster.processes.kill("kubelet")

    def processes_in_pods(self, program, variable=""):
        """The pids of processes in pods that have `program` as a word of their command line, with or without its
        folder, and `variable` ("NAME=VALUE") in their environment."""
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cgroup") as file:
                    if not any(
                        line.rstrip().split(":", 2)[2].startswith(f"/{self.cluster.namespace}/") for line in file
                    ):
                        continue
                words, variables = (read_words(f"/proc/{process}/{name}") for name in ("cmdline", "environ"))
            except OSError:  # it has just ended
                continue
            if program in map(os.path.basename, words) and (not variable or variable in variables):
                found.append(int(process))
        return found

    def load_image(self, archive):
        self._images("import", "--local", archive)

    def tag_image(self, reference, another):
        self._images("tag", "--force", reference, another)

    def _images(self, *arguments):
        done = subprocess.run(self.ctr("images", *arguments), capture_output=True, text=True)
        if done.returncode:
            raise Broken(f"ctr images {' '.join(arguments)}: {done.stderr.strip()}")

    def _start_containerd(self):
        plugins = subprocess.run(
            ["dpkg", "-L", "containernetworking-plugins"], check=True, capture_output=True, text=True
        ).stdout.split()
        NETWORK["plugins"][0]["ipam"]["dataDir"] = self.path("addresses")
        self.write("cni/10-pods.conflist", json.dumps(NETWORK))
        config = self.write(
            "containerd.toml",
            CONTAINERD.format(
                node=self.folder,
                pause=images.PAUSE,
                runc=shutil.which("runc"),
                plugins=os.path.dirname(next(path for path in plugins if path.endswith("/bridge"))),
            ),
        )
        self.cluster.start_program("containerd", [self.cluster.program("containerd"), "--config", config])
        self.cluster.processes.await_socket("containerd", self.socket)

    def _load_busybox(self):
        root = self.path("busybox")
        images.busybox_root(root)
        layers = [oci_image.layer(root, 0)]
        for reference, name, command in (
            (images.BUSYBOX, "busybox", {"Cmd": ["sh"]}),
            (images.PAUSE, "pause", {"Entrypoint": ["sleep", "infinity"]}),
        ):
            folder = self.path(f"image-{name}")
            oci_image.write(folder, reference, layers, {"Env": ["PATH=/bin"], **command}, 0)
            self.load_image(f"{folder}.tar")

    def _start_coredns(self):
        cluster = self.cluster
        cluster.kubectl("apply", "--server-side", "-f", os.path.join(HERE, "manifests", "coredns-rbac.yaml"))
        kubeconfig = cluster.certificates.kubeconfig("coredns", cluster.server, "coredns")
        config = self.write("Corefile", COREDNS.format(bridge=BRIDGE, kubeconfig=kubeconfig))
        cluster.start_program("coredns", [cluster.program("coredns"), "-conf", config])
        cluster.processes.await_url("coredns", "http://127.0.0.1:18181/ready")

    def start_kubelet(self):
        cluster, keys = self.cluster, self.cluster.certificates.path
        cluster.certificates.serve(
            "kubelet-server", f"/O=system:nodes/CN=system:node:{NAME}", [f"DNS:{NAME}", f"IP:{BRIDGE}", "IP:127.0.0.1"]
        )
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": BRIDGE,
            "port": 12250,
            "healthzPort": 12248,
            "readOnlyPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": keys("ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": keys("kubelet-server.crt"),
            "tlsPrivateKeyFile": keys("kubelet-server.key"),
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "podLogsDir": self.path("podlogs"),
            "volumePluginDir": self.path("kubelet/plugins"),
            "resolvConf": self.write("resolv.conf", ""),
            "clusterDNS": [BRIDGE],
            "clusterDomain": "cluster.local",
            # The machine may be a container itself: accept version 1 control groups, swap and the limits that exist.
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cluster.namespace}",
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
        kubeconfig = cluster.certificates.kubeconfig("kubelet", cluster.server, f"system:node:{NAME}", ["system:nodes"])
        cluster.start_program(
            "kubelet",
            [
                cluster.program("kubelet"),
                "--config",
                self.write("kubelet.json", json.dumps(config)),
                "--kubeconfig",
                kubeconfig,
                "--hostname-override",
                NAME,
                "--node-ip",
                BRIDGE,
                "--root-dir",
                self.path("kubelet"),
                "--cert-dir",
                self.path("kubelet/pki"),
            ],
        )
        cluster.processes.await_url("kubelet", "http://127.0.0.1:12248/healthz")
        cluster.await_object(
            f"node/{NAME}",
            lambda node: any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in node["status"].get("conditions", [])
            ),
        )
