# SPDX-License-Identifier: Apache-2.0
"""The values of the Helm chart: each changes its field, and wrong ones are refused."""

import json
import os
import re
import subprocess
import tempfile
import unittest

from chart_case import (
    ALL_ON,
    CHART,
    COMPONENTS,
    DEPLOYMENT,
    SYSTEM,
    VERSION,
    PackagingCase,
    helm,
    value_at,
    why_no_helm,
)
from cluster_case import BIN, ROOT, WAIT

import class_runner
from chart_schema import chart_values

# What finds the controller's pods.
SPREAD = {
    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "trainer", "app.kubernetes.io/component": "manager"}}
}
DIGEST = "sha256:" + 64 * "0"
WEBHOOKS = "ValidatingWebhookConfiguration validator.trainer.kubeflow.org"
TRAINER = "spec.template.spec.replicatedJobs.0.template.spec.template.spec.containers.0"
TUNE = "spec.template.spec.replicatedJobs.2.template.spec.template.spec.containers.0"

# (value, what it is given, path in the Deployment, the value there). All are given at once.
OF_THE_DEPLOYMENT = [
    ("replicas", 3, "spec.replicas", 3),
    ("revisionHistoryLimit", 2, "spec.revisionHistoryLimit", 2),
    ("strategy", {"type": "Recreate"}, "spec.strategy", {"type": "Recreate"}),
    ("deploymentAnnotations", {"a": "deployment"}, "metadata.annotations", {"a": "deployment"}),
    ("commonLabels", {"team": "ml"}, "metadata.labels.team", "ml"),
    ("podAnnotations", {"a": "pod"}, "spec.template.metadata.annotations", {"a": "pod"}),
    ("podLabels", {"b": "pod"}, "spec.template.metadata.labels.b", "pod"),
]
# The same, with a path in the pod.
OF_THE_POD = [
    ("image.registry", "c.example.com/x/", "containers.0.image", f"c.example.com/x/c:v1@{DIGEST}"),
    ("image.repository", "c", "containers.0.image", f"c.example.com/x/c:v1@{DIGEST}"),
    ("image.tag", "v1", "containers.0.image", f"c.example.com/x/c:v1@{DIGEST}"),
    ("image.digest", DIGEST, "containers.0.image", f"c.example.com/x/c:v1@{DIGEST}"),
    ("image.pullPolicy", "Always", "containers.0.imagePullPolicy", "Always"),
    ("registry", "r.example.com/team/", "containers.0.env.0.value", f"r.example.com/team/muster@{DIGEST}"),
    ("agentImage.digest", DIGEST, "containers.0.env.0.value", f"r.example.com/team/muster@{DIGEST}"),
    ("imagePullSecrets", [{"name": "pull"}], "imagePullSecrets", [{"name": "pull"}]),
    ("resources", {"limits": {"memory": "1Gi"}}, "containers.0.resources", {"limits": {"memory": "1Gi"}}),
    (
        "topologySpreadConstraints",
        [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "topologySpreadConstraints.0",
        {**SPREAD, "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
    ),
    ("podSecurityContext", {"runAsNonRoot": True}, "securityContext", {"runAsNonRoot": True}),
    ("securityContext", {"privileged": False}, "containers.0.securityContext", {"privileged": False}),
    ("nodeSelector", {"role": "system"}, "nodeSelector", {"role": "system"}),
    ("tolerations", [{"operator": "Exists"}], "tolerations", [{"operator": "Exists"}]),
    ("affinity", {"nodeAffinity": {}}, "affinity", {"nodeAffinity": {}}),
    ("priorityClassName", "system-cluster-critical", "priorityClassName", "system-cluster-critical"),
    ("runtimeClassName", "gvisor", "runtimeClassName", "gvisor"),
    ("hostNetwork", True, "hostNetwork", True),
    ("dnsPolicy", "None", "dnsPolicy", "None"),
    ("dnsConfig", {"nameservers": ["10.0.0.1"]}, "dnsConfig", {"nameservers": ["10.0.0.1"]}),
    (
        "hostAliases",
        [{"ip": "10.0.0.2", "hostnames": ["a"]}],
        "hostAliases",
        [{"ip": "10.0.0.2", "hostnames": ["a"]}],
    ),
    ("livenessProbe", {"timeoutSeconds": 7}, "containers.0.livenessProbe.timeoutSeconds", 7),
    ("readinessProbe", {"periodSeconds": 9}, "containers.0.readinessProbe.periodSeconds", 9),
    ("env", [{"name": "A", "value": "b"}], "containers.0.env.1", {"name": "A", "value": "b"}),
    ("envFrom", [{"secretRef": {"name": "a"}}], "containers.0.envFrom", [{"secretRef": {"name": "a"}}]),
    ("volumes", [{"name": "own", "emptyDir": {}}], "volumes.2", {"name": "own", "emptyDir": {}}),
    (
        "volumeMounts",
        [{"name": "own", "mountPath": "/own"}],
        "containers.0.volumeMounts.2",
        {"name": "own", "mountPath": "/own"},
    ),
    ("extraContainers", [{"name": "b", "image": "b:1"}], "containers.1", {"name": "b", "image": "b:1"}),
    ("serviceAccount.name", "own", "serviceAccountName", "own"),
    ("ports.http", 18081, "containers.0.ports.0.containerPort", 18081),
    ("ports.webhook", 19443, "containers.0.ports.1.containerPort", 19443),
    ("ports.statusServer", 11443, "containers.0.ports.2.containerPort", 11443),
    ("ports.metrics", 18443, "containers.0.ports.3.containerPort", 18443),
]
# (value, what it is given, the argument)
OF_THE_COMMAND = [
    ("ports.http", 18081, "--listen=:18081"),
    ("ports.webhook", 19443, "--webhook-listen=:19443"),
    ("ports.statusServer", 11443, "--status-listen=:11443"),
    ("ports.metrics", 18443, "--metrics-listen=:18443"),
    ("watchNamespace", "vision", "--namespace=vision"),
    ("log.level", "debug", "--log-level=debug"),
    ("log.format", "json", "--log-format=json"),
    ("extraArgs", ["--qps=50"], "--qps=50"),
]
# (value, what it is given, the object, path in it, the value there)
OF_OTHERS = [
    ("commonLabels", {"team": "ml"}, "ConfigMap kubeflow-trainer-dashboard", "metadata.labels.team", "ml"),
    ("ports.statusServer", 11443, f"Service {DEPLOYMENT}", "spec.ports.2.port", 11443),
    ("ports.metrics", 18443, f"Service {DEPLOYMENT}", "spec.ports.0.port", 8443),
    ("metrics.tls.enabled", True, f"Service {DEPLOYMENT}", "spec.ports.0.targetPort", "metrics"),
    ("metrics.tls.enabled", True, f"ServiceMonitor {DEPLOYMENT}", "spec.endpoints.0.scheme", "https"),
    (
        "ports.http",
        18081,
        f"NetworkPolicy {DEPLOYMENT}",
        "spec.ingress.0.ports",
        [{"port": 18081}, {"port": 19443}, {"port": 11443}, {"port": 18443}],
    ),
    ("service.annotations", {"a": "b"}, f"Service {DEPLOYMENT}", "metadata.annotations", {"a": "b"}),
    ("service.ipFamilyPolicy", "SingleStack", f"Service {DEPLOYMENT}", "spec.ipFamilyPolicy", "SingleStack"),
    ("service.ipFamilies", ["IPv4"], f"Service {DEPLOYMENT}", "spec.ipFamilies", ["IPv4"]),
    ("serviceAccount.name", "own", "ServiceAccount own", "metadata.name", "own"),
    ("serviceAccount.name", "own", f"ClusterRoleBinding {DEPLOYMENT}", "subjects.0.name", "own"),
    ("serviceAccount.name", "own", f"RoleBinding {DEPLOYMENT}-leader", "subjects.0.name", "own"),
    ("serviceAccount.annotations", {"a": "b"}, "ServiceAccount own", "metadata.annotations", {"a": "b"}),
    ("podDisruptionBudget.maxUnavailable", "50%", f"PodDisruptionBudget {DEPLOYMENT}", "spec.maxUnavailable", "50%"),
    (
        "podDisruptionBudget.unhealthyPodEvictionPolicy",
        "AlwaysAllow",
        f"PodDisruptionBudget {DEPLOYMENT}",
        "spec.unhealthyPodEvictionPolicy",
        "AlwaysAllow",
    ),
    ("metrics.labels", {"release": "p"}, f"ServiceMonitor {DEPLOYMENT}", "metadata.labels.release", "p"),
    ("metrics.labels", {"release": "p"}, f"PrometheusRule {DEPLOYMENT}", "metadata.labels.release", "p"),
    ("metrics.endpoint", {"interval": "9s"}, f"ServiceMonitor {DEPLOYMENT}", "spec.endpoints.0.interval", "9s"),
    ("webhook.failurePolicy", "Ignore", WEBHOOKS, "webhooks.0.failurePolicy", "Ignore"),
    ("webhook.failurePolicy", "Ignore", WEBHOOKS, "webhooks.5.failurePolicy", "Ignore"),
    ("webhook.timeoutSeconds", 5, WEBHOOKS, "webhooks.5.timeoutSeconds", 5),
    ("webhook.annotations", {"a": "b"}, WEBHOOKS, "metadata.annotations.a", "b"),
    (
        "initializerImage",
        {"registry": "i.example.com", "repository": "i", "tag": "2", "digest": DIGEST, "pullPolicy": "Always"},
        "ClusterTrainingRuntime torchtune-qwen2.5-1.5b",
        TRAINER + ".image",
        f"i.example.com/i:2@{DIGEST}",
    ),
    (
        "initializerImage.pullPolicy",
        "Always",
        "ClusterTrainingRuntime torchtune-qwen2.5-1.5b",
        TRAINER + ".imagePullPolicy",
        "Always",
    ),
    (
        "runtimes.registry",
        "mirror.example.com",
        "ClusterTrainingRuntime deepspeed-distributed",
        TRAINER + ".image",
        "mirror.example.com/kubeflow/trainer/deepspeed-runtime:v2.3.0",
    ),
    (
        "runtimes.torchDistributed.image",
        {"registry": "t.example.com", "repository": "torch", "tag": "3", "digest": DIGEST},
        "ClusterTrainingRuntime torch-distributed",
        TRAINER + ".image",
        f"t.example.com/torch:3@{DIGEST}",
    ),
    (
        "runtimes.mlxDistributed.image.repository",
        "m.example.com:5000/mlx",
        "ClusterTrainingRuntime mlx-distributed",
        TRAINER + ".image",
        "m.example.com:5000/mlx:v2.3.0",
    ),
    (
        "runtimes.torchtuneDistributed.image.tag",
        "4",
        "ClusterTrainingRuntime torchtune-qwen2.5-1.5b",
        TUNE + ".image",
        "mirror.example.com/kubeflow/trainer/torchtune-trainer:4",
    ),
]
# What would hide another value of the tables above.
APART = [
    ({"registry": "r.example.com/team"}, "containers.0.image", f"r.example.com/team/muster-controller:{VERSION}"),
    (
        {"agentImage": {"registry": "a.example.com", "repository": "a", "tag": "2"}},
        "containers.0.env.0.value",
        "a.example.com/a:2",
    ),
    ({"image": {"digest": DIGEST}}, "containers.0.image", f"muster-controller@{DIGEST}"),
    ({"hostUsers": False}, "hostUsers", False),
]
RUNTIMES = {
    "plain": "plain",
    "torchDistributed": "torch-distributed",
    "deepspeedDistributed": "deepspeed-distributed",
    "mlxDistributed": "mlx-distributed",
    "jaxDistributed": "jax-distributed",
    "xgboostDistributed": "xgboost-distributed",
    "torchtuneDistributed.llama3_2_1B": "torchtune-llama3.2-1b",
    "torchtuneDistributed.llama3_2_3B": "torchtune-llama3.2-3b",
    "torchtuneDistributed.qwen2_5_1_5B": "torchtune-qwen2.5-1.5b",
}
# The value, what the message says.
REFUSED = [
    ("replica=1", "additional properties 'replica' not allowed"),
    ("manager.replicas=1", "additional properties 'manager' not allowed"),
    ("fullnameOverride=x", "additional properties 'fullnameOverride' not allowed"),
    ("image.tag=1", "'/image/tag': got number, want string"),
    ("image.repository=", "'/image/repository': minLength"),
    ("image.digest=sha256:abc", "'/image/digest': 'sha256:abc' does not match pattern"),
    ("image.pullPolicy=Sometimes", "'/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"),
    ("agentImage.pullPolicy=Always", "'/agentImage': additional properties 'pullPolicy' not allowed"),
    ("metrics.enabled=maybe", "'/metrics/enabled': got string, want boolean"),
    ("pytorchJobs.enabled=1", "'/pytorchJobs/enabled': got number, want boolean"),
    ("replicas=two", "'/replicas': got string, want integer"),
    ("webhook.clientCA=on", "'/webhook/clientCA': got string, want object"),
    ("webhook.trustClients.enable=true", "'/webhook/trustClients': additional properties 'enable' not allowed"),
    ("webhook.failurePolicy=Warn", "'/webhook/failurePolicy': value must be one of 'Fail', 'Ignore'"),
    ("webhook.timeoutSeconds=31", "'/webhook/timeoutSeconds': maximum: got 31, want 30"),
    ("commonLabels.a=true", "'/commonLabels/a': got boolean, want string"),
    ("env[0].value=a", "'/env/0': missing property 'name'"),
    ("log.level=trace", "'/log/level': value must be one of"),
    ("runtimes.torch.enabled=false", "'/runtimes': additional properties 'torch' not allowed"),
    ("podDisruptionBudget.minAvailable=some", "'/podDisruptionBudget/minAvailable': 'some' does not match pattern"),
    ("livenessProbe.timeout=1", "'/livenessProbe': additional properties 'timeout' not allowed"),
    ("ports.http=70000", "'/ports/http': maximum: got 70,000, want 65,535"),
    ("ports.http=9443", "ports: http, webhook and statusServer must differ"),
    ("ports.metrics=9443,metrics.tls.enabled=true", "ports: metrics must differ from the others"),
    ("metrics.tls=true", "'/metrics/tls': got boolean, want object"),
    ("ports.statusServer=8443", "ports: statusServer is also a port of the Service, which has 8443 already"),
    ("podLabels.app\\.kubernetes\\.io/name=a", "app.kubernetes.io/name is a label by which the Deployment finds"),
    ("env[0].name=MUSTER_AGENT_IMAGE", "env: agentImage sets MUSTER_AGENT_IMAGE"),
    ("extraArgs={--webhook-listen=:1}", "extraArgs: another value sets --webhook-listen"),
    ("log.format=json,extraArgs={--log-format=text}", "extraArgs: another value sets --log-format"),
]


def put(values, name, given):
    """Sets the value `name`, such as image.tag, in the nested `values`."""
    *folders, last = name.split(".")
    for folder in folders:
        values = values.setdefault(folder, {})
    values[last] = {**values[last], **given} if isinstance(values.get(last), dict) else given


def names_in(values, known, path=""):
    """Which of the `known` values are set."""
    if path in known:
        return {path}
    return {
        name
        for key, part in (values.items() if isinstance(values, dict) else ())
        for name in names_in(part, known, f"{path}.{key}" if path else key)
    }


def all_values():
    values = {}
    for name, given, *_ in OF_THE_DEPLOYMENT + OF_THE_POD + OF_THE_COMMAND + OF_OTHERS:
        put(values, name, given)
    for switch in COMPONENTS:
        if switch != "webhook.trustClients":
            put(values, f"{switch}.enabled", True)
    return values


class ChartValues(PackagingCase):
    @classmethod
    def setUpClass(cls):
        if why_no_helm():
            raise unittest.SkipTest(why_no_helm())
        super().setUpClass()

    def values_file(self, text):
        with tempfile.NamedTemporaryFile("w", dir=self.cluster.folder, suffix=".yaml", delete=False) as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        return file.name

    def with_values(self, values):
        """The objects, by kind and name."""
        return {f"{kind} {name}": thing for (kind, _, name), thing in self.by_place(values).items()}

    def by_place(self, values):
        return self.rendered("-f", self.values_file(values))

    def pod(self, values):
        return self.with_values(values)[f"Deployment {DEPLOYMENT}"]["spec"]["template"]["spec"]

    def test_each_value_changes_its_field(self):
        made = self.with_values(all_values())
        deployment = made[f"Deployment {DEPLOYMENT}"]
        pod = deployment["spec"]["template"]["spec"]
        for name, _, path, wanted in OF_THE_DEPLOYMENT:
            self.assertEqual(value_at(deployment, path), wanted, name)
        for name, _, path, wanted in OF_THE_POD:
            self.assertEqual(value_at(pod, path), wanted, name)
        for name, _, wanted in OF_THE_COMMAND:
            self.assertIn(wanted, pod["containers"][0]["args"], name)
        for name, _, thing, path, wanted in OF_OTHERS:
            self.assertEqual(value_at(made[thing], path), wanted, f"{name} in {thing}")
        for values, path, wanted in APART:
            self.assertEqual(value_at(self.pod(values), path), wanted, values)
        for key, thing in made.items():
            kept = thing["kind"] == "CustomResourceDefinition" and thing["spec"]["group"] == "trainer.kubeflow.org"
            self.assertTrue(kept or thing["metadata"]["labels"]["team"] == "ml", key)  # Helm takes crds/ as they are

    def test_the_controller_knows_the_flags(self):
        """They are read before the kubeconfig."""
        program = os.path.join(BIN, "muster-controller")
        if not os.access(program, os.X_OK):
            self.skipTest(f"SKIPPED: there is no {program}")
        args = self.pod(all_values())["containers"][0]["args"]
        for more, code in (((), 78), (("--none",), 64)):
            command = [program, *args, "--kubeconfig", os.path.join(self.cluster.folder, "none"), *more]
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT)
            self.assertEqual(done.returncode, code, done.stderr)

    def test_the_api_server_accepts_all_values(self):
        self.cluster.kubectl("create", "namespace", "of-values")
        done = helm(self.cluster, "template", "muster", CHART, "-n", "of-values", "-f", self.values_file(all_values()))
        self.assertEqual(done.returncode, 0, done.stderr)
        accepted = self.cluster.try_kubectl(
            "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", content=done.stdout
        )
        self.assertEqual((accepted.returncode, accepted.stderr), (0, ""))

    def test_each_value_is_tested(self):
        known = chart_values()
        self.assertGreater(len(known), 80)
        values = all_values()
        for apart, *_ in APART:
            for name in apart:
                put(values, name, apart[name])
        left = {name for name in known - names_in(values, known) if not name.startswith("runtimes.")}
        of_packaging = {"webhook.trustClients.enabled"}
        below = {
            "podDisruptionBudget.enabled",
            "podDisruptionBudget.minAvailable",
            "serviceAccount.create",
            "rbac.create",
            "rbac.aggregateClusterRoles",
        }
        self.assertEqual(left, of_packaging | below)

    def test_values_yaml_has_each_value_of_the_schema(self):
        text = helm(self.cluster, "show", "values", CHART).stdout
        head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\nvalues:\n"
        [shown] = self.objects(head + re.sub("(?m)^", "  ", text)).values()
        self.assertEqual(names_in(shown["values"], chart_values()), chart_values())

    def test_each_runtime_can_be_left_out(self):
        everything = self.by_place({})
        built_in = {name for kind, _, name in everything if kind == "ClusterTrainingRuntime"}
        self.assertEqual(set(RUNTIMES.values()), built_in)
        for value, name in RUNTIMES.items():
            values = {}
            put(values, f"runtimes.{value}.enabled", False)
            made = self.by_place(values)
            self.assertEqual(set(everything) - set(made), {("ClusterTrainingRuntime", None, name)}, value)
        made = self.by_place({"runtimes": {"enabled": False}})
        self.assertEqual(
            {kind for kind, _, _ in everything} - {kind for kind, _, _ in made}, {"ClusterTrainingRuntime"}
        )

    def test_each_runtime_has_its_image(self):
        values = {}
        for value in RUNTIMES:
            put(values, f"runtimes.{value.partition('.')[0]}.image", {"tag": value.partition(".")[0]})
        made = self.with_values(values)
        for value, name in RUNTIMES.items():
            jobs = made[f"ClusterTrainingRuntime {name}"]["spec"]["template"]["spec"]["replicatedJobs"]
            images = {job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] for job in jobs}
            tags = {image.rpartition(":")[2] for image in images if not image.startswith("muster-")}
            self.assertEqual(tags, {value.partition(".")[0]}, name)

    def test_what_others_make_is_left_out(self):
        everything = self.by_place({})
        for values, kinds in (
            ({"serviceAccount": {"create": False}}, {"ServiceAccount"}),
            ({"rbac": {"create": False}}, {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}),
            ({"podDisruptionBudget": {"enabled": False}}, {"PodDisruptionBudget"}),
            ({"replicas": 1}, {"PodDisruptionBudget"}),
        ):
            made = self.by_place(values)
            self.assertEqual({place for place in everything if place[0] in kinds}, set(everything) - set(made), values)
        made = self.with_values({"rbac": {"aggregateClusterRoles": False}, "podDisruptionBudget": {"minAvailable": 0}})
        self.assertEqual(made[f"PodDisruptionBudget {DEPLOYMENT}"]["spec"]["minAvailable"], 0)
        labels = {label for thing in made.values() for label in thing["metadata"].get("labels", {})}
        self.assertFalse({label for label in labels if label.startswith("rbac.authorization.k8s.io/")})
        self.assertIn("rbac.authorization.kubeflow.org/aggregate-to-kubeflow-edit", labels)

    def values_of_the_page(self):
        """The examples of docs/helm.md."""
        with open(os.path.join(ROOT, "docs", "helm.md")) as page:
            return re.findall(r"```yaml\n(.*?)```", page.read(), re.DOTALL)

    def test_openshift(self):
        """The values of docs/helm.md name no user, and change nothing else."""
        [values] = [example for example in self.values_of_the_page() if "runAsNonRoot" in example]
        usual, made = self.by_place({}), self.by_place(values)
        at = "Deployment", SYSTEM, DEPLOYMENT
        for field in ("runAsUser", "runAsGroup"):
            del usual[at]["spec"]["template"]["spec"]["securityContext"][field]
        self.assertEqual(made, usual)

    def test_a_converted_file(self):
        """The example of docs/helm.md: what kubeflow-trainer's file turns on, and no more."""
        [values] = [example for example in self.values_of_the_page() if "torchtuneDistributed" in example]
        made = self.with_values(values)
        runtimes = [name for name in made if name.startswith("ClusterTrainingRuntime ")]
        self.assertEqual(runtimes, ["ClusterTrainingRuntime torch-distributed"])
        args = made[f"Deployment {DEPLOYMENT}"]["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertEqual(args[2:], ["--webhook-cert-dir=/webhook-cert", "--status-listen=:10443", "--workers=10"])

    def test_a_host_network(self):
        [values] = [example for example in self.values_of_the_page() if "hostNetwork" in example]
        made = self.with_values(values)[f"Deployment {DEPLOYMENT}"]["spec"]
        self.assertEqual(made["strategy"], {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
        ports = [port["containerPort"] for port in made["template"]["spec"]["containers"][0]["ports"]]
        self.assertEqual(ports, [18081, 19443, 11443])

    def test_null_is_as_empty(self):
        nulls = dict.fromkeys(("commonLabels", "podLabels", "env", "volumes", "livenessProbe", "extraArgs"))
        nulls["metrics"] = {"endpoint": None, "labels": None}
        self.assertEqual(self.by_place(nulls), self.by_place({}))

    def test_wrong_values_are_refused(self):
        for value, message in REFUSED:
            done = helm(self.cluster, "template", "muster", CHART, "--set", value)
            self.assertEqual(done.returncode, 1, value)
            self.assertIn(message, done.stderr, value)

    def test_values_of_an_older_chart_are_refused(self):
        """As `helm upgrade --reuse-values` keeps them: without the parts that this chart has in addition."""
        parts = {name.rpartition(".")[0] for name in chart_values()} - {""}
        parts |= {name.rpartition(".")[0] for name in parts} - {""}
        with open(os.path.join(CHART, "templates", "_values.tpl")) as template:
            checked = re.findall(r"[\w.]+", " ".join(re.findall(r'^  "([^"]+)"', template.read(), re.MULTILINE)))
        self.assertEqual(sorted(checked), sorted(parts))
        for part in ("serviceAccount", "metrics.tls", "runtimes.plain.image"):
            done = helm(self.cluster, "template", "muster", CHART, "--set", f"{part}=null")
            self.assertEqual(done.returncode, 1, part)
            self.assertIn(f"the values lack `{part}`, which this chart has: upgrade with --reset-then-", done.stderr)

    def test_a_parent_chart_may_say_what_it_needs(self):
        made = self.by_place({"global": {"imageRegistry": "r.example.com"}, "enabled": True})
        self.assertEqual(made, self.by_place({}))

    def test_all_components_at_once(self):
        """In the release's namespace: no object stays in kubeflow-system."""
        done = helm(self.cluster, "template", "muster", CHART, "--namespace", "training", *ALL_ON)
        self.assertEqual((done.returncode, re.findall(".*kubeflow-system.*", done.stdout)), (0, []))


if __name__ == "__main__":
    class_runner.main()
