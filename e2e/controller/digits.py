# SPDX-License-Identifier: Apache-2.0
"""Trains the digits with Debian's PyTorch on 2 nodes x 2 workers. Scenarios of several modules use it."""

import os
import re
import subprocess

from installation import ROOT
from object_store import KEY, SECRET, ObjectStore
from processes import Broken
from scenario import DEBIAN, INITIALIZER, INITIALIZER_IMAGE, Scenario, host_folders, put_before, runtime, train_job

MIN_ACCURACY = 0.95
TRAINING = os.path.join(ROOT, "e2e", "digits")
BUCKET, KEY_OF_DATA = "digits", "train/digits.csv.gz"
SETUP_DATA = os.path.join(ROOT, "build-support", "setup-torch-data")


class Digits(Scenario):
    """shared() has the files of all nodes: checkpoints/, and dataset/ if an initializer fetches the data set."""

    def setUp(self):
        super().setUp()
        self.data = subprocess.run([SETUP_DATA], check=True, capture_output=True, text=True).stdout.strip()
        self.checkpoints, self.dataset = (os.path.join(self.shared(), name) for name in ("checkpoints", "dataset"))
        for folder in (self.checkpoints, self.dataset):
            os.makedirs(folder)

    def store_with_data(self):
        """An S3 server with the data set. Skips the scenario if the server cannot be built."""
        try:
            store = ObjectStore(self.cluster)
        except Broken as error:
            self.skipTest(str(error))
        self.addCleanup(store.stop)
        store.put(BUCKET, KEY_OF_DATA, self.data)
        return store

    def train(self, *options, store=None, epochs=24, pod=None):
        """Creates the TrainJob `digits`. `store`: has the data set for the initializer; None: nodes read it locally."""
        volumes, mounts = host_folders([*DEBIAN, TRAINING, *([] if store else [os.path.dirname(self.data)])])
        for name, folder in (("checkpoints", self.checkpoints), ("dataset", self.dataset)):
            volumes.append({"name": name, "hostPath": {"path": folder}})
            mounts.append({"name": name, "mountPath": f"/workspace/{name}"})
        container = {
            "volumeMounts": mounts,
            "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}],
            "resources": {"requests": {"cpu": "100m"}},
        }
        data = f"/workspace/dataset/{os.path.basename(KEY_OF_DATA)}" if store else self.data
        command = [
            "torchrun",
            os.path.join(TRAINING, "train.py"),
            "--data",
            data,
            "--checkpoints",
            "/workspace/checkpoints",
            "--epochs",
            str(epochs),
            "--min-accuracy",
            str(MIN_ACCURACY),
            *options,
        ]
        made = runtime("digits", 1, {"torch": {}}, container=container, pod={"volumes": volumes, **(pod or {})})
        job = train_job("digits", "digits", trainer={"numNodes": 2, "numProcPerNode": 2, "command": command})
        if store:
            self.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "s3-keys"},
                    "stringData": {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET},
                }
            )
            self.bring_data(store, made, job)
        self.create(made, job)

    def bring_data(self, store, made, job):
        """Adds an initializer of the data set."""
        container = {
            "name": INITIALIZER,
            "image": INITIALIZER_IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "volumeMounts": [{"name": "dataset", "mountPath": "/workspace/dataset"}],
        }
        put_before(
            made,
            INITIALIZER,
            {"containers": [container], "volumes": [{"name": "dataset", "hostPath": {"path": self.dataset}}]},
        )
        job["spec"]["initializer"] = {
            "dataset": {
                "storageUri": f"s3://{BUCKET}/{os.path.dirname(KEY_OF_DATA)}/",
                "secretRef": {"name": "s3-keys"},
                "env": [{"name": "ENDPOINT", "value": store.url}],
            }
        }

    def check_accuracy(self):
        said = re.findall(r"test accuracy ([0-9.]+) after", "".join(self.logs("digits")))
        self.assertEqual(len(said), 1)
        self.assertGreaterEqual(float(said[0]), MIN_ACCURACY)
