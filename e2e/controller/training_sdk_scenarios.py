# SPDX-License-Identifier: Apache-2.0
"""The unmodified `kubeflow-training` SDK of PyPI, which users of PyTorchJobs use, against Muster."""

import json
import os
import subprocess

from installation import ROOT
from pytorch_jobs import LABEL, PyTorchJobs

SETUP_VENV = os.path.join(ROOT, "build-support", "setup-venv")
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "training_sdk_client.py")
PODS = ("master-0", "worker-0", "worker-1")


class TrainingSdk(PyTorchJobs):
    def test_training_sdk(self):
        found = subprocess.run([SETUP_VENV, "kubeflow-training"], capture_output=True, text=True)
        if found.returncode != 0:
            self.skipTest(f"the kubeflow-training SDK could not be set up: {found.stderr.strip()}")
        python = os.path.join(found.stdout.strip(), "python")
        done = subprocess.run(
            self.cluster.inside([python, CLIENT, self.cluster.kubeconfig, self.namespace, self.shared()]),
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        given = json.loads(done.stdout)
        self.check_objects(given["objects"])
        self.check_function(given["function"])
        self.check_failure(given["fails"])
        self.check_events(given["events"])
        self.assertEqual((given["jobs"], given["jobs_after"]), (["fails", "function", "objects"], []))
        self.assertIn("404", given["gone"])

    def check_objects(self, given):
        """A job made of the SDK's objects, while it runs and after its end."""
        self.assertEqual(
            given["running"],
            {"created": True, "running": True, "restarting": False, "succeeded": False, "failed": False},
        )
        self.assertEqual(
            given["ended"], {"created": True, "running": False, "restarting": False, "succeeded": True, "failed": False}
        )
        self.assertEqual(
            (given["jobs"], given["labels"], given["times"]), (["objects"], {"team": "vision"}, [True, True])
        )
        self.assertEqual(given["counts"]["Master"], [0, 1, 0])
        self.assertEqual([condition[0] for condition in given["conditions"]], ["Created", "Running", "Succeeded"])
        self.assertEqual(
            given["conditions"][-1],
            ["Succeeded", "True", "PyTorchJobSucceeded", "PyTorchJob objects is successfully completed."],
        )
        self.assertEqual((given["masters"], given["worker 1"]), (["objects-master-0"], ["objects-worker-1"]))
        self.assertEqual(
            {
                name: (
                    labels[LABEL + "operator-name"],
                    labels[LABEL + "replica-type"],
                    labels[LABEL + "replica-index"],
                    labels.get(LABEL + "job-role"),
                )
                for name, labels in given["pods"].items()
            },
            {
                "objects-master-0": ("pytorchjob-controller", "master", "0", "master"),
                "objects-worker-0": ("pytorchjob-controller", "worker", "0", None),
                "objects-worker-1": ("pytorchjob-controller", "worker", "1", None),
            },
        )
        self.assertIn("rank 0 of 3", given["followed"]["objects-master-0"])
        for rank, pod in enumerate(PODS):
            self.assertIn(f"rank {rank} of 3", given["logs"][f"objects-{pod}"])

    def check_function(self, given):
        """A function on 2 workers. The SDK makes a Master and a Worker under torchrun of them."""
        self.assertEqual((given["processes"], given["replicas"]), ("1", {"Master": 1, "Worker": 1}))
        self.assertEqual(given["states"][-1], "Succeeded")
        self.assertLessEqual(set(given["states"]), {"Created", "Running", "Succeeded"})
        self.assertEqual(
            (list(given["master"]), sorted(given["logs"])),
            (["function-master-0"], ["function-master-0", "function-worker-0"]),
        )
        self.assertEqual(given["logs"]["function-master-0"], given["master"]["function-master-0"])
        for rank, pod in enumerate(("function-master-0", "function-worker-0")):
            self.assertIn(f"hello from rank {rank} of 2", given["logs"][pod])

    def check_failure(self, given):
        self.assertEqual(
            given["ended"], {"created": True, "running": False, "restarting": False, "succeeded": False, "failed": True}
        )
        self.assertIn("is Failed", given["raised"])
        for part in ("exit code 2", "fails-master-0", "pytorch"):
            self.assertIn(part, given["message"])

    def check_events(self, given):
        """The events of the job and of its pods."""
        names = ", ".join(f"objects-{pod}" for pod in PODS)
        self.assertIn(f"Created pod: {names}", given["pytorchjob/objects"])
        for pod in PODS:
            self.assertIn(f"pod/objects-{pod}", given)
        self.assertIn("PyTorchJob objects is successfully completed.", given["pytorchjob/objects"])
