# SPDX-License-Identifier: Apache-2.0
"""A real S3 server (MinIO) in the network namespace of a cluster, where pods reach it.

    store = ObjectStore(cluster)
    store.put("bucket", "train/digits.csv.gz", path)
    store.stop()

Ready when it is constructed. A cluster has one at a time.
"""

import os
import shutil
import signal
import subprocess
import tempfile

from cluster import HERE
from network import ADDRESS
from processes import Broken

SETUP = os.path.join(HERE, "..", "..", "build-support", "setup-go-server")
NAME = "minio"
PORT = 9000
KEY, SECRET = "muster-key", "muster-secret"


def binary():
    """The path of the server, which the first call builds. Broken: the build failed."""
    done = subprocess.run([SETUP, NAME], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Broken("an S3 server could not be built")
    return done.stdout.strip()


class ObjectStore:
    def __init__(self, cluster):
        self.cluster = cluster
        self.url = f"http://{ADDRESS}:{PORT}"
        self.folder = tempfile.mkdtemp(prefix="minio-", dir=cluster.folder)
        certificates = os.path.join(self.folder, "no-certificates")
        os.makedirs(certificates)
        cluster.start_program(
            NAME,
            [
                binary(),
                "server",
                os.path.join(self.folder, "data"),
                "--address",
                f"{ADDRESS}:{PORT}",
                "--certs-dir",
                certificates,
            ],
            {
                "PATH": os.environ["PATH"],
                "HOME": self.folder,
                "MINIO_ROOT_USER": KEY,
                "MINIO_ROOT_PASSWORD": SECRET,
                "MINIO_BROWSER": "off",
                "MINIO_UPDATE": "off",
            },
        )
        cluster.processes.await_url(NAME, f"{self.url}/minio/health/cluster")  # "ready" is true before it has its disks

    def put(self, bucket, key, path):
        """Stores the file as an object in a new bucket."""
        self._request("-X", "PUT", f"{self.url}/{bucket}")
        self._request("-T", path, f"{self.url}/{bucket}/{key}")

    def hold(self):
        """Stops the server until release(): it answers no request, but the kernel still accepts connections."""
        self.cluster.processes.signal(NAME, signal.SIGSTOP)

    def release(self):
        self.cluster.processes.signal(NAME, signal.SIGCONT)

    def stop(self):
        self.cluster.processes.stop(NAME, seconds=2)
        shutil.rmtree(self.folder)

    def _request(self, *arguments):
        command = [
            "curl",
            "-sS",
            "--fail-with-body",
            "--noproxy",
            "*",
            "--max-time",
            "60",
            "--aws-sigv4",
            "aws:amz:us-east-1:s3",
            "--user",
            f"{KEY}:{SECRET}",
        ]
        done = subprocess.run(self.cluster.inside([*command, *arguments]), capture_output=True, text=True)
        if done.returncode:
            raise Broken(
                f"{arguments[-1]}: {done.stdout} {done.stderr.strip()}; "
                f"the server's log is {self.cluster.processes.log(NAME)}"
            )
