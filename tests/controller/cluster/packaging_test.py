# SPDX-License-Identifier: Apache-2.0
"""Ways to install Muster: kustomize overlays and components, and the Helm chart, which must give the same objects."""

import json
import os
import re
import shutil
import tempfile
import unittest
import urllib.request

from chart_case import (
    ALL_ON,
    CHART,
    COMPONENTS,
    DEPLOYMENT,
    SYSTEM,
    VERSION,
    PackagingCase,
    definition,
    helm,
    images_of,
    install_others,
    value_at,
    why_no_helm,
)
from cluster_case import MANIFESTS, NAMESPACE, ROOT, ClusterCase, await_kind
from controller_case import TRUE, WAIT
from pytorch_case import PyTorchCase

import class_runner
from scenario import runtime

IMAGES = ("muster", "muster-initializer", "muster-controller")
PYTORCH_WEBHOOK = "validator.pytorchjob.training-operator.kubeflow.org"


class Packaging(PackagingCase):
    """The API server checks the objects; the chart's are compared with kustomize's."""

    def test_every_overlay_is_accepted(self):
        for name in sorted(os.listdir(os.path.join(MANIFESTS, "overlays"))):
            with self.subTest(name):
                done = self.cluster.try_kubectl(
                    "apply", "--server-side", "--force-conflicts", "-k", os.path.join(MANIFESTS, "overlays", name)
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_applied_again(self):
        """As in an upgrade. Kubernetes has meanwhile filled in the rules of the aggregated role."""
        apply = ("apply", "--server-side", "-k", os.path.join(MANIFESTS, "overlays", "default"))
        self.cluster.kubectl(*apply, "--force-conflicts")
        self.cluster.await_object("clusterrole/kubeflow-trainer-admin", lambda role: role.get("rules"))
        done = self.cluster.try_kubectl(*apply)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_component_is_accepted(self):
        names = sorted(os.listdir(os.path.join(MANIFESTS, "components")))
        self.assertEqual(set(names), {*COMPONENTS.values(), "kueue"})
        done = self.cluster.try_kubectl(
            "apply", "--server-side", "--force-conflicts", "-k", self.with_components(names)
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.cluster.get("crd", "jobsets.jobset.x-k8s.io")["spec"]["names"]["kind"], "JobSet")

    def test_a_jobset_can_be_written(self):
        self.cluster.kubectl("apply", "--server-side", "-k", self.with_components(["kueue"]))
        await_kind(self.cluster, "jobset.x-k8s.io/v1alpha2", "jobsets")
        jobset = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "a", "namespace": NAMESPACE},
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "spec": {
                                "template": {
                                    "spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "x"}]}
                                }
                            }
                        },
                    }
                ]
            },
        }
        self.cluster.kubectl("create", "-f", "-", content=json.dumps(jobset))  # an unknown field would be refused
        self.assertEqual(
            value_at(self.cluster.get("jobset", "a", "-n", NAMESPACE), "spec.replicatedJobs.0.replicas"), 1
        )
        done = self.cluster.try_kubectl(
            "patch",
            "jobset",
            "a",
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            '{"spec":{"successPolicy":{"operator":"Some"}}}',
        )
        self.assertIn("successPolicy.operator: Unsupported value", done.stderr)

    def test_what_is_for_each_namespace_is_accepted(self):
        folder = os.path.join(MANIFESTS, "per-namespace")
        done = self.cluster.try_kubectl("apply", "--server-side", "-n", NAMESPACE, "-f", folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name, ports in (
            ("muster-train-jobs", {29400, 29500, 29522}),
            ("muster-pytorch-jobs", {23456, 29400, 29500}),
        ):
            rules = self.cluster.get("networkpolicy", name, "-n", NAMESPACE)["spec"]["ingress"]
            [anybody] = [rule["ports"] for rule in rules if "from" not in rule]
            open_ports = {
                port
                for part in anybody
                if part["protocol"] == "TCP"
                for port in range(part["port"], part["endPort"] + 1)
            }
            self.assertEqual(set(range(1, 65536)) - open_ports, ports, name)

    def test_the_certificate_is_of_the_service(self):
        made = self.kustomized(os.path.join(MANIFESTS, "overlays", "cert-manager"))
        service, certificate, deployment = (
            made[kind, SYSTEM, name]
            for kind, name in (
                ("Service", DEPLOYMENT),
                ("Certificate", "kubeflow-trainer-webhook-cert"),
                ("Deployment", DEPLOYMENT),
            )
        )
        self.assertIn(f"{service['metadata']['name']}.{SYSTEM}.svc", certificate["spec"]["dnsNames"])
        pod = deployment["spec"]["template"]["spec"]
        self.assertEqual(
            pod["containers"][0]["args"][-1],
            f"--webhook-cert-dir={pod['containers'][0]['volumeMounts'][-1]['mountPath']}",
        )
        self.assertEqual(pod["volumes"][-1]["secret"]["secretName"], certificate["spec"]["secretName"])
        for (kind, _, name), configuration in made.items():
            if kind.endswith("WebhookConfiguration"):
                self.assertEqual(
                    configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"],
                    f"{SYSTEM}/kubeflow-trainer-webhook-cert",
                    name,
                )

    def test_metrics_over_tls(self):
        """Alone, and behind the component `monitoring`, whose ServiceMonitor then trusts the Secret's authority."""
        for names in (["metrics-tls"], ["monitoring"], ["monitoring", "metrics-tls", "cert-manager"]):
            made = self.kustomized(self.with_components(names))
            tls = "metrics-tls" in names
            [port, *_] = made["Service", SYSTEM, DEPLOYMENT]["spec"]["ports"]
            target = "metrics" if tls else "http"
            self.assertEqual(port, {"name": "metrics", "port": 8443, "targetPort": target}, names)
            manager = made["Deployment", SYSTEM, DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]
            self.assertEqual("--metrics-listen=:8443" in manager["args"], tls, names)
            self.assertEqual({"name": "metrics", "containerPort": 8443} in manager["ports"], tls, names)
            if "monitoring" not in names:
                self.assertNotIn(("ServiceMonitor", SYSTEM, DEPLOYMENT), made)
                continue
            [endpoint] = made["ServiceMonitor", SYSTEM, DEPLOYMENT]["spec"]["endpoints"]
            self.assertEqual(endpoint.pop("port"), "metrics")
            self.assertEqual(bool(endpoint), tls, names)
        certificate = made["Certificate", SYSTEM, "kubeflow-trainer-webhook-cert"]["spec"]
        self.assertIn(endpoint["tlsConfig"]["serverName"], certificate["dnsNames"])
        self.assertEqual(endpoint["tlsConfig"]["ca"]["secret"]["name"], certificate["secretName"])

    def test_the_chart_has_the_objects_of_the_manifests(self):
        if why_no_helm():
            self.skipTest(why_no_helm())
        for flags, folder in (
            ((), os.path.join(MANIFESTS, "overlays", "default")),
            (ALL_ON, self.with_components(COMPONENTS.values())),
        ):
            written = self.kustomized(folder)
            del written["Namespace", None, SYSTEM]  # Helm itself creates it
            rendered = self.rendered(*flags)
            self.assertEqual(sorted(map(str, rendered)), sorted(map(str, written)))
            for key, thing in written.items():
                if thing["kind"] == "CustomResourceDefinition" and thing["spec"]["group"] == "kubeflow.org":
                    self.assertEqual(rendered[key]["metadata"].pop("annotations"), {"helm.sh/resource-policy": "keep"})
                    self.assertIsNone(thing["metadata"].pop("annotations", None))
                self.assertEqual(rendered[key], thing, f"{key} with {flags}")

    def test_the_chart_has_the_version_of_the_sources(self):
        with open(os.path.join(CHART, "Chart.yaml")) as chart:
            self.assertEqual(re.findall(r"(?m)^(?:version|appVersion): (\S+)$", chart.read()), [VERSION, VERSION])

    def test_every_image_of_muster_has_the_version(self):
        """A node pulls an image with the tag `latest`, or without a tag, although it has been imported there."""
        made = self.kustomized(os.path.join(MANIFESTS, "overlays", "default"))
        self.assertEqual(images_of(made), {f"{name}:{VERSION}" for name in IMAGES})

    def test_a_registry_for_every_image(self):
        """As docs/install.md has it."""
        folder = tempfile.mkdtemp(dir=self.cluster.folder)
        shutil.copytree(MANIFESTS, os.path.join(folder, "muster", "controller", "manifests"))
        with open(os.path.join(ROOT, "docs", "install.md")) as page:
            text = re.search(r"```yaml\n(apiVersion: kustomize.*?)```", page.read(), re.DOTALL)[1]
        with open(os.path.join(folder, "kustomization.yaml"), "w") as file:
            file.write(text)
        self.assertEqual(
            images_of(self.kustomized(folder)), {f"registry.example.com/team/{name}:{VERSION}" for name in IMAGES}
        )
        if not why_no_helm():
            self.assertEqual(
                images_of(
                    self.rendered(
                        "--set",
                        "registry=registry.example.com/team",
                        "--set-string",
                        "image.tag=1,agentImage.tag=1,initializerImage.tag=1",
                    )
                ),
                {f"registry.example.com/team/{name}:1" for name in IMAGES},
            )


class HelmRelease(ClusterCase):
    """A cluster without Muster's definitions, and a namespace of another name."""

    @classmethod
    def setUpClass(cls):
        if why_no_helm():
            raise unittest.SkipTest(why_no_helm())
        super().setUpClass()

    @classmethod
    def install_definitions(cls):
        install_others(cls.cluster)

    def run_helm(self, *arguments):
        done = helm(self.cluster, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_definition_of_training_operator_is_taken_over(self):
        self.cluster.apply([definition("kubeflow.org", "v1", "PyTorchJob")])
        install = (
            "install",
            "muster",
            CHART,
            "--namespace",
            "training",
            "--create-namespace",
            "--set",
            "pytorchJobs.enabled=true",
        )
        done = helm(self.cluster, *install)
        self.assertIn(
            'CustomResourceDefinition "pytorchjobs.kubeflow.org" in namespace "" exists and cannot be imported',
            done.stderr,
        )
        self.run_helm(*install, "--take-ownership")
        schema = value_at(self.cluster.get("crd", "pytorchjobs.kubeflow.org"), "spec.versions.0.schema.openAPIV3Schema")
        self.assertIn("countedPods", schema["properties"]["status"]["properties"])
        self.assertNotIn("x-kubernetes-preserve-unknown-fields", schema)
        self.run_helm("uninstall", "muster", "--namespace", "training")

    def webhooks(self):
        return [
            webhook["name"]
            for webhook in self.cluster.get("validatingwebhookconfiguration", "validator.trainer.kubeflow.org")[
                "webhooks"
            ]
        ]

    def test_install_upgrade_uninstall(self):
        self.run_helm("install", "muster", CHART, "--namespace", "training", "--create-namespace", *ALL_ON)
        self.assertEqual(self.cluster.get("deployment", DEPLOYMENT, "-n", "training")["spec"]["replicas"], 2)
        self.assertEqual(self.cluster.get("clustertrainingruntime", "plain")["metadata"]["name"], "plain")
        account = f"system:serviceaccount:training:{DEPLOYMENT}"
        for question, answer in (
            ("create jobs.batch -n vision", "yes"),
            ("update leases.coordination.k8s.io/trainer.kubeflow.org -n training", "yes"),
            ("delete pytorchjobs.kubeflow.org -n vision", "yes"),
            (f"update leases.coordination.k8s.io/trainer.kubeflow.org -n {SYSTEM}", "no"),
        ):
            self.assertEqual(self.may(account, question, answer), answer, question)
        self.assertIn(PYTORCH_WEBHOOK, self.webhooks())
        self.run_helm(
            "upgrade", "muster", CHART, "--namespace", "training", "--set", "replicas=1,serviceAccount.name=own"
        )
        for question in (
            "create jobs.batch -n vision",
            "update leases.coordination.k8s.io/trainer.kubeflow.org -n training",
        ):
            self.assertEqual(self.may("system:serviceaccount:training:own", question, "yes"), "yes", question)
            self.assertEqual(self.may(account, question, "no"), "no", question)
        self.assertEqual(self.cluster.get("deployment", DEPLOYMENT, "-n", "training")["spec"]["replicas"], 1)
        self.assertEqual(self.cluster.get("poddisruptionbudgets", "-n", "training")["items"], [])
        self.assertEqual(self.cluster.get("servicemonitors", "-n", "training")["items"], [])
        self.assertNotIn(PYTORCH_WEBHOOK, self.webhooks())
        self.cluster.kubectl("get", "crd", "pytorchjobs.kubeflow.org")  # it stays when it is turned off
        self.run_helm("uninstall", "muster", "--namespace", "training")
        self.assertEqual(self.cluster.try_kubectl("get", "deployment", DEPLOYMENT, "-n", "training").returncode, 1)
        for name in ("trainjobs.trainer.kubeflow.org", "pytorchjobs.kubeflow.org"):
            self.cluster.kubectl("get", "crd", name)  # deleting it would delete all its objects


class Metrics(PyTorchCase):
    def test_what_is_documented_is_served(self):
        """All documented metrics are served. docs_test checks that alerts and dashboard use documented ones only."""
        self.serve()
        self.make("measured", runtime("", 1, container=TRUE))
        self.running("measured")
        self.create_job("counted")
        self.await_running("counted")
        with urllib.request.urlopen(
            f"http://{self.cluster.address}:{self.cluster.port('controller')}/metrics", timeout=WAIT
        ) as answer:
            served = set(re.findall(r"(?m)^# TYPE (\S+)", answer.read().decode()))
        with open(os.path.join(ROOT, "docs", "controller.md")) as page:
            table = page.read().partition("\n## Metrics\n")[2].partition("\n## ")[0]
        self.assertEqual(set(re.findall(r"`((?:muster|workqueue)_\w+)", table)), served)


if __name__ == "__main__":
    class_runner.main()
