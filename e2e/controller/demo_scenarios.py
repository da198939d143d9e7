# SPDX-License-Identifier: Apache-2.0
"""The demo's job.yaml in a cluster, with faults like the demo's. `make demo` runs it by `muster local`."""

import json
import os
import subprocess
import sys

from digits import MIN_ACCURACY, SETUP_DATA, TRAINING
from images import BUSYBOX
from installation import ROOT
from scenario import DEBIAN, INITIALIZER_IMAGE, Scenario, host_folders, shell

sys.path.append(TRAINING)
from training_run import epochs_done

JOB = os.path.join(ROOT, "e2e", "demo", "job.yaml")
CRASH = """for process in /proc/[0-9]*; do
  tr '\\0' '\\n' < $process/environ | grep -qx RANK=1 && kill -SEGV ${process#/proc/}
done; true"""
CLAIM = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain"}


class Demo(Scenario):
    def test_the_demos_job(self):
        """Only the images differ from the file: nodes use busybox, with this machine's PyTorch and the program mounted.
        Rank 1 crashes after epoch 14, and a pod is deleted after epoch 28. No epoch is lost or done twice."""
        data = subprocess.run([SETUP_DATA], check=True, capture_output=True, text=True).stdout.strip()
        self.cluster.kubectl("create", "configmap", "digits", f"--from-file={data}", "-n", self.namespace)
        self.made.add(("ConfigMap", "digits"))
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": self.namespace},
            "spec": {
                **CLAIM,
                "hostPath": {"path": self.shared()},
                "claimRef": {"namespace": self.namespace, "name": "digits"},
            },
        }
        self.addCleanup(self.cluster.try_kubectl, "delete", "persistentvolume", self.namespace, "--wait=false")
        self.create(volume, *self.objects())
        self.cluster.await_object(
            "trainjob/digits", lambda job: job.get("status", {}).get("readyNodes") == 2, self.namespace, 300
        )
        self.until_epoch(14)
        for pod in self.pods():
            self.cluster.kubectl("exec", pod, "-n", self.namespace, "-c", "node", "--", *shell(CRASH))
        self.until_epoch(28)
        self.cluster.kubectl(
            "delete", "pod", self.pods()[1], "-n", self.namespace, "--force", "--grace-period=0", "--wait=false"
        )

        job = self.finished("digits", 300)
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["nodes"], job["status"]["restarts"], job["status"]["attempt"]), (2, 1, 0))
        with open(os.path.join(self.shared(), "events.jsonl")) as file:
            events = [json.loads(line) for line in file]
        done = epochs_done(events)
        self.assertEqual([epoch for epoch, _ in done], list(range(1, 41)))
        self.assertEqual(events[-1]["history"], [loss for _, loss in done])
        self.assertGreaterEqual(events[-1]["accuracy"], MIN_ACCURACY)
        worlds = [event["world"] for event in events if event["event"] == "start"]
        self.assertEqual(worlds[:2], [4, 4])
        self.assertGreaterEqual(
            len(worlds), 3
        )  # the job is elastic: it may end before the deleted pod's replacement joins
        with open(os.path.join(self.shared(), "dataset", ".muster", "manifest.json")) as file:
            self.assertEqual(json.load(file)["source"], "file:///source/digits.csv.gz")

    def until_epoch(self, number):
        """Waits until that epoch is done."""
        self.cluster.kubectl(
            "exec",
            "job/digits-node-0",
            "-n",
            self.namespace,
            "-c",
            "node",
            "--",
            *shell(f"until grep -qs '\"epoch\": {number},' /workspace/events.jsonl; do sleep 0.1; done"),
        )

    def pods(self):
        """The names of the nodes, by index."""
        index = "batch.kubernetes.io/job-completion-index"
        pods = self.cluster.get("pods", "-n", self.namespace, "-l", "jobset.sigs.k8s.io/replicatedjob-name=node")[
            "items"
        ]
        return [pod["metadata"]["name"] for pod in sorted(pods, key=lambda pod: int(pod["metadata"]["labels"][index]))]

    def objects(self):
        """The objects of the file, with images that this cluster has."""
        objects = {made["kind"]: made for made in self.read(JOB)}
        volumes, mounts = host_folders([*DEBIAN, TRAINING])
        mounts[-1]["mountPath"] = "/e2e/digits"  # job.yaml's path is relative, and the container runs in /
        objects["TrainJob"]["spec"]["trainer"]["image"] = BUSYBOX
        objects["TrainJob"]["spec"]["trainer"]["env"].append({"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"})
        initializer, node = (
            step["template"]["spec"]["template"]["spec"]
            for step in objects["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
        )
        initializer["containers"][0].update(image=INITIALIZER_IMAGE, imagePullPolicy="IfNotPresent")
        node["volumes"] += volumes
        node["containers"][0]["volumeMounts"] += mounts
        return objects.values()

    def read(self, path):
        """The objects of a YAML file, read by kubectl, which prints one after the other."""
        text = self.cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", path).strip()
        objects = []
        while text:
            made, end = json.JSONDecoder().raw_decode(text)
            objects += made["items"] if made["kind"] == "List" else [made]
            text = text[end:].strip()
        for made in objects:
            made["metadata"].pop("namespace", None)
        return objects
