# SPDX-License-Identifier: Apache-2.0
"""Installs Muster on a real node: images of this build's binaries, then the manifests. Waits for the controller."""

import os
import re
import shutil
import subprocess

from processes import Broken

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MANIFESTS = os.path.join(ROOT, "controller", "manifests")
NAMESPACE = "kubeflow-system"
LEASE = "lease/trainer.kubeflow.org"
DEPLOYMENT = "kubeflow-trainer-controller-manager"
TAG = "e2e"  # of Muster's images
BINARIES = ("muster", "muster-initializer", "muster-controller")  # each of them has an image


def missing_binaries(folder):
    return [name for name in BINARIES if not os.access(os.path.join(folder, name), os.X_OK)]


def load_images(node, folder, tag=TAG):
    """Builds images of the binaries in `folder`, as `make images` does."""
    out = node.path("images")
    made = subprocess.run(
        [os.path.join(ROOT, "packaging", "make-images"), "--bin", folder, "--out", out, "--tag", tag],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        raise Broken(made.stderr.strip())
    for binary in BINARIES:
        node.load_image(os.path.join(out, f"{binary}.tar"))
    shutil.rmtree(out)


def install(cluster, tag=TAG):
    """Installs Muster, or upgrades it to images of another tag. Definitions come first: runtimes need them."""
    install_definitions(cluster)
    install_controller(cluster, tag)


def install_definitions(cluster, sources=ROOT, *flags):
    """`sources`: the tree of the version that is installed. `flags`: of `kubectl apply`."""
    folder = os.path.join(sources, "controller", "manifests")
    apply = ("apply", "--server-side", *flags)
    cluster.kubectl(*apply, "-k", os.path.join(folder, "base", "crds"))
    cluster.kubectl(*apply, "-f", os.path.join(folder, "components", "pytorchjob", "crd.yaml"))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=180s", "crd", "--all")


def install_controller(cluster, tag=TAG, sources=ROOT, agent=None):
    """Applies all objects but the definitions, with images of that tag, and waits until the controller runs. `agent`:
    another tag of the agent's image."""
    rendered = cluster.kubectl("kustomize", os.path.join(sources, "e2e", "controller", "manifests"))
    objects = [one for one in rendered.split("\n---\n") if "\nkind: CustomResourceDefinition\n" not in f"\n{one}"]
    content = "\n---\n".join(objects).replace(f" muster:{TAG}\n", f" muster:{agent or tag}\n")
    content = content.replace(f":{TAG}\n", f":{tag}\n")
    cluster.kubectl("apply", "--server-side", "-f", "-", content=content)
    cluster.kubectl("rollout", "status", f"deployment/{DEPLOYMENT}", "-n", NAMESPACE, "--timeout=180s", seconds=200)


def await_leader(cluster, tag):
    """Waits until a controller of that tag leads."""
    new = {
        pod["metadata"]["name"]
        for pod in cluster.get("pods", "-n", NAMESPACE)["items"]
        if pod["spec"]["containers"][0]["image"].endswith(f"muster-controller:{tag}")
        and "deletionTimestamp" not in pod["metadata"]
    }
    if len(new) != 2:
        raise Broken(f"{len(new)} controllers of 2 have the tag {tag}")
    cluster.await_object(
        LEASE, lambda lease: lease["spec"].get("holderIdentity", "").rpartition("_")[0] in new, NAMESPACE
    )


def save(cluster, namespace, folder):
    """Saves all objects, logs and events of `namespace` and of the controller, to find the cause of a failure."""
    os.makedirs(folder, exist_ok=True)

    def write(name, done):
        with open(os.path.join(folder, re.sub(r"[^\w.-]", "_", name)), "w") as file:
            file.write(done.stdout + done.stderr)

    for space in (namespace, NAMESPACE):
        for kind in (
            "trainjobs",
            "pytorchjobs",
            "trainingruntimes",
            "jobs",
            "pods",
            "services",
            "configmaps",
            "events",
        ):
            write(f"{space}-{kind}.yaml", cluster.try_kubectl("get", kind, "-n", space, "-o", "yaml"))
        for pod in cluster.try_kubectl("get", "pods", "-n", space, "-o", "name").stdout.split():
            write(
                f"{space}-{pod.rpartition('/')[2]}.log",
                cluster.try_kubectl("logs", "-n", space, "--all-containers", "--prefix", pod, seconds=10),
            )
            before = cluster.try_kubectl(
                "logs", "-n", space, "--all-containers", "--prefix", "--previous", pod, seconds=10
            )
            if before.returncode == 0:
                write(f"{space}-{pod.rpartition('/')[2]}-before.log", before)
    write("clustertrainingruntimes.yaml", cluster.try_kubectl("get", "clustertrainingruntimes", "-o", "yaml"))
    shutil.copytree(cluster.processes.logs, os.path.join(folder, "cluster-logs"), dirs_exist_ok=True)
