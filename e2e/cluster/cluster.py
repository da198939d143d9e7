# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane (etcd, API server, controller manager, scheduler) as processes, from Go modules.

    cluster = Cluster(folder, binaries())
    cluster.start()
    cluster.add_fake_nodes(4)
    cluster.kubectl("apply", "-f", "job.yaml")
    cluster.await_object("job/x", lambda job: job["status"].get("succeeded") == 2)
    cluster.stop()

Several clusters can run at the same time. Each has its own loopback address and ports or, if it gets the name of a
network namespace, its own network. node.py adds real nodes to a cluster in a namespace. Without a namespace no root is
needed. Everything is in `folder`: logs/, processes/, certificates/, etcd/. Not thread-safe.
"""

import base64
import json
import os
import random
import selectors
import subprocess
import sys
import tempfile
import time
import urllib.request

from certificates import Certificates
from network import ADDRESS, API_SERVICE, PODS, SERVICES, enter
from processes import WAIT, Broken, Processes

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "tests"))

from free_port import free_port

SETUP = os.path.join(HERE, "..", "..", "build-support", "setup-kubernetes")
LONG = 300  # s, for a kubectl that may wait itself
KWOK_STAGES = os.path.join(HERE, "manifests", "kwok.yaml")
DNS_RIGHTS = os.path.join(HERE, "manifests", "coredns-rbac.yaml")
COREDNS = """.:53 {{
  bind {address}
  errors
  ready 127.0.0.1:18181
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig} cluster
    pods insecure
    ttl 1
  }}
}}
"""


def binaries(build=False):
    """The folder of setup-kubernetes. Broken: the programs are not built and `build` is false, or the build fails."""
    done = subprocess.run(
        [SETUP] + ([] if build else ["--cached"]),
        stdout=subprocess.PIPE,
        text=True,
        stderr=None if build else subprocess.PIPE,
    )
    if done.returncode:
        raise Broken((done.stderr or "").strip() or "setup-kubernetes failed")
    return done.stdout.strip()


class Cluster:
    """`namespace`: an existing network namespace; in it the API server has port 443, which pods expect.
    `flags`: further flags by component (its name without "kube-")."""

    def __init__(self, folder, programs, namespace=None, flags=None):
        self.folder = folder
        self.programs = programs
        self.namespace = namespace
        self.flags = flags or {}
        self.processes = Processes(folder, enter(namespace) if namespace else ())
        self.certificates = Certificates(os.path.join(folder, "certificates"))
        # No other program listens on this address, and the kernel chooses the ports.
        self.address = (
            "127.0.0.1"
            if namespace
            else f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        )
        self.ports = {}
        self.server = f"https://{self.address}:{443 if namespace else self.port('api')}"
        self.kubeconfig = self.certificates.kubeconfig("admin", self.server, "admin", ["system:masters"])

    def port(self, name):
        """A free port. Each call with the same name returns the same one."""
        while name not in self.ports:
            port = free_port(self.address)
            if port not in self.ports.values():
                self.ports[name] = port
        return self.ports[name]

    @property
    def environment(self):
        """The environment of this cluster's `kubectl`; with a namespace, only for programs that run inside()."""
        return {
            **os.environ,
            "KUBECONFIG": self.kubeconfig,
            "KUBECACHEDIR": os.path.join(self.folder, "kubectl"),  # clusters of the same address serve other resources
            "PATH": f"{self.programs}:{os.environ['PATH']}",
        }

    def inside(self, command):
        """The command line that runs `command` in the cluster's network."""
        return self.processes.inside(command)

    def program(self, name):
        return os.path.join(self.programs, name)

    def start_program(self, name, command, environment=None, inside=None):
        """Runs a program until stop(). Its log is logs/NAME.log. `inside`: as of Processes.start."""
        return self.processes.start(name, command, environment or self.environment, inside)

    # ---- the control plane

    def start(self):
        self.start_etcd()
        self.start_api_server()
        self.start_controller_manager()
        self.start_scheduler()
        self.await_object("serviceaccount/default", lambda account: True)  # the API server admits no pod without it
        if self.namespace:
            self.kubectl("apply", "--server-side", "-f", DNS_RIGHTS)
            self.start_dns()

    def stop(self):
        self.processes.stop(*sorted(set(os.listdir(self.processes.records)) - {"kube-apiserver", "etcd"}))
        self.processes.stop("kube-apiserver", "etcd", seconds=2)  # their data is not needed any more

    def kill_api_server(self):
        """Kills the API server as in a crash: it closes no connection in order."""
        self.processes.kill("kube-apiserver")

    def restart_api_server(self):
        self.kill_api_server()
        self.start_api_server()

    def compact(self):
        """Makes etcd drop its history until now. The API server may still have it in memory."""

        def ask(path, **body):
            request = urllib.request.Request(
                f"http://{self.address}:{self.port('etcd')}/v3/kv/{path}", json.dumps(body).encode()
            )
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
                return json.load(answer)

        now = ask("range", key=base64.b64encode(b"x").decode())["header"]["revision"]
        ask("compaction", revision=now, physical=True)

    def _run_component(self, name, *flags):
        self.start_program(name, [self.program(name), *flags, *self.flags.get(name.removeprefix("kube-"), ())])

    def _await_ready(self, name, url):
        self.processes.await_url(name, url, *map(self.certificates.path, ("ca.crt", "admin.crt", "admin.key")))

    def start_etcd(self):
        clients, peers = (f"http://{self.address}:{self.port(name)}" for name in ("etcd", "etcd-peer"))
        self._run_component(
            "etcd",
            "--name",
            "etcd",
            "--data-dir",
            os.path.join(self.folder, "etcd"),
            "--log-level",
            "warn",
            "--unsafe-no-fsync",  # the data need not survive a crash of the machine
            "--listen-client-urls",
            clients,
            "--advertise-client-urls",
            clients,
            "--listen-peer-urls",
            peers,
            "--initial-advertise-peer-urls",
            peers,
            "--initial-cluster",
            f"etcd={peers}",
        )
        self._await_ready("etcd", f"{clients}/readyz")

    def start_api_server(self):
        keys = self.certificates.path
        self.certificates.serve(
            "server",
            "/CN=kube-apiserver",
            [
                *(f"IP:{address}" for address in dict.fromkeys([self.address, "127.0.0.1", API_SERVICE, ADDRESS])),
                "DNS:localhost",
                *(f"DNS:kubernetes{part}" for part in ("", ".default", ".default.svc", ".default.svc.cluster.local")),
            ],
        )
        self.certificates.issue(
            "kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client", "extendedKeyUsage=clientAuth"
        )
        if self.namespace:
            where = ["--bind-address", "0.0.0.0", "--advertise-address", ADDRESS, "--secure-port", "443"]
        else:  # 192.0.2.1 belongs to no host, and no endpoint is written
            where = [
                "--bind-address",
                self.address,
                "--advertise-address",
                "192.0.2.1",
                "--secure-port",
                str(self.port("api")),
                "--endpoint-reconciler-type",
                "none",
            ]
        self._run_component(
            "kube-apiserver",
            *where,
            "--etcd-servers",
            f"http://{self.address}:{self.port('etcd')}",
            "--tls-cert-file",
            keys("server.crt"),
            "--tls-private-key-file",
            keys("server.key"),
            "--client-ca-file",
            keys("ca.crt"),
            "--authorization-mode",
            "Node,RBAC",
            "--enable-admission-plugins",
            "NodeRestriction,OwnerReferencesPermissionEnforcement",
            "--allow-privileged",
            "--service-cluster-ip-range",
            SERVICES,
            # Webhooks are reached by the addresses of their pods: no kube-proxy is needed.
            "--enable-aggregator-routing",
            "--service-account-issuer",
            "https://kubernetes.default.svc",
            "--service-account-key-file",
            keys("accounts.pub"),
            "--service-account-signing-key-file",
            keys("accounts.key"),
            "--kubelet-preferred-address-types",
            "InternalIP",
            "--kubelet-certificate-authority",
            keys("ca.crt"),
            "--kubelet-client-certificate",
            keys("kubelet-client.crt"),
            "--kubelet-client-key",
            keys("kubelet-client.key"),
        )
        self._await_ready("kube-apiserver", f"{self.server}/readyz")  # then its roles and priority classes exist

    def _client_flags(self, name):
        config = self.certificates.kubeconfig(name, self.server, f"system:{name}")
        return [
            "--kubeconfig",
            config,
            "--authentication-kubeconfig",
            config,
            "--authorization-kubeconfig",
            config,
            "--bind-address",
            self.address,
            "--secure-port",
            str(self.port(name)),
            "--leader-elect=false",
            "--tls-cert-file",
            self.certificates.path("server.crt"),
            "--tls-private-key-file",
            self.certificates.path("server.key"),
            "--kube-api-qps",
            "500",
            "--kube-api-burst",
            "1000",
        ]

    def start_controller_manager(self):
        keys = self.certificates.path
        self._run_component(
            "kube-controller-manager",
            *self._client_flags("kube-controller-manager"),
            "--use-service-account-credentials",
            "--service-account-private-key-file",
            keys("accounts.key"),
            "--root-ca-file",
            keys("ca.crt"),
            "--cluster-signing-cert-file",
            keys("ca.crt"),
            "--cluster-signing-key-file",
            keys("ca.key"),
            "--concurrent-job-syncs",
            "20",
        )
        self._await_ready(
            "kube-controller-manager", f"https://{self.address}:{self.port('kube-controller-manager')}/healthz"
        )

    def start_scheduler(self):
        self._run_component("kube-scheduler", *self._client_flags("kube-scheduler"))
        self._await_ready("kube-scheduler", f"https://{self.address}:{self.port('kube-scheduler')}/readyz")

    def start_dns(self):
        """Starts CoreDNS, which pods on real nodes use."""
        kubeconfig = self.certificates.kubeconfig("coredns", self.server, "coredns")
        config = os.path.join(self.folder, "Corefile")
        with open(config, "w") as file:
            file.write(COREDNS.format(address=ADDRESS, kubeconfig=kubeconfig))
        self.start_program("coredns", [self.program("coredns"), "-conf", config])
        self.processes.await_url("coredns", "http://127.0.0.1:18181/ready")

    # ---- fake nodes

    def add_fake_nodes(self, count):
        """Adds fake nodes of 32 CPUs, 256 GiB, 8 GPUs and 500 pods each. A pod runs once it is scheduled. It ends when
        its annotation e2e.muster.dev/finish says "succeeded" or "failed" (then e2e.muster.dev/exit-code, default 1, and
        e2e.muster.dev/message, its termination message)."""
        self.start_program(
            "kwok",
            [
                self.program("kwok"),
                "--kubeconfig",
                self.kubeconfig,
                "--config",
                KWOK_STAGES,
                "--manage-nodes-with-label-selector",
                "type=kwok",
                "--node-lease-duration-seconds",
                "40",
                "--cidr",
                PODS,
                "--node-ip",
                "192.0.2.2",
                "--server-address",
                f"{self.address}:{self.port('kwok')}",
            ],
        )
        room = {"cpu": "32", "memory": "256Gi", "pods": "500", "nvidia.com/gpu": "8"}
        nodes = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "status": {"allocatable": room, "capacity": room},
                "metadata": {
                    "name": name,
                    "labels": {
                        "type": "kwok",
                        "kubernetes.io/hostname": name,
                        "topology.kubernetes.io/zone": f"zone-{number % 2}",
                    },
                },
            }
            for number, name in ((number, f"kwok-{number:03}") for number in range(count))
        ]
        self.apply(nodes)
        self.kubectl("wait", "--for=condition=Ready", "node", "-l", "type=kwok", f"--timeout={WAIT}s")

    # ---- clients

    def account_kubeconfig(self, namespace, name):
        """The path of a kubeconfig that has only the rights of that ServiceAccount."""
        token = self.kubectl("create", "token", name, "-n", namespace, "--duration=24h").strip()
        return self.certificates.write_kubeconfig(f"{namespace}-{name}", self.server, f"token: {token}")

    def try_kubectl(self, *arguments, content=None, seconds=LONG):
        """Runs kubectl. It fails if it takes longer than `seconds`, since a node does not answer."""
        command = self.inside([self.program("kubectl"), *arguments])
        try:
            return subprocess.run(
                command, input=content, capture_output=True, text=True, env=self.environment, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"no answer within {seconds} s")

    def kubectl(self, *arguments, content=None, seconds=LONG):
        """Runs kubectl and returns its output. Broken: it failed."""
        done = self.try_kubectl(*arguments, content=content, seconds=seconds)
        if done.returncode:
            raise Broken(f"kubectl {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, objects):
        self.kubectl(
            "apply",
            "--server-side",
            "-f",
            "-",
            content=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}),
        )

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def await_object(self, name, wanted, namespace="default", seconds=WAIT):
        """The object `name` ("job/x") as soon as wanted(object) is true, by a watch. Broken contains its last state."""
        kind, _, name = name.partition("/")
        command = [
            self.program("kubectl"),
            "get",
            kind,
            "-n",
            namespace,
            "--field-selector",
            f"metadata.name={name}",
            "--watch",
            "-o",
            "json",
            "--output-watch-events",
        ]
        until, last = time.monotonic() + seconds, None
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(
                self.inside(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.environment,
            ) as watch,
        ):
            try:
                for event in json_stream(watch.stdout, until):
                    last = event["object"]
                    if event["type"] != "DELETED" and wanted(last):
                        return last
            finally:
                watch.kill()
            errors.seek(0)
            raise Broken(
                f"{kind}/{name} in {namespace} did not become what was awaited within {seconds} s; it was last: "
                f"{json.dumps((last or {}).get('status', last))} {errors.read().strip()}"
            )


def json_stream(pipe, until):
    """Yields the JSON values from `pipe` until it ends or the time is over."""
    decoder, text = json.JSONDecoder(), ""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(max(0, until - time.monotonic())):
            part = os.read(pipe.fileno(), 1 << 16)
            if not part:
                return
            text += part.decode(errors="replace")
            while text := text.lstrip():
                try:
                    value, end = decoder.raw_decode(text)
                except ValueError:
                    break
                yield value
                text = text[end:]
