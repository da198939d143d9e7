# SPDX-License-Identifier: Apache-2.0
"""/metrics over HTTPS of a real controller, with tokens and rights of a real API server."""

import base64
import http.client
import os
import re
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

from cluster_case import BIN, MANIFESTS, NAMESPACE
from controller_case import ACCOUNT, WAIT, ControllerCase

import class_runner

COMPONENT = os.path.join(MANIFESTS, "components", "metrics-tls")
READER = "kubeflow-trainer-metrics-reader"


class MetricsTls(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.kubectl("apply", "--server-side", "-f", os.path.join(COMPONENT, "rbac.yaml"))
        for name in ("scraper", "stranger"):
            cls.cluster.kubectl("create", "serviceaccount", name, "-n", NAMESPACE)
        cls.cluster.kubectl(
            "create",
            "clusterrolebinding",
            "scraper",
            f"--clusterrole={READER}",
            f"--serviceaccount={NAMESPACE}:scraper",
        )
        cls.plain, webhooks, cls.tls = (
            f"{cls.cluster.address}:{cls.cluster.port(name)}" for name in ("controller", "webhooks", "metrics")
        )
        cls.start_controller("controller", "--webhook-listen", webhooks, "--metrics-listen", cls.tls)
        cls.cluster.processes.await_url("controller", f"http://{cls.plain}/readyz", seconds=WAIT)

    def token(self, account, *flags):
        return self.cluster.kubectl("create", "token", account, "-n", NAMESPACE, *flags).strip()

    def answer(self, token=None, method="GET", path="/metrics"):
        """Asks as the ServiceMonitor says: with its server name, and the authority in its Secret. (code, body)"""
        with open(os.path.join(COMPONENT, "service-monitor.yaml")) as file:
            told = dict(re.findall(r"(serverName|name|key): (\S+)", file.read()))
        secret = self.cluster.get("secret", told["name"], "-n", ACCOUNT[0])
        context = ssl.create_default_context(cadata=base64.b64decode(secret["data"][told["key"]]).decode())
        host, _, port = self.tls.rpartition(":")
        connection = http.client.HTTPConnection(self.tls)
        with socket.create_connection((host, int(port)), timeout=WAIT) as plain:
            with context.wrap_socket(plain, server_hostname=told["serverName"]) as connection.sock:
                connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
                answer = connection.getresponse()
                return answer.status, answer.read().decode()

    def test_who_may_read_the_metrics(self):
        code, metrics = self.answer(self.token("scraper"))
        self.assertEqual(code, 200, metrics)
        self.assertIn("\nmuster_controller_leads ", metrics)
        self.assertEqual(self.answer(self.token("scraper"), "HEAD"), (200, ""))
        denied = f"Authorization denied for user system:serviceaccount:{NAMESPACE}:stranger\n"
        for what, token, wanted in (
            ("no right", self.token("stranger"), (403, denied)),
            ("no token", None, (401, "Unauthorized\n")),
            ("not signed by the API server", "a.b.c", (401, "Unauthorized\n")),
            ("for another audience", self.token("scraper", "--audience=other"), (401, "Unauthorized\n")),
        ):
            with self.subTest(what):
                self.assertEqual(self.answer(token), wanted)
        self.assertEqual(self.answer(self.token("scraper"), path="/healthz")[0], 404)

    def test_no_token_is_in_the_log(self):
        tokens = [self.token("scraper"), self.token("stranger"), "some.wrong.token"]
        self.assertEqual([self.answer(token)[0] for token in tokens], [200, 403, 401])
        log = self.log()
        for token in tokens:
            self.assertNotIn(token.rpartition(".")[2], log)

    def test_the_plain_port_has_no_metrics(self):
        with urllib.request.urlopen(f"http://{self.plain}/readyz", timeout=WAIT) as answer:
            self.assertEqual(answer.read(), b"ok\n")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{self.plain}/metrics", timeout=WAIT)
        self.assertEqual(refused.exception.code, 404)
        refused.exception.close()

    def test_wrong_flags_are_named(self):
        for flags, said in (
            (["--metrics-listen", ":0"], "--metrics-listen needs --webhook-listen"),
            (
                ["--webhook-listen", ":0", "--metrics-listen", "8443"],
                "--metrics-listen '8443': want HOST:PORT or :PORT",
            ),
        ):
            command = [os.path.join(BIN, "muster-controller"), "run", "--kubeconfig", self.kubeconfig]
            done = subprocess.run(
                [*command, "--listen", f"{self.cluster.address}:0", *flags],
                env=self.cluster.environment,
                capture_output=True,
                text=True,
                timeout=WAIT,
            )
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    class_runner.main()
