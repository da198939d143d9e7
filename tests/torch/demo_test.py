#!/usr/bin/python3
"""What `make demo` shows: its exit code, the table of its attempts and the accuracy.

    demo_test.py [unittest's arguments]
"""
import os
import re
import signal
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch_test  # noqa: E402

DEMO = os.path.join(torch_test.ROOT, "e2e", "demo", "run")


class Demo(unittest.TestCase):
    def test_it_does_what_it_promises(self):
        process = subprocess.Popen([DEMO, "--python", torch_test.PYTHON], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, start_new_session=True)
        try:
            said = process.communicate(timeout=torch_test.DEADLINE)[0]
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)  # it ends its nodes
                process.wait()
        self.assertEqual(process.returncode, 0, said)
        accuracy = re.search(r"^test accuracy (0\.\d{4}|1\.0000) \(at least 0\.95 promised\), ", said, re.MULTILINE)
        self.assertTrue(accuracy and float(accuracy[1]) >= 0.95, said)
        table = said[said.index("\nattempt  "):].splitlines()[1:]
        self.assertEqual(table[0].split()[:4], ["attempt", "nodes", "workers", "epochs"])
        rows = [re.match(r"(\d+) +(\d) +(\d) +(\d+)-(\d+) +[\d.]+ s +\S", line) for line in table[2:6]]
        self.assertTrue(all(rows), said)
        self.assertEqual([(row[2], row[3]) for row in rows], [("2", "4"), ("2", "4"), ("1", "2"), ("2", "4")])
        self.assertEqual((rows[0][4], rows[3][5]), ("1", "24"))
        for cost in (r"rank 1.*SIGSEGV", r"lost|killed", r"scale up|joined|came"):
            self.assertRegex("\n".join(table), cost)


if __name__ == "__main__":
    sys.argv.insert(1, "debian")  # the torch that the demo takes
    torch_test.main()
