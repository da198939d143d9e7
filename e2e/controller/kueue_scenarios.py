"""The real Kueue queues, admits and evicts TrainJobs that Muster runs."""
import json

from kueue import Kueue as KueueProgram
from processes import Broken
from scenario import Scenario, runtime, shell, train_job

QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
KUEUE = "kueue.x-k8s.io/v1beta2"
NODE_LABEL = "kubernetes.io/os"  # of the flavour: pods that Kueue has admitted ask for it


def is_suspended(job):
    return job["spec"].get("suspend") is True and job.get("status", {}).get("state") == "Suspended"


class Kueue(Scenario):
    def setUp(self):
        super().setUp()
        try:
            kueue = KueueProgram(self.cluster)
        except Broken as error:
            self.skipTest(str(error))
        self.addCleanup(kueue.stop)

    def queue(self, cpu):
        """A queue of this namespace with so many CPUs."""
        flavor = {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "linux"}, "spec": {"nodeLabels": {NODE_LABEL: "linux"}}}
        quota = {"coveredResources": ["cpu"], "flavors": [{"name": "linux", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]}
        cluster_queue = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {"namespaceSelector": {}, "resourceGroups": [quota]}}
        self.cluster.apply([flavor, cluster_queue])
        self.create({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": "team"}, "spec": {"clusterQueue": "all"}})

    def submit(self, name, script, nodes=2):
        container = {"resources": {"requests": {"cpu": "100m"}}, "command": shell(script), "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
        made = runtime(name, nodes, container=container, pod={"volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}]})
        job = train_job(name, name, trainer={"numNodes": nodes})
        job["metadata"]["labels"] = QUEUE
        self.create(made, job)

    def await_job(self, name, wanted):
        return self.cluster.await_object(f"trainjob/{name}", wanted, self.namespace)

    def test_queued_admitted_evicted(self):
        self.queue("200m")
        self.submit("first", "until [ -e /shared/first ]; do sleep 0.1; done")
        self.await_job("first", lambda job: job.get("status", {}).get("state") == "Running")
        self.submit("second", "until [ -e /shared/second ]; do sleep 0.1; done")
        self.await_job("second", is_suspended)
        self.assertEqual(self.pods("second"), [])
        # Evicted: its pods go, and the next in the queue gets the quota.
        (workload,) = [item["metadata"]["name"] for item in self.cluster.get("workloads", "-n", self.namespace)["items"]
                       if item["metadata"]["ownerReferences"][0]["name"] == "first"]
        self.cluster.kubectl("patch", "workload", workload, "-n", self.namespace, "--type=merge", "-p", json.dumps({"spec": {"active": False}}))
        self.await_job("first", lambda job: is_suspended(job) and job["status"]["jobsStatus"][0]["active"] == 0)
        running = self.await_job("second", lambda job: job.get("status", {}).get("state") == "Running")
        self.assertEqual([patch["manager"] for patch in running["spec"]["runtimePatches"]], ["kueue.x-k8s.io/manager"])
        self.assertEqual([pod["spec"]["nodeSelector"] for pod in self.pods("second")], [{NODE_LABEL: "linux"}] * 2)
        for name in ("second", "first"):
            with open(f"{self.shared()}/{name}", "w"):
                pass
        self.condition(self.finished("second"), "Complete")
        self.cluster.kubectl("patch", "workload", workload, "-n", self.namespace, "--type=merge", "-p", json.dumps({"spec": {"active": True}}))
        self.condition(self.finished("first"), "Complete")
        self.cluster.await_object(f"workload/{workload}", lambda found: any(
            condition["type"] == "Finished" and condition["status"] == "True" for condition in found["status"]["conditions"]), self.namespace)

    def pods(self, name):
        return [pod for pod in self.cluster.get("pods", "-n", self.namespace, "-l", f"jobset.sigs.k8s.io/jobset-name={name}")["items"]
                if "deletionTimestamp" not in pod["metadata"]]
