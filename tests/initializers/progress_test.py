# SPDX-License-Identifier: Apache-2.0
"""The output of muster-initializer during and after a run: events, progress lines, a bar, the termination message."""

import json
import os
import pty
import re
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import BINARY, DEADLINE, MIB, UNREACHABLE, InitializerCase, main, some_bytes

from web_server import WebServer

COUNTS = {"files", "files_done", "bytes", "bytes_done", "received", "kept", "requests", "retries"}
OF_A_SUCCESS = COUNTS | {"source", "target", "kept_files", "unverified_files", "unchanged", "seconds"}
OF_A_FAILURE = {"version", "exit_code", "class", "reason"}


class ProgressCase(InitializerCase):
    role = "model"
    SIZE = 20 * MIB

    def setUp(self):
        super().setUp()
        self.server = WebServer()
        self.addCleanup(self.server.close)
        self.data = some_bytes(self.SIZE)
        self.server.files["/w.bin"] = self.data
        self.url = self.server.url + "/w.bin"
        self.word = os.path.join(self.dir, "termination-log")
        open(self.word, "w").close()

    def held(self):
        """The server sends half of the file, and the rest after the returned event is set."""
        go, sent = threading.Event(), [0]
        self.addCleanup(go.set)

        def count(size):
            sent[0] += size
            if sent[0] >= self.SIZE // 2:
                go.wait(DEADLINE)

        self.server.sent = count
        return go

    def shown(self, **streams):
        """A run without --json."""
        process = subprocess.Popen(
            [BINARY, "model", self.url, "--to", self.target, "--termination-log", self.word],
            text=True,
            env=self.environment(),
            **streams,
        )

        def end():
            process.kill()
            process.wait()

        self.addCleanup(end)
        return process

    def last_word(self):
        with open(self.word) as file:
            text = file.read()
        self.assertLessEqual(len(text.encode()), 4096)
        self.assertEqual(text.count("\n"), 1)
        return json.loads(text)


class Events(ProgressCase):
    def check_counts(self, event):
        for name in COUNTS:
            self.assertIsInstance(event[name], int, name)
            self.assertGreaterEqual(event[name], 0, name)
        self.assertLessEqual(event["files_done"], event["files"])
        self.assertLessEqual(event["bytes_done"], event["bytes"])

    def test_progress_and_the_end(self):
        """Events show what must be moved and how much was moved, also while nothing comes; then the end."""
        go = self.held()
        process = self.start(self.url)
        told = []
        for line in process.stdout:
            told.append(json.loads(line))
            if [event["event"] for event in told].count("progress") == 2:
                go.set()
        self.assertEqual(process.wait(DEADLINE), 0)
        progress = [event for event in told if event["event"] == "progress"]
        for event in progress:
            self.assertEqual(set(event), COUNTS | {"event", "bytes_per_second"})
            self.check_counts(event)
            self.assertEqual((event["files"], event["bytes"]), (1, self.SIZE))
            self.assertGreaterEqual(event["bytes_per_second"], 0)
        self.assertEqual((progress[0]["files_done"], progress[0]["retries"]), (0, 0))
        self.assertGreater(progress[0]["received"], 0)
        self.assertLess(progress[0]["bytes_done"], self.SIZE)
        for before, after in zip(progress, progress[1:]):
            self.assertTrue(all(before[name] <= after[name] for name in COUNTS), "what was done is not undone")
        done = told[-1]
        self.assertEqual((done["event"], set(done)), ("done", OF_A_SUCCESS | {"event"}))
        self.check_counts(done)
        self.assertEqual(
            (done["files_done"], done["bytes_done"], done["received"], done["unchanged"]),
            (1, self.SIZE, self.SIZE, False),
        )
        self.assertEqual((done["source"], done["target"]), (self.url, self.target))
        self.assertEqual({event["event"] for event in told[:-1]} - {"note"}, {"progress"})

    def test_notes_and_retries(self):
        self.server.faults = [lambda request: request.plain(503, b"")] * 3
        code, done = self.fetch(self.url)
        events = [json.loads(line) for line in self.said.splitlines()]
        notes = [event for event in events if event["event"] == "note"]
        self.assertEqual((code, done["retries"]), (0, 3), self.said)
        self.assertEqual([set(note) for note in notes], [{"event", "text"}] * 3)
        self.assertTrue(all(re.search("w.bin.*503.*trying again in", note["text"]) for note in notes), notes)

    def test_a_failure(self):
        code, failed = self.fetch(self.server.url + "/nothing")
        self.assertEqual((code, set(failed), failed["exit_code"]), (1, {"event", "exit_code", "reason"}, 1))

    def test_a_plan(self):
        code, plan = self.fetch(self.url, "--dry-run")
        self.assertEqual(
            (code, plan["event"], set(plan)), (0, "plan", OF_A_SUCCESS | {"event", "planned_files", "planned_bytes"})
        )
        files = [event for event in map(json.loads, self.said.splitlines()) if event["event"] == "file"]
        self.assertEqual(files, [{"event": "file", "path": "w.bin", "bytes": self.SIZE, "staged_bytes": 0}])


class ForPeople(ProgressCase):
    LINE = r"[\d.]+ MiB of 20\.0 MiB, \d of 1 files, [\d.]+ [KMG]?i?B/s"

    def test_a_line_now_and_then(self):
        """Lines instead of a bar, because stderr is not a terminal."""
        go = self.held()
        process = self.shown(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = []
        for line in process.stderr:
            lines.append(line)
            if re.search(self.LINE, line):
                go.set()
        out = process.stdout.read()
        process.stdout.close()
        process.stderr.close()
        said = "".join(lines)
        self.assertEqual((process.wait(DEADLINE), out), (0, ""), said)
        self.assertRegex(said, self.LINE)
        self.assertNotRegex(said, "[\r\033]")
        self.assertLessEqual(len(lines), 3 + said.count(" of 1 files, "))
        self.assertRegex(
            lines[-1], r"is complete in .*: 1 files, 20\.0 MiB; 20\.0 MiB received in [\d.]+ s, .*/s, 0 retries"
        )

    def test_a_bar(self):
        """A bar with rate and time left, redrawn in place, gone at the end. Each drawing lets more be sent."""
        permits = threading.Semaphore(16)
        self.addCleanup(permits.release, 1000)
        self.server.sent = lambda size: permits.acquire(timeout=DEADLINE)
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = self.shown(stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        said = b""
        while True:
            try:
                more = os.read(master, 1 << 16)
            except OSError:  # the other end is closed
                break
            said += more
            permits.release(1 + 10 * more.count(b"["))
        said = said.decode()
        self.assertEqual(process.wait(DEADLINE), 0, said)
        bars = re.findall(r"\r\033\[K\[(#*)(\.*)\] (" + self.LINE + r"(?:, \d+ s left)?)", said)
        self.assertGreater(len(bars), 2, said)
        self.assertEqual({len(full) + len(empty) for full, empty, _ in bars}, {30})
        full = [len(done) for done, _, _ in bars]
        self.assertEqual(full, sorted(full))
        self.assertGreater(full[-1], full[0])
        self.assertRegex(bars[-1][2], r"[1-9][\d.]* [KM]iB/s, \d+ s left$")
        self.assertRegex(said, r"\r\033\[K[^\r\033]*is complete in [^\r]*\r?\n$")


class LastWord(ProgressCase):
    def test_of_a_success(self):
        self.server.faults = [lambda request: request.plain(503, b"")] * 2
        code, done = self.fetch(self.url, "--termination-log", self.word)
        word = self.last_word()
        self.assertEqual((code, set(word)), (0, OF_A_SUCCESS | OF_A_FAILURE | {"bytes_per_second"}))
        self.assertEqual({name: word[name] for name in OF_A_SUCCESS}, {name: done[name] for name in OF_A_SUCCESS})
        self.assertEqual(
            (word["files"], word["bytes"], word["received"], word["retries"]), (1, self.SIZE, self.SIZE, 2)
        )
        self.assertEqual(
            (word["version"], word["exit_code"], word["class"], word["reason"]), (1, 0, "success", "complete")
        )
        self.assertGreater(word["seconds"], 0)
        self.assertAlmostEqual(
            word["bytes_per_second"], self.SIZE / word["seconds"], delta=self.SIZE / word["seconds"] / 100
        )

    def test_of_nothing_to_do(self):
        self.fetch(self.url)
        self.fetch(self.url, "--termination-log", self.word)
        word = self.last_word()
        self.assertEqual(
            (word["reason"], word["unchanged"], word["received"], word["kept_files"]),
            ("complete; no byte was moved", True, 0, 1),
        )

    def test_of_failures(self):
        for url, flags, code, kind in (
            (self.server.url + "/nothing", (), 1, "fatal"),
            ("http://127.0.0.1:1/x", ("--patience", "1"), UNREACHABLE, "retryable"),
            ("nonsense://x", (), 78, "fatal"),
            ("http://127.0.0.1:1/" + '\u00fc"' * 2000, ("--patience", "1"), UNREACHABLE, "retryable"),
            ("file:///" + "/".join(["\u00fc" * 50] * 30), (), 1, "fatal"),
        ):
            with self.subTest(url[:30]):
                open(self.word, "w").close()
                ended, event = self.fetch(url, *flags, "--termination-log", self.word)
                word = self.last_word()
                self.assertEqual(
                    (ended, word["exit_code"], word["class"], word["version"]), (code, code, kind, 1), self.said[:1000]
                )
                self.assertLessEqual(
                    COUNTS | OF_A_FAILURE | {"seconds"}, set(word), "what is too long is left out, no more"
                )
                self.assertLessEqual(set(word), OF_A_SUCCESS | OF_A_FAILURE | {"bytes_per_second"})
                self.assertTrue(event["reason"].startswith(word["reason"].rstrip("\ufffd")), word)

    def test_told_to_go(self):
        go = self.held()
        process = self.start(self.url, "--termination-log", self.word)
        for line in process.stdout:
            if json.loads(line)["event"] == "progress":
                process.terminate()
        self.assertEqual(process.wait(DEADLINE), 143)
        go.set()
        word = self.last_word()
        self.assertEqual((word["exit_code"], word["class"]), (143, "retryable"))
        self.assertIn("the next start goes on from it", word["reason"])
        self.assertGreater(word["received"], 0, "how far it came")


if __name__ == "__main__":
    main()
