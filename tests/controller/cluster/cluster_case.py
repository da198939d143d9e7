"""A test case whose class has its own Kubernetes control plane. Skips if the binaries are not built."""
import copy
import os
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
MANIFESTS = os.path.join(ROOT, "controller", "manifests")
BIN = os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin"))
sys.path[:0] = [os.path.join(ROOT, "e2e", "cluster"), os.path.join(ROOT, "e2e", "controller"), os.path.join(ROOT, "tests")]

from cluster import Cluster, binaries  # noqa: E402
from processes import Broken  # noqa: E402

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
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"podgroups.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def establish(cluster):
    """Waits until all definitions are served. `kubectl wait` fails where one has no status yet."""
    for name in [each["metadata"]["name"] for each in cluster.get("crd")["items"]]:
        cluster.await_object(f"crd/{name}", lambda made: any(
            (each["type"], each["status"]) == ("Established", "True") for each in made.get("status", {}).get("conditions") or []))


class ClusterCase(unittest.TestCase):
    FLAGS = {}  # of the cluster's components

    @classmethod
    def setUpClass(cls):
        try:
            programs = binaries()
        except Broken as error:
            raise unittest.SkipTest(f"SKIPPED: {error}")
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

    @classmethod
    def install_definitions(cls):
        cls.cluster.kubectl("apply", "--server-side", "-k", os.path.join(MANIFESTS, "base", "crds"))
        establish(cls.cluster)
