# SPDX-License-Identifier: Apache-2.0
"""main() of a file of Python tests: runs what the command line names, as unittest.main() does.

It exits with 1 if a test failed or there was none, 0 if at least one passed, and 77 (ctest: skipped) if all were
skipped, so that a skipped class does not count as passed. The reason of each skip is printed last.
"""

import os
import sys
import unittest

SKIPPED = 77
EMULATED = "MUSTER_EMULATED" in os.environ  # build-support/with-arm64 sets it


def not_emulated(reason):
    """For a test or a class that no emulated processor can pass. `reason`: what the emulator does not do."""
    return unittest.skipIf(EMULATED, f"SKIPPED: under emulation: {reason}")


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def exit_code(result):
    if not result.wasSuccessful():
        return 1
    if result.passed:
        return 0
    return SKIPPED if result.skipped else 1  # 1: there was no test


def main():
    result = unittest.main(
        verbosity=2, exit=False, testRunner=unittest.TextTestRunner(verbosity=2, resultclass=Result)
    ).result
    for test, reason in result.skipped:
        print(f"SKIPPED: {test.id()}: {reason.removeprefix('SKIPPED: ')}", file=sys.stderr)
    sys.exit(exit_code(result))
