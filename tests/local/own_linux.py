# SPDX-License-Identifier: Apache-2.0
"""A Linux of a test's own, with cgroup v2: user-mode Linux, a process on this machine that sees its files."""

import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

from local_case import DEADLINE, clean

KERNEL = "linux.uml"
# Its first process. Whatever happens, the machine is turned off at the end.
INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmp /dev/shm
mount -t tmpfs -o mode=1777 tmp /mnt
ip link set lo up
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root {environment}
cd {folder}
({script}) > {folder}/own-linux.out 2>&1
echo $? > {folder}/own-linux.code
echo o > /proc/sysrq-trigger
while :; do sleep 1; done
"""


class CannotBegin(Exception):
    """The kernel ended before its first process had run."""


def require():
    if shutil.which(KERNEL) is None:
        raise unittest.SkipTest(f"SKIPPED: {KERNEL} is not installed (user-mode-linux)")
    with tempfile.TemporaryDirectory(prefix="muster-own-linux-") as folder:
        try:
            run("true", folder)
        except CannotBegin as error:
            # It keeps the registers of a process in a buffer that is too small for those of newer processors (AMX).
            if "put_fp_registers" in str(error):
                raise unittest.SkipTest(f"SKIPPED: {KERNEL} cannot start a process on this processor") from None
            raise


def run(script, folder, **environment):
    """Runs it as root, in `folder`; its exit code, and what it has written. CannotBegin: the kernel ended before."""
    init = os.path.join(folder, "own-linux.init")
    with open(init, "w") as file:
        file.write(
            INIT.format(
                script=script,
                folder=shlex.quote(folder),
                environment=" ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items()),
            )
        )
    os.chmod(init, 0o755)
    done = subprocess.run(
        [
            KERNEL,
            "mem=1G",
            "rootfstype=hostfs",
            "rootflags=/",
            "rw",
            f"init={init}",
            "con=null",
            "con0=null,fd:1",
            "panic=-1",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=DEADLINE,
        env=clean(HOME=folder, TMPDIR="/dev/shm"),
    )
    try:
        with open(os.path.join(folder, "own-linux.code")) as file:
            code = int(file.read())
    except (FileNotFoundError, ValueError):
        raise CannotBegin(
            f"user-mode Linux ended with {done.returncode} before the script had: {done.stdout[-4000:]}"
        ) from None
    with open(os.path.join(folder, "own-linux.out"), errors="replace") as file:
        return code, file.read()
