# SPDX-License-Identifier: Apache-2.0
"""Commands in busybox, with and without the agent."""

import json

from images import NONROOT
from processes import WAIT
from scenario import Scenario, runtime, shell, train_job

OFF = {"muster.dev/agent": "off"}
HELLO = shell('echo "index $JOB_COMPLETION_INDEX of $(hostname)"')
# Each node finds the other by its name, through the headless Service.
PEERS = shell(
    'for i in 0 1; do until nslookup -type=a "$HOSTNAME_OF_ALL-$i.$SUBDOMAIN.$NAMESPACE.svc.cluster.local"; '
    "do sleep 1; done; done; echo found"
)
THREE = shell('[ "$JOB_COMPLETION_INDEX" = 0 ] && exec sleep 600; echo "about to fail" >&2; exit 3')
# SIGTERM does not end the first process of a container, so its pod takes the whole grace period to end.
ONCE = {"pod": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}, "job": {"backoffLimit": 0}}


class Plain(Scenario):
    def completes(self, annotations):
        self.create(
            runtime("hello", 2, container={"command": HELLO}, annotations=annotations), train_job("hello", "hello")
        )
        job = self.finished("hello")
        self.assertEqual(self.condition(job, "Complete"), ("AllJobsCompleted", "jobset completed successfully"))
        self.assertEqual(
            job["status"]["jobsStatus"],
            [{"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}],
        )
        self.assertEqual(
            (job["status"]["state"], job["status"]["nodes"], job["status"]["restarts"]), ("Complete", 2, 0)
        )
        logs = self.logs("hello")
        for rank in range(2):
            self.assertIn(f"index {rank} of hello-node-0-{rank}", logs[rank])

    def test_two_nodes_without_agent(self):
        self.completes(OFF)

    def test_two_nodes_with_agent(self):
        self.completes({})

    def test_a_pod_that_may_not_be_root(self):
        """No user is named: that of the images counts, in the agent's init container, too."""
        only = {"securityContext": {"runAsNonRoot": True}}
        own = {"image": NONROOT, "command": shell("id -u; ls -ln /muster-agent/muster")}
        self.create(runtime("nonroot", 1, container=own, pod=only), train_job("nonroot", "nonroot"))
        self.condition(self.finished("nonroot"), "Complete")
        self.assertRegex(self.logs("nonroot")[0], r"(?s)^65532\n\S+ +1 65532 .*/muster-agent/muster")

    def test_the_jobs_own_command(self):
        self.create(
            runtime("any", 1),
            train_job("mine", "any", trainer={"numNodes": 2, "command": HELLO, "env": [{"name": "A", "value": "b"}]}),
        )
        job = self.finished("mine")
        self.condition(job, "Complete")
        self.assertEqual(job["status"]["nodes"], 2)

    def test_a_volume_that_comes_late(self):
        """The kubelet cannot mount it for longer than a pod may be without a sandbox that it has had. The pod stays."""
        late = {"name": "late", "configMap": {"name": "late"}}
        mount = {"name": "late", "mountPath": "/late"}
        self.create(
            runtime(
                "late",
                1,
                {},
                {"volumes": [late]},
                container={"command": shell("cat /late/word"), "volumeMounts": [mount]},
            ),
            train_job("late", "late"),
        )
        self.cluster.await_object(
            "job/late-node-0", lambda job: job.get("status", {}).get("active") == 1, self.namespace
        )
        [pod] = self.pods_of("late")
        about = ["--field-selector", f"involvedObject.uid={pod['metadata']['uid']},reason=FailedMount"]
        self.cluster.kubectl("wait", "--for=create", "events", *about, "-n", self.namespace, f"--timeout={WAIT}s")
        [event] = self.cluster.get("events", *about, "-n", self.namespace)["items"]
        # The kubelet's pauses double from half a second: the sixth time is after half a minute.
        self.cluster.await_object(
            f"event/{event['metadata']['name']}", lambda event: event.get("count", 1) >= 6, self.namespace
        )
        [same] = self.pods_of("late")
        self.assertEqual(same["metadata"]["uid"], pod["metadata"]["uid"])
        self.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}, "data": {"word": "here"}})
        self.condition(self.finished("late"), "Complete")
        self.assertIn("here", self.logs("late")[0])

    def test_a_configmap_that_is_edited(self):
        """What the pods need of it is put back, and the pod that waits for it starts."""
        name = "edited-tls-config"
        held = {"name": "held", "configMap": {"name": "held"}}
        mount = {"name": "held", "mountPath": "/held"}
        self.create(
            runtime(
                "edited", 1, {}, {"volumes": [held]}, container={"command": shell("true"), "volumeMounts": [mount]}
            ),
            train_job("edited", "edited"),
        )
        whole = self.cluster.await_object(
            f"configmap/{name}", lambda made: made.get("data", {}).get("ca.crt"), self.namespace
        )
        for change in ({"data": {"ca.crt": None}}, {"data": {"ca.crt": "edited by hand"}}):
            self.cluster.kubectl(
                "patch", "configmap", name, "-n", self.namespace, "--type=merge", "-p", json.dumps(change)
            )
            self.cluster.await_object(
                f"configmap/{name}", lambda made: made.get("data") == whole["data"], self.namespace
            )
        self.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held"}, "data": {}})
        self.condition(self.finished("edited"), "Complete")

    def test_names_of_peers(self):
        environment = [
            {"name": "HOSTNAME_OF_ALL", "value": "peers-node-0"},
            {"name": "SUBDOMAIN", "value": "peers"},
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ]
        self.create(
            runtime("peers", 2, container={"command": PEERS, "env": environment}, annotations=OFF),
            train_job("peers", "peers"),
        )
        self.condition(self.finished("peers"), "Complete")
        self.assertTrue(all("found" in log for log in self.logs("peers")))

    def test_failure_without_agent(self):
        self.create(
            runtime("three", 2, container={"command": THREE}, annotations=OFF, **ONCE), train_job("three", "three")
        )
        job = self.finished("three")
        reason, message = self.condition(job, "Failed")
        self.assertEqual(reason, "FailedJobs")
        self.assertRegex(
            message,
            r"^jobset failed due to one or more job failures \(first failed job: three-node-0\): "
            r"node 1: pod three-node-0-1-\w+ \(node node-0\) ended with exit code 3; "
            r"see kubectl logs -n \S+ three-node-0-1-\w+ -c node$",
        )
        first = job["status"]["failures"][0]
        self.assertEqual((first["exitCode"], first["nodeRank"], first["node"]), (3, 1, self.node.name), first)

    def test_failure_with_agent(self):
        """A fatal exit code ends the job at once. The status names the node, the code and the last line of output."""
        self.create(runtime("three", 2, container={"command": THREE}), train_job("three", "three"))
        job = self.finished("three")
        self.condition(job, "Failed")
        self.assertEqual((job["status"]["state"], job["status"]["restarts"]), ("Failed", 0))
        first = job["status"]["failures"][0]
        self.assertEqual((first["exitCode"], first["nodeRank"]), (3, 1), first)
        self.assertIn("about to fail", first["message"])
        self.cluster.await_object(
            "job/three-node-0",
            lambda job: any(
                condition["type"] == "Failed" and condition["status"] == "True"
                for condition in job["status"].get("conditions", [])
            ),
            self.namespace,
        )
        self.assertIn("about to fail", self.cluster.kubectl("logs", first["pod"], "-n", self.namespace, "-c", "node"))

    def test_suspended_and_resumed(self):
        self.create(
            runtime("hello", 2, container={"command": HELLO}, annotations=OFF),
            train_job("later", "hello", suspend=True),
        )
        self.cluster.await_object(
            "trainjob/later",
            lambda job: any(
                condition["type"] == "Suspended" and condition["status"] == "True"
                for condition in job.get("status", {}).get("conditions", [])
            ),
            self.namespace,
        )
        self.assertEqual(self.cluster.get("pods", "-n", self.namespace)["items"], [])
        self.cluster.kubectl(
            "patch", "trainjob", "later", "-n", self.namespace, "--type=merge", "-p", '{"spec":{"suspend":false}}'
        )
        self.condition(self.finished("later"), "Complete")

    def test_unknown_runtime(self):
        """An API server without a client certificate learns at once of a cluster's runtime only (docs/security.md)."""
        of_cluster = train_job("early", "hello")
        of_cluster["spec"]["runtimeRef"]["kind"] = "ClusterTrainingRuntime"
        refused = self.cluster.try_kubectl("create", "-n", self.namespace, "-f", "-", content=json.dumps(of_cluster))
        self.assertEqual(refused.returncode, 1)
        self.assertIn(
            "spec.runtimeRef: Invalid value: 'hello': specified clusterTrainingRuntime must be created "
            "before the TrainJob is created",
            refused.stderr,
        )
        self.create(train_job("early", "hello"))
        job = self.cluster.await_object(
            "trainjob/early", lambda job: job.get("status", {}).get("message"), self.namespace
        )
        self.assertIn("hello", job["status"]["message"])
        self.create(runtime("hello", 1, container={"command": HELLO}))
        self.condition(self.finished("early"), "Complete")

    def test_a_secret_that_comes_later(self):
        container = {"command": HELLO, "envFrom": [{"secretRef": {"name": "keys"}}]}
        self.create(runtime("hello", 1, container=container), train_job("waits", "hello"))
        job = self.cluster.await_object(
            "trainjob/waits", lambda job: job.get("status", {}).get("state") == "Waiting", self.namespace
        )
        self.assertEqual(job["status"]["reason"], "CreateContainerConfigError")
        self.assertIn('secret "keys" not found', job["status"]["message"])
        self.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"A": "b"}})
        self.condition(self.finished("waits"), "Complete")
