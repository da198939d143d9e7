# SPDX-License-Identifier: Apache-2.0
"""muster-initializer with a bad target: it fills up during the run, is read-only, is not a folder, has links to the
outside. Also --then while others wait for the folder."""

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import BINARY, DEADLINE, MIB, main, preloaded, some_bytes
from local_case import LocalCase

from class_runner import not_emulated
from web_server import WebServer

NO_ROOM = "No space left on device; give it a larger volume, or make room"


class TargetCase(LocalCase):
    def in_target(self, path):
        return os.path.join(self.target, path)

    def mount(self, *words):
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        os.makedirs(self.target, exist_ok=True)
        mounted = subprocess.run(["mount", *words, self.target], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", self.target], check=True)

    def fails(self, uri, words, *flags):
        """Fails with the exit code for a setting that must be changed."""
        code, end = self.fetch(uri, *flags)
        self.assertEqual((code, end.get("event")), (1, "failed"), self.said)
        self.assertRegex(end["reason"], words)

    def nothing_but(self, *others):
        self.assertEqual(sorted(self.target_files()), sorted(others))
        self.assertFalse(os.path.exists(self.in_target(".muster/manifest.json")))


@not_emulated("qemu has no seccomp")
class Denied(TargetCase):
    """A kernel, sandbox or seccomp profile without some system calls."""

    def under(self, calls, number):
        deny = os.environ.get("MUSTER_DENY", os.path.join(os.path.dirname(BINARY), "muster_deny"))
        self.prefix = (deny, calls, str(number))

    def test_it_does_without(self):
        files = self.lay({"small": b"text", "deep/large": some_bytes(3 * MIB)})
        log = os.path.join(self.dir, "log")
        for number in (errno.ENOSYS, errno.EPERM):
            for calls in (
                "pidfd_open,close_range",
                "openat2,copy_file_range,fallocate",
                "statx,renameat2,getrandom,memfd_create",
            ):
                with self.subTest(calls=calls, error=errno.errorcode[number]):
                    self.under(calls, number)
                    code, end = self.fetch(self.uri, "--then", f"echo x >> {log}")
                    self.assertEqual((code, end.get("event")), (0, "done"), self.said)
                    self.check_right(files)
                    shutil.rmtree(self.target)
        with open(log) as file:
            self.assertEqual(file.read(), "x\n" * 6)

    def test_what_linux_3_10_has_not(self):
        files = self.lay({"small": b"text", "large": some_bytes(3 * MIB)})
        self.under("since-3.11", errno.ENOSYS)
        code, end = self.fetch(self.uri, "--then", "true")
        self.assertEqual((code, end.get("event")), (0, "done"), self.said)
        self.check_right(files)

    def test_no_thread(self):
        self.lay({"small": b"text"})
        self.under("clone3", errno.EPERM)
        code, end = self.fetch(self.uri)
        self.assertEqual((code, end.get("event")), (78, "failed"), self.said)
        self.assertIn("clone3: Operation not permitted", end["reason"])


class Full(TargetCase):
    """Another program's file takes the space that was free when the run began."""

    def setUp(self):
        super().setUp()
        self.mount("-t", "tmpfs", "-o", "size=30m", "tmpfs")

    def fill(self):
        with open(self.in_target("other"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def test_at_nine_tenths(self):
        files = self.lay({f"{n:03}": some_bytes(200 << 10, n) for n in range(100)})
        for flags in ((), ("--verify=size",)):
            process = self.stopped(self.uri, *flags, MUSTER_TEST_STOP_AT_RENAME="90")
            self.fill()
            process.send_signal(signal.SIGCONT)
            out, err = process.communicate(timeout=DEADLINE)
            self.assertEqual(process.returncode, 1, out + err)
            self.assertRegex(json.loads(out.splitlines()[-1])["reason"], NO_ROOM)
            self.nothing_but("other")
            os.unlink(self.in_target("other"))
            end = self.succeeds(self.uri, files, *flags)
            self.assertGreaterEqual(end["kept"], 89 * (200 << 10), "it goes on from what was there")
            for path in [*files, ".muster/manifest.json"]:
                os.unlink(self.in_target(path))

    def serve(self):
        """A large file; the disk is filled when the server has sent nine tenths of it."""
        server = WebServer()
        self.addCleanup(server.close)
        server.files["/w.bin"] = data = some_bytes(20 * MIB)
        sent = [0]

        def count(size):
            before, sent[0] = sent[0], sent[0] + size
            if before < len(data) * 9 // 10 <= sent[0]:
                self.fill()

        server.sent = count
        return server, data

    def test_at_nine_tenths_of_a_large_file(self):
        server, data = self.serve()
        self.fails(f"{server.url}/w.bin", f"w.bin: .*{NO_ROOM}")
        self.nothing_but("other")
        os.unlink(self.in_target("other"))
        server.sent = lambda size: None
        end = self.succeeds(f"{server.url}/w.bin", {"w.bin": data})
        self.assertGreater(end["kept"], 0)

    def test_before_a_large_file_is_begun(self):
        server, data = self.serve()
        server.sent = lambda size: None
        server.faulty = lambda request: request.command == "HEAD"
        server.faults = [lambda request: self.fill()]
        self.fails(f"{server.url}/w.bin", f"w.bin: .*{NO_ROOM}")
        self.nothing_but("other")
        os.unlink(self.in_target("other"))
        self.succeeds(f"{server.url}/w.bin", {"w.bin": data})

    def test_when_the_manifest_is_due(self):
        """All files are staged, and no block is left for the manifest."""
        files = self.lay({f"{n:03}": some_bytes(50_000, n) for n in range(100)})
        process = self.stopped(self.uri, MUSTER_TEST_STOP_AT_RENAME="100")
        self.fill()
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 1, out + err)
        self.assertIn("No space left on device", json.loads(out.splitlines()[-1])["reason"])
        self.assertFalse(os.path.exists(self.in_target(".muster/manifest.json")))
        os.unlink(self.in_target("other"))
        self.succeeds(self.uri, files)


class FullOnDisk(Full):
    """On a file system that reserves space: no other program can take the space of a large file."""

    def setUp(self):
        TargetCase.setUp(self)
        image = os.path.join(self.dir, "image")
        with open(image, "wb") as file:
            file.truncate(34 * MIB)
        made = subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", image], capture_output=True)
        if made.returncode != 0:
            self.skipTest(f"mkfs.ext4: {made.stderr}")
        self.mount("-o", "loop", image)
        os.rmdir(self.in_target("lost+found"))

    def test_at_nine_tenths_of_a_large_file(self):
        server, data = self.serve()
        code, _ = self.fetch(f"{server.url}/w.bin")
        self.assertEqual(code, 0, self.said)
        self.assertTrue(self.target_files()["w.bin"] == data)


class Wrong(TargetCase):
    def test_it_cannot_be_written(self):
        self.lay({"a": b"1"})
        self.mount("-t", "tmpfs", "-o", "ro", "tmpfs")
        self.fails(self.uri, "target/.muster: Read-only file system; mount it writable, or name another target")
        self.target = self.in_target("new")
        self.fails(self.uri, "making .*target/new: Read-only file system; mount it writable")

    def test_what_is_complete_needs_no_writing(self):
        """Such as a target that another run has filled, mounted read-only here."""
        files = self.lay({"a": b"1", "sub/b": some_bytes(MIB)})
        self.mount("-t", "tmpfs", "tmpfs")
        self.succeeds(self.uri, files)
        subprocess.run(["mount", "-o", "remount,ro", self.target], check=True)
        self.fails(f"{self.uri}/nothing", "there is no such file or folder")
        for flags in ((), ("--then", "exit 7")):
            end = self.succeeds(self.uri, files, *flags)
            self.assertEqual((end["unchanged"], end["received"], end["kept_files"]), (True, 0, 2))
        self.fails(
            f"{self.uri}/a",
            "a has to be brought in: .*Read-only file system; mount it writable, or name another target",
        )
        before = dict(files)
        self.lay({"a": b"2"})
        self.fails(
            self.uri, "a has to be brought in: .*Read-only file system; mount it writable, or name another target"
        )
        shutil.rmtree(os.path.join(self.source, "sub"))
        os.unlink(os.path.join(self.source, "a"))
        self.lay({"other": b"3"})
        self.fails(self.uri, "other has to be brought in: .*Read-only file system")
        self.check_right(before)

    def test_a_source_that_has_less_is_written_down(self):
        files = self.lay({"a": b"1", "b": b"2"})
        self.mount("-t", "tmpfs", "tmpfs")
        self.succeeds(self.uri, files)
        subprocess.run(["mount", "-o", "remount,ro", self.target], check=True)
        os.unlink(os.path.join(self.source, "b"))
        self.fails(self.uri, "the source has fewer files than before, .*Read-only file system; mount it writable")

    def test_what_is_due_needs_writing(self):
        self.lay({"a": b"1"})
        self.mount("-t", "tmpfs", "tmpfs")
        self.assertEqual(self.fetch(self.uri, "--then", "exit 7")[0], 7, self.said)
        subprocess.run(["mount", "-o", "remount,ro", self.target], check=True)
        self.fails(self.uri, "Read-only file system; mount it writable", "--then", "true")

    def test_whoever_may_not_write_waits_for_who_does(self):
        """Such as a pod with the volume read-only, beside a pod that fills it."""
        files = self.lay({"a": b"1"})
        self.mount("-t", "tmpfs", "tmpfs")
        process = self.stopped(self.uri, MUSTER_TEST_STOP_AT_RENAME="1")
        filled, self.target = self.target, os.path.join(self.dir, "read-only")
        self.mount("-o", "bind,ro", filled)
        other = self.start(self.uri)
        for line in other.stdout:
            if "which is filling the same folder" in line:
                break
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(DEADLINE), 0)
        out, err = other.communicate(timeout=DEADLINE)
        self.assertEqual(other.returncode, 0, out + err)
        self.assertTrue(json.loads(out.splitlines()[-1])["unchanged"])
        self.check_right(files)

    def test_it_is_a_file(self):
        self.lay({"a": b"1"})
        with open(self.target, "w") as file:
            file.write("mine")
        self.fails(self.uri, f"{self.target} is a file, where a folder has to be")
        file, self.target = self.target, os.path.join(self.target, "sub")
        self.fails(self.uri, f"making {file}/sub: Not a directory; remove what is in the way")
        with open(file) as mine:
            self.assertEqual(mine.read(), "mine")

    def test_pipes_in_place_of_its_own_files(self):
        """No run blocks until a process writes into the pipe."""
        files = self.lay({"a": b"1", "b": some_bytes(3 * MIB)})
        for name in ("manifest.json", "next.json", "then"):
            for flags in ((), ("--then", "true")):
                with self.subTest(name, flags=flags):
                    shutil.rmtree(self.target, ignore_errors=True)
                    os.makedirs(self.in_target(".muster"))
                    os.mkfifo(self.in_target(f".muster/{name}"))
                    code, _ = self.fetch(self.uri, *flags)
                    self.assertEqual((code, self.target_files()), (0, files), self.said)
        shutil.rmtree(self.target)
        os.makedirs(self.in_target(".muster/staging"))
        os.mkfifo(self.in_target(".muster/staging/.hashes"))
        self.fails(
            self.uri, "staging/.hashes: .* has to be a regular file, which Muster writes, but is none: remove it"
        )
        os.unlink(self.in_target(".muster/staging/.hashes"))
        self.assertTrue(self.dies_at_rename(len(files) + 1, self.uri), "all is staged")
        for path in self.staged():
            os.unlink(path)
            os.mkfifo(path)
        self.succeeds(self.uri, files)

    def test_it_is_a_link_to_a_folder(self):
        """Such as a volume that is mounted elsewhere: the folder that the link leads to is the target."""
        files = self.lay({"a": b"1", "sub/b": b"2"})
        volume = os.path.join(self.dir, "volume")
        os.mkdir(volume)
        os.symlink(volume, self.target)
        self.succeeds(self.uri, files)
        self.assertTrue(os.path.islink(self.target))
        self.assertEqual(sorted(os.listdir(volume)), [".muster", "a", "sub"])


class Links(TargetCase):
    """Links in the target that lead outside, where nothing may be written."""

    def setUp(self):
        super().setUp()
        self.files = self.lay({"a": b"1", "sub/b": b"2", "sub/deep/c": some_bytes(MIB)})
        self.outside = os.path.join(self.dir, "outside")
        os.makedirs(os.path.join(self.outside, "deep"))
        with open(os.path.join(self.outside, "file"), "w") as file:
            file.write("theirs")
        os.mkdir(self.target)

    def check_outside(self):
        self.assertEqual(sorted(os.listdir(self.outside)), ["deep", "file"])
        self.assertEqual(os.listdir(os.path.join(self.outside, "deep")), [])
        with open(os.path.join(self.outside, "file")) as file:
            self.assertEqual(file.read(), "theirs")

    def test_in_place_of_a_folder(self):
        for link, to in (
            ("sub", self.outside),
            ("sub", "../outside"),
            ("sub", "nowhere"),
            ("sub/deep", f"{self.outside}/deep"),
        ):
            with self.subTest(f"{link} -> {to}"):
                os.makedirs(os.path.dirname(self.in_target(link)), exist_ok=True)
                os.symlink(to, self.in_target(link))
                self.fails(self.uri, f"{link} is a link or a file, where a folder has to be: remove it")
                self.check_outside()
                self.assertFalse(os.path.exists(self.in_target(".muster/manifest.json")))
                os.unlink(self.in_target(link))
        shutil.rmtree(self.target)
        self.succeeds(self.uri, self.files)

    def test_in_place_of_a_file(self):
        """The file replaces the link; the link's target stays unchanged."""
        os.symlink(f"{self.outside}/file", self.in_target("a"))
        self.succeeds(self.uri, self.files)
        self.assertFalse(os.path.islink(self.in_target("a")))
        self.check_outside()

    def test_of_muster(self):
        for name in (".muster", ".muster/staging"):
            with self.subTest(name):
                shutil.rmtree(self.target)
                os.makedirs(os.path.dirname(self.in_target(name)))
                os.symlink(self.outside, self.in_target(name))
                code, _ = self.fetch(self.uri)
                self.check_outside()
                if code == 0:
                    self.check_right(self.files)
                else:
                    self.assertEqual((code, self.target_files()), (1, {}), self.said)

    def test_that_come_while_files_take_their_names(self):
        """Killed before the first rename; then a folder is replaced by a link."""
        self.assertTrue(self.dies_at_rename(len(self.files) + 2, self.uri))
        shutil.rmtree(self.in_target("sub"), ignore_errors=True)
        os.symlink(self.outside, self.in_target("sub"))
        for _ in range(2):
            self.fails(self.uri, "sub is a link or a file, where a folder has to be: remove it")
            self.check_outside()
        os.unlink(self.in_target("sub"))
        self.succeeds(self.uri, self.files)

    def test_that_come_while_it_publishes(self):
        process = self.stopped(self.uri, MUSTER_TEST_STOP_AT_RENAME=str(len(self.files) + 2))
        shutil.rmtree(self.in_target("sub"), ignore_errors=True)
        os.symlink(self.outside, self.in_target("sub"))
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 1, out + err)
        self.check_outside()
        self.assertFalse(os.path.exists(self.in_target(".muster/manifest.json")))
        os.unlink(self.in_target("sub"))
        self.succeeds(self.uri, self.files)


class Lacking(TargetCase):
    """A target whose file system has none of the optional operations."""

    def test_what_is_optional(self):
        files = self.lay({"run.sh": b"#!/bin/sh\n", "tool": some_bytes(3 * MIB + 5), "data": some_bytes(MIB)})
        for name in ("run.sh", "tool"):
            os.chmod(os.path.join(self.source, name), 0o755)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, kind, link in (("one", tarfile.REGTYPE, ""), ("two", tarfile.LNKTYPE, "one")):
                info = tarfile.TarInfo(name)
                info.type, info.linkname, info.size = kind, link, 3 if not link else 0
                archive.addfile(info, io.BytesIO(b"abc"))
        server = WebServer()
        self.addCleanup(server.close)
        server.files["/w.bin"] = some_bytes(5 * MIB + 3)
        server.files["/a.tar"] = out.getvalue()
        for error in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM):
            with self.subTest(errno.errorcode[error]):
                self.more = preloaded("lacks_calls", MUSTER_TEST_LACKS=str(error))
                for uri, there, *flags in (
                    (self.uri, files),
                    (self.uri, files, "--verify=size"),
                    (f"{server.url}/w.bin", {"w.bin": server.files["/w.bin"]}),
                    (f"{server.url}/a.tar", {"one": b"abc", "two": b"abc"}, "--extract"),
                ):
                    self.succeeds(uri, there, *flags)
                    self.assertEqual(self.said.count("keeps no modes of files"), int(uri == self.uri), self.said)
                    shutil.rmtree(self.target)
                self.fails(self.uri, "no hard link can be made of .* leave --hard-link out", "--hard-link")
                shutil.rmtree(self.target)


if __name__ == "__main__":
    main()
