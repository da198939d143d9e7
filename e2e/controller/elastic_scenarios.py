# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs: the first round starts without waiting for more nodes, and `kubectl scale` works while they run."""

import os
import re

from scenario import Scenario, runtime, shell, train_job

UP = 'up() { cut -d " " -f 1 /proc/uptime; }\n'
BEGIN = UP + 'up > /shared/begin-$JOB_COMPLETION_INDEX\nexec torchrun --no-python sh -c "$WORKER"'
WORKER = (
    UP + 'echo "world $WORLD_SIZE $(up)"\n: > /shared/world-$WORLD_SIZE\nuntil [ -e /shared/end ]; do sleep 0.1; done'
)


class Elastic(Scenario):
    def test_scale(self):
        """The table has the times from the last pod's command to the last worker: in round 1, and with a third pod."""
        container = {
            "command": shell(BEGIN),
            "env": [{"name": "WORKER", "value": WORKER}],
            "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
        }
        policy = {"numNodes": None, "torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 4}, "numProcPerNode": 1}}
        self.create(
            runtime(
                "elastic",
                2,
                policy,
                container=container,
                pod={"volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}]},
            ),
            train_job("elastic", "elastic", trainer={"numNodes": 2}),
        )
        self.ready(2)
        first = self.worlds(2)
        for nodes in (3, 1):
            self.cluster.kubectl("scale", "trainjob/elastic", f"--replicas={nodes}", "-n", self.namespace)
            self.ready(nodes)
            self.cluster.kubectl(
                "exec",
                "-n",
                self.namespace,
                "job/elastic-node-0",
                "-c",
                "node",
                "--",
                *shell(f"until [ -e /shared/world-{nodes} ]; do sleep 0.1; done"),
            )
        with open(os.path.join(self.shared(), "end"), "w"):
            pass
        job = self.finished("elastic")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"].get("failures", [])), (0, []))
        said = self.worlds(1)
        # Pods join in one round. They may leave one after the other.
        self.assertRegex(" ".join(size for size, _ in said), r"^2 3( 2)? 1$")
        start, grown = (float(moment) for _, moment in said[:2])
        start = max(start, *(float(moment) for _, moment in first))
        self.remark = (
            f"{(start - max(self.begin(0), self.begin(1))) * 1000:.0f} ms to the first round, "
            f"{(grown - self.begin(2)) * 1000:.0f} ms to the round with a third pod"
        )

    def ready(self, nodes):
        self.cluster.await_object(
            "trainjob/elastic",
            lambda job: (
                (job.get("status", {}).get("nodes"), job["status"].get("readyNodes")) == (nodes, nodes)
                if "status" in job
                else False
            ),
            self.namespace,
            120,
        )
        self.cluster.await_object(
            "job/elastic-node-0",
            lambda job: job["status"].get("active") == job["status"].get("ready") == nodes,
            self.namespace,
            120,
        )

    def worlds(self, nodes):
        """[(size, moment)] of the rounds that the workers of the first `nodes` pods began."""
        logs = self.logs("elastic")
        self.assertEqual(len(logs), nodes)
        return [found for log in logs for found in re.findall(r"world (\d+) ([0-9.]+)", log)]

    def begin(self, index):
        with open(os.path.join(self.shared(), f"begin-{index}")) as file:
            return float(file.read())
