# SPDX-License-Identifier: Apache-2.0
"""The webhooks' certificates at the end of their lives, as in an installation that did not run for a long time."""

import base64
import datetime
import json
import os
import ssl
import subprocess
import urllib.parse

from admission_case import KINDS, AdmissionCase
from cluster_case import tries
from controller_case import ACCOUNT, TRUE, WAIT

import class_runner
from scenario import runtime

SECRET = "kubeflow-trainer-webhook-cert"
SERVICE = f"{ACCOUNT[1]}.{ACCOUNT[0]}.svc"
DAYS = 365
# For `openssl ca`, the only command of OpenSSL that signs for a time in the past.
CONFIG = """[ca]
default_ca = own
[own]
new_certs_dir = {folder}
database = {folder}/index
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
copy_extensions = none
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:{service},IP:{address}
"""


def days(number):
    """The time `number` days from now, in the format of `openssl ca`."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=number)).strftime("%Y%m%d%H%M%SZ")


class Certificate:
    """A certificate from `begin` to `end`, in days from now: a new authority, or signed by `authority`."""

    def __init__(self, case, begin, end, authority=None):
        kind = "server" if authority else "authority"
        self.folder = os.path.join(case.cluster.folder, f"{kind}-{case.next_number()}")
        os.makedirs(self.folder)
        for name, text in (
            ("index", ""),
            ("config", CONFIG.format(folder=self.folder, service=SERVICE, address=case.cluster.address)),
        ):
            with open(self.path(name), "w") as file:
                file.write(text)
        self.openssl(
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            self.path("key"),
            "-subj",
            f"/CN={SERVICE if authority else 'muster-webhook-ca'}",
            "-out",
            self.path("request"),
        )
        signer = (
            ("-cert", authority.path("crt"), "-keyfile", authority.path("key"))
            if authority
            else ("-selfsign", "-keyfile", self.path("key"))
        )
        self.openssl(
            "ca",
            "-batch",
            "-notext",
            "-config",
            self.path("config"),
            "-extensions",
            kind,
            *signer,
            "-startdate",
            days(begin),
            "-enddate",
            days(end),
            "-in",
            self.path("request"),
            "-out",
            self.path("crt"),
        )

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def openssl(*arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return base64.b64encode(file.read()).decode()


def data_of(authority, server):
    return {
        "ca.crt": authority.read("crt"),
        "ca.key": authority.read("key"),
        "tls.crt": server.read("crt"),
        "tls.key": server.read("key"),
    }


class ExpiredCertificates(AdmissionCase):
    numbers = 0

    @classmethod
    def next_number(cls):
        cls.numbers += 1
        return cls.numbers

    def put(self, data):
        """Writes the Secret, whether it exists or not."""
        made = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": SECRET, "namespace": ACCOUNT[0]},
            "data": data,
        }
        self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", content=json.dumps(made))

    def trust(self, bundle):
        """Makes the API server trust only `bundle`."""
        for kind, name in KINDS.items():
            count = len(self.cluster.get(kind, name)["webhooks"])
            change = [
                {"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": bundle}
                for number in range(count)
            ]
            self.cluster.kubectl("patch", kind, name, "--type=json", "-p", json.dumps(change))

    def started_with(self, authority, server):
        """Starts a controller with this Secret. Returns (data given, the Secret's data when all is served)."""
        self.cluster.processes.stop("one")
        given = data_of(authority, server)
        self.put(given)
        self.trust(given["ca.crt"])
        self.serve("one")
        self.await_webhooks()
        self.is_served()
        return given, self.secret()["data"]

    def changed(self, given):
        """Waits until the Secret differs from `given`, and returns its data."""
        return self.api.await_object("secrets", SECRET, lambda secret: secret["data"] != given, WAIT, ACCOUNT[0])[
            "data"
        ]

    def secret(self):
        return self.api.get("secrets", SECRET, ACCOUNT[0])

    def is_served(self):
        """Waits until the Secret's certificate is served. A job must pass both webhooks."""
        url = urllib.parse.urlsplit(self.url("one"))
        wanted = base64.b64decode(self.secret()["data"]["tls.crt"]).decode().strip()
        seen = None
        for _ in tries():  # the controller hears of the Secret when this test does
            seen = ssl.get_server_certificate((url.hostname, url.port)).strip()
            if seen == wanted:
                break
        self.assertEqual(seen, wanted)
        name = f"passes-{self.next_number()}"
        self.make(name, runtime("", 1, container=TRUE))
        self.running(name)

    def bundles(self):
        return [
            webhook["clientConfig"]["caBundle"]
            for kind, name in KINDS.items()
            for webhook in self.cluster.get(kind, name)["webhooks"]
        ]

    def test_a_certificate_that_has_expired(self):
        """A new one of the same authority, which is trusted already, replaces it."""
        authority = Certificate(self, -DAYS, 8 * DAYS)
        given, now = self.started_with(authority, Certificate(self, -DAYS, -1, authority))
        self.assertEqual((now["ca.crt"], now["ca.key"]), (given["ca.crt"], given["ca.key"]))
        self.assertNotEqual(now["tls.crt"], given["tls.crt"])
        self.assertEqual(set(self.bundles()), {given["ca.crt"]})

    def test_an_authority_that_has_expired(self):
        """All certificates are replaced. The bundles have the new authority and not the old one."""
        authority = Certificate(self, -10 * DAYS, -1)
        given, now = self.started_with(authority, Certificate(self, -DAYS, -1, authority))
        for key in ("ca.crt", "ca.key", "tls.crt", "tls.key"):
            self.assertNotEqual(now[key], given[key], key)
        self.assertEqual(set(self.bundles()), {now["ca.crt"]})

    def test_an_authority_that_has_expired_before_its_certificate(self):
        """OpenSSL signs certificates that outlive the authority."""
        authority = Certificate(self, -10 * DAYS, -1)
        given, now = self.started_with(authority, Certificate(self, -1, DAYS, authority))
        self.assertNotEqual(now["ca.crt"], given["ca.crt"])
        self.assertNotEqual(now["tls.crt"], given["tls.crt"])
        self.assertEqual(set(self.bundles()), {now["ca.crt"]})

    def test_what_is_not_valid_yet(self):
        """The certificates were made on a machine whose clock was ahead."""
        authority = Certificate(self, 1, 10 * DAYS)
        given, now = self.started_with(authority, Certificate(self, 1, DAYS, authority))
        self.assertNotEqual(now["ca.crt"], given["ca.crt"])
        for bundle in self.bundles():  # it may become valid, and replicas may serve with it
            self.assertEqual(
                base64.b64decode(bundle), base64.b64decode(now["ca.crt"]) + base64.b64decode(given["ca.crt"])
            )

    def test_what_ends_while_the_controller_runs(self):
        """In the last third of its life the certificate, then the authority, is replaced by the running controller."""
        controller = self.cluster.processes.children["one"]
        authority = Certificate(self, -DAYS, 8 * DAYS)
        self.trust(authority.read("crt"))
        seen = []
        for next_authority, server in ((authority, (-DAYS, 1)), (Certificate(self, -10 * DAYS, 30), (-1, DAYS))):
            given = data_of(next_authority, Certificate(self, *server, next_authority))
            self.put(given)
            now = self.changed(given)
            self.assertEqual(now["ca.key"], given["ca.key"])
            seen.append([key for key in given if now[key] != given[key]])
            self.await_webhooks()
            self.is_served()
        self.assertEqual(seen, [["tls.crt", "tls.key"], ["ca.crt"]])  # the renewed authority has the same key
        self.assertIsNone(controller.poll())
        self.assertIs(self.cluster.processes.children["one"], controller)

    def test_its_time_comes(self):
        """Two thirds of the certificate's life are over in seconds. Then the controller renews it by its own timer."""
        authority = Certificate(self, -DAYS, 8 * DAYS)
        seconds = 10 / 86400
        given = data_of(
            authority, Certificate(self, -20 * seconds, 11 * seconds, authority)
        )  # renewed at 2/3 of 310 s: in 6.7 s
        self.put(given)
        self.assertEqual(self.changed(given)["ca.crt"], given["ca.crt"])
        self.await_webhooks()
        self.is_served()


if __name__ == "__main__":
    class_runner.main()
