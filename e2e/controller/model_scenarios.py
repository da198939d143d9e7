# SPDX-License-Identifier: Apache-2.0
"""The model initializer fetches a model from a hub, and Debian's PyTorch trains with its weights."""

import hashlib
import os
import re
import signal
import subprocess
import tempfile
import threading

from digits import MIN_ACCURACY, SETUP_DATA, TRAINING
from hub import Hub
from scenario import (
    DEBIAN,
    INITIALIZER_IMAGE,
    MODEL_INITIALIZER,
    Scenario,
    host_folders,
    put_before,
    runtime,
    train_job,
)

MODEL = "muster/features"
WIDTH = 2048  # features of the model: 8.5 MiB of weights
WEIGHTS = "pytorch_model.bin"
RANGE = 4 << 20  # bytes that the initializer requests from a hub at once
SCRIPT = os.path.join(TRAINING, "fine_tune.py")
WORKSPACE = "/workspace"


class Model(Scenario):
    def test_a_model_of_a_hub(self):
        """The initializer is killed after one range of the weights. It fetches only the others. Then nodes start."""
        data = subprocess.run([SETUP_DATA], check=True, capture_output=True, text=True).stdout.strip()
        files = tempfile.mkdtemp(dir=self.cluster.folder)
        subprocess.run(["/usr/bin/python3", "-B", SCRIPT, "--model", files, "--make", str(WIDTH)], check=True)
        hub = Hub(self.cluster, MODEL, files, hold_from=RANGE)
        self.addCleanup(hub.stop)
        self.claim_workspace()
        self.train(hub, data)

        self.await_words(f"{RANGE >> 20}.0 MiB of")
        before = hub.ranges()
        (initializer,) = self.node.processes_in_pods("muster-initializer")
        os.kill(initializer, signal.SIGKILL)
        hub.release()
        job = self.finished("tune")
        self.condition(job, "Complete")
        after = hub.ranges()[len(before) :]
        self.assertEqual(min(before)[0], 0)
        self.assertEqual(
            min(after)[0], RANGE, f"the second life asks for {after}, and the first one had the bytes before {RANGE}"
        )
        log = self.logs("tune")[0]
        with open(os.path.join(files, WEIGHTS), "rb") as file:
            self.assertIn(f"weights of sha256 {hashlib.sha256(file.read()).hexdigest()}", log)
        accuracy, workers = re.search(r"test accuracy ([0-9.]+) after \d+ epochs with (\d+) workers", log).groups()
        self.assertGreaterEqual(float(accuracy), MIN_ACCURACY)
        self.assertEqual(workers, "2")

    def claim_workspace(self):
        """Creates a PersistentVolumeClaim on a folder of the machine."""
        room = {"storage": "1Gi"}
        self.cluster.apply(
            [
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": self.namespace},
                    "spec": {
                        "capacity": room,
                        "accessModes": ["ReadWriteMany"],
                        "hostPath": {"path": self.shared()},
                        "storageClassName": "",
                        "claimRef": {"namespace": self.namespace, "name": "workspace"},
                    },
                }
            ]
        )
        self.addCleanup(self.cluster.try_kubectl, "delete", "persistentvolume", self.namespace, "--wait=false")
        self.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "workspace"},
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": room},
                    "storageClassName": "",
                    "volumeName": self.namespace,
                },
            }
        )

    def train(self, hub, data):
        volumes, mounts = host_folders([*DEBIAN, TRAINING, os.path.dirname(data)])
        workspace = {"name": "workspace", "persistentVolumeClaim": {"claimName": "workspace"}}
        mount = {"name": "workspace", "mountPath": WORKSPACE}
        container = {
            "volumeMounts": [*mounts, mount],
            "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}],
            "command": [
                "torchrun",
                SCRIPT,
                "--model",
                f"{WORKSPACE}/model",
                "--data",
                data,
                "--min-accuracy",
                str(MIN_ACCURACY),
            ],
        }
        made = runtime(
            "tune", 2, {"torch": {"numProcPerNode": 1}}, container=container, pod={"volumes": [*volumes, workspace]}
        )
        initializer = {
            "name": MODEL_INITIALIZER,
            "image": INITIALIZER_IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "volumeMounts": [mount],
        }
        put_before(
            made, MODEL_INITIALIZER, {"restartPolicy": "OnFailure", "containers": [initializer], "volumes": [workspace]}
        )
        self.create(
            made,
            train_job(
                "tune",
                "tune",
                initializer={
                    "model": {"storageUri": f"hf://{MODEL}", "env": [{"name": "HF_ENDPOINT", "value": hub.url}]}
                },
            ),
        )

    def await_words(self, words, seconds=120):
        """Waits until a line of the initializer's log has these words."""
        self.cluster.await_object(
            f"job/tune-{MODEL_INITIALIZER}-0", lambda job: job["status"].get("ready") == 1, self.namespace
        )
        command = [
            self.cluster.program("kubectl"),
            "logs",
            "--follow",
            f"job/tune-{MODEL_INITIALIZER}-0",
            "-n",
            self.namespace,
        ]
        with subprocess.Popen(
            self.cluster.inside(command), stdout=subprocess.PIPE, text=True, env=self.cluster.environment
        ) as follow:
            deadline = threading.Timer(seconds, follow.kill)
            deadline.start()
            found = any(words in line for line in follow.stdout)
            deadline.cancel()
            follow.kill()
        self.assertTrue(found, f"the initializer did not say {words!r} within {seconds} s")
