# SPDX-License-Identifier: Apache-2.0
"""A client of the API server with an administrator's rights, in this process: hundreds of kubectl take minutes."""

import contextlib
import http.client
import json
import math
import ssl
import time
import urllib.parse

TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
ROOTS = {
    "trainjobs": TRAINER,
    "trainingruntimes": TRAINER,
    "jobs": "/apis/batch/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "horizontalpodautoscalers": "/apis/autoscaling/v2",
    "pytorchjobs": "/apis/kubeflow.org/v1",
    "workloads": "/apis/scheduling.k8s.io/v1alpha2",
    "podgroups": "/apis/scheduling.k8s.io/v1alpha2",
}
MERGE = "application/merge-patch+json"
WAIT = 180  # s; for events that usually take a second
QUIET = 5  # s, between two looks at a list that does not change


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

    def _ask(self, method, path, body=None, content="application/json", seconds=WAIT, accept="application/json"):
        """Retries when the server asks for it. A server that is starting does so for about a second."""
        until = time.monotonic() + seconds
        while True:
            connection = http.client.HTTPSConnection(
                self.upstream.hostname, self.upstream.port, context=self.context, timeout=seconds
            )
            connection.request(
                method,
                path,
                body if body is None or isinstance(body, str) else json.dumps(body),
                {"Content-Type": content, "Accept": accept},
            )
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

    def raw(self, path, accept):
        """The bytes of an answer in another encoding."""
        connection, answer = self._ask("GET", path, accept=accept)
        with contextlib.closing(connection):
            return answer.read()

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
        return self.ask(
            "DELETE",
            self.path(resource, name),
            {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy},
        )

    def events(self, resource, selector="", name=None, seconds=WAIT, namespace=None):
        """Yields (type, object) of what exists, then of changes, for `seconds`."""
        fields = f"metadata.name={name}" if name else ""
        return self._watch(resource, {"labelSelector": selector, "fieldSelector": fields}, seconds, namespace)

    def _watch(self, resource, query, seconds, namespace=None):
        query = {**query, "watch": "true", "timeoutSeconds": str(seconds)}
        path = self.path(resource, namespace=namespace)
        connection, answer = self._ask("GET", f"{path}?{urllib.parse.urlencode(query)}", seconds=seconds + WAIT)
        try:
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(event["object"].get("code", 0), str(event["object"]))
                yield event["type"], event["object"]
        finally:
            connection.close()

    def states(self, resource, selector="", fields="", seconds=WAIT):
        """Yields the items of a list, by name: at once, after each change, and every few seconds. Ends after
        `seconds`."""
        until, query = time.monotonic() + seconds, {"labelSelector": selector, "fieldSelector": fields}
        while time.monotonic() < until:
            listed = self.ask("GET", f"{self.path(resource)}?{urllib.parse.urlencode(query)}")
            items = {item["metadata"]["name"]: item for item in listed["items"]}
            yield list(items.values())
            try:
                for kind, item in self._watch(
                    resource, {**query, "resourceVersion": listed["metadata"]["resourceVersion"]}, QUIET
                ):
                    if kind == "DELETED":
                        items.pop(item["metadata"]["name"], None)
                    else:
                        items[item["metadata"]["name"]] = item
                    yield [items[name] for name in sorted(items)]
                    if time.monotonic() > until:
                        return
            except Refused as refused:
                if refused.status != 410:  # 410: the server has forgotten that version of the list
                    raise

    def await_object(self, resource, name, wanted, seconds=WAIT, namespace=None):
        last, until = None, time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:  # the server may end a watch early
            for kind, last in self.events(resource, name=name, seconds=math.ceil(left), namespace=namespace):
                if kind != "DELETED" and wanted(last):
                    return last
                if time.monotonic() > until:
                    break
        raise AssertionError(
            f"{resource}/{name} did not become what was awaited within {seconds} s; it was last "
            f"{json.dumps((last or {}).get('status'))}"
        )

    def await_items(self, resource, selector, wanted, seconds=WAIT):
        """The items of a list when they are as `wanted`."""
        items = []
        for items in self.states(resource, selector, seconds=seconds):
            if wanted(items):
                return items
        raise AssertionError(
            f"{resource} with {selector} did not become what was awaited within {seconds} s; they were last "
            f"{json.dumps([{'metadata': item['metadata'], 'status': item.get('status')} for item in items])}"
        )

    def await_gone(self, resource, name, seconds=WAIT):
        for items in self.states(resource, fields=f"metadata.name={name}", seconds=seconds):
            if not items:
                return
        raise AssertionError(f"{resource}/{name} is still there after {seconds} s")

    def about(self, name):
        """The Events about objects of that name. They are written after what they tell of, and may still come."""
        return self.ask("GET", f"{self.path('events')}?fieldSelector=involvedObject.name={name}")["items"]

    def await_event(self, name, *reasons, words=""):
        """Waits for an Event about an object of that name with one of `reasons`, and `words` in its message. Returns
        it."""
        found = []
        for found in self.states("events", fields=f"involvedObject.name={name}"):
            for event in found:
                if event["reason"] in reasons and words in event["message"]:
                    return event
        told = [(event["reason"], event["message"]) for event in found]
        raise AssertionError(
            f"there is no Event {' or '.join(reasons)} about {name} that says {words!r}; there are {told}"
        )
