# SPDX-License-Identifier: Apache-2.0
"""The table of failures (e2e/controller/failure_rows.py) by `muster local`. e2e/controller/run runs it in a cluster."""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [
    HERE,
    os.path.join(HERE, "..", "..", "e2e", "controller"),
    os.path.join(HERE, "..", "..", "e2e", "cluster"),
]

from local_case import DEADLINE, LocalCase, free_port

import class_runner  # local_case.py says where it is
import failure_rows
from processes import Broken
from pytorch_jobs import pytorch_job
from scenario import shell

AT_A_TIME = 4


class Table(LocalCase):
    def folder_of(self, row):
        folder = os.path.join(self.folder, "shared", row)
        os.makedirs(folder, exist_ok=True)
        return folder

    def outcome(self, row, job):
        """(state, code, restarts, lives) of the row's job at its end."""
        folder = self.folder_of(row.name)
        if row.killed is not None:
            failure_rows.kill_agent(row, folder, DEADLINE)
        code = job.wait()
        ended = re.search(rf"{row.kind} {row.name}: (\w+)(?:, (\d+) restarts?)?", job.said)
        state, restarts = ended.groups() if ended else (None, None)
        return state, code, int(restarts or 0), failure_rows.lives(row, folder)

    def run_rows(self, rows):
        """Runs the rows, AT_A_TIME at the same time."""
        lock = threading.Lock()

        def run(row):
            with lock:
                job = self.start("\n---\n".join(json.dumps(each) for each in row.objects))
            try:
                return self.outcome(row, job), job
            except (AssertionError, Broken, subprocess.TimeoutExpired, ValueError) as error:
                return repr(error), job

        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            ends = list(pool.map(run, rows))
        for row, (end, job) in zip(rows, ends):
            with self.subTest(row.name):
                self.assertEqual(end, row.end, job.said)

    def test_train_jobs(self):
        self.run_rows(failure_rows.train_rows(self.folder_of, free_port))

    def test_pytorch_jobs(self):
        self.run_rows(failure_rows.pytorch_rows(self.folder_of, free_port))

    def test_a_pod_of_the_same_name_begins_empty(self):
        """The replacement of a PyTorchJob's pod has the pod's name, and empty volumes."""
        folder = self.folder_of("empty")
        script = (
            f'[ "$RANK" = 0 ] && {{ until [ -e {folder}/over ]; do sleep 0.05; done; exit; }}\n'
            f"[ -e /own/left ] && echo left over; : > /own/left; "
            f"[ -e {folder}/once ] && {{ : > {folder}/over; exit; }}\n: > {folder}/once; exit 143"
        )
        made = {"command": shell(script), "volumeMounts": [{"name": "own", "mountPath": "/own"}]}
        said = self.run_job(
            json.dumps(
                pytorch_job(
                    "empty", 1, made, policy={"backoffLimit": 1}, pod={"volumes": [{"name": "own", "emptyDir": {}}]}
                )
            )
        )
        self.assertIn("PyTorchJob empty: Succeeded, 1 restart", said)
        self.assertNotIn("left over", said)


if __name__ == "__main__":
    class_runner.main()
