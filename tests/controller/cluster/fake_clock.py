# SPDX-License-Identifier: Apache-2.0
"""A fake wall clock for one program. A test can set it while the program runs."""

import os

from cluster_case import BIN


class FakeClock:
    """`command`: the beginning of the command line of a program that gets this clock. Its timers and its monotonic
    clock stay the machine's."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "clock")
        library = os.path.join(BIN, "other_clock.so")
        self.command = [
            "env",
            f"LD_PRELOAD={library}",
            f"MUSTER_TEST_CLOCK_OFFSET={self.path}",
            "ASAN_OPTIONS=verify_asan_link_order=0",
        ]
        self.set("+0")

    def set(self, offset):
        """Sets the clock from now on. "-3600": an hour behind the machine's."""
        with open(self.path + ".new", "w") as file:
            file.write(offset + "\n")
        os.rename(self.path + ".new", self.path)
