# SPDX-License-Identifier: Apache-2.0
"""`muster local` and `muster report JOB`: one page about a run on this machine."""

import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import BIN, LocalCase, clean, plain_job, train_job

import class_runner  # local_case.py says where it is

ONCE = """import os, sys
if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os.kill(os.getpid(), 9)
"""


class Reports(LocalCase):
    def page(self, name):
        return os.path.join(self.folder, "state", "muster", "jobs", name, "report.html")

    def report(self, *arguments):
        return subprocess.run(
            [os.path.join(BIN, "muster"), "report", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )

    def run_once(self, name):
        return self.run_job(train_job(name, f"[torchrun, {self.file('once.py', ONCE)}]"))

    def test_a_run_ends_with_its_page(self):
        said = self.run_once("paged")
        self.assertIn(f"muster local: report: {self.page('paged')}\n", said)
        with open(self.page("paged")) as file:
            page = file.read()
        self.assertIn("Succeeded after 1 restart", page)
        for node in ("paged-node-0-0", "paged-node-0-1"):
            self.assertIn(node, page)

    def test_the_page_of_a_job_by_name(self):
        self.run_once("named")
        os.unlink(self.page("named"))
        done = self.report("named")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, self.page("named") + "\n", ""))
        self.assertTrue(os.path.exists(self.page("named")))
        done = self.report("named", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('"restarts":1', re.sub(r"\s", "", done.stdout))

    def test_a_second_run_has_a_page_of_its_own(self):
        ids = []
        for _ in range(2):
            self.run_once("twice")
            with open(self.page("twice")) as file:
                page = file.read()
            self.assertEqual(page.count("<h1"), 1)
            self.assertIn("<title>twice: Succeeded after 1 restart</title>", page)
            ids += re.findall("TrainJob twice, run <code>(.*?)</code>", page)
        self.assertEqual(len(set(ids)), 2)

    def test_a_drill_is_marked_and_one_number_of_restarts_is_shown(self):
        """The agents do not count a node that was killed; the job does."""
        os.mkfifo(os.path.join(self.folder, "meet"))
        script = self.file(
            "waits.py",
            f"""import os, signal
rank, folder = os.environ["RANK"], {self.folder!r}
if not os.path.exists(f"{{folder}}/began-{{rank}}"):
    open(f"{{folder}}/began-{{rank}}", "w").close()
    open(f"{{folder}}/meet", "w" if rank == "0" else "r")  # waits for the other rank
    print("both" if rank == "1" else "", flush=True)
    signal.pause()
""",
        )
        said = self.run_job(train_job("drilled", f"[torchrun, {script}]"), arguments=["--kill", "node:1@both"])
        self.assertIn("TrainJob drilled: Complete, 1 restart", said)
        environment = clean(XDG_STATE_HOME=os.path.join(self.folder, "state"))
        (listed,) = json.loads(
            subprocess.run(
                [os.path.join(BIN, "muster"), "ps", "--json"], capture_output=True, text=True, env=environment
            ).stdout
        )
        self.assertEqual((listed["restarts"], listed["drills"][0]["order"]), (1, "node:1@both"))
        (run,) = json.loads(self.report("drilled", "--json").stdout)["runs"]
        self.assertEqual(
            (run["job"], run["restarts"], run["max_restarts"]), ("TrainJob drilled", 1, listed["max_restarts"])
        )
        (drill,) = run["attempts"][0]["drills"]
        self.assertRegex(drill["done"], "SIGKILL to node 1 on drilled-node-0-1")
        with open(self.page("drilled")) as file:
            page = file.read()
        self.assertIn("<title>drilled: Succeeded after 1 restart</title>", page)
        self.assertIn("<dt>Restarts</dt><dd>1<small>of", page)
        self.assertIn("by --kill node:1@both:</span> SIGKILL to node 1", page)

    def test_without_torchrun_there_is_none(self):
        said = self.run_job(plain_job("plain", "true"))
        self.assertNotIn("report", said)
        self.assertFalse(os.path.exists(self.page("plain")))

    def test_before_the_first_round_there_is_none(self):
        said = self.run_job(train_job("early", "[torchrun, no-such-program.py]", nodes=1), code=127)
        self.assertNotIn("report", said)

    def test_no_such_job(self):
        done = self.report("nothing")
        self.assertEqual(done.returncode, 78)
        self.assertRegex(done.stderr, r"nothing.*`muster local`")


if __name__ == "__main__":
    class_runner.main()
