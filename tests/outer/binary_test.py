# SPDX-License-Identifier: Apache-2.0
"""The binary itself: needs nothing of the image that it is copied into, and is small enough to be copied into many."""

import os
import struct
import subprocess
import unittest

from muster_case import MUSTER, MusterCase, main, sanitized

from class_runner import EMULATED

PT_DYNAMIC, PT_INTERP = 2, 3
MOST_BYTES = 17_000_000
STRIP = "aarch64-linux-gnu-strip" if EMULATED else "strip"


@unittest.skipIf(sanitized(), "a sanitizer's binary is dynamic and large")
class Binary(MusterCase):
    def segments(self):
        """The types of the binary's program headers."""
        with open(MUSTER, "rb") as file:
            head = file.read(64)
            self.assertEqual(head[:6], b"\x7fELF\x02\x01", "want a 64-bit little-endian ELF file")
            (offset,) = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            file.seek(offset)
            table = file.read(size * count)
        return {struct.unpack_from("<I", table, at * size)[0] for at in range(count)}

    def test_it_is_static(self):
        self.assertFalse(self.segments() & {PT_INTERP, PT_DYNAMIC})

    def test_it_is_small(self):
        stripped = os.path.join(self.dir, "muster")
        subprocess.run([STRIP, "-o", stripped, MUSTER], check=True)
        self.assertLessEqual(os.path.getsize(stripped), MOST_BYTES)


if __name__ == "__main__":
    main()
