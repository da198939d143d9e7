"""PyTorch, Debian's own: the digits on 2 nodes x 2 workers."""
import os
import re
import subprocess

from installation import ROOT
from scenario import DEBIAN, Scenario, host_folders, runtime, train_job

MIN_ACCURACY = 0.95
DIGITS = os.path.join(ROOT, "e2e", "digits")


class Torch(Scenario):
    def digits(self, *options):
        data = subprocess.run([os.path.join(ROOT, "build-support", "setup-torch-data")], check=True, capture_output=True, text=True).stdout.strip()
        volumes, mounts = host_folders([*DEBIAN, DIGITS, os.path.dirname(data)])
        # What all nodes see, as a shared file system would give it to them.
        shared = os.path.join(self.cluster.folder, "shared", self.namespace)
        os.makedirs(shared)
        volumes.append({"name": "checkpoints", "hostPath": {"path": shared}})
        mounts.append({"name": "checkpoints", "mountPath": "/checkpoints"})
        container = {"volumeMounts": mounts, "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}], "resources": {"requests": {"cpu": "100m"}}}
        command = ["torchrun", os.path.join(DIGITS, "train.py"), "--data", data, "--checkpoints", "/checkpoints", "--epochs", "24",
                   "--min-accuracy", str(MIN_ACCURACY), *options]
        self.create(runtime("digits", 1, {"torch": {}}, container=container, pod={"volumes": volumes}),
                    train_job("digits", "digits", trainer={"numNodes": 2, "numProcPerNode": 2, "command": command}))
        return self.finished("digits", 600)

    def accuracy(self):
        said = re.findall(r"test accuracy ([0-9.]+) after", "".join(self.logs("digits")))
        self.assertEqual(len(said), 1)
        return float(said[0])

    def test_digits(self):
        job = self.digits()
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["nodes"], job["status"]["restarts"]), (2, 0))
        self.assertGreaterEqual(self.accuracy(), MIN_ACCURACY)
        self.assertIn("with 4 workers", self.logs("digits")[0])

    def test_digits_with_a_killed_worker(self):
        """The agents restart the workers in their pods, from the newest checkpoint; no pod is made anew."""
        job = self.digits("--fault", "kill:rank=3,epoch=4")
        self.condition(job, "Complete")
        self.assertGreaterEqual(self.accuracy(), MIN_ACCURACY)
        self.assertIn("resumed after epoch 3 with 4 workers", self.logs("digits")[0])
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (1, 0))
        self.assertEqual(len(self.cluster.get("pods", "-n", self.namespace)["items"]), 2)
