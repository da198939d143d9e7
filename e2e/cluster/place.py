# SPDX-License-Identifier: Apache-2.0
"""What a cluster with real nodes uses on its machine: a temporary folder, network namespaces and control groups, which
have one name. Several places can exist at the same time. clean_leftovers() removes those of killed runs: their mounts,
and the processes of their containers, which outlive a run. Needs root.
"""

import fcntl
import glob
import os
import shutil
import subprocess
import tempfile

import control_groups
from network import Network
from processes import Processes

PREFIX = "muster-e2e-"


class Place:
    """`folder`: of an earlier run; None: a new place. This object holds the lock of the folder."""

    def __init__(self, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix=PREFIX)
        self.name = os.path.basename(self.folder)
        self.network = Network(self.name)
        self.lock = open(os.path.join(self.folder, "lock"), "a")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if folder else 0))
        except BlockingIOError:
            self.lock.close()
            raise
        if not folder:
            self.network.create()
            control_groups.create(self.name)

    def group(self, node):
        """The control group of a node. Its programs are in system/ below it, its pods in kubepods/."""
        return f"{self.name}/{node}"

    def add(self, node, number):
        """Makes the network and the control groups of a node."""
        self.network.add(node, number)
        control_groups.create(f"{self.group(node)}/system")

    def thaw(self):
        """Lets the programs of frozen nodes go on. Call it before they are stopped: SIGKILL waits, too."""
        control_groups.thaw(self.name)

    def clean(self):
        """Ends all processes of the place, and removes it."""
        control_groups.kill(self.name)
        Processes(self.folder).stop_all()
        self.unmount(self.folder)
        control_groups.delete(self.name)
        self.network.delete()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.close()

    def unmount(self, folder):
        """Unmounts all that is mounted below `folder`."""
        with open("/proc/self/mountinfo") as file:
            points = [line.split()[4] for line in file]
        for point in sorted((point for point in points if point.startswith(folder + "/")), reverse=True):
            subprocess.run(["umount", "-l", point], capture_output=True)


def clean_leftovers():
    """Removes the places of killed runs: their locks are free."""
    for folder in glob.glob(os.path.join(tempfile.gettempdir(), f"{PREFIX}*")):
        if os.path.exists(os.path.join(folder, "lock")):
            try:
                place = Place(folder)
            except BlockingIOError:
                continue
            place.clean()
