# SPDX-License-Identifier: Apache-2.0
"""The lab's own promises: several real nodes reach each other's pods, and each fault of a node or a link is one."""

import json
import subprocess

from images import BUSYBOX
from network import CONTROL_PLANE
from scenario import Scenario, shell

SERVE = "mkdir /tmp/www && echo hello >/tmp/www/index.html && exec httpd -f -p 7000 -h /tmp/www"


class Nodes(Scenario):
    def setUp(self):
        super().setUp()
        self.first, self.second, self.third = self.enterContext(self.nodes.several(3))
        self.create(*(self.pod(node) for node in (self.first, self.second, self.third)))
        self.addresses = {node: self.ready(node)["status"]["podIP"] for node in (self.first, self.second, self.third)}

    def pod(self, node):
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": node.name},
            "spec": {
                "nodeName": node.name,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "serve", "image": BUSYBOX, "command": shell(SERVE)}],
            },
        }

    def ready(self, node):
        return self.cluster.await_object(
            f"pod/{node.name}",
            lambda pod: (
                {"type": "Ready", "status": "True"}.items()
                <= next((each for each in pod["status"].get("conditions", []) if each["type"] == "Ready"), {}).items()
            ),
            self.namespace,
        )

    def reaches(self, source, target):
        """Whether one node gets an answer from the pod of another within two seconds."""
        ask = ["curl", "-s", "--noproxy", "*", "-m", "2", f"http://{self.addresses[target]}:7000/"]
        return subprocess.run(source.inside(ask), capture_output=True, text=True).stdout == "hello\n"

    def test_a_link_is_cut(self):
        network = self.nodes.place.network
        self.assertTrue(self.reaches(self.first, self.second))
        network.cut(self.first.name, self.second.name)
        self.assertFalse(self.reaches(self.first, self.second))
        self.assertFalse(self.reaches(self.second, self.first))
        self.assertTrue(self.reaches(self.third, self.second))
        network.mend(self.first.name)
        self.assertTrue(self.reaches(self.first, self.second))

    def test_a_node_is_frozen(self):
        self.second.freeze()
        self.assertFalse(self.reaches(self.first, self.second))
        self.second.thaw()
        self.assertTrue(self.reaches(self.first, self.second))

    def test_a_node_loses_its_power(self):
        """Nothing of it runs, its pods start again after it is back, and the other nodes' pods never end."""
        self.third.kill()
        self.assertEqual(self.third.processes_in_pods("httpd"), [])
        self.assertFalse(self.reaches(self.first, self.third))
        self.third.restart()
        again = self.cluster.await_object(
            f"pod/{self.third.name}",
            lambda pod: (
                [status["restartCount"] for status in pod["status"]["containerStatuses"]] == [1]
                and pod["status"]["containerStatuses"][0]["ready"]
            ),
            self.namespace,
        )
        self.addresses[self.third] = again["status"]["podIP"]
        self.assertTrue(self.reaches(self.first, self.third))
        pods = self.cluster.get("pods", "-n", self.namespace)["items"]
        self.assertEqual(
            [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods], [0, 0, 1], json.dumps(pods)
        )

    def test_a_node_does_not_reach_the_control_plane(self):
        """Its pods run on, and the others reach them."""
        self.nodes.place.network.cut(self.second.name, CONTROL_PLANE)
        self.cluster.await_object(
            f"node/{self.second.name}",
            lambda node: any(
                condition["type"] == "Ready" and condition["status"] == "Unknown"
                for condition in node["status"]["conditions"]
            ),
        )
        self.assertTrue(self.reaches(self.first, self.second))
