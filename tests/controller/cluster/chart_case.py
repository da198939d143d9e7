# SPDX-License-Identifier: Apache-2.0
"""What the tests of the manifests and of the Helm chart share: their objects, as kustomize and as Helm make them."""

import json
import os
import re
import subprocess
import tempfile

from cluster_case import MANIFESTS, ROOT, ClusterCase, establish

CHART = os.path.join(ROOT, "charts", "muster")
HELM = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muster", "go", "helm")
SYSTEM = "kubeflow-system"
with open(os.path.join(ROOT, "CMakeLists.txt")) as sources:
    VERSION = re.search(r"project\(muster VERSION (\S+)", sources.read()).group(1)
DEPLOYMENT = "kubeflow-trainer-controller-manager"
# Foreign kinds that components create. Their definitions here accept all fields.
OTHERS = [
    ("cert-manager.io", "v1", "Issuer"),
    ("cert-manager.io", "v1", "Certificate"),
    ("monitoring.coreos.com", "v1", "ServiceMonitor"),
    ("monitoring.coreos.com", "v1", "PrometheusRule"),
]
# The values of the chart that turn on components of controller/manifests.
COMPONENTS = {
    "networkPolicy": "network-policy",
    "metrics": "monitoring",
    "webhook.certManager": "cert-manager",
    "webhook.clientCA": "webhook-client-ca",
    "webhook.trustClients": "webhook-trust-clients",
    "statusServer": "status-server",
    "metrics.tls": "metrics-tls",
    "pytorchJobs": "pytorchjob",
}
ALL_ON = [word for switch in COMPONENTS for word in ("--set", f"{switch}.enabled=true")]
# The definitions of base/crds, and the one that a value of the chart turns on.
GROUPS = ("trainer.kubeflow.org", "kubeflow.org")


def definition(group, version, kind):
    plural = kind.lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
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


def install_others(cluster):
    cluster.apply([definition(*other) for other in OTHERS])
    establish(cluster)


def helm(cluster, *arguments):
    return subprocess.run(
        [HELM, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **cluster.environment,
            "HELM_CACHE_HOME": cluster.folder,
            "HELM_CONFIG_HOME": cluster.folder,
            "HELM_DATA_HOME": cluster.folder,
        },
    )


def why_no_helm():
    return None if os.access(HELM, os.X_OK) else "SKIPPED: run build-support/setup-go-server helm (needs Go)"


def place(thing):
    return thing["kind"], thing["metadata"].get("namespace"), thing["metadata"]["name"]


def images_of(made):
    """The images of Muster that the objects name."""
    found, left = set(), list(made.values())
    while left:
        thing = left.pop()
        if isinstance(thing, dict):
            named = [thing[key] for key in ("image", "value") if isinstance(thing.get(key), str)]
            found.update(name for name in named if re.search(r"(?:^|/)muster(?:-\w+)?(?::|$)", name))
        left += thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else []
    return found


def value_at(given, path):
    for part in path.split("."):
        given = given[int(part) if part.isdigit() else part]
    return given


class PackagingCase(ClusterCase):
    """With the definitions installed, so that the API server checks the objects."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        install_others(cls.cluster)

    def objects(self, text):
        """The objects of a YAML text, by place()."""
        text = self.cluster.kubectl(
            "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", content=text
        )
        made, decoder, at = {}, json.JSONDecoder(), 0
        while at < len(text.rstrip()):
            thing, at = decoder.raw_decode(text, re.compile(r"\s*").match(text, at).end())
            for part in thing["items"] if thing["kind"] == "List" else [thing]:
                if part["kind"] != "CustomResourceDefinition" or part["spec"]["group"] in GROUPS:
                    self.assertNotIn(place(part), made, "it is there twice")
                    made[place(part)] = part
        return made

    def kustomized(self, folder):
        return self.objects(self.cluster.kubectl("kustomize", folder))

    def with_components(self, names):
        """A folder with a kustomization: the default overlay and these components."""
        folder = tempfile.mkdtemp(dir=self.cluster.folder)
        with open(os.path.join(folder, "kustomization.yaml"), "w") as file:
            json.dump(
                {
                    "apiVersion": "kustomize.config.k8s.io/v1beta1",
                    "kind": "Kustomization",
                    "resources": [os.path.relpath(os.path.join(MANIFESTS, "overlays", "default"), folder)],
                    "components": [
                        os.path.relpath(os.path.join(MANIFESTS, "components", name), folder) for name in names
                    ],
                },
                file,
            )
        return folder

    def rendered(self, *flags):
        done = helm(self.cluster, "template", "muster", CHART, "--namespace", SYSTEM, "--include-crds", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.objects(done.stdout)
