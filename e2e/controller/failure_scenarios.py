# SPDX-License-Identifier: Apache-2.0
"""Failures of busybox workers under the agent, and what they cost."""

import os
import re

from scenario import Scenario, runtime, shell, train_job

# The first life of each node fails, and the second succeeds. A file in a folder of the machine tells them apart.
TWICE = 'mark=/shared/$JOB_COMPLETION_INDEX; [ -e "$mark" ] && exit 0; touch "$mark"; echo "first life" >&2; '
# A worker that prints when it starts. In its first life rank 3 waits for /shared/go, prints the time and kills itself.
DIES_ONCE = shell(
    'up() { cut -d " " -f 1 /proc/uptime; }; echo "start $TORCHELASTIC_RESTART_COUNT $(up)"\n'
    '[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exit 0\n[ "$RANK" = 3 ] || exec sleep 600\n'
    "until [ -e /shared/go ]; do sleep 0.1; done; echo \"end 0 $(up)\"; sh -c 'kill -9 $PPID'; exit 0"
)


def moments(logs):
    """[(start or end, attempt, moment)] from the output of workers like DIES_ONCE."""
    return re.findall(r"(start|end) (\d+) ([0-9.]+)", "".join(logs))


def till_last_start(said):
    """Seconds from the end of rank 3 to the last start of the next attempt."""
    last = {(what, attempt): float(moment) for what, attempt, moment in sorted(said, key=lambda each: float(each[2]))}
    return last["start", "1"] - last["end", "0"]


class Failures(Scenario):
    def start(self, script, max_restarts=3, nodes=2, **container):
        volume = {"name": "shared", "hostPath": {"path": self.folder}}
        made = runtime(
            "any",
            nodes,
            pod={"volumes": [volume]},
            container={
                "command": shell(script),
                "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
                **container,
            },
        )
        made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": max_restarts}
        self.create(made, train_job("job", "any"))

    def setUp(self):
        super().setUp()
        self.folder = self.shared()

    def test_a_retryable_code_is_counted(self):
        """Each pod is replaced once, and the status says why."""
        self.start(TWICE + "exit 143")
        job = self.finished("job")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (2, 0))
        self.assertEqual(
            sorted((failure["nodeRank"], failure["exitCode"]) for failure in job["status"]["failures"]),
            [(0, 143), (1, 143)],
        )

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
        """The pod of rank 0 is replaced, and the job goes on."""
        self.start("until [ -e /shared/go ]; do sleep 0.1; done")
        self.cluster.await_object(
            "trainjob/job", lambda job: job.get("status", {}).get("state") == "Running", self.namespace
        )
        selector = ("-n", self.namespace, "-l", "batch.kubernetes.io/job-completion-index=0")
        (first,) = self.cluster.get("pods", *selector)["items"]
        self.cluster.kubectl("delete", "pod", first["metadata"]["name"], "-n", self.namespace, "--timeout=180s")
        self.cluster.await_object("trainjob/job", lambda job: job["status"]["readyNodes"] == 2, self.namespace)
        again = [pod["metadata"]["name"] for pod in self.cluster.get("pods", *selector)["items"]]
        self.assertNotIn(first["metadata"]["name"], again)
        with open(os.path.join(self.folder, "go"), "w"):
            pass
        job = self.finished("job")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (0, 0))

    def test_suspended_while_it_runs(self):
        """A suspension ends the pods. A resume creates new ones, and no restart is counted."""
        self.start("until [ -e /shared/go ]; do sleep 0.1; done")
        self.cluster.await_object(
            "trainjob/job", lambda job: job.get("status", {}).get("state") == "Running", self.namespace
        )
        self.cluster.kubectl(
            "patch", "trainjob", "job", "-n", self.namespace, "--type=merge", "-p", '{"spec":{"suspend":true}}'
        )
        self.cluster.kubectl("wait", "--for=delete", "pod", "--all", "-n", self.namespace, "--timeout=120s")
        self.cluster.kubectl(
            "patch", "trainjob", "job", "-n", self.namespace, "--type=merge", "-p", '{"spec":{"suspend":false}}'
        )
        self.cluster.await_object("trainjob/job", lambda job: job["status"]["state"] == "Running", self.namespace)
        with open(os.path.join(self.folder, "go"), "w"):
            pass
        job = self.finished("job")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (0, 0))


class InPlace(Scenario):
    def test_a_killed_worker_is_back(self):
        """Workers of busybox start at once. The table shows the time from the kill to the last worker's start."""
        container = {
            "command": ["torchrun", "--no-python", *DIES_ONCE],
            "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
        }
        self.create(
            runtime(
                "back",
                2,
                {"torch": {"numProcPerNode": 2}},
                container=container,
                pod={"volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}]},
            ),
            train_job("back", "back"),
        )
        self.cluster.await_object(
            "trainjob/back", lambda job: job.get("status", {}).get("state") == "Running", self.namespace
        )
        pods = self.pods()
        with open(os.path.join(self.shared(), "go"), "w"):
            pass
        job = self.finished("back")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (1, 0))
        self.assertEqual(self.pods(), pods)
        said = moments(self.logs("back"))
        self.assertEqual(
            sorted((what, attempt) for what, attempt, _ in said),
            [("end", "0"), *[("start", "0")] * 4, *[("start", "1")] * 4],
        )
        self.remark = (
            f"{till_last_start(said) * 1000:.0f} ms from a worker's death to the last start of the next attempt"
        )

    def pods(self):
        return sorted(pod["metadata"]["uid"] for pod in self.cluster.get("pods", "-n", self.namespace)["items"])
