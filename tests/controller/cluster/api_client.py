"""A client of the API server with an administrator's rights, in this process: hundreds of kubectl take minutes."""
import http.client
import json
import ssl
import time
import urllib.parse

TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
ROOTS = {"trainjobs": TRAINER, "trainingruntimes": TRAINER, "jobs": "/apis/batch/v1", "leases": "/apis/coordination.k8s.io/v1", "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
         "horizontalpodautoscalers": "/apis/autoscaling/v2", "pytorchjobs": "/apis/kubeflow.org/v1"}
MERGE = "application/merge-patch+json"


class Refused(Exception):
    """`status`: the HTTP status. The text is the server's."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Api:
    def __init__(self, cluster, namespace):
        self.namespace = namespace
        self.upstream = urllib.parse.urlsplit(cluster.server)
        keys = cluster.certificates.path
        self.context = ssl.create_default_context(cafile=keys("ca.crt"))
        self.context.load_cert_chain(keys("admin.crt"), keys("admin.key"))

    def path(self, resource, name=None, subresource=None, namespace=None):
        parts = [ROOTS.get(resource, "/api/v1"), "namespaces", namespace or self.namespace, resource, name, subresource]
        return "/".join(part for part in parts if part)

    def _ask(self, method, path, body=None, content="application/json", seconds=60):
        """Retries when the server asks for it. A server that is starting does so for about a second."""
        until = time.monotonic() + seconds
        while True:
            connection = http.client.HTTPSConnection(self.upstream.hostname, self.upstream.port, context=self.context, timeout=seconds)
            connection.request(method, path, body if body is None or isinstance(body, str) else json.dumps(body),
                               {"Content-Type": content})
            answer = connection.getresponse()
            if answer.status < 300:
                return connection, answer
            text = answer.read(4096).decode(errors="replace")
            connection.close()
            if answer.status != 429 or time.monotonic() > until:
                raise Refused(answer.status, text)
            time.sleep(float(answer.headers.get("Retry-After", 1)))

    def ask(self, method, path, body=None, content="application/json"):
        connection, answer = self._ask(method, path, body, content)
        try:
            return json.load(answer)
        finally:
            connection.close()

    def get(self, resource, name, namespace=None):
        return self.ask("GET", self.path(resource, name, namespace=namespace))

    def find(self, resource, name):
        """The object; None: it does not exist."""
        try:
            return self.get(resource, name)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def items(self, resource, selector=""):
        return self.ask("GET", f"{self.path(resource)}?labelSelector={urllib.parse.quote(selector)}")["items"]

    def create(self, resource, made):
        """`made`: an object, or its JSON text."""
        return self.ask("POST", self.path(resource), made)

    def patch(self, resource, name, change, subresource=None):
        return self.ask("PATCH", self.path(resource, name, subresource), change, MERGE)

    def delete(self, resource, name, policy="Background"):
        return self.ask("DELETE", self.path(resource, name), {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})

    def events(self, resource, selector="", name=None, seconds=60, namespace=None, first=False):
        """Yields (type, object) of what exists, then of changes, for `seconds`. `first`: (None, None) before all."""
        if first:
            yield None, None
        fields = {"watch": "true", "labelSelector": selector, "timeoutSeconds": str(seconds)}
        if name:
            fields["fieldSelector"] = f"metadata.name={name}"
        path = self.path(resource, namespace=namespace)
        connection, answer = self._ask("GET", f"{path}?{urllib.parse.urlencode(fields)}", seconds=seconds + 10)
        try:
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(event["object"].get("code", 0), str(event["object"]))
                yield event["type"], event["object"]
        finally:
            connection.close()

    def await_object(self, resource, name, wanted, seconds=60, namespace=None):
        last, until = None, time.monotonic() + seconds
        for kind, last in self.events(resource, name=name, seconds=seconds, namespace=namespace):
            if kind != "DELETED" and wanted(last):
                return last
            if time.monotonic() > until:
                break
        raise AssertionError(f"{resource}/{name} did not become what was awaited within {seconds} s; it was last "
                             f"{json.dumps((last or {}).get('status'))}")

    def await_items(self, resource, selector, wanted, seconds=60):
        """The items of a list when they are as `wanted`."""
        items, until = [], time.monotonic() + seconds
        while time.monotonic() < until:  # the server ends the watch of a client that is slow, since its lists are large
            for _ in self.events(resource, selector, seconds=seconds, first=True):
                items = self.items(resource, selector)
                if wanted(items):
                    return items
                if time.monotonic() > until:
                    break
        raise AssertionError(f"{resource} with {selector} did not become what was awaited within {seconds} s; they were last "
                             f"{json.dumps([{'metadata': item['metadata'], 'status': item.get('status')} for item in items])}")

    def await_gone(self, resource, name, seconds=60):
        """Waits until the object is gone. A watch misses a deletion before its start, so each watch is short."""
        until = time.monotonic() + seconds
        while self.find(resource, name) is not None:
            if time.monotonic() > until:
                raise AssertionError(f"{resource}/{name} is still there after {seconds} s")
            for kind, _ in self.events(resource, name=name, seconds=2):
                if kind == "DELETED":
                    return
