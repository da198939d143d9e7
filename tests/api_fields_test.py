# SPDX-License-Identifier: Apache-2.0
"""`muster-controller plan` does with each field of a spec what build-support/api_fields.py says.

A job is planned without the field and with an example of it. `served`, `mapped`, `kept`: the two plans differ.
`ignored`: they are the same. `refused`: there is no plan with the field, and the message names it.
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

import class_runner

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "build-support"))
import api_page

CONTROLLER = os.path.join(os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin")), "muster-controller")
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def step(name, label=None, **container):
    pod = {
        "containers": [
            {"name": name, "image": "i", "volumeMounts": [{"name": "scratch", "mountPath": "/s"}], **container}
        ],
        "initContainers": [{"name": "setup", "image": "i"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }
    template = {"spec": {"template": {"spec": pod}}}
    if label:
        template["metadata"] = {"labels": {STEP: label}}
    return {"name": name, "template": template}


JOB = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "job", "namespace": "ns"},
    "spec": {"runtimeRef": {"name": "runtime"}},
}
# An example is put into the last item of a list, so examples of replicatedJobs[] go into `other`.
RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "runtime"},
    "spec": {
        "mlPolicy": {"torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    step("dataset-initializer", "dataset-initializer"),
                    step("model-initializer", "model-initializer"),
                    step("node", "trainer", command=["torchrun", "train.py"], resources={"claims": [{"name": "own"}]}),
                    step("other"),
                ]
            }
        },
    },
}
# Fields that must be set for a field to have an effect, by the beginning of its path.
PATCH = "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[]."
POD = PATCH + "template.spec.template.spec."
MPI = {
    "mlPolicy": {"mpi": {}},
    "template": {"spec": {"replicatedJobs": [step("node"), step("launcher", "trainer", command=["mpirun"])]}},
}
for each in MPI["template"]["spec"]["replicatedJobs"]:
    each["template"]["spec"]["template"]["spec"]["containers"][0]["name"] = "node"
BESIDE = {
    "spec.runtimePatches[].": {"spec.runtimePatches": [{"manager": "example.com/m"}]},
    PATCH: {PATCH + "name": "node"},
    POD + "containers[].": {POD + "containers": [{"name": "node"}]},
    POD + "initContainers[].": {POD + "initContainers": [{"name": "setup"}]},
    "spec.podTemplateOverrides[].": {"spec.podTemplateOverrides[].targetJobs": [{"name": "node"}]},
    "spec.podSpecOverrides[].": {
        "spec.podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}]
    },
    "spec.podTemplateOverrides[].targetJobs": {"spec.podTemplateOverrides[].metadata.labels": {"a": "b"}},
    "spec.mlPolicy.torch.elasticPolicy.": {"spec.mlPolicy.torch.elasticPolicy": {"minNodes": 2, "maxNodes": 4}},
    "spec.mlPolicy.torch.envInjection.": {
        "spec.mlPolicy.torch.envInjection.targets": [{"jobName": "other", "containerNames": ["setup"]}]
    },
    "spec.mlPolicy.mpi.": {
        "spec.mlPolicy": MPI["mlPolicy"],
        "spec.template": MPI["template"],
        "metadata.annotations": {"muster.dev/rsh": "ssh"},
    },
    "spec.mlPolicy.jax": {"spec.mlPolicy": {}},
    "spec.mlPolicy.xgboost": {"spec.mlPolicy": {}},
    "spec.mlPolicy.flux.": {"spec.mlPolicy": {}},
    "spec.podGroupPolicy.volcano.": {"spec.podGroupPolicy.volcano": {}},
    "spec.template.spec.replicatedJobs[].dependsOn[].": {
        "spec.template.spec.replicatedJobs[].dependsOn": [{"name": "node", "status": "Ready"}]
    },
    "spec.template.spec.network.enableDNSHostnames": {"spec.mlPolicy": {}},
    "spec.template.spec.failurePolicy.rules[].": {"spec.template.spec.failurePolicy.rules": [{"action": "FailJobSet"}]},
    "spec.template.spec.coordinator.": {
        "spec.template.spec.coordinator": {"replicatedJob": "node"},
        "spec.mlPolicy.numNodes": 2,
        "spec.template.spec.replicatedJobs[].replicas": 2,
    },
    "spec.template.spec.coordinator.jobIndex": {"spec.template.spec.coordinator": {"replicatedJob": "other"}},
    "spec.template.spec.volumeClaimPolicies[].": {
        "spec.template.spec.volumeClaimPolicies": [
            {"templates": [{"metadata": {"name": "claim"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}
        ]
    },
}

LABELS, ENV, SECONDS = {"a": "c"}, [{"name": "EXAMPLE", "value": "1"}], 77
# Examples by the end of a path; the longest end that fits counts.
EXAMPLES = {
    "labels": LABELS,
    "annotations": LABELS,
    "finalizers": ["example.com/a"],
    "env": ENV,
    "metadata.name": "other-name",
    "metadata.namespace": "other",
    "runtimeRef.name": "runtime",
    "apiGroup": "trainer.kubeflow.org",
    "kind": "ClusterTrainingRuntime",
    "storageUri": "hf://a/b",
    "secretRef.name": "secret",
    "image": "j",
    "command": ["python"],
    "args": ["--a"],
    "numNodes": 3,
    "numProcPerNode": 5,
    "claims": [{"name": "gpu"}],
    "limits": {"cpu": "3"},
    "requests": {"cpu": "2"},
    "suspend": True,
    "activeDeadlineSeconds": SECONDS,
    "ttlSecondsAfterFinished": SECONDS,
    "spec.managedBy": "trainer.kubeflow.org/trainjob-controller",
    "targetJobs[].name": "other",
    "podTemplateOverrides[].spec": {"nodeSelector": LABELS},
    "manager": "example.com/n",
    "time": "2026-01-01T00:00:00Z",
    "replicatedJobs[].name": "renamed",
    PATCH + "name": "other",
    "serviceAccountName": "s",
    "nodeSelector": LABELS,
    "affinity": {"nodeAffinity": {}},
    "tolerations": [{"operator": "Exists"}],
    "schedulingGates": [{"name": "example.com/a"}],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "imagePullSecrets": [{"name": "s"}],
    "securityContext": {"runAsUser": 7},
    "terminationGracePeriodSeconds": SECONDS,
    "containers[].name": "node",
    "initContainers[].name": "setup",
    "volumeMounts": [{"name": "scratch", "mountPath": "/t"}],
    "minNodes": 1,
    "maxNodes": 5,
    "maxRestarts": 9,
    "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}],
    "jobName": "dataset-initializer",
    "containerNames": ["other"],
    "mpiImplementation": "Intel",
    "sshAuthMountPath": "/ssh",
    "runLauncherAsNode": True,
    "jax": {},
    "xgboost": {},
    "scheduleTimeoutSeconds": SECONDS,
    "mode": "soft",
    "highestTierAllowed": 2,
    "topologyKey": "zone",
    "networkPolicy": "Strict",
    "failurePolicy": {},
    "groupName": "g",
    "replicas": 3,
    "dependsOn[].name": "model-initializer",
    "dependsOn[].status": "Complete",
    "enableDNSHostnames": False,
    "subdomain": "sub",
    "publishNotReadyAddresses": False,
    "operator": "Any",
    "targetReplicatedJobs": ["node"],
    "restartStrategy": "BlockingRecreate",
    "rules[].name": "r",
    "action": "RestartJobSet",
    "onJobFailureReasons": ["FailedIndexes"],
    "onJobFailureMessagePatterns": ["a.*"],
    "startupPolicyOrder": "InOrder",
    "coordinator.replicatedJob": "other",
    "jobIndex": 1,
    "podIndex": 1,
    "templates[].spec": {"accessModes": ["ReadWriteMany"]},
    "whenDeleted": "Retain",
    "backoffLimit": 3,
    "backoffLimitPerIndex": 3,
    "completionMode": "NonIndexed",
    "completions": 4,
    "template.spec.managedBy": "example.com/a",
    "manualSelector": True,
    "maxFailedIndexes": 3,
    "parallelism": 4,
    "podFailurePolicy": {"rules": []},
    "podReplacementPolicy": "Failed",
    "selector": {"matchLabels": LABELS},
    "template.spec.successPolicy": {"rules": [{"succeededCount": 1}]},
    "restartPolicy": "Never",
    "template.spec.template.spec": {"containers": [{"name": "o", "image": "k"}]},
}
# Served fields that do not change the printed plan: the controller uses them later, or the job has the example's value
# anyway.
NOT_IN_A_PLAN = {
    "trainjobs": {
        "spec.runtimeRef.name",
        "spec.runtimeRef.apiGroup",
        "spec.runtimeRef.kind",
        "spec.activeDeadlineSeconds",
        "spec.ttlSecondsAfterFinished",
        "spec.managedBy",
        "spec.runtimePatches[].manager",
        "spec.runtimePatches[].time",
        PATCH + "name",
        POD + "containers[].name",
        POD + "initContainers[].name",
    },
    "trainingruntimes": {
        "spec.runPolicy.activeDeadlineSeconds",
        "spec.runPolicy.ttlSecondsAfterFinished",
        "spec.template.spec.replicatedJobs[].dependsOn[].name",
        "spec.template.spec.replicatedJobs[].dependsOn[].status",
        "spec.template.spec.successPolicy.operator",
        "spec.template.spec.startupPolicy.startupPolicyOrder",
        "spec.template.spec.successPolicy.targetReplicatedJobs",
        "spec.template.spec.failurePolicy.restartStrategy",
        "spec.template.spec.volumeClaimPolicies[].retentionPolicy.whenDeleted",
        *(
            f"spec.template.spec.failurePolicy.rules[].{name}"
            for name in ("name", "action", "onJobFailureReasons", "onJobFailureMessagePatterns", "targetReplicatedJobs")
        ),
    },
}


def put(place, path, value):
    """Sets `path` of `place` to `value`, in the last item of each list."""
    *names, last = path.split(".")
    for name in names:
        inner = place.setdefault(name.removesuffix("[]"), [] if name.endswith("[]") else {})
        if name.endswith("[]") and not inner:
            inner.append({})
        place = inner[-1] if name.endswith("[]") else inner
    place[last] = copy.deepcopy(value)


def example_for(path):
    fitting = [end for end in EXAMPLES if path == end or path.endswith("." + end)]
    return EXAMPLES[max(fitting, key=len)] if fitting else None


class ApiFields(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.access(CONTROLLER, os.X_OK):
            raise unittest.SkipTest(f"SKIPPED: there is no {CONTROLLER}")
        cls.folder = tempfile.TemporaryDirectory(prefix="muster-api-fields-test-")
        cls.addClassCleanup(cls.folder.cleanup)

    def planned(self, job, runtime):
        """(planned objects except the copy of the runtime, stderr); (None, stderr) if there is no plan."""
        path = os.path.join(self.folder.name, "objects.yaml")
        with open(path, "w") as file:
            file.write("\n---\n".join(json.dumps(each) for each in (job, runtime)))
        done = subprocess.run([CONTROLLER, "plan", "-f", path, "-o", "json"], capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr
        return [
            each for each in json.loads(done.stdout)["items"] if each["metadata"]["name"] != "job-runtime-snapshot"
        ], done.stderr

    def check(self, kind, path, verdict):
        objects = {"trainjobs": copy.deepcopy(JOB), "trainingruntimes": copy.deepcopy(RUNTIME)}
        for begin, beside in BESIDE.items():
            if path.startswith(begin) and (begin.startswith("spec.mlPolicy") or kind == self.kind_of(begin)):
                for other, value in beside.items():
                    put(objects[kind], other, value)
        before, error = self.planned(*objects.values())
        self.assertIsNotNone(before, error)
        example = example_for(path)
        self.assertIsNotNone(example, "it needs an example in EXAMPLES")
        put(objects[kind], path.removesuffix("[]"), example)
        after, error = self.planned(*objects.values())
        if verdict == "refused":
            self.assertIsNone(after, "it is accepted")
            self.assertIn(path.split(".")[-1] if ".flux." not in path else "mlPolicy.flux", error)
            return
        self.assertIsNotNone(after, error)
        if verdict == "ignored":
            self.assertEqual(before, after)
        elif path not in NOT_IN_A_PLAN[kind]:
            self.assertNotEqual(before, after, "the plan is the same without it")

    @staticmethod
    def kind_of(begin):
        job = begin.startswith(("spec.runtimePatches", "spec.podTemplateOverrides", "spec.podSpecOverrides"))
        return "trainjobs" if job else "trainingruntimes"

    def test_each_field_does_what_is_said_of_it(self):
        for kind in NOT_IN_A_PLAN:
            told = api_page.words_of(api_page.KINDS[kind])
            paths = [path for path, form in api_page.fields(api_page.schema_of(kind)) if form]
            self.assertLessEqual(NOT_IN_A_PLAN[kind], set(paths))
            for path in paths:
                if path.startswith("spec."):
                    with self.subTest(kind=kind, path=path):
                        self.check(kind, path, told[path][0])


if __name__ == "__main__":
    class_runner.main()
