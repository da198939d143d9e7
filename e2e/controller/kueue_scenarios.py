# SPDX-License-Identifier: Apache-2.0
"""The real Kueue and Muster together: Kueue reads the status of TrainJobs, and Muster does what Kueue asks for."""

import json

import kueue
from images import BUSYBOX
from processes import Broken
from scenario import INITIALIZER, Scenario, put_before, runtime, shell, train_job

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
NODE_LABEL = "kubernetes.io/os"  # of the flavour: admitted pods have it in their node selector
SHARED = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}


def is_suspended(job):
    return job["spec"].get("suspend") is True and job.get("status", {}).get("state") == "Suspended"


def is_running(job):
    return job.get("status", {}).get("state") == "Running"


def until(name):
    """A script that ends when the scenario calls let_go(name)."""
    return f"until [ -e /shared/{name} ]; do sleep 0.1; done"


def verdict(found, kind):
    """(status, reason) of an object's condition; (None, None): it has none of that type."""
    return next(
        (
            (each["status"], each["reason"])
            for each in found.get("status", {}).get("conditions", [])
            if each["type"] == kind
        ),
        (None, None),
    )


class Queued(Scenario):
    """All scenarios of a class use one Kueue. They are skipped if Kueue cannot be built."""

    configuration = {}  # fields of Kueue's configuration
    kueue = None

    def setUp(self):
        super().setUp()
        try:
            kueue.binary()
        except Broken as error:
            self.skipTest(str(error))
        if not self.kueue:  # a failure to start Kueue fails each scenario
            type(self).kueue = kueue.Kueue(self.cluster, **self.configuration)

    @classmethod
    def tearDownClass(cls):
        if cls.kueue:
            cls.kueue.stop()

    def queue(self, cpu, name="team", **spec):
        """Creates a LocalQueue and its ClusterQueue of so many CPUs. `spec`: further fields of the latter's spec."""
        flavor = {
            "apiVersion": kueue.API,
            "kind": "ResourceFlavor",
            "metadata": {"name": "linux"},
            "spec": {"nodeLabels": {NODE_LABEL: "linux"}},
        }
        quota = {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "linux", "resources": [{"name": "cpu", "nominalQuota": cpu}]}],
        }
        self.cluster.apply(
            [
                flavor,
                {
                    "apiVersion": kueue.API,
                    "kind": "ClusterQueue",
                    "metadata": {"name": name},
                    "spec": {"namespaceSelector": {}, "resourceGroups": [quota], **spec},
                },
            ]
        )
        self.create(
            {"apiVersion": kueue.API, "kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": name}}
        )

    def submit(self, name, script, nodes=2, initializer=None, queue="team", container=None, **spec):
        """Creates a TrainJob whose pods request 0.1 CPU each. `initializer`: the script of a step before the nodes."""
        resources = {"resources": {"requests": {"cpu": "100m"}}, **SHARED}
        pod = {"volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}]}
        made = runtime(name, nodes, container={"command": shell(script), **resources, **(container or {})}, pod=pod)
        if initializer:
            first = {
                "name": INITIALIZER,
                "image": BUSYBOX,
                "imagePullPolicy": "IfNotPresent",
                "command": shell(initializer),
                **resources,
            }
            put_before(made, INITIALIZER, {"containers": [first], **pod})
        job = train_job(name, name, trainer={"numNodes": nodes}, **spec)
        job["metadata"]["labels"] = {QUEUE_NAME: queue}
        self.create(made, job)

    def await_job(self, name, wanted):
        return self.cluster.await_object(f"trainjob/{name}", wanted, self.namespace)

    def workload(self, name):
        """The name of Kueue's Workload for the TrainJob. Call it when the TrainJob has a status."""
        found = [
            item["metadata"]["name"]
            for item in self.cluster.get(kueue.WORKLOADS, "-n", self.namespace)["items"]
            if item["metadata"]["ownerReferences"][0]["name"] == name
        ]
        self.assertEqual(len(found), 1, f"Kueue's Workloads for {name}")
        return f"{kueue.WORKLOADS}/{found[0]}"

    def await_workload(self, workload, wanted):
        return self.cluster.await_object(workload, wanted, self.namespace)

    def let_go(self, *names):
        for name in names:
            with open(f"{self.shared()}/{name}", "w"):
                pass

    def pods(self, name):
        return [pod for pod in self.pods_of(name) if "deletionTimestamp" not in pod["metadata"]]


class Kueue(Queued):
    def test_queued_admitted_evicted(self):
        self.queue("200m")
        self.submit("first", until("first"))
        self.await_job("first", is_running)
        self.submit("second", until("second"))
        self.await_job("second", is_suspended)
        self.assertEqual(self.pods("second"), [])
        # An eviction deletes the pods, and the next job in the queue gets the quota.
        workload = self.workload("first")
        self.cluster.kubectl(
            "patch", workload, "-n", self.namespace, "--type=merge", "-p", json.dumps({"spec": {"active": False}})
        )
        self.await_job("first", lambda job: is_suspended(job) and job["status"]["jobsStatus"][0]["active"] == 0)
        running = self.await_job("second", is_running)
        self.assertEqual([patch["manager"] for patch in running["spec"]["runtimePatches"]], ["kueue.x-k8s.io/manager"])
        self.assertEqual([pod["spec"]["nodeSelector"] for pod in self.pods("second")], [{NODE_LABEL: "linux"}] * 2)
        self.let_go("second", "first")
        self.condition(self.finished("second"), "Complete")
        self.cluster.kubectl(
            "patch", workload, "-n", self.namespace, "--type=merge", "-p", json.dumps({"spec": {"active": True}})
        )
        self.condition(self.finished("first"), "Complete")
        self.await_workload(workload, lambda found: verdict(found, "Finished")[0] == "True")

    def test_a_gang_of_kubernetes_in_a_queue(self):
        """Kueue decides when the pods are created; the scheduler then places them as a gang."""
        self.queue("200m")
        self.submit("gang", until("gang"), annotations={"muster.dev/gang": "native"}, suspend=True)
        self.await_job("gang", is_running)
        [group] = self.cluster.get("podgroups.scheduling.k8s.io", "-n", self.namespace)["items"]
        self.assertEqual(group["spec"]["schedulingPolicy"], {"gang": {"minCount": 2}})
        name = group["metadata"]["name"]
        self.assertEqual([pod["spec"]["schedulingGroup"]["podGroupName"] for pod in self.pods("gang")], [name] * 2)
        # An eviction takes the group with the pods. The next admission makes another one.
        workload = self.workload("gang")

        def activate(active):
            change = json.dumps({"spec": {"active": active}})
            self.cluster.kubectl("patch", workload, "-n", self.namespace, "--type=merge", "-p", change)

        activate(False)
        self.await_job("gang", lambda job: is_suspended(job) and job["status"]["jobsStatus"][0]["active"] == 0)
        self.assertEqual(self.cluster.get("podgroups.scheduling.k8s.io", "-n", self.namespace)["items"], [])
        activate(True)
        self.await_job("gang", is_running)
        [again] = self.cluster.get("podgroups.scheduling.k8s.io", "-n", self.namespace)["items"]
        self.assertNotEqual(again["metadata"]["name"], name)
        self.let_go("gang")
        self.condition(self.finished("gang"), "Complete")

    def test_the_quota_of_a_finished_initializer(self):
        """An initializer that has succeeded frees its quota for the next job while the nodes run."""
        self.queue("200m")
        self.submit("first", until("first"), nodes=1, initializer=until("data"))
        self.await_job("first", lambda job: job.get("status", {}).get("state") == "Initializing")
        workload = self.workload("first")
        self.submit("second", until("second"), nodes=1)
        self.await_job("second", is_suspended)
        self.assertEqual(self.await_workload(workload, lambda found: True)["status"].get("reclaimablePods", []), [])
        self.let_go("data")
        found = self.await_workload(workload, lambda found: found["status"].get("reclaimablePods"))
        self.assertEqual(found["status"]["reclaimablePods"], [{"name": INITIALIZER, "count": 1}])
        self.await_job("second", is_running)
        self.await_job("first", is_running)
        self.let_go("first", "second")
        for name in ("first", "second"):
            self.condition(self.finished(name), "Complete")

    def test_a_job_of_multikueue(self):
        """Kueue or the user gives the job to MultiKueue. Muster creates and writes nothing for it, although Kueue
        admits it here. The cluster where MultiKueue would run it is not part of this scenario."""
        self.queue("300m")
        self.cluster.apply(
            [
                {
                    "apiVersion": kueue.API,
                    "kind": "MultiKueueConfig",
                    "metadata": {"name": "others"},
                    "spec": {"clusters": ["other"]},
                },
                {
                    "apiVersion": kueue.API,
                    "kind": "AdmissionCheck",
                    "metadata": {"name": "others"},
                    "spec": {
                        "controllerName": MULTIKUEUE,
                        "parameters": {
                            "apiGroup": kueue.API.partition("/")[0],
                            "kind": "MultiKueueConfig",
                            "name": "others",
                        },
                    },
                },
            ]
        )
        self.queue("300m", "others", admissionChecksStrategy={"admissionChecks": [{"name": "others"}]})
        self.cluster.await_object("localqueue/others", lambda queue: verdict(queue, "Active")[0], self.namespace)
        self.submit("by-kueue", "true", nodes=1, queue="others")
        self.submit("by-user", "true", nodes=1, managedBy=MULTIKUEUE)
        self.await_job("by-user", lambda job: job["spec"].get("suspend") is False)
        self.await_workload(self.workload("by-user"), lambda found: verdict(found, "Admitted")[0] == "True")
        # When this job has ended, Muster has seen all earlier events.
        self.submit("own", "true", nodes=1)
        self.condition(self.finished("own"), "Complete")
        for name in ("by-kueue", "by-user"):
            job = self.cluster.get("trainjob", name, "-n", self.namespace)
            self.assertEqual((job["spec"]["managedBy"], job.get("status", {})), (MULTIKUEUE, {}), name)
        jobs = self.cluster.get("jobs", "-n", self.namespace)["items"]
        self.assertEqual([made["metadata"]["name"] for made in jobs], ["own-node-0"])


class PodsReady(Queued):
    configuration = {"waitForPodsReady": {"timeout": "10s", "requeuingStrategy": {"backoffBaseSeconds": 1}}}

    def test_pods_that_are_not_ready_in_time(self):
        """The job whose pods are not ready is evicted and admitted again. This time they become ready."""
        self.queue("200m")
        probe = {"exec": {"command": ["test", "-e", "/shared/ready"]}, "periodSeconds": 1}
        self.submit("slow", until("end"), container={"readinessProbe": probe})
        self.await_job("slow", lambda job: job["spec"].get("suspend") is False)
        workload = self.workload("slow")
        self.await_workload(workload, lambda found: verdict(found, "Evicted") == ("True", "PodsReadyTimeout"))
        self.await_job("slow", lambda job: is_suspended(job) and job["status"]["jobsStatus"][0]["active"] == 0)
        self.let_go("ready")
        found = self.await_workload(workload, lambda found: verdict(found, "PodsReady")[0] == "True")
        self.assertEqual(verdict(found, "Admitted")[0], "True")
        self.assertGreaterEqual(found["status"]["requeueState"]["count"], 1)
        self.let_go("end")
        job = self.finished("slow")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (0, 0))
