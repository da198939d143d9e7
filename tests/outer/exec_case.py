# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of `muster exec`."""

import os
import signal
import subprocess

from muster_case import DEADLINE, MUSTER, PYTHON, MusterCase, clean

from class_runner import EMULATED

# The real-time signals that the tests send. None under emulation: qemu gives them other numbers.
REAL_TIME = [] if EMULATED else range(signal.SIGRTMIN, signal.SIGRTMAX + 1)

# Prints each signal it gets, one line each, and ends by none of them. It uses sigwait: a signal that came between a
# handler's check and a pause() would only be reported with the next one.
LISTENER = """
import os, signal
numbers = {*range(1, 32), *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)}
numbers -= {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
os.write(1, b"ready\\n")
while number := signal.sigwait(numbers): os.write(1, f"{int(number)}\\n".encode())
"""
POLITE = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.write(1, b"ready\\n")
signal.sigwait([signal.SIGTERM])
sys.exit(int(sys.argv[1]))
"""


class ExecCase(MusterCase):
    def run_exec(self, *arguments, muster=MUSTER, **more):
        more.setdefault("env", clean())
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [muster, "exec", *arguments], capture_output=True, text=True, errors="replace", timeout=DEADLINE, **more
        )

    def begin(self, *arguments, prefix=(), **more):
        """Starts `muster exec` with pipes; killed at the end of the test."""
        more.setdefault("env", clean())
        return self.with_pipes([*prefix, MUSTER, "exec", *arguments], text=True, bufsize=1, **more)

    def script(self, text):
        path = os.path.join(self.dir, f"script-{len(os.listdir(self.dir))}.py")
        with open(path, "w") as file:
            file.write(text)
        return [PYTHON, path]
