# SPDX-License-Identifier: Apache-2.0
"""Strangers on the webhook port of a real controller: what they cost, and who is answered meanwhile. There is no API
server."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import class_runner
from sanitizer import sanitizer_of

BIN = os.environ.get("MUSTER_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bin"))
CONTROLLER = os.path.join(BIN, "muster-controller")
DEADLINE = float(os.environ.get("MUSTER_TEST_DEADLINE", 240))
VALIDATE = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
STRANGER, API_SERVER = "127.0.0.1", "127.0.0.2"  # addresses of clients
BODY = 6 << 20  # bytes; the largest review
KUBECONFIG = """{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}],
users: [{name: a, user: {token: a}}], contexts: [{name: a, context: {cluster: a, user: a}}]}"""
CERTIFICATES = """
openssl req -x509 $new -days 2 -subj /CN=authority -keyout ca.key -out ca.crt
for who in tls client; do
  openssl req $new -subj /CN=$who -keyout $who.key -out $who.csr
  printf 'subjectAltName=IP:127.0.0.1' > ext
  openssl x509 -req -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out $who.crt
done"""


def review(runtime_kind="TrainingRuntime", runtime="none", name="train"):
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "1",
                "operation": "CREATE",
                "resource": {"resource": "trainjobs"},
                "namespace": "ns",
                "name": name,
                "object": {
                    "apiVersion": "trainer.kubeflow.org/v1alpha1",
                    "kind": "TrainJob",
                    "metadata": {"name": name, "namespace": "ns"},
                    "spec": {"runtimeRef": {"kind": runtime_kind, "name": runtime}},
                },
            },
        }
    ).encode()


class WebhookPort(unittest.TestCase):
    def setUp(self):
        if not os.access(CONTROLLER, os.X_OK):
            self.skipTest(f"SKIPPED: {BIN} has no muster-controller")
        self.folder = tempfile.mkdtemp(prefix="muster-ports-")
        self.addCleanup(shutil.rmtree, self.folder)
        new = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
        subprocess.run(["sh", "-ec", f"new='{new}'; {CERTIFICATES}"], cwd=self.folder, check=True, capture_output=True)
        with open(os.path.join(self.folder, "kubeconfig"), "w") as file:
            file.write(KUBECONFIG)
        self.links = []
        self.addCleanup(lambda: [link.close() for link in self.links])

    def serve(self, *flags):
        self.controller = subprocess.Popen(
            [
                CONTROLLER,
                "run",
                "--kubeconfig",
                os.path.join(self.folder, "kubeconfig"),
                "--listen",
                "127.0.0.1:0",
                "--webhook-listen",
                "127.0.0.1:0",
                "--webhook-cert-dir",
                self.folder,
                *flags,
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.controller.wait)
        self.addCleanup(self.controller.kill)
        alarm = threading.Timer(DEADLINE, self.controller.kill)
        alarm.start()
        self.addCleanup(alarm.cancel)
        for line in self.controller.stderr:
            found = re.search(r"admission webhooks are served on port (\d+)", line)
            if found:
                self.port = int(found[1])
                break
        else:
            self.fail("the webhooks were not served")
        threading.Thread(target=self.controller.stderr.read, daemon=True).start()  # so that the pipe is never full

    def connect(self, source=STRANGER, tls=True, certificate=None):
        link = socket.create_connection(("127.0.0.1", self.port), DEADLINE, (source, 0))
        if tls:
            context = ssl.create_default_context(cafile=os.path.join(self.folder, "ca.crt"))
            if certificate:
                context.load_cert_chain(*(os.path.join(self.folder, f"{certificate}.{end}") for end in ("crt", "key")))
            link = context.wrap_socket(link, server_hostname="127.0.0.1")
        self.links.append(link)
        return link

    def post(self, link, body):
        link.sendall(f"POST {VALIDATE} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            got = link.recv(65536)
            if not got:
                return None, answer
            answer += got
        head, _, rest = answer.partition(b"\r\n\r\n")
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        while len(rest) < length:
            rest += link.recv(65536)
        return int(head.split()[1]), json.loads(rest)["response"]

    def memory(self, what):
        with open(f"/proc/{self.controller.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(what + ":")) << 10

    def test_unfinished_bodies(self):
        self.serve()
        api_server = self.connect(API_SERVER)
        self.assertEqual(self.post(api_server, review())[0], 200)
        before = self.memory("VmHWM")
        part = b"x" * (BODY - 1)
        for _ in range(130):
            link = self.connect()
            try:
                link.sendall(f"POST {VALIDATE} HTTP/1.1\r\nContent-Length: {BODY}\r\n\r\n".encode() + part)
            except OSError:
                pass  # closed, since others of this address came
            if len(self.links) % 10 == 0:
                self.assertEqual(self.post(api_server, review())[0], 200)
        self.assertEqual(self.post(self.connect(API_SERVER), review())[0], 200)
        if sanitizer_of(CONTROLLER) is None:
            self.assertLess(self.memory("VmHWM") - before, 128 << 20)

    def test_a_crowd(self):
        self.serve()
        api_server = self.connect(API_SERVER)
        for number in range(600):
            self.connect(tls=number % 8 == 0)
            if number % 60 == 0:
                self.assertEqual(self.post(api_server, review())[0], 200)
                self.assertEqual(self.post(self.connect(API_SERVER), review())[0], 200)

    def test_a_stranger_learns_nothing_of_a_namespace(self):
        self.serve()
        self.assertEqual(self.post(self.connect(), review())[1], {"uid": "1", "allowed": True})

    def test_only_the_api_servers_certificate(self):
        self.serve("--webhook-client-ca", os.path.join(self.folder, "ca.crt"))
        try:
            status, _ = self.post(self.connect(), review())
        except OSError:  # with TLS 1.3 a client learns of the refusal by its first read
            status = None
        self.assertIsNone(status)
        _, response = self.post(self.connect(certificate="client"), review())
        self.assertFalse(response["allowed"])  # it is told that the API server cannot be asked for the runtime
        self.assertEqual(response["status"]["code"], 503)


if __name__ == "__main__":
    class_runner.main()
