# SPDX-License-Identifier: Apache-2.0
"""muster-initializer after publication: verify, --then, files that stay, the termination message."""

import json
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import BINARY, DEADLINE, MIB, UNREACHABLE, clean_environment, main, some_bytes
from local_case import LocalCase


class Afterwards(LocalCase):
    def verify(self):
        done = subprocess.run(
            [BINARY, "verify", self.target, "--json"], capture_output=True, text=True, timeout=DEADLINE
        )
        self.said = done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout) if done.stdout else {}

    def test_verify_finds_what_has_changed(self):
        self.lay({"a": b"1", "sub/b": some_bytes(3 * MIB), "sub/empty/.keep": b""})
        self.succeeds(self.uri, {"a": b"1", "sub/b": some_bytes(3 * MIB), "sub/empty/.keep": b""})
        code, found = self.verify()
        self.assertEqual((code, found["event"], found["files"], found["wrong_files"]), (0, "verified", 3, 0), self.said)

        def flip():
            with open(os.path.join(self.target, "sub/b"), "r+b") as file:
                file.seek(MIB)
                byte = file.read(1)
                file.seek(MIB)
                file.write(bytes([byte[0] ^ 1]))

        def shorten():
            os.truncate(os.path.join(self.target, "sub/b"), 5)

        def remove():
            os.unlink(os.path.join(self.target, "sub/b"))

        def link():
            os.symlink("/etc/hostname", os.path.join(self.target, "sub/b"))

        for spoil, words in (
            (flip, "expected crc32c:.* got crc32c:"),
            (shorten, "it is 5 bytes long in place of"),
            (remove, "it is not there"),
            (link, "it is a link"),
        ):
            spoil()
            code, found = self.verify()
            self.assertEqual((code, found["event"], found["wrong_files"]), (1, "wrong", 1), self.said)
            self.assertRegex(found["problems"][0], "^sub/b: .*" + words)

    def test_verify_needs_a_manifest(self):
        os.mkdir(self.target)
        code, _ = self.verify()
        self.assertEqual(code, 1)
        self.assertIn("nothing says what has to be there", self.said)

    def test_then_runs_a_command_after_each_run(self):
        files = self.lay({"a": b"1"})
        log = os.path.join(self.dir, "log")
        flags = ("--then", f'ls "$MUSTER_TARGET" >> {log}')
        self.succeeds(self.uri, files, *flags)
        self.succeeds(self.uri, files, *flags)
        with open(log) as file:
            self.assertEqual(file.read(), "a\n", "it runs once for each publication")

    def test_then_runs_again_until_it_has_ended_well(self):
        self.lay({"a": b"1"})
        marker = os.path.join(self.dir, "marker")
        flags = ("--then", f"test -e {marker} || exit 7")
        for _ in range(2):
            code, end = self.fetch(self.uri, *flags)
            self.assertEqual((code, end["event"], end["exit_code"]), (7, "failed", 7), self.said)
            self.assertIn("exit 7", end["reason"])
            self.assertEqual(self.target_files(), {"a": b"1"})
        open(marker, "w").close()
        self.succeeds(self.uri, {"a": b"1"}, *flags)

    def test_its_code_under_a_parent_that_ignores_ends(self):
        """SIGCHLD is inherited as ignored: without a reset the kernel would discard the exit code."""
        self.lay({"a": b"1"})

        def ignored():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)

        process = self.start(self.uri, "--then", "exit 3", preexec_fn=ignored)
        self.said = "".join(process.communicate(timeout=DEADLINE))
        self.assertEqual(process.returncode, 3, self.said)

    def test_a_dry_run_does_not_run_it(self):
        self.lay({"a": b"1"})
        log = os.path.join(self.dir, "log")
        flags = ("--then", f"echo x >> {log}; exit 7")
        self.assertEqual(self.fetch(self.uri, *flags)[0], 7, self.said)
        self.assertEqual(self.fetch(self.uri, *flags, "--dry-run")[0], 0, self.said)
        with open(log) as file:
            self.assertEqual(file.read(), "x\n")

    def test_then_is_told_to_go(self):
        self.lay({"a": b"1"})
        pipe = os.path.join(self.dir, "pipe")
        os.mkfifo(pipe)
        process = self.start(self.uri, "--then", f"echo here > {pipe}; exec cat {pipe}")
        with open(pipe) as reader:
            self.assertEqual(reader.readline(), "here\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 143)

    def test_then_has_a_deadline(self):
        """Also for processes that the shell has started; the next start runs the command again."""
        self.lay({"a": b"1"})
        code, end = self.fetch(self.uri, "--deadline", "1", "--then", "sleep 1000000; exit 0")
        self.assertEqual((code, end["event"]), (UNREACHABLE, "failed"), self.said)
        self.assertRegex(
            end["reason"], "--then 'sleep 1000000; exit 0' was not done after 1 s .--deadline.; the data is in place"
        )
        self.succeeds(self.uri, {"a": b"1"}, "--deadline", "60", "--then", "true")

    def test_what_was_not_verified(self):
        files = self.lay({"a": b"1", "b": b"2"})
        for _ in range(2):
            self.assertEqual(self.succeeds(self.uri, files, "--verify", "size")["unverified_files"], 2)
        done = subprocess.run(
            [BINARY, "dataset", self.uri, "--to", self.target, "--verify=size"],
            capture_output=True,
            text=True,
            env=self.environment(),
            timeout=DEADLINE,
        )
        self.assertIn("2 files not verified, as asked (--verify)", done.stderr)
        self.assertNotIn("publishes no hash", done.stderr)

    def test_what_stays(self):
        self.lay({"a": b"1", "b": b"2", "c": b"3"})
        self.succeeds(self.uri, {"a": b"1", "b": b"2", "c": b"3"})
        os.unlink(os.path.join(self.source, "b"))
        code, _ = self.fetch(self.uri)
        self.assertEqual((code, sorted(self.target_files())), (0, ["a", "b", "c"]), self.said)
        self.assertIn("1 file of an earlier run stays that this source does not have (b)", self.said)
        other = os.path.join(self.dir, "other")
        os.mkdir(other)
        with open(os.path.join(other, "d"), "w") as file:
            file.write("4")
        self.fetch(f"file://{other}")
        self.assertIn("2 files of an earlier run stay that this source does not have (a, ...)", self.said)

    def test_what_the_user_may_not(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        self.lay({"secret": b"1"})
        os.chmod(self.dir, 0o755)
        os.chmod(os.path.join(self.source, "secret"), 0)
        os.mkdir(self.target)
        binary = shutil.copy(BINARY, self.dir)

        def denied(*flags):
            done = subprocess.run(
                [binary, "dataset", f"file://{self.source}", *flags],
                capture_output=True,
                text=True,
                user=4321,
                group=4321,
                extra_groups=[],
                env=self.environment(),
                timeout=DEADLINE,
            )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, "Permission denied to user 4321 .group 4321.: let it in")

        denied("--to", self.target)
        os.chmod(self.target, 0o777)
        denied("--to", self.target)

    def test_the_last_word_of_wrong_flags(self):
        path = os.path.join(self.dir, "termination-log")
        for flags, words in (
            ((), "STORAGE_URI"),
            (("",), "STORAGE_URI"),
            ((self.uri, "--verify=foo"), "verify"),
            ((self.uri, "--nonsense"), "nonsense"),
            (("hf://a/b", "--hf-cache"), "HF_HUB_CACHE"),
        ):
            for told in (("--termination-log", path), (f"--termination-log={path}",), ()):
                open(path, "w").close()
                variables = {} if told else {"MUSTER_TERMINATION_LOG": path}
                done = subprocess.run(
                    [BINARY, "dataset", *flags, "--json", *told],
                    capture_output=True,
                    text=True,
                    timeout=DEADLINE,
                    env=clean_environment(**variables, **({} if "--hf-cache" not in flags else {"HOME": ""})),
                )
                with open(path) as file:
                    word = json.load(file)
                event = json.loads(done.stdout)
                self.assertEqual((event["event"], event["exit_code"]), ("failed", done.returncode), done.stdout)
                self.assertEqual((word["exit_code"], word["class"]), (done.returncode, "fatal"))
                self.assertIn(done.returncode, (1, 64))
                self.assertIn(words, word["reason"])
                self.assertEqual(word["reason"], event["reason"])

    def test_the_last_word(self):
        path = os.path.join(self.dir, "termination-log")
        self.lay({"a": b"123"})

        def word(*flags):
            open(path, "w").close()
            subprocess.run(
                [BINARY, "model", *flags, "--to", self.target, "--termination-log", path],
                timeout=DEADLINE,
                capture_output=True,
                env=clean_environment(),
            )
            with open(path) as file:
                return json.load(file)

        good = word(self.uri)
        self.assertEqual(
            {key: good[key] for key in ("version", "exit_code", "class", "files", "bytes", "received", "retries")},
            {"version": 1, "exit_code": 0, "class": "success", "files": 1, "bytes": 3, "received": 3, "retries": 0},
        )
        self.assertGreater(good["seconds"], 0)
        self.assertGreater(good["bytes_per_second"], 0)
        bad = word("s3://")
        self.assertEqual((bad["exit_code"], bad["class"]), (78, "fatal"))
        self.assertIn("s3://", bad["reason"])
        self.assertEqual((bad["bytes"], bad["received"], bad["bytes_per_second"]), (0, 0, 0), "it never began")
        self.assertEqual(sorted(bad), sorted(good))
        self.lay({"a": b"another"})
        late = word(self.uri, "--then", "exit 7")
        self.assertEqual(
            (late["exit_code"], late["files"], late["files_done"], late["target"]),
            (7, 1, 1, self.target),
            "it was brought in",
        )
        self.assertIn("--then", late["reason"])


if __name__ == "__main__":
    main()
