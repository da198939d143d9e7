"""What dies, and what it costs: under the agent, in busybox."""
import os

from scenario import Scenario, runtime, shell, train_job

# The first life of each node ends badly, the second well: what nodes leave for their next life is in a folder of the machine.
TWICE = 'mark=/shared/$JOB_COMPLETION_INDEX; [ -e "$mark" ] && exit 0; touch "$mark"; echo "first life" >&2; '


class Failures(Scenario):
    def start(self, script, max_restarts=3, nodes=2, **container):
        volume = {"name": "shared", "hostPath": {"path": self.folder}}
        made = runtime("any", nodes, pod={"volumes": [volume]}, container={
            "command": shell(script), "volumeMounts": [{"name": "shared", "mountPath": "/shared"}], **container})
        made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": max_restarts}
        self.create(made, train_job("job", "any"))

    def setUp(self):
        super().setUp()
        self.folder = self.shared()

    def test_a_retryable_code_is_counted(self):
        """Each pod is replaced once, and tells of it."""
        self.start(TWICE + "exit 143")
        job = self.finished("job")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (2, 0))
        self.assertEqual(sorted((failure["nodeRank"], failure["exitCode"]) for failure in job["status"]["failures"]), [(0, 143), (1, 143)])

    def test_killed_for_memory(self):
        self.start(TWICE + "exec tail /dev/zero", nodes=1, resources={"limits": {"memory": "64Mi"}})
        job = self.finished("job")
        self.condition(job, "Complete")
        failure = job["status"]["failures"][0]
        self.assertEqual((failure["exitCode"], failure["oom"], job["status"]["restarts"]), (137, True, 1), failure)

    def test_the_budget_is_used_up(self):
        self.start('echo "no luck" >&2; exit 143', max_restarts=1, nodes=1)
        job = self.finished("job")
        reason, message = self.condition(job, "Failed")
        self.assertEqual(reason, "ReachedMaxRestarts")
        self.assertIn("no luck", message)
        self.assertEqual(job["status"]["attempt"], 0)

    def test_a_deleted_pod_costs_nothing(self):
        """Rank 0's: it comes back, and the job goes on."""
        self.start("until [ -e /shared/go ]; do sleep 0.1; done")
        self.cluster.await_object("trainjob/job", lambda job: job.get("status", {}).get("state") == "Running", self.namespace)
        selector = ("-n", self.namespace, "-l", "batch.kubernetes.io/job-completion-index=0")
        first, = self.cluster.get("pods", *selector)["items"]
        self.cluster.kubectl("delete", "pod", first["metadata"]["name"], "-n", self.namespace, "--timeout=60s")
        self.cluster.await_object("trainjob/job", lambda job: job["status"]["readyNodes"] == 2, self.namespace)
        again = [pod["metadata"]["name"] for pod in self.cluster.get("pods", *selector)["items"]]
        self.assertNotIn(first["metadata"]["name"], again)
        with open(os.path.join(self.folder, "go"), "w"):
            pass
        job = self.finished("job")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (0, 0))
