# SPDX-License-Identifier: Apache-2.0
"""A test case whose class has its own Kubernetes control plane. Skips if the binaries are not built."""

import copy
import json
import os
import shutil
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
MANIFESTS = os.path.join(ROOT, "controller", "manifests")
BIN = os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin"))
sys.path[:0] = [
    os.path.join(ROOT, "e2e", "cluster"),
    os.path.join(ROOT, "e2e", "controller"),
    os.path.join(ROOT, "tests"),
]

from api_client import WAIT
from cluster import Cluster, binaries
from processes import Broken

NAMESPACE = "vision"


def changed(given, path, value):
    """A copy of `given` with `value` at `path` ("spec.list.0.x"). None: the field is removed."""
    made = copy.deepcopy(given)
    place = made
    *steps, last = [int(step) if step.isdigit() else step for step in path.replace("\\.", "\0").split(".")]
    last = last.replace("\0", ".") if isinstance(last, str) else last
    for step in steps:
        if isinstance(place, dict):
            step = step.replace("\0", ".")
            place = place.setdefault(step, {})
        else:
            place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return made


def pod_group_definition(group, version):
    """A definition of a scheduler's kind PodGroup that accepts any fields."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"podgroups.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }


def tries(seconds=WAIT):
    """Yields until `seconds` are over: for what becomes true a moment later, and what no watch reports."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield


def establish(cluster):
    """Waits until all definitions are served. `kubectl wait` fails where one has no status yet."""
    for made in cluster.get("crd")["items"]:
        cluster.await_object(
            f"crd/{made['metadata']['name']}",
            lambda made: any(
                (each["type"], each["status"]) == ("Established", "True")
                for each in made.get("status", {}).get("conditions") or []
            ),
        )
        for version in (version["name"] for version in made["spec"]["versions"] if version["served"]):
            await_kind(cluster, f"{made['spec']['group']}/{version}", made["spec"]["names"]["plural"])


def await_kind(cluster, api_version, plural):
    """Waits until clients find the kind: the API server publishes a definition a moment after it is established."""
    for _ in tries():
        found = cluster.try_kubectl("get", "--raw", f"/apis/{api_version}")
        if found.returncode == 0 and plural in (each["name"] for each in json.loads(found.stdout)["resources"]):
            return
    raise AssertionError(f"the API server does not serve {plural} of {api_version}: {found.stdout}{found.stderr}")


class ClusterCase(unittest.TestCase):
    FLAGS = {}  # of the cluster's components

    @classmethod
    def setUpClass(cls):
        try:
            programs = binaries()
        except Broken as error:
            raise unittest.SkipTest(f"SKIPPED: {error}") from error
        folder = tempfile.mkdtemp(prefix="muster-cluster-test-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.cluster = Cluster(folder, programs, flags=cls.FLAGS)
        cls.addClassCleanup(cls.cluster.stop)
        cls.prepare_cluster()
        cls.cluster.start()
        cls.cluster.kubectl("create", "namespace", NAMESPACE)
        cls.install_definitions()

    @classmethod
    def prepare_cluster(cls):
        """Changes cls.cluster before its start."""

    def may(self, account, question, wanted):
        """What `kubectl auth can-i` answers about an account. A "yes" is awaited: the API server learns of rights by a
        watch."""
        for _ in tries():
            said = self.cluster.try_kubectl("auth", "can-i", *question.split(), f"--as={account}").stdout.split()[0]
            if said == wanted or wanted == "no":
                return said
        return said

    @classmethod
    def install_definitions(cls):
        cls.cluster.kubectl("apply", "--server-side", "-k", os.path.join(MANIFESTS, "base", "crds"))
        establish(cls.cluster)
