# SPDX-License-Identifier: Apache-2.0
"""A machine is gone while a job trains on it. By the agents' word its pod moves, before Kubernetes notices."""

import os
import time

from await_file import await_file
from pytorch_jobs import LABEL, PyTorchJobs, pytorch_job
from scenario import Scenario, runtime, shell, train_job

# Each start of a rank leaves a file start-RANK-NUMBER with the node and the moment.
WORKER = """
number=0; while [ -e /shared/start-$RANK-$number ]; do number=$((number + 1)); done
echo "$NODE $(cut -d ' ' -f 1 /proc/uptime)" > /shared/begun-$RANK
mv /shared/begun-$RANK /shared/start-$RANK-$number
until [ -e /shared/end ]; do sleep 0.1; done
"""
CONTAINER = {
    "command": ["torchrun", "--no-python", *shell(WORKER)],
    "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
}


def uptime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Losses(Scenario):
    """Training of which a node is lost."""

    def setUp(self):
        super().setUp()
        self.nodes_here = {node.name: node for node in self.enterContext(self.nodes.several(3))}

    def pod(self, label, avoids=()):
        """Fields of a pod that runs on another node than its peers, and on none of `avoids`."""
        spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
        rule = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [*avoids, "none"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
        return {
            "volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}],
            "topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": label}}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "terminationGracePeriodSeconds": 1,
        }

    def started(self, rank, number, seconds=120):
        """(node, moment) of a start."""
        path = os.path.join(self.shared(), f"start-{rank}-{number}")
        await_file(path, seconds)
        with open(path) as file:
            node, moment = file.read().split()
        return node, float(moment)

    def all_started(self, ranks, number):
        return [self.started(rank, number) for rank in ranks]

    def lose(self, name, power=False):
        """Kills the node. Returns the moment."""
        moment = uptime()
        self.nodes_here[name].kill(power)
        return moment

    def end(self):
        with open(os.path.join(self.shared(), "end"), "w"):
            pass

    def a_peer_of(self, starts, away_from="node-0"):
        """A rank other than 0 that does not run on the node of the controller."""
        return next(rank for rank, (node, _) in enumerate(starts) if rank and node != away_from)


class LostNode(Losses):
    def train(self, nodes, avoids=(), **policy):
        torch = {"numProcPerNode": 1, **policy}
        pod = self.pod({"jobset.sigs.k8s.io/jobset-name": "lost"}, avoids)
        made = runtime("lost", None if policy else nodes, {"torch": torch}, container=CONTAINER, pod=pod)
        self.create(made, train_job("lost", "lost", trainer={"numNodes": nodes}))

    def check_end(self, lost, pods):
        """The TrainJob succeeds without a charged restart, and one new pod was made."""
        self.end()
        job = self.finished("lost")
        self.condition(job, "Complete")
        self.assertEqual((job["status"].get("restarts", 0), job["status"].get("failures", [])), (0, []), job["status"])
        events = self.cluster.get("events", "-n", self.namespace, "--field-selector", "reason=PodLost")["items"]
        self.assertEqual(len(events), 1, events)
        self.assertRegex(events[0]["message"], rf"^the agents have lost pod \S+ \(node {lost}\): ")
        made = self.cluster.get("pods", "-n", self.namespace)["items"]
        self.assertEqual(len(made), pods + 1, "one word, one new pod")

    def move_a_peer(self, power):
        self.train(3)
        starts = self.all_started(range(3), 0)
        lost, _ = starts[self.a_peer_of(starts)]
        moment = self.lose(lost, power)
        again = self.all_started(range(3), 1)
        self.assertNotIn(lost, [node for node, _ in again])
        self.check_end(lost, 3)
        return max(moment for _, moment in again) - moment

    def test_its_connections_close(self):
        """The table has the time from the end of the machine to the last worker of the next attempt."""
        self.remark = f"{self.move_a_peer(power=False):.1f} s to the next attempt elsewhere"

    def test_it_loses_its_power(self):
        """No packet says so: the agents wait for the silence."""
        self.remark = f"{self.move_a_peer(power=True):.1f} s to the next attempt elsewhere"

    def test_the_coordinators(self):
        """The other node stands in, and its agent is asked."""
        self.train(2, avoids=["node-0"])
        lost, _ = self.all_started(range(2), 0)[0]
        moment = self.lose(lost)
        again = self.all_started(range(2), 1)
        self.assertNotIn(lost, [node for node, _ in again])
        self.check_end(lost, 2)
        self.remark = f"{max(at for _, at in again) - moment:.1f} s to the next attempt elsewhere"

    def test_an_elastic_job_goes_on(self):
        self.train(3, elasticPolicy={"minNodes": 1, "maxNodes": 3})
        starts = self.all_started(range(3), 0)
        lost, _ = starts[self.a_peer_of(starts)]
        moment = self.lose(lost)
        without = self.all_started(range(2), 1)
        with_it = [*self.all_started(range(2), 2), self.started(2, 1)]
        self.assertNotIn(lost, [node for node, _ in with_it])
        self.check_end(lost, 3)
        self.remark = (
            f"{max(at for _, at in without) - moment:.2f} s to the attempt without it, "
            f"{max(at for _, at in with_it) - moment:.1f} s to the one with its replacement"
        )


class LostNodeOfAPyTorchJob(Losses, PyTorchJobs):
    def test_a_worker_moves(self):
        """The new pod gets the name of the lost one."""
        pod = self.pod({LABEL + "job-name": "lost"})
        self.create(pytorch_job("lost", 2, CONTAINER, pod=pod, annotations={"muster.dev/restart": "job"}, processes=1))
        starts = self.all_started(range(3), 0)
        rank = self.a_peer_of(starts)
        lost, _ = starts[rank]
        moment = self.lose(lost)
        again = self.all_started(range(3), 1)
        self.assertNotIn(lost, [node for node, _ in again])
        self.end()
        self.assertEqual(self.succeeded("lost").get("restarts", 0), 0)
        self.remark = f"{max(at for _, at in again) - moment:.1f} s to the next attempt elsewhere"
