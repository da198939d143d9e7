"""The demo's job.yaml, which `make demo` runs by `muster local`."""
import json
import os
import re
import subprocess

from digits import MIN_ACCURACY, SETUP_DATA, TRAINING
from images import BUSYBOX
from installation import ROOT
from scenario import DEBIAN, INITIALIZER_IMAGE, Scenario, host_folders

JOB = os.path.join(ROOT, "e2e", "demo", "job.yaml")
CLAIM = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain"}


class Demo(Scenario):
    def test_the_demos_job(self):
        """The file as it is, but for the images: the nodes' is busybox, which is shown this machine's PyTorch and the program."""
        data = subprocess.run([SETUP_DATA], check=True, capture_output=True, text=True).stdout.strip()
        self.cluster.kubectl("create", "configmap", "digits", f"--from-file={data}", "-n", self.namespace)
        self.made.add(("ConfigMap", "digits"))
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.namespace}, "spec": {
            **CLAIM, "hostPath": {"path": self.shared()}, "claimRef": {"namespace": self.namespace, "name": "digits"}}}
        self.addCleanup(self.cluster.try_kubectl, "delete", "persistentvolume", self.namespace, "--wait=false")
        self.create(volume, *self.objects())
        job = self.finished("digits", 300)
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["nodes"], job["status"]["restarts"]), (2, 0))
        said = self.logs("digits")
        self.assertIn("started at epoch 0 with 4 workers", said[0])
        self.assertGreaterEqual(float(re.search(r"test accuracy ([0-9.]+) after 24 epochs", said[0])[1]), MIN_ACCURACY)
        with open(os.path.join(self.shared(), "dataset", ".muster", "manifest.json")) as file:
            self.assertEqual(json.load(file)["source"], "file:///source/digits.csv.gz")

    def objects(self):
        """Of the file, with images that this cluster has."""
        objects = {made["kind"]: made for made in self.read(JOB)}
        volumes, mounts = host_folders([*DEBIAN, TRAINING])
        mounts[-1]["mountPath"] = "/e2e/digits"  # the container runs in /
        objects["TrainJob"]["spec"]["trainer"]["image"] = BUSYBOX
        objects["TrainJob"]["spec"]["trainer"]["env"].append({"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"})
        initializer, node = (step["template"]["spec"]["template"]["spec"] for step in
                             objects["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"])
        initializer["containers"][0].update(image=INITIALIZER_IMAGE, imagePullPolicy="IfNotPresent")
        node["volumes"] += volumes
        node["containers"][0]["volumeMounts"] += mounts
        return objects.values()

    def read(self, path):
        """The objects of a YAML file, by kubectl: it writes one after the other."""
        text = self.cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", path).strip()
        objects = []
        while text:
            made, end = json.JSONDecoder().raw_decode(text)
            objects += made["items"] if made["kind"] == "List" else [made]
            text = text[end:].strip()
        for made in objects:
            made["metadata"].pop("namespace", None)
        return objects
