# SPDX-License-Identifier: Apache-2.0
"""Checks the definition of PyTorchJob, and the component that installs it, with a real API server."""

import json
import os

from cluster_case import HERE, MANIFESTS, NAMESPACE, ClusterCase, changed, establish, pod_group_definition

import class_runner

ACCOUNT = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"
CONTAINER = {"name": "pytorch", "image": "x"}
TEMPLATE = {
    "metadata": {
        "labels": {"team": "a"},
        "annotations": {"note": "b"},
        "finalizers": ["example.com/c"],
        "name": "d",
        "namespace": NAMESPACE,
    },
    "spec": {
        "containers": [{**CONTAINER, "resources": {"limits": {"cpu": 1, "memory": "1.5Gi", "nvidia.com/gpu": "8"}}}],
        "restartPolicy": "Never",
        "nodeSelector": {"rack": "7"},
    },
}
REPLICAS = "spec.pytorchReplicaSpecs"


def job(name, **more):
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [CONTAINER]}}}},
            **more,
        },
    }


JOB = job("job")
# Each field of v1.
WHOLE = job(
    "whole",
    nprocPerNode="auto",
    runPolicy={
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": 60,
        "activeDeadlineSeconds": 9999999999,
        "backoffLimit": 3,
        "suspend": True,
        "managedBy": "kubeflow.org/training-operator",
        "schedulingPolicy": {
            "minAvailable": 2,
            "queue": "q",
            "minResources": {"cpu": 4, "memory": "1Gi"},
            "priorityClass": "high",
            "scheduleTimeoutSeconds": 30,
        },
    },
    elasticPolicy={
        "minReplicas": 1,
        "maxReplicas": 3,
        "rdzvBackend": "c10d",
        "rdzvPort": 29400,
        "rdzvHost": "h",
        "rdzvId": "i",
        "standalone": False,
        "rdzvConf": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}],
        "nProcPerNode": 2,
        "maxRestarts": 5,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ],
    },
    pytorchReplicaSpecs={
        "Master": {"replicas": 1, "restartPolicy": "ExitCode", "template": TEMPLATE},
        "Worker": {"replicas": 2, "restartPolicy": "OnFailure", "template": TEMPLATE},
    },
)

# (path, value) that v1's definition accepts. Only the webhook checks these, so stored objects can still be written.
ACCEPTED = [
    (REPLICAS, {}),
    (REPLICAS, {"worker": {"template": {}}, "Evaluator": {}}),
    (f"{REPLICAS}.Worker.replicas", 0),
    (f"{REPLICAS}.Worker.restartPolicy", "Sometimes"),
    ("spec.nprocPerNode", "4"),
    ("spec.runPolicy", {"cleanPodPolicy": ""}),
    ("spec.runPolicy", {"managedBy": ""}),
    ("spec.runPolicy", {"managedBy": "kueue.x-k8s.io/multikueue"}),
    ("spec.runPolicy", {"backoffLimit": 0, "activeDeadlineSeconds": 0, "ttlSecondsAfterFinished": 0}),
    ("spec.elasticPolicy", {"rdzvBackend": "mine", "rdzvConf": []}),
]

# (path, value, text of the refusal)
REFUSED = [
    (REPLICAS, None, "spec.pytorchReplicaSpecs: Required value"),
    (f"{REPLICAS}.Worker.replicas", "two", "spec.pytorchReplicaSpecs.Worker.replicas"),
    (f"{REPLICAS}.Worker.template.spec.containers.0", {"image": "x"}, "containers[0].name: Required value"),
    (
        f"{REPLICAS}.Worker.template.spec.containers.0.resources",
        {"limits": {"cpu": "two"}},
        "containers[0].resources.limits.cpu",
    ),
    (
        f"{REPLICAS}.Worker.template.spec.container",
        [],
        'unknown field "spec.pytorchReplicaSpecs.Worker.template.spec.container"',
    ),
    ("spec.nprocPerNode", 2, "spec.nprocPerNode"),
    ("spec.runPolicy", {"backoffLimit": "three"}, "spec.runPolicy.backoffLimit"),
    ("spec.runPolicy", {"backoffLimit": 2**31}, "spec.runPolicy.backoffLimit"),
    ("spec.runPolicy", {"suspend": "yes"}, "spec.runPolicy.suspend"),
    ("spec.runPolicy", {"restartPolicy": "Never"}, 'unknown field "spec.runPolicy.restartPolicy"'),
    (
        "spec.runPolicy",
        {"schedulingPolicy": {"minResources": {"cpu": "two"}}},
        "spec.runPolicy.schedulingPolicy.minResources.cpu",
    ),
    ("spec.elasticPolicy", {"nProcPerNode": "2"}, "spec.elasticPolicy.nProcPerNode"),
    ("spec.elasticPolicy", {"rdzvConf": {"a": "1"}}, "spec.elasticPolicy.rdzvConf"),
]

# (runPolicy of an existing job, a merge patch of it, text of the refusal; None: accepted)
QUEUE, MANAGED_BY = "spec.runPolicy.schedulingPolicy.queue is immutable", "spec.runPolicy.managedBy: Invalid value"
OTHER = "kueue.x-k8s.io/multikueue"
UPDATES = [
    ({"schedulingPolicy": {"queue": "a"}}, {"schedulingPolicy": {"queue": "b"}}, QUEUE),
    ({"schedulingPolicy": {"queue": "a"}}, {"schedulingPolicy": {"minAvailable": 3}}, None),
    ({}, {"schedulingPolicy": {"queue": "a"}}, None),  # as in v1
    ({"managedBy": OTHER}, {"managedBy": "kubeflow.org/training-operator"}, MANAGED_BY),
    ({"managedBy": OTHER}, {"managedBy": None}, MANAGED_BY),
    ({"managedBy": OTHER}, None, MANAGED_BY),
    ({"managedBy": OTHER}, {"suspend": True}, None),
    ({}, {"managedBy": OTHER}, MANAGED_BY),
    ({}, {"managedBy": ""}, MANAGED_BY),  # no controller serves such a job
    (None, {"managedBy": OTHER}, MANAGED_BY),
    (None, {"suspend": True}, None),
    ({"suspend": True}, None, None),
]

MOMENT = "2024-01-01T00:00:00Z"


def condition(kind, status):
    return {
        "type": kind,
        "status": status,
        "reason": f"PyTorchJob{kind}",
        "message": "m",
        "lastUpdateTime": MOMENT,
        "lastTransitionTime": MOMENT,
    }


STATUS = {
    "conditions": [condition("Running", "False"), condition("Created", "True"), condition("Restarting", "True")],
    "replicaStatuses": {
        "Master": {"active": 1, "labelSelector": {"matchLabels": {"a": "b"}}},
        "Worker": {"active": 2, "succeeded": 1, "failed": 3, "selector": "a=b"},
    },
    "startTime": MOMENT,
    "completionTime": MOMENT,
    "lastReconcileTime": MOMENT,
    # Fields that only Muster has.
    "message": "waits",
    "attempt": 1,
    "restarts": 2,
    "countedPods": [{"uid": "u", "restarts": 1}],
    "failures": [
        {
            "time": MOMENT,
            "pod": "job-worker-0",
            "podUID": "u",
            "node": "n",
            "container": "pytorch",
            "rank": 2,
            "nodeRank": 1,
            "exitCode": 137,
            "signal": "SIGKILL",
            "oom": True,
            "reason": "OOMKilled",
            "message": "m",
            "counted": True,
            "origin": "o",
        }
    ],
}

# Questions for `kubectl auth can-i` about the controller, and the answers.
RIGHTS = [
    ("watch pytorchjobs.kubeflow.org -A", "yes"),
    ("delete pytorchjobs.kubeflow.org -n vision", "yes"),
    ("patch pytorchjobs.kubeflow.org --subresource=status -n vision", "yes"),
    ("update pytorchjobs.kubeflow.org --subresource=finalizers -n vision", "yes"),
    ("patch pytorchjobs.kubeflow.org -n vision", "no"),
    ("create pytorchjobs.kubeflow.org -n vision", "no"),
    ("create services -n vision", "yes"),
    ("patch services -n vision", "yes"),
    ("delete services -n vision", "yes"),
    ("create pods -n vision", "yes"),
    ("patch pods -n vision", "yes"),
    ("delete pods -n vision", "yes"),
    ("delete horizontalpodautoscalers.autoscaling -n vision", "yes"),
    ("watch podgroups.scheduling.x-k8s.io -A", "yes"),
    ("delete podgroups.scheduling.volcano.sh -n vision", "yes"),
    ("get secrets -n vision", "no"),
]


class PyTorchDefinitions(ClusterCase):
    @classmethod
    def install_definitions(cls):
        super().install_definitions()
        cls.cluster.kubectl(
            "apply", "--server-side", "-f", os.path.join(MANIFESTS, "components", "pytorchjob", "crd.yaml")
        )
        establish(cls.cluster)

    def create(self, made, *flags):
        return self.cluster.try_kubectl("create", "-f", "-", *flags, content=json.dumps(made))

    def stored(self, name):
        return self.cluster.get("pytorchjob", name, "-n", NAMESPACE)

    def patch(self, name, change, *flags):
        return self.cluster.try_kubectl(
            "patch", "pytorchjob", name, "-n", NAMESPACE, "--type=merge", "-p", json.dumps(change), *flags
        )

    def test_the_examples_are_accepted(self):
        folder = os.path.join(HERE, "..", "examples")
        names = [name for name in sorted(os.listdir(folder)) if name.startswith("pytorchjob-")]
        self.assertGreater(len(names), 1)
        for name in names:
            with self.subTest(name):
                self.cluster.kubectl("create", "-f", os.path.join(folder, name))  # an unknown field would be refused

    def test_each_field_of_v1_is_kept(self):
        """Labels of pod templates are kept, too."""
        self.assertEqual(self.create(WHOLE).stderr, "")
        self.assertEqual(self.stored("whole")["spec"], WHOLE["spec"])

    def test_what_is_accepted(self):
        for path, value in ACCEPTED:
            with self.subTest(path=path, value=value):
                self.assertEqual(self.create(changed(JOB, path, value), "--dry-run=server").stderr, "")

    def test_what_is_refused(self):
        for path, value, message in REFUSED:
            with self.subTest(path=path, value=value):
                done = self.create(changed(JOB, path, value), "--dry-run=server")
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(message, done.stderr)

    def test_the_only_default(self):
        """Without a runPolicy the SDK 1.9.4 cannot read a job."""
        for policy, wanted in (
            (None, {"suspend": False}),
            ({}, {"suspend": False}),
            ({"suspend": True}, {"suspend": True}),
        ):
            made = JOB if policy is None else changed(JOB, "spec.runPolicy", policy)
            done = self.create(made, "--dry-run=server", "-o", "json")
            self.assertEqual(json.loads(done.stdout)["spec"], {**JOB["spec"], "runPolicy": wanted})

    def test_what_may_not_change(self):
        for number, (policy, change, message) in enumerate(UPDATES):
            with self.subTest(policy=policy, change=change):
                name = f"updated-{number}"
                self.cluster.apply([job(name, **({} if policy is None else {"runPolicy": policy}))])
                done = self.patch(name, {"spec": {"runPolicy": change}})
                self.assertEqual(done.returncode, 1 if message else 0, done.stderr)
                self.assertIn(message or "", done.stderr)

    def test_status_and_columns(self):
        self.cluster.apply([job("shown")])
        self.assertEqual(self.patch("shown", {"status": STATUS}, "--subresource=status").stderr, "")
        self.assertEqual(self.stored("shown")["status"], STATUS)
        titles, row = (
            line.split() for line in self.cluster.kubectl("get", "pytorchjob", "shown", "-n", NAMESPACE).splitlines()
        )
        self.assertEqual((titles, row[:-1]), (["NAME", "STATE", "AGE"], ["shown", "Restarting"]))
        # The list is written as a whole, in order: the last condition is the state.
        self.patch("shown", {"status": {"conditions": STATUS["conditions"][:1]}}, "--subresource=status")
        self.assertEqual(self.cluster.kubectl("get", "pytorchjob", "shown", "-n", NAMESPACE).split()[4], "Running")
        self.assertIn(
            "status.conditions[0].status: Required value",
            self.patch("shown", {"status": {"conditions": [{"type": "Created"}]}}, "--subresource=status").stderr,
        )

    def test_scale_reads_and_sets_the_workers(self):
        self.cluster.apply([job("scaled")])
        self.patch("scaled", {"status": STATUS}, "--subresource=status")
        scale = self.cluster.get("pytorchjob", "scaled", "-n", NAMESPACE, "--subresource=scale")
        self.assertEqual((scale["spec"], scale["status"]), ({"replicas": 2}, {"replicas": 2, "selector": "a=b"}))
        self.cluster.kubectl("scale", "pytorchjob/scaled", "-n", NAMESPACE, "--replicas=4")
        self.assertEqual(self.stored("scaled")["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"], 4)

    def test_the_whole_installation(self):
        done = self.cluster.try_kubectl(
            "apply", "--server-side", "-k", os.path.join(MANIFESTS, "overlays", "pytorchjob")
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.addCleanup(
            self.cluster.kubectl, "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "--all"
        )
        for group, version in (("scheduling.x-k8s.io", "v1alpha1"), ("scheduling.volcano.sh", "v1beta1")):
            self.cluster.apply([pod_group_definition(group, version)])
        establish(self.cluster)
        for question, answer in RIGHTS:
            with self.subTest(question):
                said = self.cluster.try_kubectl("auth", "can-i", *question.split(), f"--as={ACCOUNT}").stdout
                self.assertEqual(said.split()[0], answer)
        for role, verb in (
            ("admin", "create"),
            ("edit", "create"),
            ("view", "list"),
            ("kubeflow-trainer-admin", "create"),
        ):
            self.cluster.await_object(
                f"clusterrole/{role}",
                lambda given: any(
                    "pytorchjobs" in rule.get("resources", ()) and verb in rule["verbs"]
                    for rule in given.get("rules") or ()
                ),
            )
        # The component does not change the webhooks of the base.
        *base, added = self.cluster.get("validatingwebhookconfiguration", "validator.trainer.kubeflow.org")["webhooks"]
        self.assertEqual(added["name"], "validator.pytorchjob.training-operator.kubeflow.org")
        self.assertEqual(
            added["clientConfig"]["service"],
            {**base[0]["clientConfig"]["service"], "path": "/validate-kubeflow-org-v1-pytorchjob"},
        )
        self.assertEqual([rule["resources"] for rule in added["rules"]], [["pytorchjobs"], ["pytorchjobs/scale"]])


if __name__ == "__main__":
    class_runner.main()
