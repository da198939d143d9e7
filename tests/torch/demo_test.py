#!/usr/bin/python3
"""What `make demo` shows: its exit code, the table of its attempts, the accuracy and the report.

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

import torch_test  # noqa: E402

DEMO = os.path.join(torch_test.ROOT, "e2e", "demo", "run")


class Demo(unittest.TestCase):
    def test_it_does_what_it_promises(self):
        place = tempfile.TemporaryDirectory(prefix="muster-demo-test-")
        self.addCleanup(place.cleanup)
        process = subprocess.Popen([DEMO, "--python", torch_test.PYTHON, "--state", os.path.join(place.name, "state")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, start_new_session=True)
        try:
            said = process.communicate(timeout=torch_test.DEADLINE)[0]
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)  # it ends its job
                process.wait()
        self.assertEqual(process.returncode, 0, said)
        accuracy = re.search(r"^test accuracy (0\.\d{4}|1\.0000) \(at least 0\.95 promised\), ", said, re.MULTILINE)
        self.assertTrue(accuracy and float(accuracy[1]) >= 0.95, said)
        table = said[said.index("\nattempt  "):].splitlines()[1:]
        self.assertEqual(table[0].split()[:4], ["attempt", "nodes", "workers", "epochs"])
        rows = [row for row in (re.match(r"(\d+) +(\d) +(\d) +(\d+)-(\d+) +[\d.]+ s +\S", line) for line in table[2:]) if row]
        full = [row for row in rows if (row[2], row[3]) == ("2", "4")]  # one node may have trained alone while the other was away
        self.assertEqual((len(full), full[0][4], full[-1][5]), (3, "1", "24"), said)
        for cost in (r"rank 1.*SIGSEGV", r"node digits-node-0-1 was lost"):
            self.assertRegex("\n".join(table), cost)
        page = re.search(r"^report: (\S+)$", said, re.MULTILINE)[1]
        with open(page) as file:
            self.assertIn("Succeeded after", file.read())


if __name__ == "__main__":
    sys.argv.insert(1, "debian")  # the torch that the demo takes
    torch_test.main()
