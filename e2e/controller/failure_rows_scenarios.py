# SPDX-License-Identifier: Apache-2.0
"""Runs the table of failure_rows.py in a cluster with a real kubelet. Each row must end as under `muster local`."""

import os

import failure_rows
from pytorch_jobs import is_true
from scenario import Scenario

PORT = 29400  # the same for all, as each pod has its own network
SECONDS = 240


class FailureTable(Scenario):
    def folder_of(self, row):
        folder = os.path.join(self.shared(), row)
        os.makedirs(folder, exist_ok=True)
        return folder

    def run_rows(self, rows):
        """Runs all rows at the same time."""
        for row in rows:
            self.create(*row.objects)
        for row in rows:
            if row.killed is not None:
                failure_rows.kill_agent(row, self.folder_of(row.name), SECONDS)
        wrong = [f"{row.name}: {end}, not {row.end}" for row in rows if (end := self.outcome(row)) != row.end]
        self.assertFalse(wrong, "\n".join(wrong))

    def outcome(self, row):
        """Waits for the end of a row. Returns its (state, code, restarts, lives)."""
        ends = ("Complete", "Succeeded", "Failed")
        job = self.cluster.await_object(
            f"{row.kind.lower()}/{row.name}",
            lambda job: any(is_true(job, end) for end in ends),
            self.namespace,
            SECONDS,
        )
        (state,) = (end for end in ends if is_true(job, end))
        status = job["status"]
        code = status.get("failures", [{"exitCode": 1}])[-1]["exitCode"] if state == "Failed" else 0
        return state, code, status.get("restarts", 0), failure_rows.lives(row, self.folder_of(row.name))

    def test_failures_of_train_jobs(self):
        self.run_rows(failure_rows.train_rows(self.folder_of, lambda: PORT))

    def test_failures_of_pytorch_jobs(self):
        self.run_rows(failure_rows.pytorch_rows(self.folder_of, lambda: PORT))
