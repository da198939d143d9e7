# SPDX-License-Identifier: Apache-2.0
"""muster-initializer with folders of this machine (pvc:// and file://), and several runs with one target."""

import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import BINARY, DEADLINE, MIB, main, preloaded, some_bytes
from local_case import LocalCase

from web_server import WebServer


class Copies(LocalCase):
    def test_a_tree(self):
        files = self.lay(
            {
                "a": b"",
                "b/c": b"x",
                "b/d/e.bin": some_bytes(512 << 10),
                "b/d/f.bin": some_bytes(3 * MIB + 7),
                "ünïcode/with space": b"y",
            }
        )
        os.mkdir(os.path.join(self.source, "empty"))
        end = self.succeeds(self.uri, files)
        self.assertTrue(os.path.isdir(os.path.join(self.target, "empty")))
        self.assertEqual((end["received"], end["unverified_files"]), (sum(map(len, files.values())), len(files)))

    def test_without_hashes(self):
        files = self.lay({"a": b"x", "f.bin": some_bytes(3 * MIB + 7)})
        for how in ("size", "none"):
            shutil.rmtree(self.target, ignore_errors=True)
            self.succeeds(self.uri, files, f"--verify={how}")
            end = self.succeeds(self.uri, files, f"--verify={how}")
            self.assertEqual((end["unchanged"], end["received"]), (True, 0))
            end = self.succeeds(self.uri, files)
            self.assertEqual(end["kept_files"], 0, "nobody has taken their hashes")

    def test_what_is_executable_stays_so(self):
        files = self.lay({"run.sh": b"#!/bin/sh\n", "large": some_bytes(3 * MIB), "data": b"x"})
        for name in ("run.sh", "large"):
            os.chmod(os.path.join(self.source, name), 0o755)
        for flags in ((), ("--verify=none",)):
            shutil.rmtree(self.target, ignore_errors=True)
            self.succeeds(self.uri, files, *flags)
            executable = {name for name in files if os.stat(os.path.join(self.target, name)).st_mode & 0o100}
            self.assertEqual(executable, {"run.sh", "large"})

    def test_one_file(self):
        self.lay({"weights.bin": b"w", "weights.bin.old": b"no"})
        self.succeeds(self.uri + "/weights.bin", {"weights.bin": b"w"})

    def test_a_claim(self):
        files = self.lay({"models/llama/w": b"w", "models/llama/c/x": b"x"})
        below = {"w": files["models/llama/w"], "c/x": files["models/llama/c/x"]}
        self.succeeds("pvc://shared/models/llama", below, "--claim", f"shared={self.source}")
        shutil.rmtree(self.target)
        self.succeeds("pvc://shared/models/llama/", below, env={"MUSTER_CLAIMS": f"other=/x, shared={self.source}"})

    def test_again_reads_nothing(self):
        files = self.lay({"a": b"1", "b": some_bytes(MIB)})
        self.succeeds(self.uri, files)
        os.mkdir(os.path.join(self.source, "empty"))
        self.succeeds(self.uri, files)
        end = self.succeeds(self.uri, files)
        self.assertEqual((end["unchanged"], end["received"]), (True, 0))
        os.rmdir(os.path.join(self.target, "empty"))
        self.succeeds(self.uri, files)
        self.assertTrue(os.path.isdir(os.path.join(self.target, "empty")))

    def test_what_has_changed_is_copied(self):
        files = self.lay({"a": b"1", "b": some_bytes(MIB)})
        self.succeeds(self.uri, files)
        files.update(self.lay({"a": b"2", "c": b"3"}))
        end = self.succeeds(self.uri, files)
        self.assertEqual((end["received"], end["kept_files"]), (2, 1))

    def test_hard_links(self):
        files = self.lay({"a": b"1", "b": some_bytes(MIB)})
        self.succeeds(self.uri, files, "--hard-link")
        for path in files:
            self.assertTrue(os.path.samefile(os.path.join(self.source, path), os.path.join(self.target, path)))

    def test_a_file_that_is_replaced_before_it_is_linked(self):
        self.lay({"a": b"1"})
        process = self.stopped(self.uri, "--hard-link", MUSTER_TEST_STOP_AT_LINK="1")
        files = self.lay({"new": b"2"})
        os.rename(os.path.join(self.source, "new"), os.path.join(self.source, "a"))
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertIn("a has changed; copying it anew", out)
        self.check_right({"a": files["new"]})
        crc = self.manifest()["files"][0]["hash"]
        shutil.rmtree(self.target)
        self.succeeds(self.uri, {"a": files["new"]})
        self.assertEqual(self.manifest()["files"][0]["hash"], crc)

    def test_a_manifest_in_the_source_that_cannot_be_read(self):
        files = self.lay({"a": b"1"})
        os.makedirs(os.path.join(self.source, ".muster"))
        manifest = os.path.join(self.source, ".muster", "manifest.json")
        for damage in (lambda: os.symlink("/etc/hostname", manifest), lambda: open(manifest, "w").close()):
            damage()
            self.succeeds("pvc://c", files, "--claim", f"c={self.source}")
            self.assertIn("the source's manifest cannot be read", self.said)
            os.unlink(manifest)
            shutil.rmtree(self.target)

    def test_links_count_as_what_they_lead_to(self):
        self.lay({"blobs/1": b"one", "snapshots/x/.keep": b""})
        os.symlink("../../blobs/1", os.path.join(self.source, "snapshots/x/weights"))
        os.symlink("../blobs", os.path.join(self.source, "snapshots/all"))
        self.succeeds(
            "pvc://hub/",
            {"blobs/1": b"one", "snapshots/x/.keep": b"", "snapshots/x/weights": b"one", "snapshots/all/1": b"one"},
            "--claim",
            f"hub={self.source}",
        )
        self.assertFalse(os.path.islink(os.path.join(self.target, "snapshots/x/weights")))

    def test_links_that_cannot_be_followed(self):
        self.lay({"sub/a": b"1"})
        for to, words in (
            ("/etc/hostname", "leads out of its claim"),
            ("nowhere", "leads nowhere"),
            ("..", "a folder it is in"),
        ):
            link = os.path.join(self.source, "sub", "link")
            os.symlink(to, link)
            self.refused("pvc://c", 1, words, "--claim", f"c={self.source}")
            os.unlink(link)

    def test_links_that_are_not_wanted(self):
        """A link that cannot be followed is an error only if it is wanted."""
        files = self.lay({"sub/a": b"1"})
        link = os.path.join(self.source, "sub", "link")
        for to, leaves_out in (
            ("/etc/hostname", "--ignore=sub/link"),
            ("/etc/hostname", "--include=*/a"),
            ("/etc", "--ignore=sub/link"),
            ("/etc", "--ignore=sub/link/"),
            ("/etc", "--include=sub/a"),
            ("nowhere", "--ignore=sub/link"),
            ("nowhere", "--include=*/a"),
            ("link", "--ignore=sub/l*"),
            ("..", "--ignore=sub/link"),
            ("..", "--ignore=sub/link/*"),
            (".", "--include=sub/a"),
        ):
            with self.subTest(to=to, leaves_out=leaves_out):
                os.symlink(to, link)
                self.succeeds("pvc://c", files, leaves_out, "--claim", f"c={self.source}")
                os.unlink(link)
                shutil.rmtree(self.target)

    def test_what_may_not_be_read(self):
        """As a user other than root: unreadable files are an error if they may be wanted, before anything is copied."""
        if os.geteuid() != 0:
            self.skipTest("only root can lay what another may not read")
        files = self.lay({"train/a": b"1", "train/c": b"2"})
        self.lay({"mine/x": b"3"})
        for path in (self.dir, self.source):
            os.chmod(path, 0o755)
        mine, lost = os.path.join(self.source, "mine"), os.path.join(self.source, "lost+found")
        os.chmod(mine, 0o700)
        os.mkdir(lost, 0o700)
        os.mkdir(self.target)
        os.chmod(self.target, 0o777)
        binary = shutil.copy(BINARY, self.dir)

        def fetch(*flags):
            done = subprocess.run(
                [binary, "dataset", self.uri, "--to", self.target, *flags],
                capture_output=True,
                text=True,
                user=4321,
                group=4321,
                extra_groups=[],
                env=self.environment(),
                timeout=DEADLINE,
            )
            return done.returncode, done.stderr

        for flags in (
            ("--ignore=mine/*",),
            ("--ignore=mine/",),
            ("--include=train/*",),
            ("--include=train/a", "--include=train/c"),
        ):
            code, said = fetch(*flags)
            self.assertEqual(code, 0, f"{flags}: {said}")
            self.assertEqual("lost+found: Permission denied: it is left out" in said, "--ignore" in flags[0], said)
            self.check_right(files)
        code, said = fetch("--ignore=mine")
        self.assertEqual(code, 0, said)
        self.assertIn("claim/mine: Permission denied: it is left out", said)
        for flags in ((), ("--include=*.txt",), ("--ignore=*.txt",)):
            code, said = fetch(*flags)
            self.assertEqual(code, 1, f"{flags}: {said}")
            self.assertIn("claim/mine: Permission denied to user 4321", said)
        os.rmdir(lost)
        os.mkdir(os.path.join(self.source, "train", "lost+found"), 0o700)
        code, said = fetch("--include=train/*")
        self.assertEqual(code, 1, said)
        self.assertIn("train/lost+found: Permission denied to user 4321", said)
        os.rmdir(os.path.join(self.source, "train", "lost+found"))
        os.chmod(os.path.join(self.source, "train", "c"), 0)
        shutil.rmtree(self.target)
        os.mkdir(self.target)
        os.chmod(self.target, 0o777)
        code, said = fetch("--include=train/*")
        self.assertEqual(code, 1, said)
        self.assertIn("train/c: Permission denied to user 4321", said)
        self.assertFalse(
            os.path.exists(os.path.join(self.target, ".muster", "staging"))
            and [name for name in os.listdir(os.path.join(self.target, ".muster", "staging")) if name != ".hashes"],
            "nothing was copied",
        )

    def test_a_pipe_is_left_out_and_said(self):
        files = self.lay({"a": b"1"})
        os.mkfifo(os.path.join(self.source, "pipe"))
        self.succeeds(self.uri, files)
        self.assertIn("pipe is neither a file nor a folder: it is left out", self.said)

    def test_a_folder_that_cannot_be_read_to_its_end(self):
        self.lay({f"sub/{n}": b"x" for n in range(5)})
        self.more = preloaded("fails_at_readdir", MUSTER_TEST_READDIR_FAILS_IN=os.path.join(self.source, "sub"))
        self.refused(self.uri, 1, "claim/sub: Input/output error")

    def test_without_an_inode_left(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        self.lay({"a": b"1", "b": b"2"})
        os.mkdir(self.target)
        free = set()
        for inodes in range(4, 10):  # Muster's own files need some
            mounted = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"nr_inodes={inodes}", "tmpfs", self.target], capture_output=True
            )
            if mounted.returncode != 0:
                self.skipTest(f"cannot mount: {mounted.stderr}")
            try:
                _, end = self.fetch(self.uri, "--termination-log", "")
            finally:
                subprocess.run(["umount", self.target], check=True)
            found = re.search("has 2 files and there is room for ([0-9]+) more", end.get("reason", ""))
            free.update(found.groups() if found else ())
        self.assertIn("0", free, self.said)

    def test_wrong_places(self):
        self.refused(f"file://{self.dir}/nothing", 1, "there is no such file or folder; check the path")
        self.refused(
            "pvc://nothing/x",
            1,
            "/mnt/pvc/nothing/x: there is no such file or folder; mount the claim there, or say where",
        )
        self.refused("pvc://c/../x", 78, r"'\.\.'")
        self.refused("pvc://c/x", 78, "write NAME=DIR", "--claim", "c")

    def test_the_target_itself(self):
        """A claim that is mounted at the target."""
        self.lay({"a": b"1"})
        self.target = self.source
        code, end = self.fetch(self.uri)
        self.assertEqual((code, end["unchanged"]), (0, True), self.said)
        self.assertEqual(os.listdir(self.source), ["a"])
        self.target = os.path.join(self.source, "a-folder")
        os.mkdir(self.target)
        self.refused(self.uri, 78, "is within the other: name another target")
        os.rmdir(self.target)
        os.symlink(self.source, os.path.join(self.dir, "link"))
        for below in (self.source, f"{self.dir}/link"):
            self.target = f"{below}/not-yet/there"
            self.refused(self.uri, 78, "is within the other: name another target")
            self.assertEqual(os.listdir(self.source), ["a"])

    def test_hashes_of_an_earlier_initializer_are_checked(self):
        """The source was brought in by an initializer: its manifest has the hashes of its files."""
        server = WebServer()
        self.addCleanup(server.close)
        data = some_bytes(3 * MIB)
        server.files["/w.bin"] = data
        first = self.target
        self.succeeds(server.url + "/w.bin", {"w.bin": data})
        self.target = os.path.join(self.dir, "second")
        end = self.succeeds(f"file://{first}", {"w.bin": data})
        self.assertEqual(end["unverified_files"], 0)
        self.target = os.path.join(self.dir, "third")
        path = os.path.join(first, "w.bin")
        times = os.stat(path)
        with open(path, "r+b") as file:
            file.write(b"damage")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.refused(f"file://{first}", 1, "w.bin: .*expected sha256:.* got sha256:.*also after it was copied again")

    def test_killed_it_goes_on(self):
        files = self.lay({f"{n}.bin": some_bytes(24 * MIB, n) for n in range(4)})
        for whole in range(4):
            shutil.rmtree(self.target, ignore_errors=True)
            self.assertTrue(self.dies_at_rename(whole + 1, self.uri))
            self.check_nothing()
            end = self.succeeds(self.uri, files)
            self.assertEqual(end["kept"] + end["received"], 4 * 24 * MIB)
            self.assertGreaterEqual(end["kept"], whole * 24 * MIB)

    def test_what_was_whole_is_read_again(self):
        files = self.lay({"a": some_bytes(1000), "b": some_bytes(3 * MIB), "c": b""})
        for flags in ((), ("--verify", "size")):
            shutil.rmtree(self.target, ignore_errors=True)
            self.assertTrue(self.dies_at_rename(len(files) + 1, self.uri, *flags))
            for path in self.staged():
                if flags:
                    os.truncate(path, 7)
                else:
                    with open(path, "r+b") as file:
                        file.write(bytes(os.path.getsize(path)))
            self.succeeds(self.uri, files, *flags)
            self.assertEqual(self.said.count("an earlier start left is damaged"), 1, self.said)


class Publication(LocalCase):
    """Kills between the renames of a publication, and obstacles in its way."""

    def setUp(self):
        super().setUp()
        self.before = self.lay({"a": b"1", "sub/b": b"2", "sub/c": some_bytes(MIB)})

    def in_target(self, path):
        return os.path.join(self.target, path)

    def test_killed_at_any_rename(self):
        """Killed at any rename; the next start has another source."""
        after = {"a": b"11", "sub/b": b"2", "sub/c": some_bytes(MIB, 2), "d": b"4"}
        for changed in (False, True):
            for number in range(1, 20):
                shutil.rmtree(self.target, ignore_errors=True)
                self.lay(self.before)
                if os.path.exists(os.path.join(self.source, "d")):
                    os.unlink(os.path.join(self.source, "d"))
                if not self.dies_at_rename(number, self.uri):
                    break
                self.assertFalse(os.path.exists(self.in_target(".muster/manifest.json")))
                self.succeeds(self.uri, self.lay(after) if changed else self.before)
            self.assertEqual(number, 9, "three are staged, next.json, three are published, the manifest")

    def test_killed_when_it_replaces(self):
        after = {"a": b"9", "sub/b": b"8", "sub/c": some_bytes(MIB, 2)}
        for number in range(1, 9):
            shutil.rmtree(self.target, ignore_errors=True)
            self.lay(self.before)
            self.succeeds(self.uri, self.before)
            self.lay(after)
            self.assertTrue(self.dies_at_rename(number, self.uri))
            self.succeeds(self.uri, after)

    def test_what_was_staged_is_gone(self):
        """The file in its place has the same length and other bytes."""
        self.succeeds(self.uri, self.before)
        self.lay({"a": b"9"})
        self.assertTrue(self.dies_at_rename(3, self.uri))
        self.assertFalse(os.path.exists(self.in_target(".muster/manifest.json")))
        shutil.rmtree(self.in_target(".muster/staging"))
        self.succeeds(self.uri, {**self.before, "a": b"9"})
        self.assertIn("cannot be finished (a is gone, or has changed); beginning anew", self.said)

    def lay_folder(self):
        os.makedirs(self.in_target("a/mine"))
        return "a is a folder, where a file has to be: remove it", lambda: shutil.rmtree(self.in_target("a"))

    def lay_link(self):
        shutil.rmtree(self.in_target("sub"), ignore_errors=True)  # empty; made for the first of its files
        os.makedirs(self.in_target("elsewhere"))
        os.symlink("elsewhere", self.in_target("sub"))
        return "sub is a link or a file, where a folder has to be: remove it", lambda: (
            os.unlink(self.in_target("sub")),
            os.rmdir(self.in_target("elsewhere")),
        )

    def test_an_obstacle_is_seen_before_anything_is_moved(self):
        for lay in (self.lay_folder, self.lay_link):
            shutil.rmtree(self.target, ignore_errors=True)
            words, remove = lay()
            code, end = self.fetch(self.uri)
            self.assertEqual(code, 1, self.said)
            self.assertIn(words, end["reason"])
            self.assertEqual((end.get("received", 0), self.target_files(), self.staged()), (0, {}, []))
            remove()
            self.succeeds(self.uri, self.before)

    def test_an_obstacle_leaves_what_is_there(self):
        self.lay({"old": b"o"})
        self.succeeds(f"{self.uri}/old", {"old": b"o"})
        manifest = self.manifest()
        os.unlink(os.path.join(self.source, "old"))
        os.mkdir(self.in_target("a"))
        self.assertEqual(self.fetch(self.uri)[0], 1, self.said)
        self.assertEqual((self.manifest(), self.target_files()), (manifest, {"old": b"o"}))
        self.assertFalse(os.path.exists(self.in_target(".muster/next.json")))

    def test_an_obstacle_after_a_kill(self):
        for lay in (self.lay_folder, self.lay_link):
            for other in (False, True):
                shutil.rmtree(self.target, ignore_errors=True)
                self.assertTrue(self.dies_at_rename(5, self.uri), "before the first takes its name")
                words, remove = lay()
                for _ in range(2):
                    code, end = self.fetch(self.uri)
                    self.assertEqual(code, 1, self.said)
                    self.assertRegex(
                        end["reason"], f"{words}.*once it is out of the way, the next start publishes the rest"
                    )
                if not other:
                    remove()
                    self.succeeds(self.uri, self.before)
                    continue
                code, end = self.fetch(f"{self.uri}/sub/b")
                self.assertEqual(code, 0, self.said)
                self.assertIn("cannot be finished", self.said)
                self.assertEqual([file["path"] for file in self.manifest()["files"]], ["b"])
                self.assertEqual(os.listdir(self.in_target(".muster")), ["manifest.json"])


if __name__ == "__main__":
    main()
