# SPDX-License-Identifier: Apache-2.0
"""The table of causes (e2e/controller/cause_rows.py) by `muster local`. e2e/controller/run runs it in a cluster."""

import concurrent.futures
import json
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [
    HERE,
    os.path.join(HERE, "..", "..", "e2e", "controller"),
    os.path.join(HERE, "..", "..", "e2e", "cluster"),
]

from local_case import BIN, LocalCase, clean, free_port

import cause_row
import cause_rows
import cause_rows_of_programs
import class_runner  # local_case.py says where it is
import torch_programs

AT_A_TIME = 4
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
NEWEST_TORCH = os.path.join(CACHE, "muster", "torch-newest", "bin", "python")  # of build-support/setup-newest-torch


class Causes(LocalCase):
    def folder_of(self, row):
        folder = os.path.join(self.folder, "shared", row.name)
        os.makedirs(folder)
        return folder

    def tell(self, *command):
        return subprocess.run(
            [os.path.join(BIN, "muster"), *command],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        ).stdout

    def sentences(self, row, kind, job):
        """{place: text} of all places of a run that name the cause."""
        ends = [
            line for line in job.said.splitlines() if line.startswith(f"muster local: {kind} {row.name}: {row.state}")
        ]
        (record,) = (each for each in json.loads(self.tell("ps", "--json")) if each["name"] == row.name)
        return {"the last line": ends[-1] if ends else job.said, "muster ps": record["message"]}

    def check_report(self, row):
        """The report knows the worker, and no pod and no next step."""
        run = json.loads(self.tell("report", row.name, "--json"))["runs"][0]  # the newest: of the last pods
        failure = run["attempts"][-1]["failures"][0]
        self.assertEqual((run["exit_code"], failure["rank"]), (row.code, row.rank), run)
        self.assertIn(row.words, run["reason"])

    def run_rows(self, kind, rows):
        """Runs the rows, AT_A_TIME at the same time."""
        lock = threading.Lock()
        rows = cause_rows.runnable([row for row in rows if row.local and kind in row.kinds])

        def run(row):
            with lock:
                job = self.start(
                    "\n---\n".join(json.dumps(each) for each in row.objects(kind, self.folder_of(row), free_port()))
                )
            return job.wait(), job

        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            runs = list(pool.map(run, rows))
        for row, (code, job) in zip(rows, runs):
            with self.subTest(row.name):
                self.assertEqual(code, row.code or 1, job.said)
                pod = row.pod(kind)
                wrong = [
                    cause_row.wrong(
                        row,
                        kind,
                        place,
                        text,
                        pod,
                        f"see muster logs {row.name}{'' if row.rank is None else f' --node {row.rank}'}",
                    )
                    for place, text in self.sentences(row, kind, job).items()
                ]
                self.assertFalse("".join(wrong), "\n".join([*wrong, job.said]))
                if row.torchrun:
                    self.check_report(row)

    def test_train_jobs(self):
        self.run_rows(cause_row.TRAIN, cause_rows.rows())

    def test_pytorch_jobs(self):
        self.run_rows(cause_row.PYTORCH, cause_rows.rows())

    def test_the_newest_pytorch(self):
        if missing := torch_programs.missing(NEWEST_TORCH):
            self.skipTest(f"there is {missing}: run build-support/setup-newest-torch")
        for kind in cause_row.BOTH:
            self.run_rows(kind, cause_rows_of_programs.torch_rows(NEWEST_TORCH, f"newest-{kind.lower()}"))


if __name__ == "__main__":
    class_runner.main()
