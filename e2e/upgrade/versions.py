# SPDX-License-Identifier: Apache-2.0
"""The two versions between which jobs are moved: the old one of build-support/setup-old-version, and this build."""

import os
import subprocess

from installation import ROOT
from processes import Broken

PROGRAMS = ("muster", "muster-initializer", "muster-local", "muster-controller")
SETUP = os.path.join(ROOT, "build-support", "setup-old-version")


class Version:
    """`folder`: of the programs. `sources`: of the manifests and the chart. `name`: also the tag of its images."""

    def __init__(self, name, folder, sources):
        self.name, self.folder, self.sources = name, folder, sources

    def program(self, name):
        return os.path.join(self.folder, name)

    @property
    def muster(self):
        return self.program("muster")

    def says(self):
        """What its agent says of itself: version and commit."""
        return subprocess.run(
            [self.muster, "--version"], check=True, capture_output=True, text=True
        ).stdout.splitlines()[0]

    def missing(self):
        return [name for name in PROGRAMS if not os.access(self.program(name), os.X_OK)]


OLD = Version("old", "", "")
NEW = Version("new", "", ROOT)


def find(folder, ref=()):
    """Fills OLD and NEW. `folder`: with the programs of this build. `ref`: what setup-old-version builds."""
    done = subprocess.run([SETUP, *ref], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Broken("the old version could not be built")
    OLD.folder, OLD.sources = (os.path.join(done.stdout.strip(), name) for name in ("bin", "source"))
    NEW.folder = folder
    if missing := NEW.missing():
        raise Broken(f"{folder} lacks {', '.join(missing)}: run `make build` first")
    if OLD.says() == NEW.says():
        raise Broken(f"both versions are {OLD.says()}; --old names another one")


class OldFirst:
    """A mixin: the old version is where a job begins."""

    first, second = OLD, NEW


class NewFirst:
    """A mixin: the new version is where a job begins."""

    first, second = NEW, OLD
