# SPDX-License-Identifier: Apache-2.0
"""Certificates of the admission webhooks: the controller makes, replaces and repairs them."""

import base64
import os
import ssl
import urllib.parse

from admission_case import KINDS, AdmissionCase
from cluster_case import tries
from controller_case import ACCOUNT, TRUE, WAIT

import class_runner
from api_client import Refused
from scenario import runtime


class Certificates(AdmissionCase):
    """Replicas start and end, and certificates are deleted or damaged."""

    def secret(self):
        return self.api.get("secrets", "kubeflow-trainer-webhook-cert", ACCOUNT[0])

    def await_secret(self, wanted):
        return self.api.await_object("secrets", "kubeflow-trainer-webhook-cert", wanted, WAIT, ACCOUNT[0])

    def certificate_of(self, name):
        url = urllib.parse.urlsplit(self.url(name))
        return ssl.get_server_certificate((url.hostname, url.port))

    def served(self, name, wanted):
        """Waits until `name` serves with that certificate, of which it hears when the API server does."""
        for _ in tries():
            if self.certificate_of(name).strip() == wanted.strip():
                return
        self.fail(f"{name} serves with {self.certificate_of(name)}")

    def test_two_replicas_share_them(self):
        before = self.secret()
        self.serve("two")
        self.addCleanup(self.cluster.processes.stop, "two")
        self.assertEqual(self.secret()["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"])
        self.assertEqual(self.certificate_of("two"), self.certificate_of("one"))
        self.configure("two")  # this replica does not lead
        self.addCleanup(self.configure, "one")

    def test_what_is_spoilt_is_made_good(self):
        first = self.secret()["data"]
        # A deleted Secret comes back with the same certificates.
        self.api.ask("DELETE", self.api.path("secrets", "kubeflow-trainer-webhook-cert", namespace=ACCOUNT[0]))
        self.assertEqual(self.await_secret(lambda secret: True)["data"], first)
        # An unusable certificate is replaced by a new one of the same authority.
        self.api.ask(
            "PATCH",
            self.api.path("secrets", "kubeflow-trainer-webhook-cert", namespace=ACCOUNT[0]),
            {"data": {"tls.crt": first["ca.crt"]}},
            "application/merge-patch+json",
        )
        second = self.await_secret(lambda secret: secret["data"]["tls.crt"] not in (first["tls.crt"], first["ca.crt"]))[
            "data"
        ]
        self.assertEqual(second["ca.crt"], first["ca.crt"])
        self.served("one", base64.b64decode(second["tls.crt"]).decode())
        self.await_webhooks()
        # A removed caBundle is put back.
        for kind, name in KINDS.items():
            self.cluster.kubectl(
                "patch",
                kind,
                name,
                "--type=json",
                "-p",
                '[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]',
            )
            self.cluster.kubectl(
                "wait", f"{kind}/{name}", "--for=jsonpath={.webhooks[0].clientConfig.caBundle}", f"--timeout={WAIT}s"
            )
        self.await_webhooks()
        # A lost authority: a new one is made, and caBundle has both.
        self.api.ask(
            "PATCH",
            self.api.path("secrets", "kubeflow-trainer-webhook-cert", namespace=ACCOUNT[0]),
            {"data": {"ca.crt": "", "ca.key": ""}},
            "application/merge-patch+json",
        )
        third = self.await_secret(lambda secret: secret["data"].get("ca.crt") not in (None, "", first["ca.crt"]))[
            "data"
        ]
        self.served("one", base64.b64decode(third["tls.crt"]).decode())
        self.await_webhooks()
        # The API server may ask by a connection that is older than the new authority, so caBundle may come later.
        parts = [base64.b64decode(part["ca.crt"]) for part in (first, third)]
        self.cluster.await_object(
            "validatingwebhookconfiguration/validator.trainer.kubeflow.org",
            lambda made: all(
                part in base64.b64decode(made["webhooks"][0]["clientConfig"].get("caBundle", "")) for part in parts
            ),
        )

    def test_certificates_can_come_from_files(self):
        keys = self.cluster.certificates
        folder = os.path.join(self.cluster.folder, "webhook-certificates")
        os.makedirs(folder)

        def put(name):
            """Writes files as a Secret's volume does: links into a folder, which is replaced at once."""
            keys.serve(name, f"/CN={name}", [f"IP:{self.cluster.address}"])
            os.makedirs(os.path.join(folder, f"..{name}"))
            for kind in ("crt", "key"):
                os.symlink(keys.path(f"{name}.{kind}"), os.path.join(folder, f"..{name}", f"tls.{kind}"))
                if not os.path.islink(os.path.join(folder, f"tls.{kind}")):
                    os.symlink(os.path.join("..data", f"tls.{kind}"), os.path.join(folder, f"tls.{kind}"))
            os.symlink(f"..{name}", os.path.join(folder, "..new"))
            os.rename(os.path.join(folder, "..new"), os.path.join(folder, "..data"))
            with open(keys.path(f"{name}.crt")) as file:
                return file.read()

        first = put("first")
        self.serve("files", "--webhook-cert-dir", folder)
        self.addCleanup(self.cluster.processes.stop, "files")
        self.served("files", first)
        self.served("files", put("second"))

    def test_while_it_is_away(self):
        """The API server refuses what a webhook must check, and stores changes outside the spec. Without webhook
        configurations only the definitions check objects."""
        self.make("alone", runtime("", 1, container=TRUE), suspend=True)
        self.cluster.processes.stop("one")
        with self.refused(500, "failed calling webhook"):
            self.make("other")
        self.api.patch("trainjobs", "alone", {"metadata": {"finalizers": ["example.com/a"]}})
        self.api.patch("trainjobs", "alone", {"metadata": {"finalizers": None}})
        for kind, name in KINDS.items():
            self.cluster.kubectl("delete", kind, name)
        self.addCleanup(self.configure, "one")
        self.addCleanup(self.serve, "one")
        for spec in ({"runtimeRef": {"name": "other"}}, {"managedBy": "kueue.x-k8s.io/multikueue"}):
            with self.refused(422, "field is immutable"):
                for _ in tries():  # until the API server has heard of it
                    try:
                        self.patch("alone", spec)
                    except Refused as refused:
                        if refused.status != 500:
                            raise
        with self.refused(422, "storageUri may be empty, or it must be a valid URI"):
            self.make("other", initializer={"dataset": {"storageUri": "no-scheme"}})


if __name__ == "__main__":
    class_runner.main()
