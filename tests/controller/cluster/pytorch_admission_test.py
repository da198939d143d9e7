# SPDX-License-Identifier: Apache-2.0
"""The webhook of PyTorchJobs: what a real API server refuses when it calls it. The messages are training-operator's."""

import json
import os

from admission_case import AdmissionCase
from cluster_case import MANIFESTS, changed
from pytorch_case import FLAGS, PyTorchCase, pytorch_job

import class_runner

SPECS = "spec.pytorchReplicaSpecs"
MASTER, WORKER = f"{SPECS}.Master", f"{SPECS}.Worker"
ELASTIC = {"minReplicas": 1, "maxReplicas": 2}
SECOND = [{"name": "pytorch", "image": "busybox"}, {"name": "sidecar"}]

# (changes of a valid job by path, code, text of the refusal)
NOT_CREATED = [
    (
        {"metadata.name": "1st"},
        403,
        'metadata.name: Invalid value: "1st": should match: a DNS-1035 label must consist of lower case',
    ),
    ({"metadata.name": "a.b"}, 403, 'metadata.name: Invalid value: "a.b": should match'),
    ({"metadata.name": "a" * 64}, 403, "must be no more than 63 characters"),
    ({"metadata.name": "a" * 56}, 403, "give the job a name that is 2 characters shorter"),
    (
        {"spec.runPolicy.managedBy": "nobody"},
        403,
        (
            'spec.runPolicy.managedBy: Unsupported value: "nobody": supported values: '
            '"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"'
        ),
    ),
    ({"spec.runPolicy.managedBy": ""}, 403, 'spec.runPolicy.managedBy: Unsupported value: ""'),
    (
        {"spec.elasticPolicy": ELASTIC, WORKER: None},
        403,
        f"{SPECS}[Worker]: Required value: must be configured if elastic policy is used",
    ),
    (
        {"spec.elasticPolicy": {**ELASTIC, "nProcPerNode": 2}, "spec.nprocPerNode": "2"},
        403,
        "spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with spec.nprocPerNode",
    ),
    (
        {f"{SPECS}.Chief": {"template": {"spec": {"containers": SECOND[:1]}}}},
        403,
        f'{SPECS}[Chief]: Unsupported value: "Chief": supported values: "Master", "Worker"',
    ),
    (
        {f"{SPECS}.master": {"replicas": 1, "template": {"spec": {"containers": SECOND[:1]}}}, MASTER: None},
        403,
        f'{SPECS}[master]: Unsupported value: "master"',
    ),
    (
        {f"{MASTER}.template.spec.containers": []},
        403,
        f"{SPECS}[Master].template.spec.containers: Required value: must have at least one container with name pytorch",
    ),
    (
        {f"{MASTER}.template.spec.containers": SECOND},
        403,
        f"{SPECS}[Master].template.spec.containers[1].image: Required value: must be required",
    ),
    (
        {f"{WORKER}.template.spec.containers.0.name": "main"},
        403,
        f"{SPECS}[Worker].template.spec.containers: Required value: must have at least one container with name pytorch",
    ),
    ({f"{MASTER}.replicas": 2}, 403, f"{SPECS}[Master].replicas: Forbidden: must be 1; it is 2"),
    ({f"{MASTER}.replicas": None}, 403, f"{SPECS}[Master].replicas: Forbidden: must be 1; it is missing"),
    ({f"{WORKER}.replicas": 0}, 403, f"{SPECS}[Worker].replicas: Forbidden: must be at least 1; it is 0"),
    ({"spec.nprocPerNode": "0"}, 422, "spec.nprocPerNode: '0' is not a whole number from 1 to 65536"),
]


class PyTorchAdmission(AdmissionCase, PyTorchCase):
    @classmethod
    def serve(cls, name="one", *flags):
        return super().serve(name, *FLAGS, *flags)

    @classmethod
    def configure(cls, name, **changes):
        """Uses the webhook configurations of the component pytorchjob."""
        folder = os.path.join(cls.cluster.folder, "with-component")
        os.makedirs(folder)
        with open(os.path.join(folder, "kustomization.yaml"), "w") as file:
            json.dump(
                {
                    "apiVersion": "kustomize.config.k8s.io/v1beta1",
                    "kind": "Kustomization",
                    "resources": [os.path.relpath(os.path.join(MANIFESTS, "overlays", "default"), folder)],
                    "components": [os.path.relpath(os.path.join(MANIFESTS, "components", "pytorchjob"), folder)],
                },
                file,
            )
        texts = [
            text
            for text in cls.cluster.kubectl("kustomize", folder).split("\n---\n")
            if "WebhookConfiguration\n" in text
        ]
        made = cls.cluster.kubectl("create", "-f", "-", "--dry-run=client", "-o", "json", content="\n---\n".join(texts))
        cls.configurations = json.loads(f"[{made}]".replace("\n}\n{", "\n},\n{"))
        super().configure(name, **changes)

    def test_what_is_not_created(self):
        for changes, code, message in NOT_CREATED:
            made = pytorch_job("strict", workers=1)
            for path, value in changes.items():
                made = changed(made, path, value)
            with self.subTest(message), self.refused(code, message):
                self.api.create("pytorchjobs", made)
        made = pytorch_job("strict")
        del made["spec"]["pytorchReplicaSpecs"]
        with self.refused(422, f"{SPECS}: Required value"):
            self.api.create("pytorchjobs", made)
        self.assertIsNone(self.api.find("pytorchjobs", "strict"))

    def test_all_that_is_wrong_is_told_at_once(self):
        made = changed(changed(pytorch_job("wrong", workers=1), f"{MASTER}.replicas", 2), f"{WORKER}.replicas", 0)
        with self.refused(403, f"{SPECS}[Master].replicas: Forbidden", f"{SPECS}[Worker].replicas: Forbidden"):
            self.api.create("pytorchjobs", made)

    def test_what_is_created(self):
        longest = "a" * 54  # with -worker-0: 63
        for name, master, workers, more in (
            ("both", "ExitCode", 1, {}),
            ("workers", None, 2, {}),
            ("master", "Always", 0, {}),
            (longest, None, 1, {}),
            ("elastic", None, 1, {"elasticPolicy": {**ELASTIC, "rdzvConf": []}}),
        ):
            self.create_job(name, master=master, workers=workers, **more)
            self.await_running(name)

    def test_a_warning(self):
        made = pytorch_job("warned", master=None, workers=1, elasticPolicy={**ELASTIC, "nProcPerNode": 2})
        done = self.cluster.try_kubectl("create", "-n", "vision", "-f", "-", content=json.dumps(made))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(
            "Warning: spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead", done.stderr
        )

    def test_a_wrong_update_is_refused(self):
        self.create_job("changed", workers=1)
        self.await_running("changed")
        with self.refused(403, f"{SPECS}[Worker].replicas: Forbidden: must be at least 1; it is 0"):
            self.api.patch("pytorchjobs", "changed", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 0}}}})
        with self.refused(422, "spec.runPolicy.managedBy: Invalid value: field is immutable"):  # by the definition
            self.api.patch(
                "pytorchjobs", "changed", {"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}
            )
        self.api.patch("pytorchjobs", "changed", {"spec": {"runPolicy": {"suspend": True}}})
        self.api.patch("pytorchjobs", "changed", {"metadata": {"labels": {"a": "b"}}})

    def test_a_scale_to_zero_is_refused(self):
        self.create_job("scaled", workers=1)
        self.await_running("scaled")
        done = self.cluster.try_kubectl("scale", "pytorchjob/scaled", "--replicas=0", "-n", "vision")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(
            f"{SPECS}[Worker].replicas: Forbidden: must be at least 1; it is 0; to stop the pods, suspend the job",
            done.stderr,
        )
        self.assertEqual(self.api.get("pytorchjobs", "scaled")["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"], 1)
        self.cluster.kubectl("scale", "pytorchjob/scaled", "--replicas=2", "-n", "vision")
        self.await_running("scaled")


if __name__ == "__main__":
    class_runner.main()
