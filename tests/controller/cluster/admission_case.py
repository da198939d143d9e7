# SPDX-License-Identifier: Apache-2.0
"""A test case whose API server calls a controller's webhooks. The API server reaches them by an address of this
machine: there is no network of pods, so a Service would lead nowhere."""

import json
import os

from cluster_case import MANIFESTS, tries
from controller_case import WAIT, ControllerCase

from api_client import Refused
from certificates import Certificates

KINDS = {
    "ValidatingWebhookConfiguration": "validator.trainer.kubeflow.org",
    "MutatingWebhookConfiguration": "defaulter.trainer.kubeflow.org",
}


class AdmissionCase(ControllerCase):
    CERTIFICATE = True  # the API server shows one, and the controller serves nobody else

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made = cls.cluster.kubectl(
            "create", "-f", os.path.join(MANIFESTS, "base", "webhooks.yaml"), "--dry-run=client", "-o", "json"
        )
        cls.configurations = json.loads(f"[{made}]".replace("\n}\n{", "\n},\n{"))
        cls.serve("one")
        cls.configure("one")

    @classmethod
    def prepare_cluster(cls):
        """The API server shows a certificate to webhooks, as docs/install.md says."""
        if not cls.CERTIFICATE:
            return
        cls.clients = Certificates(os.path.join(cls.cluster.folder, "webhook-clients"))
        cls.clients.issue("api-server", "/CN=api-server", "extendedKeyUsage=clientAuth")
        with open(cls.clients.path("webhooks.conf"), "w") as file:
            user = {
                "client-certificate": cls.clients.path("api-server.crt"),
                "client-key": cls.clients.path("api-server.key"),
            }
            json.dump({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}, file)
        with open(cls.clients.path("admission.yaml"), "w") as file:
            own = {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": file.name.replace("admission.yaml", "webhooks.conf"),
            }
            json.dump(
                {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "AdmissionConfiguration",
                    "plugins": [
                        {"name": name, "configuration": own}
                        for name in ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
                    ],
                },
                file,
            )
        flags = cls.cluster.flags
        cls.cluster.flags = {
            **flags,
            "apiserver": [
                *flags.get("apiserver", ()),
                f"--admission-control-config-file={cls.clients.path('admission.yaml')}",
            ],
        }

    @classmethod
    def serve(cls, name, *flags):
        """Starts a controller with webhooks; returns when it is ready."""
        port = cls.cluster.port(f"{name}-webhooks")
        clients = ("--webhook-client-ca", cls.clients.path("ca.crt")) if cls.CERTIFICATE else ()
        child = cls.start_controller(name, "--webhook-listen", f"{cls.cluster.address}:{port}", *clients, *flags)
        cls.cluster.processes.await_url(
            name, f"http://{cls.cluster.address}:{cls.cluster.port(name)}/readyz", seconds=WAIT
        )
        return child

    @classmethod
    def url(cls, name):
        return f"https://{cls.cluster.address}:{cls.cluster.port(f'{name}-webhooks')}"

    @classmethod
    def configure(cls, name, **changes):
        """Creates the webhook configurations of the manifests, with the URL of the controller `name`."""
        for made in json.loads(json.dumps(cls.configurations)):
            for webhook in made["webhooks"]:
                webhook["clientConfig"] = {"url": cls.url(name) + webhook["clientConfig"]["service"]["path"]}
                webhook.update(timeoutSeconds=30, **changes)  # the longest: the machine may be busy
            cls.cluster.kubectl("replace", "--force", "-f", "-", content=json.dumps(made))
        cls.await_webhooks()

    @classmethod
    def await_webhooks(cls):
        """Waits until the API server has heard, by a watch, of a configuration and its authority."""
        path = f"{cls.api.path('trainjobs')}?dryRun=All"
        for _ in tries():
            try:
                cls.api.ask(
                    "POST",
                    path,
                    {
                        "apiVersion": "trainer.kubeflow.org/v1alpha1",
                        "kind": "TrainJob",
                        "metadata": {"name": "probe"},
                        "spec": {"runtimeRef": {"name": "none"}},
                    },
                )
                told = "it asks nobody"
            except Refused as refused:
                if refused.status == 403:
                    return
                told = str(refused)
        raise AssertionError(
            f"the API server does not ask the webhooks: {told}; "
            f"the controller says: {open(cls.cluster.processes.log('one')).read()}"
        )

    def refused(self, status, *parts):
        """A context that expects a refusal by the API server with `status` and `parts` in its message."""
        case = self

        class Expected:
            def __enter__(self):
                return self

            def __exit__(self, kind, error, _):
                case.assertIs(kind, Refused, "it was accepted" if kind is None else error)
                case.assertEqual(error.status, status, error)
                for part in parts:
                    case.assertIn(part, json.loads(str(error).partition(": ")[2])["message"])
                return True

        return Expected()
