# SPDX-License-Identifier: Apache-2.0
"""What the programs that run scenarios share: the choice of scenarios, the table of their outcomes, a cluster that is
removed at the end."""

import contextlib
import os
import shutil
import sys
import time
import unittest

import installation
from cluster import Cluster, binaries
from place import Place
from processes import Broken

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
FLAGS = {
    "apiserver": [GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
    "scheduler": [GATES],
    # A node that does not report for 20 s is not ready. The default of 50 s would make tests longer.
    "controller-manager": [GATES, "--node-monitor-grace-period", "20s"],
}


class Table(unittest.TestResult):
    """Prints each outcome as it comes, and saves the objects and logs of a failed scenario in `folder`. `cluster`: of
    the scenarios that run now; None: they have none."""

    def __init__(self, folder, cluster=None):
        super().__init__()
        self.cluster = cluster
        self.folder = folder
        self.rows = []
        self.began = time.monotonic()  # the test that runs now, or the class before its first test

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def tell(self, test, outcome, why=""):
        self.rows.append((name_of(test), outcome, time.monotonic() - self.began))
        print(f"{outcome:8} {name_of(test)} ({self.rows[-1][2]:.1f} s) {why}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell(test, "passed", getattr(test, "remark", ""))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell(test, "skipped", reason)

    def addError(self, test, error):
        super().addError(test, error)
        self.failed(test, self.errors[-1][1])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.failed(test, self.failures[-1][1])

    def failed(self, test, text):
        """Called before the scenario's cleanups delete what is saved here. A failed cleanup gets its own folder."""
        self.tell(test, "FAILED", f"\n{text}")
        if self.cluster:
            folder = os.path.join(self.folder, name_of(test))
            installation.save(
                self.cluster,
                getattr(test, "namespace", "default"),
                folder + ("-deleted" if os.path.exists(folder) else ""),
            )

    def end(self, failure):
        """Prints all rows. Ends the program with 1 after `failure` or a failed scenario, else removes the folder."""
        width = max([len(name) for name, _, _ in self.rows] + [8])
        print(f"\n{'scenario':{width}}  outcome  seconds")
        for name, outcome, seconds in self.rows:
            print(f"{name:{width}}  {outcome:7}  {seconds:7.1f}")
        if failure or not self.wasSuccessful():
            sys.exit(f"{failure or 'not all as promised'}\nobjects and logs: {self.folder}")
        shutil.rmtree(self.folder)


def name_of(test):
    return test.id().replace("_scenarios", "").replace("test_", "")


def chosen(modules, parts):
    """The tests of `modules` with one of `parts` in their names; all if there are no parts."""
    suite = unittest.defaultTestLoader.loadTestsFromNames(modules)
    tests = [test for module in suite for case in module for test in case]
    return [test for test in tests if not parts or any(part in name_of(test) for part in parts)]


@contextlib.contextmanager
def real_cluster(kept):
    """Yields a place and its cluster, which the caller starts. At the end both are removed. If something is Broken,
    objects and logs are saved in the folder `kept` before."""
    place, cluster = Place(), None
    try:
        cluster = Cluster(place.folder, binaries(build=True), place.name, FLAGS)
        yield place, cluster
    except Broken:
        if cluster:
            installation.save(cluster, "default", os.path.join(kept, "installation"))
        raise
    finally:
        if cluster:
            place.thaw()
            cluster.stop()
        place.clean()
