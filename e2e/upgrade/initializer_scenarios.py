# SPDX-License-Identifier: Apache-2.0
"""A download that one version has begun, and another one completes; a target that one has filled, and another one
checks."""

import glob
import io
import os
import signal
import tarfile
import unittest.mock

import initializer_case
from initializer_case import DEADLINE, MIB, InitializerCase, some_bytes

import versions
from web_server import WebServer

SIZE = 120 * MIB
FILES = 12


class Downloads:
    """A mixin of InitializerCase, beside OldFirst or NewFirst."""

    role = "model"

    def setUp(self):
        super().setUp()
        self.server = WebServer()
        self.addCleanup(self.server.close)

    def by(self, version):
        """Inside, runs are of that version."""
        return unittest.mock.patch.object(initializer_case, "BINARY", version.program("muster-initializer"))

    def noted(self):
        """Bytes of files that are noted as here."""
        lines = []
        for journal in glob.glob(os.path.join(self.target, ".muster", "staging", "*.ranges")):
            with open(journal) as file:
                lines += [line for line in file if line.endswith("\n")]
        return sum(int(line.split()[1]) for line in lines)

    def killed_after(self, count, url):
        """A run that is killed when the server has sent so many bytes."""
        sent = [0]
        process = self.start(url)

        def told(size):
            sent[0] += size
            if sent[0] >= count:
                process.kill()

        self.server.sent = told
        self.assertEqual(process.wait(DEADLINE), -signal.SIGKILL)
        self.server.sent = lambda _: None
        self.check_nothing()
        return self.noted()

    def test_a_killed_download_is_completed(self):
        """What is noted is not fetched again. The second version is killed, too, before the first one ends it."""
        data = some_bytes(SIZE)
        self.server.files["/weights.bin"] = data
        url = self.server.url + "/weights.bin"
        with self.by(self.first):
            before = self.killed_after(SIZE // 3, url)
        self.assertGreater(before, 0)
        with self.by(self.second):
            both = self.killed_after(SIZE // 3, url)
        self.assertGreater(both, before)
        with self.by(self.first):
            end = self.succeeds(url, {"weights.bin": data})
        self.assertEqual((end["kept"], end["kept"] + end["received"]), (both, SIZE))

    def test_the_other_version_completes_it(self):
        data = some_bytes(SIZE)
        self.server.files["/weights.bin"] = data
        url = self.server.url + "/weights.bin"
        with self.by(self.first):
            noted = self.killed_after(SIZE // 2, url)
        self.assertGreater(noted, 0)
        with self.by(self.second):
            end = self.succeeds(url, {"weights.bin": data})
        self.assertEqual((end["kept"], end["kept"] + end["received"]), (noted, SIZE))

    def test_what_is_whole_is_not_fetched_again(self):
        """Each version finds the other one's target unchanged, and replaces it when the source has changed."""
        data = some_bytes(3 * MIB)
        self.server.files["/weights.bin"] = data
        url = self.server.url + "/weights.bin"
        for number in range(2):
            with self.by(self.first):
                self.succeeds(url, {"weights.bin": data})
            gets = self.server.count("GET")
            for version in (self.second, self.first):
                with self.by(version):
                    self.assertTrue(self.succeeds(url, {"weights.bin": data})["unchanged"])
            self.assertEqual(self.server.count("GET"), gets)
            data = some_bytes(2 * MIB, 2 + number)
            self.server.files["/weights.bin"] = data
            with self.by(self.second):
                self.succeeds(url, {"weights.bin": data})

    def test_a_folder_that_was_half_copied(self):
        """A local source of several files: the copy is killed at one of its renames, and the other version ends it."""
        source = os.path.join(self.dir, "source")
        os.mkdir(source)
        expected = {}
        for number in range(FILES):
            expected[f"part-{number}"] = some_bytes(MIB, number)
            with open(os.path.join(source, f"part-{number}"), "wb") as file:
                file.write(expected[f"part-{number}"])
        library = os.path.join(versions.NEW.folder, "dies_at_rename.so")  # of the tests' build
        with self.by(self.first), unittest.mock.patch.dict(os.environ, MUSTER_DIES_AT_RENAME=library):
            self.assertTrue(self.dies_at_rename(FILES // 2, f"file://{source}"))
        self.assertEqual(len(self.staged()), FILES // 2 - 1)
        with self.by(self.second):
            end = self.succeeds(f"file://{source}", expected)
        self.assertGreaterEqual(end["kept"], (FILES // 2 - 1) * MIB)
        self.assertEqual(end["kept"] + end["received"], FILES * MIB)

    def test_an_archive_that_was_half_unpacked(self):
        self.flags = ("--extract",)
        source = os.path.join(self.dir, "source")
        os.mkdir(source)
        expected = {f"{number}.bin": some_bytes(40_000, number) for number in range(100)}
        with tarfile.open(os.path.join(source, "data.tar.gz"), "w:gz", compresslevel=1) as archive:
            for name, content in expected.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        library = os.path.join(versions.NEW.folder, "dies_at_rename.so")
        with self.by(self.first), unittest.mock.patch.dict(os.environ, MUSTER_DIES_AT_RENAME=library):
            self.assertTrue(self.dies_at_rename(50, f"file://{source}"))
        self.assertEqual(len(self.staged()), 49)
        with self.by(self.second):
            self.succeeds(f"file://{source}", expected)
        with self.by(self.first):
            self.assertTrue(self.succeeds(f"file://{source}", expected)["unchanged"])


class OldDownload(Downloads, versions.OldFirst, InitializerCase):
    pass


class NewDownload(Downloads, versions.NewFirst, InitializerCase):
    pass
