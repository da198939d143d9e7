# SPDX-License-Identifier: Apache-2.0
"""Several runs of muster-initializer with one target."""

import json
import os
import shutil
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, MIB, UNREACHABLE, main, some_bytes
from local_case import LocalCase

from web_server import WebServer


class Together(LocalCase):
    """Several initializers, one target."""

    def setUp(self):
        super().setUp()
        self.server = WebServer()
        self.addCleanup(self.server.close)
        self.data = some_bytes(8 * MIB)
        self.server.files["/w.bin"] = self.data
        self.url = self.server.url + "/w.bin"

    def first_asks(self):
        """A process that holds the lease and waits for its bytes; and an event that releases them."""
        import threading

        asked, go = threading.Event(), threading.Event()

        def hold(request):
            asked.set()
            go.wait(DEADLINE)
            return False

        self.server.faulty = lambda request: request.command == "GET"
        self.server.faults = [hold]
        self.addCleanup(go.set)
        process = self.start(self.url)
        self.assertTrue(asked.wait(DEADLINE))
        return process, go

    def wait_for(self, process, words):
        for line in process.stdout:
            if words in line:
                return
        self.fail(f"it ended without saying '{words}': {process.stderr.read()}")

    def test_one_works_the_others_find_it_done(self):
        first, go = self.first_asks()
        others = [self.start(self.url) for _ in range(3)]
        for other in others:
            self.wait_for(other, "which is filling the same folder")
        go.set()
        ends = []
        for process in [first, *others]:
            out, err = process.communicate(timeout=DEADLINE)
            self.assertEqual(process.returncode, 0, out + err)
            ends.append(json.loads(out.splitlines()[-1]))
        self.check_right({"w.bin": self.data})
        self.assertEqual(sorted(end["unchanged"] for end in ends), [False, True, True, True])
        self.assertEqual(sum(end["received"] for end in ends), len(self.data))

    def test_a_dead_one_is_taken_over(self):
        first, go = self.first_asks()
        other = self.start(self.url)
        self.wait_for(other, "which is filling the same folder")
        self.kill(first)
        go.set()
        out, err = other.communicate(timeout=DEADLINE)
        self.assertEqual(other.returncode, 0, out + err)
        self.assertIn("has ended without releasing the folder; taking over", out)
        self.check_right({"w.bin": self.data})

    def test_a_frozen_one_is_taken_over_and_harms_nothing_when_it_thaws(self):
        first, go = self.first_asks()
        other = self.start(self.url, "--lease-timeout", "10")
        self.wait_for(other, "which is filling the same folder")
        first.send_signal(signal.SIGSTOP)
        go.set()
        out, err = other.communicate(timeout=DEADLINE)
        self.assertEqual(other.returncode, 0, out + err)
        self.assertRegex(out, "has been silent for .*taking over")
        self.check_right({"w.bin": self.data})
        first.send_signal(signal.SIGCONT)
        out, err = first.communicate(timeout=DEADLINE)
        self.assertEqual(first.returncode, UNREACHABLE, out + err)
        self.assertRegex(json.loads(out.splitlines()[-1])["reason"], "another .*taken .*over")
        self.check_right({"w.bin": self.data})

    def test_one_that_is_overtaken_while_it_publishes(self):
        """The files that it wanted to rename are gone: that is not an error of its disk, and a new start continues."""
        process = self.stopped(self.url, MUSTER_TEST_STOP_AT_RENAME="3")
        own = os.path.join(self.target, ".muster")
        with open(os.path.join(own, "lease.2"), "w") as file:
            file.write("host=other pid=1 boot=another id=2 locked=1 beat=1\n")
        shutil.rmtree(os.path.join(own, "staging"))
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, UNREACHABLE, out + err)
        self.assertIn("another initializer has taken", json.loads(out.splitlines()[-1])["reason"])

    def test_a_waiter_can_be_told_to_go(self):
        first, go = self.first_asks()
        other = self.start(self.url)
        self.wait_for(other, "which is filling the same folder")
        other.send_signal(signal.SIGTERM)
        self.assertEqual(other.wait(DEADLINE), 143)
        go.set()
        self.assertEqual(first.wait(DEADLINE), 0)
        self.check_right({"w.bin": self.data})

    def test_it_ends_at_its_deadline(self):
        first, go = self.first_asks()
        code, end = self.fetch(self.url, "--deadline", "0.5")
        self.assertEqual((code, end["event"]), (UNREACHABLE, "failed"), self.said)
        self.assertIn("not complete after 0.5 s (--deadline)", end["reason"])
        go.set()
        self.assertEqual(first.wait(DEADLINE), 0)


if __name__ == "__main__":
    main()
