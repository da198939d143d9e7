# SPDX-License-Identifier: Apache-2.0
"""Which sanitizer is in a binary. With one, freed memory stays in use, and the binary is dynamic and slow."""

import mmap


def sanitizer_of(binary):
    """ "address", "thread", or None."""
    with open(binary, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return "address" if text.find(b"__asan_init") >= 0 else "thread" if text.find(b"__tsan_init") >= 0 else None
