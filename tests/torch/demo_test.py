#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: its exit code, the table of its attempts, the accuracy and the report.

demo_test.py [unittest's arguments]
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch_test

DEMO = os.path.join(torch_test.ROOT, "e2e", "demo", "run")


class Demo(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="muster-demo-test-")
        self.addCleanup(place.cleanup)
        self.folder = place.name
        self.state = os.path.join(self.folder, "state")

    def start(self, **environment):
        demo = subprocess.Popen(
            [DEMO, "--python", torch_test.PYTHON, "--state", self.state],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        self.addCleanup(demo.stdout.close)
        self.addCleanup(self.end, demo)
        return demo

    def end(self, demo):
        if demo.poll() is None:
            demo.send_signal(signal.SIGTERM)  # the demo ends its job
            demo.wait()

    def test_it_does_what_it_promises(self):
        demo = self.start()
        said = demo.communicate(timeout=torch_test.DEADLINE)[0]
        self.assertEqual(demo.returncode, 0, said)
        accuracy = re.search(r"^test accuracy (0\.\d{4}|1\.0000) \(at least 0\.95 promised\), ", said, re.MULTILINE)
        self.assertTrue(accuracy and float(accuracy[1]) >= 0.95, said)
        table = said[said.index("\nattempt  ") :].splitlines()[1:]
        self.assertEqual(table[0].split()[:4], ["attempt", "nodes", "workers", "epochs"])
        rows = [
            row
            for row in (re.match(r"(\d+) +(\d) +(\d) +(\d+)-(\d+) +[\d.]+ s +\S", line) for line in table[2:])
            if row
        ]
        # After the node is lost the other one trains alone, on a slow machine to the last epoch.
        full = [row for row in rows if (row[2], row[3]) == ("2", "4")]
        self.assertGreaterEqual(len(full), 2, said)
        self.assertEqual((full[0], rows[-1][5]), (rows[0], "40"), said)
        self.assertEqual(full[0][4], "1", said)
        for cost in (r"rank 1.*SIGSEGV", r"node digits-node-0-1 was lost"):
            self.assertRegex("\n".join(table), cost)
        page = re.search(r"^report: (\S+)$", said, re.MULTILINE)[1]
        with open(page) as file:
            self.assertIn("Succeeded after", file.read())

    def test_ended_from_outside_it_leaves_nothing(self):
        demo = self.start()
        line = next((line for line in demo.stdout if re.search(r"epoch +1/40", line)), None)
        self.assertIsNotNone(line)
        demo.send_signal(signal.SIGTERM)
        said = demo.communicate(timeout=torch_test.DEADLINE)[0]
        self.assertEqual(demo.returncode, 1, said)
        self.assertRegex(said, r"not as promised:\n +- it was interrupted")
        self.assertEqual(subprocess.run(["pgrep", "-af", self.state], capture_output=True, text=True).stdout, "")

    def test_what_is_not_as_promised_is_said(self):
        """With a stand-in for `muster local` that does nothing."""
        for code, sentence in ((0, "the training did not come to its end"), (3, "the job ended with code 3")):
            for name in ("muster", "muster-local"):
                path = os.path.join(self.folder, name)
                with open(path, "w") as file:
                    file.write(f"#!/bin/sh\nexit {code}\n")
                os.chmod(path, 0o755)
            demo = self.start(MUSTER_BINARY=os.path.join(self.folder, "muster"))
            said = demo.communicate(timeout=torch_test.DEADLINE)[0]
            self.assertEqual(demo.returncode, 1, said)
            self.assertIn(f"  - {sentence}\n", said)


if __name__ == "__main__":
    sys.argv.insert(1, "debian")  # the torch that the demo uses
    torch_test.main()
