"""The values of the Helm chart: each changes its field, and wrong ones are refused."""

import unittest

from chart_case import CHART, DEPLOYMENT, SYSTEM, VERSION, PackagingCase, helm, value_at, why_no_helm

import class_runner

# (values, path in the Deployment's pod, the value there)
VALUES = [
    (
        ["image.repository=r.example.com/c", "image.tag=v1", "image.pullPolicy=Always"],
        "containers.0.image",
        "r.example.com/c:v1",
    ),
    (["image.pullPolicy=Always"], "containers.0.imagePullPolicy", "Always"),
    (
        ["agentImage.repository=r.example.com/a", "agentImage.tag=v2"],
        "containers.0.env",
        [{"name": "MUSTER_AGENT_IMAGE", "value": "r.example.com/a:v2"}],
    ),
    (["registry=r.example.com/team/"], "containers.0.image", f"r.example.com/team/muster-controller:{VERSION}"),
    (
        ["registry=r.example.com/team"],
        "containers.0.env",
        [{"name": "MUSTER_AGENT_IMAGE", "value": f"r.example.com/team/muster:{VERSION}"}],
    ),
    (["resources.limits.memory=1Gi"], "containers.0.resources", {"limits": {"memory": "1Gi"}}),
    (["nodeSelector.role=system"], "nodeSelector", {"role": "system"}),
    (["tolerations[0].operator=Exists"], "tolerations", [{"operator": "Exists"}]),
    (["affinity.nodeAffinity.x=y"], "affinity", {"nodeAffinity": {"x": "y"}}),
    (["imagePullSecrets[0].name=pull"], "imagePullSecrets", [{"name": "pull"}]),
]
REFUSED = [
    "replica=1",
    "image.tag=1",
    "image.repository=",
    "image.pullPolicy=Sometimes",
    "metrics.enabled=maybe",
    "pytorchJobs.enabled=1",
    "replicas=two",
    "webhook.clientCA=on",
    "webhook.trustClients.enable=true",
]


class ChartValues(PackagingCase):
    @classmethod
    def setUpClass(cls):
        if why_no_helm():
            raise unittest.SkipTest(why_no_helm())
        super().setUpClass()

    def test_each_value_changes_its_field(self):
        for values, path, wanted in VALUES:
            with self.subTest(values):
                made = self.rendered(*(word for value in values for word in ("--set", value)))
                self.assertEqual(
                    value_at(made["Deployment", SYSTEM, DEPLOYMENT]["spec"]["template"]["spec"], path), wanted
                )
        args = [
            self.rendered(*flags)["Deployment", SYSTEM, DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]["args"]
            for flags in ((), ("--set", "extraArgs={--log-format=json,--qps=50}"))
        ]
        self.assertEqual(args[1], [*args[0], "--log-format=json", "--qps=50"])
        made = self.rendered("--set", "runtimes.enabled=false,podDisruptionBudget.enabled=false")
        self.assertFalse({"ClusterTrainingRuntime", "PodDisruptionBudget"} & {kind for kind, _, _ in made})

    def test_wrong_values_are_refused(self):
        for value in REFUSED:
            done = helm(self.cluster, "template", "muster", CHART, "--set", value)
            self.assertEqual(done.returncode, 1, value)
            self.assertIn("don't meet the specifications of the schema", done.stderr)


if __name__ == "__main__":
    class_runner.main()
