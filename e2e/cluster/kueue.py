# SPDX-License-Identifier: Apache-2.0
"""The real Kueue, with its webhooks, in the network namespace of a cluster. It manages only TrainJobs.

    kueue = Kueue(cluster, waitForPodsReady={"timeout": "8s"})
    kueue.stop()

Keywords are fields of Kueue's configuration. Ready when it is constructed. A cluster has one at a time.
"""

import json
import os
import subprocess

from certificates import inline
from cluster import HERE
from processes import Broken

ROOT = os.path.join(HERE, "..", "..")
SETUP = os.path.join(ROOT, "build-support", "setup-go-server")
API = "kueue.x-k8s.io/v1beta2"
WORKLOADS = "workloads.kueue.x-k8s.io"  # Kubernetes has workloads, too
NAME = "kueue"
NAMESPACE = "kueue-system"
HEALTH, METRICS, WEBHOOKS = 8097, 8098, 8099
# Kueue's webhooks that a cluster without other frameworks needs.
KINDS = ("trainjobs", "pytorchjobs", "workloads", "workloads/status", "clusterqueues", "resourceflavors", "cohorts")


def binary():
    """The path of the program, which the first call builds in about 5 CPU minutes. Broken: the build failed."""
    done = subprocess.run([SETUP, NAME], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Broken("Kueue could not be built")
    return done.stdout.strip()


class Kueue:
    def __init__(self, cluster, **configuration):
        self.cluster = cluster
        program = binary()
        files = f"{program}-files"
        cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        cluster.kubectl(
            "apply", "--server-side", "-k", os.path.join(ROOT, "controller", "manifests", "components", "kueue")
        )
        cluster.kubectl("apply", "--server-side", "-f", os.path.join(files, "crd", "bases"))
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=180s", "crd", "--all")
        certificates = self._certificates()
        # Kueue reads the certificate of its metrics only from this folder.
        script = (
            f"mount -t tmpfs none /etc && mkdir -p /etc/kueue/metrics && "
            f'ln -s {certificates} /etc/kueue/metrics/certs && exec "$@"'
        )
        command = ["unshare", "--mount", "--", "sh", "-c", script, "kueue"]
        cluster.start_program(
            NAME,
            [
                *command,
                program,
                "--config",
                self._config(certificates, configuration),
                "--feature-gates",
                "VisibilityOnDemand=false",
            ],
            {**cluster.environment, "POD_NAMESPACE": NAMESPACE},
        )
        cluster.processes.await_url(NAME, f"http://127.0.0.1:{HEALTH}/readyz", seconds=180)
        self._configure_webhooks(os.path.join(files, "webhook", "manifests.yaml"))

    def stop(self):
        for kind in ("mutating", "validating"):
            self.cluster.try_kubectl("delete", f"{kind}webhookconfiguration/kueue")
        self.cluster.processes.stop(NAME, seconds=5)

    def _certificates(self):
        folder = os.path.join(self.cluster.folder, "kueue-certificates")
        os.makedirs(folder, exist_ok=True)
        authority = self.cluster.certificates
        authority.serve("kueue", "/CN=kueue", ["IP:127.0.0.1"])
        for name in ("crt", "key"):
            target = os.path.join(folder, f"tls.{name}")
            if not os.path.exists(target):
                os.link(authority.path(f"kueue.{name}"), target)
        return folder

    def _config(self, certificates, configuration):
        path = os.path.join(self.cluster.folder, "kueue.yaml")
        with open(path, "w") as file:
            json.dump(
                {
                    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
                    "kind": "Configuration",
                    "namespace": NAMESPACE,
                    "health": {"healthProbeBindAddress": f"127.0.0.1:{HEALTH}"},
                    "metrics": {"bindAddress": f"127.0.0.1:{METRICS}"},
                    "webhook": {"port": WEBHOOKS, "host": "127.0.0.1", "certDir": certificates},
                    "leaderElection": {"leaderElect": False},
                    "internalCertManagement": {"enable": False},
                    "integrations": {"frameworks": ["trainer.kubeflow.org/trainjob"]},
                    **configuration,
                },
                file,
            )
        return path

    def _configure_webhooks(self, path):
        """Kueue's own webhook configurations, with the address where it listens."""
        rendered = self.cluster.kubectl("create", "--dry-run=client", "-f", path, "-o", "json")
        at = 0
        while at < len(rendered.rstrip()):  # the objects follow one another
            made, at = json.JSONDecoder().raw_decode(rendered, at)
            at += 1  # the end of its line
            made["metadata"] = {"name": "kueue"}
            made["webhooks"] = [hook for hook in made["webhooks"] if set(hook["rules"][0]["resources"]) <= set(KINDS)]
            for hook in made["webhooks"]:
                hook["clientConfig"] = {
                    "url": f"https://127.0.0.1:{WEBHOOKS}{hook['clientConfig']['service']['path']}",
                    "caBundle": inline(self.cluster.certificates.path("ca.crt")),
                }
            self.cluster.apply([made])
