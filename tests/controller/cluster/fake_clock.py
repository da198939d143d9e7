"""A clock of its own for a program, by libfaketime."""
import glob
import os
import unittest

LIBRARIES = os.environ.get("MUSTER_FAKETIME", "/usr/lib/*/faketime/libfaketime.so.1")


class FakeClock:
    """`command` begins the command line of a program that has this clock. Its monotonic clock is the machine's."""

    def __init__(self, folder):
        found = glob.glob(LIBRARIES)
        if not found:
            raise unittest.SkipTest("SKIPPED: libfaketime is not installed (Debian's package faketime)")
        self.path = os.path.join(folder, "clock")
        self.command = ["env", f"LD_PRELOAD={found[0]}", f"FAKETIME_TIMESTAMP_FILE={self.path}", "FAKETIME_NO_CACHE=1",
                        "FAKETIME_DONT_FAKE_MONOTONIC=1"]
        self.set("+0")

    def set(self, offset):
        """"-3600": an hour behind the machine's, from now on."""
        with open(self.path + ".new", "w") as file:
            file.write(offset + "\n")
        os.rename(self.path + ".new", self.path)
