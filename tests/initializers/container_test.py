# SPDX-License-Identifier: Apache-2.0
"""muster-initializer as an init container: variables only, not root, a read-only root, little memory, PID 1."""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "outer")]

from initializer_case import BINARY, DEADLINE, MIB, InitializerCase, main

from containers import Container, bind, debian_root, why_not

SOURCE = os.path.dirname(os.path.dirname(HERE))
USER = 1000


class Init(InitializerCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)

    def setUp(self):
        super().setUp()
        self.claim = os.path.join(self.dir, "claim")
        self.said_last = os.path.join(self.dir, "termination-log")
        os.makedirs(os.path.join(self.claim, "train"))
        os.mkdir(self.target)
        with open(self.said_last, "w"):
            pass
        for path in (self.dir, self.target, self.said_last):
            os.chown(path, USER, USER)
        os.chmod(self.dir, 0o755)

    def lay(self, files):
        for name, data in files.items():
            with open(os.path.join(self.claim, "train", name), "wb") as file:
                file.write(data)
        return files

    def container(self, memory, *more, image="debian", flags=()):
        mounts = [
            bind(BINARY, "/muster-initializer"),
            bind(self.claim, "/mnt/pvc/data"),
            bind(self.target, "/workspace/dataset", True),
            bind(self.said_last, "/dev/termination-log", True),
        ]
        return Container(
            self.dir,
            image=image,
            command=["/muster-initializer", "dataset", *flags],
            user=USER,
            mounts=mounts,
            memory=memory,
            tmp=False,
            env=["STORAGE_URI=pvc://data/train", *more],
        )

    def test_it_fills_the_volume(self):
        """Brings 300 MiB with a memory limit of 64 MiB."""
        files = self.lay({"0.bin": random.Random(1).randbytes(MIB) * 300, "1.txt": b"one", "skip.md": b"no"})
        del files["skip.md"]
        done = self.container(64 * MIB, "IGNORE_PATTERNS=*.md").run()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_right(files)
        with open(self.said_last) as file:
            message = json.load(file)
        self.assertEqual((message["exit_code"], message["class"], message["files"]), (0, "success", 2))
        again = self.container(64 * MIB, "IGNORE_PATTERNS=*.md").run()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("no byte was moved", again.stderr)

    def test_an_archive_whose_window_does_not_fit(self):
        """It is an error with a message, before the kernel kills the process for memory. A usual window fits."""
        if not shutil.which("zstd"):
            self.skipTest("zstd is missing")
        data = random.Random(1).randbytes(40 * MIB)
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            facts = tarfile.TarInfo("f")
            facts.size = len(data)
            archive.addfile(facts, io.BytesIO(data))
        for level, fits in (("--long=27", False), ("--long=23", True)):  # 8 MiB, as of -19
            packed = subprocess.run(
                ["zstd", "-q", "-c", level, "-T2"], input=tar.getvalue(), stdout=subprocess.PIPE, check=True
            ).stdout
            self.lay({"d.tar.zst": packed})
            done = self.container(64 * MIB, flags=["--extract"]).run()
            self.assertEqual(done.returncode, 0 if fits else 1, done.stderr)
            if not fits:
                self.assertIn(
                    "its window (--long, --ultra) needs 128 MiB of memory, and 8 MiB is available", done.stderr
                )
        self.check_right({"f": data})

    def test_it_runs_with_no_more_than_its_image_has(self):
        with open(os.path.join(SOURCE, "images", "initializer-packages.txt")) as listed:
            packages = [line.strip() for line in listed if not line.startswith("#")]
        root, missing = debian_root("initializer", "bookworm", *packages)
        if missing:
            self.skipTest(missing)
        needed = subprocess.run(["readelf", "-d", BINARY], capture_output=True, text=True, check=True).stdout
        if "san.so" in needed:
            self.skipTest("SKIPPED: a sanitizer's library is in no image")
        files = self.lay({"a.bin": b"1" * MIB})
        done = self.container(64 * MIB, image=root).run()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_right(files)

    def test_a_volume_that_is_not_ours(self):
        self.lay({"f": b"1"})
        os.chown(self.target, 0, 0)
        os.chmod(self.target, 0o755)
        done = self.container(64 * MIB).run()
        self.assertEqual(done.returncode, 1, done.stderr)
        with open(self.said_last) as file:
            self.assertRegex(json.load(file)["reason"], "(?i)permission denied")

    def test_it_is_told_to_go(self):
        """The runtime stops it, as PID 1; the next start continues."""
        files = self.lay({"0.bin": random.Random(1).randbytes(MIB) * 400})
        box = self.container(64 * MIB)
        process = subprocess.Popen(
            box.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

        def ended():
            process.kill()
            process.communicate()

        self.addCleanup(ended)
        self.addCleanup(box.remove)
        staging = os.path.join(self.target, ".muster", "staging")
        end = time.monotonic() + DEADLINE
        while process.poll() is None and not os.path.isdir(staging):
            self.assertLess(time.monotonic(), end, "nothing is brought in")
        box.kill("TERM")
        _, said = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, said)
        self.assertIn("the next start goes on from it", said)
        self.check_nothing()
        done = self.container(64 * MIB).run()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_right(files)


if __name__ == "__main__":
    main()
