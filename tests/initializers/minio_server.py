# SPDX-License-Identifier: Apache-2.0
"""A strict S3 server for tests: MinIO checks signatures, conditions and checksums. Built by
build-support/setup-go-server."""

import base64
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_port import free_port

KEY, SECRET = "muster-key", "muster-secret"
KMS_KEY = "muster-kms-key"  # for encrypted objects, whose ETags are no hashes


def binary():
    """Path of the server; None: it was not built."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(cache, "muster", "go", "minio")
    return path if os.access(path, os.X_OK) else None


class Minio:
    """Ready when it is constructed. `certificates`: a folder with public.crt and private.key, for https. `region`:
    that requests must be signed for."""

    def __init__(self, certificates=None, region=None):
        self.dir = tempfile.mkdtemp(prefix="muster-minio-")
        self.certificates = certificates or os.path.join(self.dir, "no-certificates")
        os.makedirs(self.certificates, exist_ok=True)
        self.region = {"MINIO_REGION": region} if region else {}
        self.scheme = "https" if certificates else "http"
        for _ in range(5):  # a port may be taken between its choice and its use
            if self.begin(free_port()):
                return
        self.close()
        raise RuntimeError("MinIO does not start")

    def begin(self, port):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.dir,
            "MINIO_ROOT_USER": KEY,
            "MINIO_ROOT_PASSWORD": SECRET,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "MINIO_DOMAIN": "localhost",
            "MINIO_KMS_SECRET_KEY": f"{KMS_KEY}:{base64.b64encode(bytes(32)).decode()}",
            **self.region,
        }
        data = os.path.join(self.dir, "data")
        self.process = subprocess.Popen(
            [binary(), "server", data, "--address", f"127.0.0.1:{port}", "--certs-dir", self.certificates],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.host, self.port = "127.0.0.1", port
        self.url = f"{self.scheme}://127.0.0.1:{port}"
        self.started, self.running = threading.Event(), False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.started.wait()
        if not self.running:
            self.end()
        return self.running

    def read(self):
        """Reads all its output, so that it never blocks on a full pipe."""
        for line in self.process.stdout:
            if "API:" in line:
                self.running = True
                self.started.set()
        self.started.set()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def close(self):
        self.end()
        shutil.rmtree(self.dir, ignore_errors=True)
