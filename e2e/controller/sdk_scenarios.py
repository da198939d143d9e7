# SPDX-License-Identifier: Apache-2.0
"""The unmodified `kubeflow` SDK of PyPI against Muster."""

import json
import os
import subprocess

from installation import ROOT
from scenario import DEBIAN, Scenario, host_folders, runtime

SETUP_VENV = os.path.join(ROOT, "build-support", "setup-venv")
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sdk_client.py")


class Sdk(Scenario):
    def test_from_a_function_to_its_logs(self):
        found = subprocess.run([SETUP_VENV, "kubeflow-sdk"], capture_output=True, text=True)
        if found.returncode != 0:
            self.skipTest(f"the kubeflow SDK could not be set up: {found.stderr.strip()}")
        volumes, mounts = host_folders(DEBIAN)
        container = {
            "volumeMounts": mounts,
            "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}],
            "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}},
        }
        made = runtime("torch-here", 1, {"torch": {}}, container=container, pod={"volumes": volumes})
        made["metadata"]["labels"] = {"trainer.kubeflow.org/framework": "torch"}
        self.create(made)
        python = os.path.join(found.stdout.strip(), "python")
        done = subprocess.run(
            self.cluster.inside([python, CLIENT, self.cluster.kubeconfig, self.namespace, "torch-here"]),
            capture_output=True,
            text=True,
            timeout=400,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        given = json.loads(done.stdout)
        self.assertIn("torch-here", given["runtimes"])
        self.assertIn("torch-distributed", given["runtimes"])
        self.assertEqual(given["framework"], "torch")
        name = given["job"]["name"]
        self.assertEqual(
            given["job"],
            {"name": name, "status": "Complete", "nodes": 2, "steps": {"node-0": "Succeeded", "node-1": "Succeeded"}},
        )
        self.assertEqual(given["states"][-1], "Complete")
        self.assertEqual((given["jobs"], given["jobs_after"]), ([name], []))
        for rank in range(2):
            self.assertIn(f"hello from rank {rank} of 2", "\n".join(given["logs"][f"node-{rank}"]))
        self.assertIn("Complete", given["events"])
