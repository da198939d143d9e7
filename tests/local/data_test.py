# SPDX-License-Identifier: Apache-2.0
"""Data for jobs of `muster local`: from a real S3 server and from a hub, into a claim that nodes and later runs
share."""

import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "initializers")]

from local_case import LocalCase, plain_job

import class_runner  # local_case.py says where it is
import minio_server
from hub_server import HubServer

STEP = """{{name: {name}, template: {{metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: {name}}}}},
      spec: {{backoffLimit: 0, template: {{spec: {{restartPolicy: Never,
      containers: [{{name: {name}, image: muster-initializer, volumeMounts: [{{name: w, mountPath: /workspace}}]}}],
      volumes: [{{name: w, persistentVolumeClaim: {{claimName: data}}}}]}}}}}}}}}}"""
SUMS = "cd /workspace/$WHAT && find . -type f -not -path './.muster/*' | sort | xargs sha256sum"


def with_data(name):
    """A runtime whose initializer `name` fills the claim that its nodes mount, too."""
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {{name: with-data}}
spec:
  mlPolicy: {{numNodes: 2}}
  template: {{spec: {{replicatedJobs: [
    {STEP.format(name=name)},
    {{name: node, dependsOn: [{{name: {name}, status: Complete}}],
     template: {{metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}},
     spec: {{template: {{spec: {{
      containers: [{{name: node, image: i, volumeMounts: [{{name: w, mountPath: /workspace}}]}}],
      volumes: [{{name: w, persistentVolumeClaim: {{claimName: data}}}}]}}}}}}}}}}]}}}}
"""


class Data(LocalCase):
    FILES = {"train/a.bin": random.Random(1).randbytes(9 << 20), "train/more/b.txt": b"one two three\n"}

    def setUp(self):
        super().setUp()
        self.source = os.path.join(self.folder, "source")
        for name, data in self.FILES.items():
            path = os.path.join(self.source, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)

    def start(self, *files, arguments=(), **more):
        """Starts the job in this machine's network, since the servers listen at 127.0.0.1."""
        return super().start(*files, arguments=["--network", "shared", *arguments], **more)

    def secret(self, name, **keys):
        """The flag --secret for a Secret with these keys."""
        os.makedirs(os.path.join(self.folder, name))
        for key, value in keys.items():
            self.file(os.path.join(name, key), value)
        return ["--secret", f"{name}={name}"]

    def sums(self):
        return subprocess.run(
            ["sh", "-c", "find . -type f | sort | xargs sha256sum"],
            cwd=os.path.join(self.source, "train"),
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def check_nodes(self, said, name):
        """Checks that both nodes have read the files of the source."""
        for rank in (0, 1):
            prefix = f"[{name}-node-0-{rank}] "
            told = "".join(
                line.removeprefix(prefix)
                for line in said.splitlines(keepends=True)
                if line.startswith(prefix) and "  ./" in line
            )
            self.assertEqual(told, self.sums(), said)

    def job(self, name, initializer, folder):
        script = SUMS.replace("$WHAT", folder)
        return plain_job(
            name, script, nodes=2, runtime_name="with-data", more=f"  initializer: {{{folder}: {initializer}}}\n"
        )


class FromS3(Data):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if minio_server.binary() is None:
            cls.skipTest(cls, "SKIPPED: there is no S3 server: run build-support/setup-go-server minio")
        cls.store = minio_server.Minio()
        cls.addClassCleanup(cls.store.close)

    def put(self, *arguments):
        subprocess.run(
            [
                "curl",
                "-sS",
                "--fail-with-body",
                "--noproxy",
                "*",
                "--aws-sigv4",
                "aws:amz:us-east-1:s3",
                "--user",
                f"{minio_server.KEY}:{minio_server.SECRET}",
                *arguments,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def fill(self, bucket):
        self.put("-X", "PUT", f"{self.store.url}/{bucket}")
        for name in self.FILES:
            self.put("-T", os.path.join(self.source, name), f"{self.store.url}/{bucket}/{name}")

    def of_bucket(self, bucket, region="us-east-1"):
        return (
            f"{{storageUri: 's3://{bucket}/train', secretRef: {{name: keys}}, "
            f"env: [{{name: AWS_ENDPOINT_URL, value: '{self.store.url}'}}, {{name: AWS_REGION, value: {region}}}]}}"
        )

    def test_nodes_share_what_came_once(self):
        """The second run finds the data in the claim and downloads nothing."""
        self.fill("first")
        keys = self.secret("keys", AWS_ACCESS_KEY_ID=minio_server.KEY, AWS_SECRET_ACCESS_KEY=minio_server.SECRET)
        runtime = with_data("dataset-initializer")
        said = self.run_job(self.job("once", self.of_bucket("first"), "dataset"), runtime, arguments=keys)
        self.check_nodes(said, "once")
        self.assertIn("is complete in /workspace/dataset: 2 files", said)
        said = self.run_job(self.job("again", self.of_bucket("first"), "dataset"), runtime, arguments=keys)
        self.check_nodes(said, "again")
        self.assertIn("2 files, 9.0 MiB; no byte was moved", said)

    def test_a_wrong_key(self):
        """A wrong key is fatal: the job ends with the initializer's code, and no node begins."""
        self.fill("second")
        keys = self.secret("keys", AWS_ACCESS_KEY_ID=minio_server.KEY, AWS_SECRET_ACCESS_KEY="another")
        run = self.start(
            self.job("wrong", self.of_bucket("second"), "dataset"), with_data("dataset-initializer"), arguments=keys
        )
        self.assertEqual(run.wait(), 1, run.said)
        self.assertIn("SignatureDoesNotMatch", run.said)
        self.assertNotIn("[wrong-node-0-0]", run.said)


class FromHub(Data):
    def test_a_private_model(self):
        hub = HubServer()
        self.addCleanup(hub.close)
        repository = hub.add("vision/tiny", {name.removeprefix("train/"): data for name, data in self.FILES.items()})
        repository.private = True
        repository.readers.add("hub-token")
        hub.tokens.add("hub-token")
        model = (
            f"{{storageUri: 'hf://vision/tiny', env: [{{name: HF_ENDPOINT, value: '{hub.url}'}}], "
            f"secretRef: {{name: hub}}}}"
        )
        said = self.run_job(
            self.job("model", model, "model"),
            with_data("model-initializer"),
            arguments=self.secret("hub", HF_TOKEN="hub-token"),
        )
        self.check_nodes(said, "model")


if __name__ == "__main__":
    class_runner.main()
