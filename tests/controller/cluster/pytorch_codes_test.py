# SPDX-License-Identifier: Apache-2.0
"""How PyTorchJobs end, for every restart policy, exit code, role and backoffLimit.

The rules. A pod that ends with 0 has succeeded. Never: any other code fails the job. ExitCode: 1-127 fails the job at
once; after 128-255 the pod is replaced. OnFailure: the kubelet restarts the container in its pod. Always: it does so
after a success, too. backoffLimit is the number of restarts that a job may have.
"""

from pytorch_case import PyTorchCase, conditions, counts

import class_runner

CODES = (0, 1, 2, 126, 127, 128, 130, 137, 139, 143, 255)
LIMITS = (0, 1, 3)
ROLES = ("master", "worker")
THEN = "2026-01-01T00:00:00Z"


def restarts_by(policy, code):
    """What is restarted when a pod ends with `code`: "pod" or "container". None: nothing, since the job ends."""
    if policy == "Always" or (policy == "OnFailure" and code != 0):
        return "container"
    if policy == "ExitCode" and code >= 128:
        return "pod"
    return None


class Row:
    def __init__(self, policy, code, role, limit):
        self.code, self.role, self.limit = code, role, limit
        self.how = restarts_by(policy, code)
        self.name = f"{policy.lower()}-{code}-{role}-{limit}"
        self.pod = f"{self.name}-{role}-0"
        self.restarts = limit if self.how else 0  # before the job ends


class Codes(PyTorchCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve("controller", "--qps", "1000", "--burst", "1000")

    def start_again(self, row, count):
        """Restarts the container, in the pod's status, as the kubelet does."""
        ended = {
            "exitCode": row.code,
            "reason": "Completed" if row.code == 0 else "Error",
            "startedAt": THEN,
            "finishedAt": THEN,
        }
        status = {
            "name": "pytorch",
            "image": "busybox",
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": count,
            "state": {"running": {"startedAt": THEN}},
            "lastState": {"terminated": ended},
        }
        self.api.patch("pods", row.pod, {"status": {"containerStatuses": [status]}}, "status")

    def ends_once_more(self, row, count):
        if row.how == "container":
            return self.start_again(row, count)
        row.uid = self.uid(row.pod)
        return self.end(row.pod, row.code)

    def goes_on(self, row, count):
        """The job must go on after `count` restarts."""
        if row.how == "pod":
            self.await_other(row.pod, row.uid)
        job = self.await_pytorch(
            row.name,
            lambda job: job.get("status", {}).get("restarts") == count and conditions(job) == ["Created", "Running"],
        )
        self.assertEqual((counts(job, "Master"), counts(job, "Worker")), ((1, 0, 0), (1, 0, 0)), row.name)

    def ended(self, row):
        if row.code == 0 and not row.how:
            if row.role == "worker":
                job = self.await_pytorch(row.name, lambda job: counts(job, "Worker") == (0, 1, 0))
                self.assertEqual(conditions(job), ["Created", "Running"], row.name)
                self.end(f"{row.name}-master-0")
            self.assertEqual(self.await_end(row.name, "Succeeded")["status"].get("failures", []), [], row.name)
            return
        job = self.await_end(row.name, "Failed")
        self.assertEqual(conditions(job), ["Created", "Failed"], row.name)
        self.assertIn("completionTime", job["status"], row.name)
        message, status = self.message(job, "Failed"), job["status"]
        if row.how:
            self.assertIn(f"Job {row.name} has failed because it has reached the specified backoff limit", message)
        else:
            self.assertIn(
                f"PyTorchJob {row.name} is failed because 1 {row.role.capitalize()} replica(s) failed", message
            )
        self.assertEqual(status["restarts"], row.restarts, row.name)
        if row.code:
            self.assertIn(f"pod {row.pod}, container pytorch", message)
            self.assertEqual(
                (status["failures"][-1]["pod"], status["failures"][-1]["exitCode"]), (row.pod, row.code), row.name
            )

    def judge(self, policy):
        rows = [Row(policy, code, role, limit) for code in CODES for role in ROLES for limit in LIMITS]
        for row in rows:
            self.create_job(row.name, master=policy, worker=policy, workers=1, policy={"backoffLimit": row.limit})
        for row in rows:
            self.await_running(row.name)
        for count in range(1, max(LIMITS) + 2):
            for row in rows:
                if count <= row.restarts + 1:
                    self.ends_once_more(row, count)
            for row in rows:
                if count <= row.restarts:
                    self.goes_on(row, count)
                elif count == row.restarts + 1:
                    self.ended(row)

    def test_exit_code(self):
        self.judge("ExitCode")

    def test_each_code_under_never(self):
        self.judge("Never")

    def test_each_code_under_on_failure(self):
        self.judge("OnFailure")

    def test_each_code_under_always(self):
        self.judge("Always")


if __name__ == "__main__":
    class_runner.main()
