# SPDX-License-Identifier: Apache-2.0
"""Control groups of a cluster's nodes: who is in them, and all of them frozen or killed at once. Version 1 and 2.

A group is a path below the root of each hierarchy. The processes of a node are those of its group in the hierarchy that
can freeze: with version 1 that of the freezer, else the only one. Needs root.
"""

import os
import selectors
import signal
import sys


def hierarchies():
    """(mount point, type, options) of each hierarchy."""
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file]
    for mount in mounts:
        kind, _, options = mount[mount.index("-") + 1 :][:3]
        if kind in ("cgroup", "cgroup2"):
            yield mount[4], kind, options.split(",")


def freezer():
    """The mount point of the hierarchy that can freeze, and whether it is of version 1."""
    found = list(hierarchies())
    for point, kind, options in found:
        if kind == "cgroup" and "freezer" in options:
            return point, True
    return next(point for point, kind, _ in found if kind == "cgroup2"), False


def create(group):
    for point, _, _ in hierarchies():
        os.makedirs(os.path.join(point, group), exist_ok=True)


def join(group):
    """The words that run the command after them in a group."""
    procs = os.path.join(freezer()[0], group, "cgroup.procs")
    return ["sh", "-c", f'echo $$ >{procs} && exec "$@"', "join"]


def processes(group):
    """The pids of a group and of those below it."""
    found = []
    for path, _, _ in os.walk(os.path.join(freezer()[0], group)):
        try:
            with open(os.path.join(path, "cgroup.procs")) as file:
                found += map(int, file.read().split())
        except OSError:  # the group has just gone
            continue
    return found


def _write(group, frozen):
    point, first_version = freezer()
    name, word = ("freezer.state", ["THAWED", "FROZEN"]) if first_version else ("cgroup.freeze", "01")
    try:
        with open(os.path.join(point, group, name), "w") as file:
            file.write(word[frozen])
    except FileNotFoundError:  # the group has just gone
        pass


def freeze(group):
    """Stops the processes of a group and of those below it, without a signal that they could see."""
    _write(group, True)


def thaw(group):
    """Lets them go on, also those of groups below it that were frozen by themselves."""
    root = freezer()[0]
    for path, _, _ in os.walk(os.path.join(root, group)):
        _write(os.path.relpath(path, root), False)


def kill(group):
    """Kills a group's processes, none of which sees another one end. Returns when they have ended."""
    freeze(group)
    while doomed := processes(group):
        watched = []
        for process in doomed:
            try:
                watched.append(os.pidfd_open(process))
                signal.pidfd_send_signal(watched[-1], signal.SIGKILL)
            except ProcessLookupError:  # it has just ended
                continue
        thaw(group)
        for descriptor in watched:
            with selectors.DefaultSelector() as selector:
                selector.register(descriptor, selectors.EVENT_READ)
                if not selector.select(30):
                    raise TimeoutError(f"a process of {group} does not end 30 s after SIGKILL")
            os.close(descriptor)
    thaw(group)


def delete(group):
    for point, _, _ in hierarchies():
        for path, _, _ in os.walk(os.path.join(point, group), topdown=False):
            try:
                os.rmdir(path)
            except OSError as error:  # a process in the group is still ending
                print(f"{path}: {error.strerror}", file=sys.stderr)
