# SPDX-License-Identifier: Apache-2.0
"""`muster check` on this machine and in containers."""

import json
import os
import re
import subprocess
import unittest

from muster_case import DEADLINE, MUSTER, PYTHON, MusterCase, clean, main, sanitized

import containers
import networks

TOO_SLOW = (sanitized() == "thread", "SKIPPED: under ThreadSanitizer two seconds are too few to measure the memory")
CACHED = (
    r"caches included: (?:they hold more than half of the \d+ MiB that may be copied"
    r"|there was too little time to copy more than they hold)"
)


class Machine(MusterCase):
    def check(self, *flags, **more):
        return subprocess.run(
            [MUSTER, "check", *flags], capture_output=True, text=True, timeout=DEADLINE, env=clean(), **more
        )

    @unittest.skipIf(*TOO_SLOW)
    def test_each_figure_is_measured(self):
        figures = {"memory", "loopback", "loopback round trip"}
        for _ in range(20):  # on a busy machine the two seconds may be over before all is measured
            done = self.check("--json", "--disk", self.dir)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            (line,) = done.stdout.splitlines()
            told = json.loads(line)
            if figures <= told["measured"].keys():
                break
        for name in figures:
            self.assertGreater(told["measured"][name], 0)
        disk = next(part for part in told["parts"] if part["name"] == "disk")
        self.assertEqual(disk["where"], self.dir)
        self.assertTrue("value" in disk or disk["why"])
        self.assertEqual(os.listdir(self.dir), ["socket"], "nothing is left")
        table = self.check().stdout
        self.assertRegex(
            table,
            rf"memory +([\d.]+ GB/s(  {CACHED})?|-  \S.*)\nloopback +([\d.]+ GB/s|-  \S.*)\n"
            rf"loopback round trip +([\d.]+ ms|-  \S.*)\n",
        )

    @unittest.skipIf(*TOO_SLOW)
    def test_a_figure_below_its_bound_fails_the_check(self):
        for _ in range(20):  # on a busy machine the two seconds may be over before the memory is measured
            done = self.check("--min-memory", "1e6", "--min-loopback", "1e-9")
            if done.returncode != 0:
                break
        self.assertEqual(done.returncode, 204)
        self.assertRegex(
            done.stderr,
            rf"^muster check: memory is [\d.]+ GB/s, at least 1000000 GB/s is asked for \(--min-memory\)"
            rf"(: {CACHED})?\n$",
        )
        for flags in (("--min-memory", "fast"), ("--min-disk", "-1"), ("--peers", "nowhere"), ("--what",)):
            self.assertEqual(self.check(*flags).returncode, 64, flags)

    def test_what_cannot_be_measured_says_why_and_does_not_fail(self):
        done = self.check(
            "--disk",
            "/no/such/folder",
            "--min-disk",
            "1",
            "--peers",
            "127.0.0.1:1,no-such-host.invalid:1",
            "--max-round-trip",
            "0.001",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(
            done.stdout,
            r"disk in /no/such/folder +-  No such file or directory\n"
            r"round trip to 127.0.0.1:1 +-  it is this machine\n"
            r"round trip to no-such-host.invalid:1 +-  \S",
        )

    def test_the_round_trip_to_peers(self):
        """To a peer that accepts, one that refuses, and one that is cut off."""
        try:
            network = networks.Network(4)
        except networks.Unavailable as why:
            self.skipTest(f"the round trip between nodes is NOT tested here: {why}")
        self.addCleanup(network.close)
        network.cut(3)
        listener = self.with_pipes(
            [
                *network.enter(1),
                PYTHON,
                "-c",
                (
                    "import socket, sys\n"
                    "s = socket.create_server(('', 7000)); print('ready', flush=True); sys.stdin.read()"
                ),
            ],
            text=True,
        )
        self.assertEqual(listener.stdout.readline(), "ready\n")
        there, refusing, silent = (f"{network.address(node)}:7000" for node in (1, 2, 3))

        def check(*flags):
            return subprocess.run(
                [*network.enter(0), MUSTER, "check", "--peers", f"{there},{refusing},{silent}", *flags],
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                env=clean(),
            )

        done = check("--json", "--max-round-trip", "2000")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        told = json.loads(done.stdout)
        parts = {part["where"]: part for part in told["parts"] if part["name"] == "round trip"}
        self.assertEqual(
            [("value" in parts[peer], parts[peer].get("why", "")) for peer in (there, refusing, silent)],
            [(True, ""), (True, "refused, which counts as an answer"), (False, "no answer in time")],
        )
        self.assertEqual(told["measured"]["round trip"], max(parts[there]["value"], parts[refusing]["value"]))
        self.assertGreater(told["measured"]["round trip"], 0)
        done = check("--max-round-trip", "0.000001")
        self.assertEqual(done.returncode, 204)
        for peer in (there, refusing):
            self.assertRegex(
                done.stderr, rf"round trip to {peer} is [\d.]+ ms, at most .* ms is asked for \(--max-round-trip\)"
            )
        self.assertNotIn(silent, done.stderr)

    @unittest.skipIf(*TOO_SLOW)
    def test_the_builtin_check_passes_or_names_the_figure(self):
        for check, code, said in (
            ("builtin", 0, r"node check passed after .* s: .*memory [\d.]+ GB/s"),
            (
                "builtin --min-memory 1e6",
                204,
                (
                    r"node check failed: `builtin --min-memory 1e6` ended with 204: "
                    r"muster check: memory is .* at least 1000000 GB/s"
                ),
            ),
        ):
            for _ in range(20):  # on a busy machine the two seconds may be over before the memory is measured
                agent = self.start(
                    "--standalone", "--node-check", check, "--log-dir", self.dir, "--no-python", "true", worker=False
                )
                if agent.wait() == code and re.search(said, agent.output()):
                    break
            self.assertEqual(agent.wait(), code, agent.output())
            self.assertRegex(agent.output(), said)


class InContainers(MusterCase):
    def setUp(self):
        super().setUp()
        if reason := containers.why_not():
            raise unittest.SkipTest(reason)

    def test_from_scratch(self):
        """An image without a shell, and little memory: the builtin, and a command that is split at blanks."""
        for check, code, said in (
            ("builtin", 0, "memory [0-9.]+ GB/s"),
            ("/muster check --min-memory 1e6", 204, "at least 1000000 GB/s"),
        ):
            for _ in range(20):  # as above
                box = containers.Container(
                    self.dir, "scratch", ["/muster", "exec", "--node-check", check, "--", "/muster", "version"]
                )
                self.addCleanup(box.remove)
                done = box.run()
                if re.search(said, done.stderr):
                    break
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertRegex(done.stderr, said)


if __name__ == "__main__":
    main()
