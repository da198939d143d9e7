# SPDX-License-Identifier: Apache-2.0
"""A fake metrics server, MetricsServer(cluster, api): serves metrics.k8s.io and external.metrics.k8s.io with values
that a test sets. A HorizontalPodAutoscaler decides by them.

The API server reaches it by a Service of type ExternalName, so it has to run with --enable-aggregator-routing=false.
`asked`: the paths, with their queries, that were read.
"""

import base64
import http.server
import json
import ssl
import threading
import time
import urllib.parse

from api_client import WAIT

NAME = "metrics"
GROUPS = {"metrics.k8s.io": "pods", "external.metrics.k8s.io": "externalmetrics"}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class MetricsServer:
    def __init__(self, cluster, api):
        self.cluster, self.api = cluster, api
        self.cpu = "0"  # of each pod
        self.external = {}  # value by name
        self.asked = []
        keys = cluster.certificates
        keys.serve(NAME, f"/CN={NAME}", [f"DNS:{NAME}.{api.namespace}.svc"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys.path(f"{NAME}.crt"), keys.path(f"{NAME}.key"))
        self.server = http.server.ThreadingHTTPServer((cluster.address, 0), self.handler())
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        with open(keys.path("ca.crt"), "rb") as file:
            bundle = base64.b64encode(file.read()).decode()
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME, "namespace": api.namespace},
            "spec": {"type": "ExternalName", "externalName": cluster.address},
        }
        cluster.apply(
            [
                service,
                *(
                    {
                        "apiVersion": "apiregistration.k8s.io/v1",
                        "kind": "APIService",
                        "metadata": {"name": f"v1beta1.{group}"},
                        "spec": {
                            "group": group,
                            "version": "v1beta1",
                            "groupPriorityMinimum": 100,
                            "versionPriority": 100,
                            "caBundle": bundle,
                            "service": {"name": NAME, "namespace": api.namespace, "port": self.server.server_port},
                        },
                    }
                    for group in GROUPS
                ),
            ]
        )
        cluster.kubectl(
            "wait",
            "--for=condition=Available",
            f"--timeout={WAIT}s",
            *(f"apiservice/v1beta1.{group}" for group in GROUPS),
        )

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, query):
        """The answer to a GET; None: 404."""
        group, _, rest = path.removeprefix("/apis/").partition("/v1beta1")
        if group not in GROUPS:
            return None
        if not rest:
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{group}/v1beta1",
                "resources": [
                    {
                        "name": GROUPS[group],
                        "singularName": "",
                        "namespaced": True,
                        "kind": "PodMetrics",
                        "verbs": ["get", "list"],
                    }
                ],
            }
        self.asked.append(f"{path}?{query}")
        selector = urllib.parse.parse_qs(query).get("labelSelector", [""])[0]
        items = self.of_pods(selector) if group == "metrics.k8s.io" else self.of_name(rest.rpartition("/")[2])
        return {
            "kind": "PodMetricsList" if group == "metrics.k8s.io" else "ExternalMetricValueList",
            "apiVersion": f"{group}/v1beta1",
            "metadata": {},
            "items": items,
        }

    def of_pods(self, selector):
        return [
            {
                "metadata": {"name": pod["metadata"]["name"], "namespace": self.api.namespace},
                "timestamp": now(),
                "window": "1s",
                "containers": [{"name": "node", "usage": {"cpu": self.cpu, "memory": "1Mi"}}],
            }
            for pod in self.api.items("pods", selector)
            if pod["status"]["phase"] == "Running"
        ]

    def of_name(self, name):
        return (
            [{"metricName": name, "metricLabels": {}, "timestamp": now(), "value": self.external[name]}]
            if name in self.external
            else []
        )

    def handler(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path, _, query = self.path.partition("?")
                found = owner.answer(path, query)
                body = json.dumps(
                    found or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
                ).encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler
