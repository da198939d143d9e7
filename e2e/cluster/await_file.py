# SPDX-License-Identifier: Apache-2.0
"""Waits until there is a file, by inotify, which also tells of files that a pod makes in a folder of the machine."""

import ctypes
import os
import select
import time

from processes import Broken

LIBC = ctypes.CDLL(None, use_errno=True)
IN_MOVED_TO, IN_CREATE = 0x80, 0x100


def await_file(path, seconds):
    """Its folder must exist. Broken: there is no such file within `seconds`."""
    folder, until = os.path.dirname(path), time.monotonic() + seconds
    watch = LIBC.inotify_init1(os.O_CLOEXEC)
    try:
        if watch < 0 or LIBC.inotify_add_watch(watch, os.fsencode(folder), IN_CREATE | IN_MOVED_TO) < 0:
            raise Broken(f"{folder} cannot be watched: {os.strerror(ctypes.get_errno())}")
        while not os.path.exists(path):
            if not select.select([watch], [], [], max(0, until - time.monotonic()))[0]:
                raise Broken(f"there is no {path} after {seconds:g} s")
            os.read(watch, 4096)
    finally:
        if watch >= 0:
            os.close(watch)
