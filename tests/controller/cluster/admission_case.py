"""A test case whose API server asks a controller's webhooks. That server reaches them by an address of this machine: it
has no Service's address to go by, as there is no network of pods."""
import json
import os
import time

from cluster_case import MANIFESTS
from controller_case import WAIT, ControllerCase
from api_client import Refused

KINDS = {"ValidatingWebhookConfiguration": "validator.trainer.kubeflow.org", "MutatingWebhookConfiguration": "defaulter.trainer.kubeflow.org"}


class AdmissionCase(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made = cls.cluster.kubectl("create", "-f", os.path.join(MANIFESTS, "base", "webhooks.yaml"), "--dry-run=client", "-o", "json")
        cls.configurations = json.loads(f"[{made}]".replace("\n}\n{", "\n},\n{"))
        cls.serve("one")
        cls.configure("one")

    @classmethod
    def serve(cls, name, *flags):
        """A controller with webhooks, ready."""
        port = cls.cluster.port(f"{name}-webhooks")
        child = cls.start_controller(name, "--webhook-listen", f"{cls.cluster.address}:{port}", *flags)
        cls.cluster.processes.await_url(name, f"http://{cls.cluster.address}:{cls.cluster.port(name)}/readyz", seconds=WAIT)
        return child

    @classmethod
    def url(cls, name):
        return f"https://{cls.cluster.address}:{cls.cluster.port(f'{name}-webhooks')}"

    @classmethod
    def configure(cls, name, **changes):
        """The configurations of the manifests, but for the way to the webhooks of the controller `name`."""
        for made in json.loads(json.dumps(cls.configurations)):
            for webhook in made["webhooks"]:
                webhook["clientConfig"] = {"url": cls.url(name) + webhook["clientConfig"]["service"]["path"]}
                webhook.update(changes)
            cls.cluster.kubectl("replace", "--force", "-f", "-", content=json.dumps(made))
        cls.await_webhooks()

    @classmethod
    def await_webhooks(cls):
        """Until the API server, too, knows of a configuration and its authority: it watches them as others do."""
        until = time.monotonic() + 5
        path = f"{cls.api.path('trainjobs')}?dryRun=All"
        while True:
            try:
                cls.api.ask("POST", path, {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "probe"},
                                           "spec": {"runtimeRef": {"name": "none"}}})
                told = "it asks nobody"
            except Refused as refused:
                if refused.status == 403:
                    return
                told = str(refused)
            if time.monotonic() > until:
                raise AssertionError(f"the API server does not ask the webhooks: {told}; the controller says: {open(cls.cluster.processes.log('one')).read()}")

    def refused(self, status, *parts):
        """A context in which the API server refuses, with `parts` in its words."""
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
