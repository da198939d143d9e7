"""How a file of Python tests ends: main() runs what the command line names, as unittest.main() does.

It exits with 77 (ctest: skipped) where all of it was skipped, so that what was not tested does not look tested; with 0 where
something passed, and the reason of each skip stands last either way; else with 1.
"""
import sys
import unittest

SKIPPED = 77


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
    return SKIPPED if result.skipped else 1  # no test at all is a mistake


def main():
    result = unittest.main(verbosity=2, exit=False, testRunner=unittest.TextTestRunner(verbosity=2, resultclass=Result)).result
    for test, reason in result.skipped:
        print(f"SKIPPED: {test.id()}: {reason.removeprefix('SKIPPED: ')}", file=sys.stderr)
    sys.exit(exit_code(result))
