# SPDX-License-Identifier: Apache-2.0
"""A Google Cloud Storage server for tests: fake-gcs-server, in memory. Built by build-support/setup-go-server. It
checks no identity. And a proxy in front of it, whose faults hit media requests by default."""

import http.client
import os
import subprocess
import threading

from fault_proxy import FaultProxy
from free_port import free_port


def binary():
    """Path of the server; None: it was not built."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(cache, "muster", "go", "fake-gcs-server")
    return path if os.access(path, os.X_OK) else None


class FakeGcs:
    """Ready when it is constructed."""

    def __init__(self):
        for _ in range(5):  # a port may be taken between its choice and its use
            if self.begin(free_port()):
                return
            self.close()
        raise RuntimeError("fake-gcs-server does not start")

    def begin(self, port):
        self.host, self.port = "127.0.0.1", port
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [
                binary(),
                "-scheme",
                "http",
                "-host",
                self.host,
                "-port",
                str(port),
                "-backend",
                "memory",
                "-public-host",
                f"{self.host}:{port}",
                "-external-url",
                self.url,
            ],
            env={"PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.started = threading.Event()
        self.running = False
        self.reader.start()
        self.started.wait()
        return self.running

    def read(self):
        """Reads all its output, so that it never blocks on a full pipe."""
        for line in self.process.stdout:
            if "server started" in line:
                self.running = True
                self.started.set()
        self.started.set()

    def clear(self):
        """Removes all buckets and objects, and frees their memory."""
        connection = http.client.HTTPConnection(self.host, self.port)
        connection.request("POST", "/_internal/delete_all")
        connection.getresponse().read()
        connection.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


def is_media(exchange):
    return exchange.method == "GET" and "alt=media" in exchange.path and exchange.status in (200, 206)


def is_list(exchange):
    return exchange.method == "GET" and "/o?" in exchange.path


class GcsProxy(FaultProxy):
    """`dropped`: a header that is not passed on, as with some proxies."""

    def reset(self):
        super().reset()
        self.faulty = is_media
        self.dropped = None

    def pass_on(self, handler, body):
        if self.dropped:
            del handler.headers[self.dropped]
        return super().pass_on(handler, body)
