# SPDX-License-Identifier: Apache-2.0
"""What a real API server accepts, refuses, defaults and shows by the custom resource definitions and manifests."""

import json
import os
import subprocess

from cluster_case import HERE, MANIFESTS, NAMESPACE, ROOT, ClusterCase, changed, establish, pod_group_definition, tries

import class_runner

API = "trainer.kubeflow.org/v1alpha1"
ACCOUNT = "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"
JOB = {
    "apiVersion": API,
    "kind": "TrainJob",
    "metadata": {"name": "job", "namespace": NAMESPACE},
    "spec": {"runtimeRef": {"name": "plain"}},
}


def step(name, ancestor=None, container="node", **more):
    template = {"spec": {"template": {"spec": {"containers": [{"name": container, "image": "x"}]}}}}
    if ancestor:
        template["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}}
    return {"name": name, "template": template, **more}


RUNTIME = {
    "apiVersion": API,
    "kind": "TrainingRuntime",
    "metadata": {"name": "runtime", "namespace": NAMESPACE},
    "spec": {
        "mlPolicy": {"numNodes": 2},
        "template": {"spec": {"replicatedJobs": [step("node", "trainer"), step("other")]}},
    },
}
REPLICATED = "spec.template.spec.replicatedJobs"
PATCH = {
    "manager": "a.example.com/b",
    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node"}]}}},
}

# (object, path, value, text of the refusal)
REFUSED = [
    (JOB, "metadata.name", "1job", "metadata.name must match RFC 1035 DNS label format"),
    (JOB, "metadata.name", "a.b", "metadata.name must match RFC 1035 DNS label format"),
    (JOB, "metadata.name", "a" * 64, "metadata.name must be no more than 63 characters"),
    (JOB, "spec.runtimeRef", {}, "spec.runtimeRef.name: Required value"),
    (JOB, "spec.runtimeRef.name", "", "spec.runtimeRef.name"),
    (
        JOB,
        "spec.initializer.dataset.storageUri",
        "no-scheme",
        "storageUri may be empty, or it must be a valid URI (scheme://...)",
    ),
    (JOB, "spec.trainer.numNodes", -1, "spec.trainer.numNodes"),
    (JOB, "spec.trainer.numNodes", "four", "spec.trainer.numNodes"),
    (JOB, "spec.trainer.numProcPerNode", 0, "numProcPerNode must be greater than or equal to 1"),
    (JOB, "spec.trainer.numProcPerNode", "many", "it must be a whole number of 1 or more, auto, cpu or gpu"),
    (JOB, "spec.trainer.numProcPerNode", "0", "it must be a whole number of 1 or more, auto, cpu or gpu"),
    (JOB, "spec.trainer.env", [{"name": "A"}, {"name": "A"}], "Duplicate value"),
    (JOB, "spec.trainer.env", [{"name": f"A{number}"} for number in range(129)], "spec.trainer.env: Too many"),
    (JOB, "spec.trainer.image", "x" * 501, "spec.trainer.image"),
    (JOB, "spec.trainer.resourcesPerNode", {"limits": {"cpu": "two"}}, "spec.trainer.resourcesPerNode.limits.cpu"),
    (JOB, "spec.trainer.unknown", 1, 'unknown field "spec.trainer.unknown"'),
    (JOB, "spec.runtimePatches", [PATCH, PATCH], "Duplicate value"),
    (JOB, "spec.runtimePatches", [{}], "spec.runtimePatches[0].manager: Required value"),
    (JOB, "spec.activeDeadlineSeconds", 0, "spec.activeDeadlineSeconds"),
    (JOB, "spec.ttlSecondsAfterFinished", -1, "spec.ttlSecondsAfterFinished"),
    (
        JOB,
        "spec.managedBy",
        "somebody",
        "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set",
    ),
    (RUNTIME, "spec", {}, "spec"),
    (RUNTIME, "spec.template", {}, "spec.template"),
    (RUNTIME, "spec.mlPolicy", {"torch": {}, "mpi": {}}, "Only one of the policy can be configured"),
    (RUNTIME, "spec.mlPolicy", {"jax": {}, "xgboost": {}}, "Only one of the policy can be configured"),
    (
        RUNTIME,
        "spec.mlPolicy",
        {"numNodes": 2, "torch": {"elasticPolicy": {"minNodes": 1}}},
        "numNodes should not be set if torch.elasticPolicy is configured",
    ),
    (
        RUNTIME,
        "spec.mlPolicy",
        {"torch": {"elasticPolicy": {"minNodes": 3, "maxNodes": 2}}},
        "minNodes may not be greater than maxNodes",
    ),
    (RUNTIME, "spec.mlPolicy", {"torch": {"numProcPerNode": 0}}, "numProcPerNode in torchPolicy must be >= 1"),
    (RUNTIME, "spec.mlPolicy", {"mpi": {"numProcPerNode": 0}}, "NumProcPerNode in mpiPolicy must be >= 1"),
    (RUNTIME, "spec.mlPolicy", {"flux": {"numProcPerNode": 0}}, "NumProcPerNode in fluxPolicy must be >= 1"),
    (
        RUNTIME,
        "spec.mlPolicy",
        {"mpi": {"mpiImplementation": "LAM"}},
        "spec.mlPolicy.mpi.mpiImplementation: Unsupported value",
    ),
    (
        RUNTIME,
        "spec.mlPolicy",
        {"torch": {"envInjection": {"targets": [{"jobName": "a", "containerNames": ["node"]}]}}},
        "containerNames may not contain node",
    ),
    (
        RUNTIME,
        "spec.podGroupPolicy",
        {"coscheduling": {}, "volcano": {}},
        "Only one of coscheduling and volcano can be configured",
    ),
    (
        RUNTIME,
        "spec.failurePolicy",
        {"maxRestarts": 1},
        "failurePolicy does not belong here: it belongs in spec.template.spec, beside replicatedJobs",
    ),
    (RUNTIME, "spec.template.failurePolicy", {"maxRestarts": 1}, "failurePolicy does not belong here"),
    (
        RUNTIME,
        f"{REPLICATED}.0.failurePolicy",
        {"maxRestarts": 1},
        "failurePolicy does not belong here: it belongs in spec.template.spec of the runtime",
    ),
    (
        RUNTIME,
        f"{REPLICATED}.0.template.spec.restartPolicy",
        "Never",
        "restartPolicy does not belong here: it belongs in spec of the pod template",
    ),
    (RUNTIME, f"{REPLICATED}.0.template.spec.template.restartPolicy", "Never", "restartPolicy does not belong here"),
    (RUNTIME, f"{REPLICATED}.1", step("node"), "Duplicate value"),
    (
        RUNTIME,
        f"{REPLICATED}.0.dependsOn",
        [{"name": "other", "status": "Ready"}],
        "dependsOn can't be set for the first ReplicatedJob",
    ),
    (
        RUNTIME,
        f"{REPLICATED}.1.dependsOn",
        [{"name": "node", "status": "Done"}],
        "dependsOn[0].status: Unsupported value",
    ),
    (
        changed(RUNTIME, f"{REPLICATED}.1.dependsOn", [{"name": "node", "status": "Ready"}]),
        "spec.template.spec.startupPolicy",
        {"startupPolicyOrder": "InOrder"},
        "StartupPolicy and DependsOn APIs are mutually exclusive",
    ),
    (
        RUNTIME,
        "spec.template.spec.volumeClaimPolicies",
        [{"templates": [{"metadata": {"name": "a", "namespace": "b"}, "spec": {}}]}],
        "namespace cannot be set for VolumeClaimPolicies templates",
    ),
    (
        RUNTIME,
        "spec.template.spec.failurePolicy",
        {"rules": [{"action": "Sleep"}]},
        "failurePolicy.rules[0].action: Unsupported value",
    ),
]

# (object, path, value)
ACCEPTED = [
    (JOB, "metadata.name", "a" * 63),
    (JOB, "spec.trainer", {"numNodes": 1, "numProcPerNode": "auto"}),
    (JOB, "spec.trainer", {"numProcPerNode": "4", "resourcesPerNode": {"limits": {"cpu": 1, "memory": "1.5Gi"}}}),
    (JOB, "spec.initializer", {"dataset": {"storageUri": ""}, "model": {"storageUri": "hf://a/b"}}),
    (
        JOB,
        "spec.podSpecOverrides",
        [{"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}, "containers": [{"name": "node", "env": []}]}],
    ),
    (JOB, "spec.ttlSecondsAfterFinished", 0),
    (JOB, "spec.managedBy", "kueue.x-k8s.io/multikueue"),
    (RUNTIME, "spec.mlPolicy", {"mpi": {"mpiImplementation": "Intel"}}),
    (RUNTIME, "spec.mlPolicy", {"flux": {}}),
    (RUNTIME, "spec.podGroupPolicy", {"volcano": {"topologyKey": "rack", "networkPolicy": "Strict"}}),
    (RUNTIME, "spec.podGroupPolicy", {"volcano": {"networkTopology": {"mode": "soft"}}}),
    (RUNTIME, "spec.runPolicy", {"ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 3600}),
    (RUNTIME, f"{REPLICATED}.1.replicas", 3),
    # The webhook judges the steps of a TrainJob: a runtime may be exempt from it by a label.
    (RUNTIME, f"{REPLICATED}.0.replicas", 2),
    (RUNTIME, f"{REPLICATED}.0", step("node", "trainer", "main")),
    (RUNTIME, f"{REPLICATED}.1", step("data", "dataset-initializer")),
]

# (object, path of a field that was not given, its default)
DEFAULTS = [
    (JOB, "spec.suspend", False),
    (JOB, "spec.managedBy", "trainer.kubeflow.org/trainjob-controller"),
    (JOB, "spec.runtimeRef", {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "plain"}),
    (
        changed(RUNTIME, "spec.mlPolicy", {"mpi": {}}),
        "spec.mlPolicy.mpi",
        {
            "mpiImplementation": "OpenMPI",
            "numProcPerNode": 1,
            "runLauncherAsNode": False,
            "sshAuthMountPath": "/root/.ssh",
        },
    ),
    (
        changed(RUNTIME, "spec.podGroupPolicy", {"coscheduling": {}}),
        "spec.podGroupPolicy.coscheduling.scheduleTimeoutSeconds",
        60,
    ),
    (
        changed(RUNTIME, "spec.podGroupPolicy", {"volcano": {"networkTopology": {}}}),
        "spec.podGroupPolicy.volcano.networkTopology",
        {"mode": "hard", "highestTierAllowed": 1},
    ),
    (
        changed(RUNTIME, "spec.template.spec.failurePolicy", {"maxRestarts": 1}),
        "spec.template.spec.failurePolicy.restartStrategy",
        "Recreate",
    ),
    (RUNTIME, f"{REPLICATED}.0.replicas", 1),
    (RUNTIME, f"{REPLICATED}.0.groupName", "default"),
    (RUNTIME, f"{REPLICATED}.0.template.spec.template.spec", {"containers": [{"name": "node", "image": "x"}]}),
]

# Questions for `kubectl auth can-i` about the controller, and the answers.
RIGHTS = [
    ("watch trainjobs.trainer.kubeflow.org -A", "yes"),
    ("patch trainjobs.trainer.kubeflow.org --subresource=status -A", "yes"),
    ("patch trainjobs.trainer.kubeflow.org -A", "no"),
    ("delete clustertrainingruntimes.trainer.kubeflow.org -A", "no"),
    ("create jobs.batch -n vision", "yes"),
    ("delete pods -n vision", "yes"),
    ("create pods -n vision", "yes"),
    ("patch pods -n vision", "yes"),
    ("create horizontalpodautoscalers.autoscaling -n vision", "yes"),
    ("delete horizontalpodautoscalers.autoscaling -n vision", "no"),
    ("create pods --subresource=exec -n vision", "no"),
    ("create secrets -n vision", "yes"),
    ("get secrets -n vision", "no"),
    ("create tokenreviews.authentication.k8s.io", "no"),
    ("list secrets -A", "no"),
    ("patch configmaps -n vision", "yes"),
    ("delete configmaps -n vision", "no"),
    ("create persistentvolumeclaims -n vision", "yes"),
    ("delete persistentvolumeclaims -n vision", "no"),
    ("patch podgroups.scheduling.x-k8s.io -n vision", "yes"),
    ("create podgroups.scheduling.volcano.sh -n vision", "yes"),
    ("delete podgroups.scheduling.volcano.sh -n vision", "no"),
    ("create events -n vision", "yes"),
    ("watch events -A", "yes"),
    ("delete events -n vision", "no"),
    ("create jobsets.jobset.x-k8s.io -n vision", "no"),
    ("list nodes -A", "no"),
    ("update leases.coordination.k8s.io/trainer.kubeflow.org -n kubeflow-system", "yes"),
    ("update leases.coordination.k8s.io/other -n kubeflow-system", "no"),
    ("create leases.coordination.k8s.io -n vision", "no"),
    ("patch secrets/kubeflow-trainer-webhook-cert -n kubeflow-system", "yes"),
    ("watch secrets/kubeflow-trainer-webhook-cert -n kubeflow-system", "yes"),
    ("get secrets/other -n kubeflow-system", "no"),
    ("get secrets/kubeflow-trainer-webhook-cert -n vision", "no"),
    ("patch validatingwebhookconfigurations.admissionregistration.k8s.io/validator.trainer.kubeflow.org", "yes"),
    ("watch mutatingwebhookconfigurations.admissionregistration.k8s.io/defaulter.trainer.kubeflow.org", "yes"),
    ("patch validatingwebhookconfigurations.admissionregistration.k8s.io/other", "no"),
    ("list mutatingwebhookconfigurations.admissionregistration.k8s.io", "no"),
]

STATUS = {
    "state": "Running",
    "reason": "PodFailed",
    "message": "node 1 came back",
    "startTime": "2024-01-01T00:00:00Z",
    "nodes": 2,
    "readyNodes": 1,
    "attempt": 1,
    "restarts": 3,
    "conditions": [],
    "jobsStatus": [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}],
    "failures": [
        {
            "time": "2024-01-01T00:00:00Z",
            "pod": "job-node-0-1-abcde",
            "job": "job-node-0",
            "node": "n",
            "container": "node",
            "rank": 2,
            "nodeRank": 1,
            "exitCode": 137,
            "signal": "SIGKILL",
            "oom": True,
            "reason": "OOMKilled",
            "message": "m",
            "counted": True,
        }
    ],
    "trainerStatus": {
        "progressPercentage": 42,
        "estimatedRemainingSeconds": 7,
        "lastUpdatedTime": "2024-01-01T00:00:00Z",
    },
    "goodput": {
        "percentage": 90,
        "since": "2024-01-01T00:00:00.000004Z",
        "seconds": {"initializers": 3, "pods": 1, "start": 1.5, "training": 13.5},
        "run": {
            "pod": "job-node-0-0-abcde",
            "since": "2024-01-01T00:00:00.000000Z",
            "seconds": {"start": 1.5, "training": 13.5},
        },
    },
}


def value_at(given, path):
    for part in path.split("."):
        given = given[int(part) if part.isdigit() else part]
    return given


class Definitions(ClusterCase):
    def create(self, made, *flags):
        return self.cluster.try_kubectl("create", "-f", "-", *flags, content=json.dumps(made))

    def test_both_shapes_are_accepted(self):
        folder = os.path.join(HERE, "accepted")
        for name in sorted(os.listdir(folder)):
            with self.subTest(name):
                self.cluster.kubectl("create", "-f", os.path.join(folder, name))  # an unknown field would be refused
        job = self.cluster.get("trainjob", "digits", "-n", NAMESPACE)
        self.assertEqual(
            job["spec"]["podTemplateOverrides"][0]["spec"]["schedulingGates"], [{"name": "example.com/quota"}]
        )
        self.assertEqual(job["spec"]["trainer"]["numProcPerNode"], "auto")

    def test_what_is_accepted(self):
        for given, path, value in ACCEPTED:
            with self.subTest(path=path, value=value):
                self.assertEqual(self.create(changed(given, path, value), "--dry-run=server").stderr, "")

    def test_what_is_refused(self):
        for given, path, value, message in REFUSED:
            with self.subTest(path=path, value=str(value)[:80]):
                done = self.create(changed(given, path, value), "--dry-run=server")
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(message, done.stderr)

    def test_the_generated_name_is_judged(self):
        made = changed(changed(JOB, "metadata.name", None), "metadata.generateName", "1-")
        self.assertIn("RFC 1035", self.create(made, "--dry-run=server").stderr)

    def test_the_api_server_fills_in_defaults(self):
        for given, path, value in DEFAULTS:
            with self.subTest(path):
                done = self.create(given, "--dry-run=server", "-o", "json")
                self.assertEqual(done.stderr, "")
                self.assertEqual(value_at(json.loads(done.stdout), path), value)

    def test_what_may_not_change(self):
        self.cluster.apply([changed(JOB, "metadata.name", "fixed")])
        for path, value in (("runtimeRef", {"name": "another"}), ("managedBy", "kueue.x-k8s.io/multikueue")):
            done = self.cluster.try_kubectl(
                "patch", "trainjob", "fixed", "-n", NAMESPACE, "--type=merge", "-p", json.dumps({"spec": {path: value}})
            )
            self.assertIn("field is immutable", done.stderr)
        # The definition allows these, and the webhook checks them: a suspended job may change its number of nodes.
        self.cluster.kubectl(
            "patch", "trainjob", "fixed", "-n", NAMESPACE, "--type=merge", "-p", '{"spec":{"trainer":{"numNodes":3}}}'
        )

    def test_columns_and_scale(self):
        self.cluster.apply([changed(changed(JOB, "metadata.name", "shown"), "spec.trainer", {"numNodes": 2})])
        self.cluster.kubectl(
            "patch",
            "trainjob",
            "shown",
            "-n",
            NAMESPACE,
            "--subresource=status",
            "--type=merge",
            "-p",
            json.dumps({"status": STATUS}),
        )
        self.assertEqual(self.cluster.get("trainjob", "shown", "-n", NAMESPACE)["status"], STATUS)
        titles, row = (
            line.split() for line in self.cluster.kubectl("get", "trainjob", "shown", "-n", NAMESPACE).splitlines()
        )
        self.assertEqual(titles, ["NAME", "STATE", "NODES", "READY", "RESTARTS", "REASON", "AGE"])
        self.assertEqual(row[:-1], ["shown", "Running", "2", "1", "3", "PodFailed"])
        titles, row = (
            line.split()
            for line in self.cluster.kubectl("get", "tj", "shown", "-n", NAMESPACE, "-o", "wide").splitlines()
        )
        self.assertEqual(titles[7:], ["PROGRESS", "SECONDS-LEFT", "GOODPUT", "RUNTIME", "MESSAGE"])
        self.assertEqual(row[7:], ["42", "7", "90", "plain", *STATUS["message"].split()])
        self.cluster.kubectl("scale", "trainjob/shown", "-n", NAMESPACE, "--replicas=4")
        self.assertEqual(self.cluster.get("trainjob", "shown", "-n", NAMESPACE)["spec"]["trainer"]["numNodes"], 4)

    def test_fields_are_explained(self):
        for path, words in (
            ("tj", "A training job: what is trained, and on how many nodes."),
            ("trainjob.spec.runtimePatches.manager", "Who has written the patch"),
            (
                "trainjob.status.failures.exitCode",
                "The exit code; 128 + n after signal n; absent if no container ended.",
            ),
            ("ctr.spec.mlPolicy.torch", "PyTorch: the pods get the variables of torchrun."),
            (
                "trainingruntime.spec.template.spec.replicatedJobs.template.spec.template.spec.containers.image",
                "Container image name.",
            ),
        ):
            with self.subTest(path):
                for _ in tries():  # the API server publishes the fields a moment after it serves the kind
                    told = " ".join(self.cluster.try_kubectl("explain", path, f"--api-version={API}").stdout.split())
                    if words in told:
                        break
                self.assertIn(words, told)

    def test_status_is_judged(self):
        self.cluster.apply([changed(JOB, "metadata.name", "judged")])
        for status, message in (
            ({"trainerStatus": {"progressPercentage": 5}}, "lastUpdatedTime is required when trainerStatus is present"),
            ({"jobsStatus": [{"name": "node", "ready": 1}]}, "Required value"),
            (
                {"trainerStatus": {"progressPercentage": 101, "lastUpdatedTime": "2024-01-01T00:00:00Z"}},
                "progressPercentage",
            ),
        ):
            done = self.cluster.try_kubectl(
                "patch",
                "trainjob",
                "judged",
                "-n",
                NAMESPACE,
                "--subresource=status",
                "--type=merge",
                "-p",
                json.dumps({"status": status}),
            )
            self.assertIn(message, done.stderr)

    def test_definitions_are_what_make_crds_makes(self):
        done = subprocess.run(
            [os.path.join(ROOT, "build-support", "make-crds"), "--check"], capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_whole_installation(self):
        done = self.cluster.try_kubectl("apply", "--server-side", "-k", os.path.join(MANIFESTS, "overlays", "default"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))  # without a warning about the restricted profile
        self.addCleanup(
            self.cluster.kubectl, "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "--all"
        )
        for group, version in (("scheduling.x-k8s.io", "v1alpha1"), ("scheduling.volcano.sh", "v1beta1")):
            self.cluster.apply([pod_group_definition(group, version)])
        establish(self.cluster)
        for question, answer in RIGHTS:
            with self.subTest(question):
                self.assertEqual(self.may(ACCOUNT, question, answer), answer)


if __name__ == "__main__":
    class_runner.main()
