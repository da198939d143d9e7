# SPDX-License-Identifier: Apache-2.0
"""--then of muster-initializer while others wait for the folder."""

import os
import select
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, main

from local_faults_test import TargetCase


class Then(TargetCase):
    """While --then runs, the initializer holds the lease of the folder."""

    def setUp(self):
        super().setUp()
        self.files = self.lay({"a": b"1"})
        self.log = os.path.join(self.dir, "log")
        self.begun, self.go = os.path.join(self.dir, "begun"), os.path.join(self.dir, "go")
        os.mkfifo(self.begun)
        os.mkfifo(self.go)
        self.flags = (
            "--then",
            f"echo begun >> {self.log}; echo > {self.begun}; read line < {self.go}; echo ended >> {self.log}",
        )

    def runs_then(self):
        """Starts a process whose --then waits for a line."""
        process = self.start(self.uri, *self.flags)
        with open(self.begun) as pipe:
            pipe.read()
        return process

    def waiter(self):
        other = self.start(self.uri, *self.flags)
        for line in other.stdout:
            if "which is filling the same folder" in line:
                return other
        return self.fail(f"it ended without waiting: {other.stderr.read()}")

    def lets_it_go(self):
        with open(self.go, "w") as pipe:
            pipe.write("\n")

    def logged(self):
        with open(self.log) as file:
            return file.read().split()

    def test_others_wait_for_it(self):
        first = self.runs_then()
        others = [self.waiter(), self.waiter()]
        self.assertEqual([other.poll() for other in others], [None, None])
        self.assertEqual(self.logged(), ["begun"])
        self.lets_it_go()
        for process in (first, *others):
            out, err = process.communicate(timeout=DEADLINE)
            self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(self.logged(), ["begun", "ended"])
        self.check_right(self.files)

    def once(self, code):
        """Sets a --then that, the first time, waits and ends with `code`; later it ends at once with 0."""
        self.flags = (
            "--then",
            (
                f"echo begun >> {self.log}; mkdir {self.dir}/once 2>/dev/null || exit 0; echo > {self.begun}; "
                f"read line < {self.go}; exit {code}"
            ),
        )

    def check_again(self, other):
        out, err = other.communicate(timeout=DEADLINE)
        self.assertEqual(other.returncode, 0, out + err)
        self.assertEqual(self.logged(), ["begun", "begun"])
        self.check_right(self.files)

    def test_one_that_is_killed_has_it_run_by_who_waits(self):
        self.once(0)
        first = self.runs_then()
        other = self.waiter()
        self.kill(first)
        self.check_again(other)

    def test_it_ends_with_its_initializer(self):
        """Also the processes that it has started, however the initializer ends; the next start runs it again."""
        self.flags = ("--then", f"sh -c 'echo begun; exec sleep 1000000' > {self.begun} & wait")
        for signal_number in (signal.SIGKILL, signal.SIGUSR1):
            first = self.start(self.uri, *self.flags)
            with open(self.begun) as pipe:
                self.assertEqual(pipe.readline(), "begun\n")
                first.send_signal(signal_number)
                self.assertEqual(first.wait(DEADLINE), -signal_number)
                self.assertTrue(select.select([pipe], [], [], DEADLINE)[0], "its writer still runs")
                self.assertEqual(pipe.read(), "")
        self.flags = ("--then", f"echo again > {self.log}")
        self.succeeds(self.uri, self.files, *self.flags)
        self.assertEqual(self.logged(), ["again"])

    def test_one_that_fails_has_it_run_by_who_waits(self):
        self.once(9)
        first = self.runs_then()
        other = self.waiter()
        self.lets_it_go()
        self.assertEqual(first.wait(DEADLINE), 9)
        self.check_again(other)


if __name__ == "__main__":
    main()
