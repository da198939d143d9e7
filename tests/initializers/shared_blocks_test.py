# SPDX-License-Identifier: Apache-2.0
"""muster-initializer with a source folder on the target's file system: with reflinks large files share their blocks and
take no space; else they are copied, within the kernel if no hash is computed."""

import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import MIB, main, preloaded, some_bytes
from local_case import LocalCase

LARGE = 20 * MIB + 5
LITTLE = 6 * MIB  # bytes that a file system may need for itself


class VolumeCase(LocalCase):
    """Source and target on one file system that is made for the test."""

    made_by = size = None

    def setUp(self):
        super().setUp()
        self.target = os.path.join(self.volume, "target")
        self.log = os.path.join(self.dir, "copies")

    def home(self):
        self.volume = self.make(self.made_by, self.size)
        return self.volume

    def make(self, made_by, size):
        """Makes a file system; returns where it is mounted."""
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        if not shutil.which(made_by[0], path="/usr/sbin:/sbin:" + os.environ["PATH"]):
            self.skipTest(f"there is no {made_by[0]}: run make deps")
        folder = os.path.join(self.dir, f"volume{len(os.listdir(self.dir))}")
        image = f"{folder}.image"
        with open(image, "wb") as file:
            file.truncate(size)
        os.mkdir(folder)
        for words in ([*made_by, image], ["mount", "-o", "loop", image, folder]):
            done = subprocess.run(
                words, capture_output=True, text=True, env={"PATH": "/usr/sbin:/sbin:" + os.environ["PATH"]}
            )
            if done.returncode != 0:
                self.skipTest(f"{words[0]}: {done.stderr}")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def anew(self):
        shutil.rmtree(self.target, ignore_errors=True)
        if os.path.exists(self.log):
            os.unlink(self.log)
        self.more = preloaded("notes_copies", MUSTER_TEST_COPIES=self.log)

    def calls(self):
        """The copy calls of the last run, and their results."""
        if not os.path.exists(self.log):
            return set()
        with open(self.log) as file:
            return {tuple(line.split()) for line in file}

    def free(self):
        os.sync()
        facts = os.statvfs(self.volume)
        return facts.f_bavail * facts.f_frsize

    def fill(self, leave):
        """Fills the file system except for `leave` bytes."""
        with open(os.path.join(self.volume, "other"), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.free() - leave)
        os.sync()

    def is_shared(self, path):
        """True if all its blocks but the last, which the file may end within, are shared with another file."""
        listed = subprocess.run(
            ["filefrag", "-v", os.path.join(self.target, path)], capture_output=True, text=True, check=True
        ).stdout
        extents = re.findall(r"^ *\d+: +(\d+)\.\. *(\d+):.* (\S+)$", listed, re.MULTILINE)
        self.assertNotEqual(extents, [], listed)
        return (
            sum(int(last) + 1 - int(first) for first, last, flags in extents if "shared" not in flags.split(",")) <= 1
        )


class Reflinks:
    def test_large_files_share_their_blocks(self):
        files = self.lay({"small": b"x" * 5000, "w.bin": some_bytes(LARGE), "sub/v.bin": some_bytes(MIB, 2)})
        for flags in ((), ("--verify=size",)):
            with self.subTest(flags):
                self.anew()
                before = self.free()
                end = self.succeeds(self.uri, files, *flags)
                self.assertLess(before - self.free(), LITTLE)
                self.assertTrue(self.is_shared("w.bin") and self.is_shared("sub/v.bin"))
                self.assertEqual(self.calls(), {("reflink", "ok")})
                self.assertEqual(end["received"], sum(map(len, files.values())))
                hashed = [bool(file["hash"]) for file in self.manifest()["files"]]
                self.assertEqual(hashed, [not flags] * 3)
        with open(os.path.join(self.target, "w.bin"), "r+b") as file:
            file.write(b"mine")
        with open(os.path.join(self.source, "w.bin"), "rb") as file:
            self.assertTrue(file.read() == files["w.bin"], "the source is as it was")

    def test_they_take_no_room(self):
        files = self.lay({"w.bin": some_bytes(LARGE), "v.bin": some_bytes(LARGE, 2), "small": b"x"})
        self.fill(LITTLE)
        for flags in ((), ("--verify=size",), ("--hard-link",)):
            with self.subTest(flags):
                self.anew()
                self.succeeds(self.uri, files, *flags)

    def test_of_a_claim_elsewhere_they_do(self):
        other, self.source = self.source, self.make(self.made_by, self.size)
        self.lay({"w.bin": some_bytes(LARGE), "v.bin": some_bytes(LARGE, 2)})
        self.fill(LARGE)
        self.refused(f"file://{self.source}", 1, r"needs \d+ bytes and \d+ are free .*give it a larger volume")
        self.assertEqual(os.listdir(other), [])

    def test_another_file_system(self):
        self.source = self.make(self.made_by, self.size)
        files = self.lay({"small": b"x", "w.bin": some_bytes(LARGE)})
        for flags in ((), ("--verify=size",)):
            with self.subTest(flags):
                self.anew()
                self.succeeds(f"file://{self.source}", files, *flags)
                self.assertFalse(self.is_shared("w.bin"))
                self.assertNotIn(("reflink", "ok"), self.calls())


class Xfs(Reflinks, VolumeCase):
    made_by, size = ("mkfs.xfs", "-q", "-m", "reflink=1"), 320 * MIB


class Btrfs(Reflinks, VolumeCase):
    made_by, size = ("mkfs.btrfs", "-q", "--mixed"), 256 * MIB


class Ext4(VolumeCase):
    """Without reflinks."""

    made_by, size = ("mkfs.ext4", "-q"), 128 * MIB

    def test_it_is_copied(self):
        files = self.lay({"small": b"x", "w.bin": some_bytes(LARGE)})
        self.anew()
        self.succeeds(self.uri, files)
        self.assertEqual({what for what, how in self.calls() if how == "ok"}, set(), "every byte is read for its hash")
        self.anew()
        self.succeeds(self.uri, files, "--verify=size")
        self.assertEqual({what for what, how in self.calls() if how == "ok"}, {"copy_file_range"})
        self.assertFalse(self.is_shared("w.bin"))

    def test_out_of_another_file_system(self):
        self.source = self.make(("mkfs.xfs", "-q"), 320 * MIB)
        files = self.lay({"w.bin": some_bytes(LARGE)})
        self.anew()
        self.succeeds(f"file://{self.source}", files, "--verify=size")

    def test_there_is_no_room_for_copies(self):
        self.lay({"w.bin": some_bytes(LARGE), "v.bin": some_bytes(LARGE, 2)})
        self.fill(LARGE)
        self.refused(self.uri, 1, r"needs \d+ bytes and \d+ are free .*give it a larger volume")


if __name__ == "__main__":
    main()
