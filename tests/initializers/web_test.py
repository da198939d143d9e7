# SPDX-License-Identifier: Apache-2.0
"""muster-initializer against a faulty web server: the bytes are right, or the run ends with a clear error."""

import glob
import hashlib
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, MIB, InitializerCase, main, some_bytes

from web_server import WebServer


class WebCase(InitializerCase):
    role = "model"

    def setUp(self):
        super().setUp()
        self.server = WebServer()
        self.addCleanup(self.server.close)

    def serve(self, data, path="/weights.bin"):
        self.server.files[path] = data
        return self.server.url + path

    def succeeds(self, url, data, *flags):
        return super().succeeds(url, {"weights.bin": data}, *flags)


class Plain(WebCase):
    def test_files_of_any_size_are_fetched(self):
        for size in (1, 8 << 10, 512 << 10, (512 << 10) + 1, 20 * MIB + 5):
            data = some_bytes(size)
            shutil.rmtree(self.target, ignore_errors=True)
            end = self.succeeds(self.serve(data), data)
            self.assertEqual((end["received"], end["unverified_files"], end["retries"]), (size, 0, 0))

    def test_a_signed_url(self):
        """The query is sent unchanged, and never shown."""
        data = some_bytes(1000)
        self.succeeds(self.serve(data) + "?X-Amz-Signature=s3cret&token=s3cret", data)
        self.assertEqual(
            {path for _, path, _ in self.server.requests}, {"/weights.bin?X-Amz-Signature=s3cret&token=s3cret"}
        )
        with open(os.path.join(self.target, ".muster", "manifest.json")) as file:
            self.assertNotIn("s3cret", self.said + file.read())

    def test_an_empty_file(self):
        self.succeeds(self.serve(b""), b"")

    def test_a_hash_in_the_fragment(self):
        """It is checked whether or not the server gives one, it is not sent, and another one is another source."""
        for digests in (True, False):
            self.server.digests = digests
            for size in (1000, 3 * MIB):
                data = some_bytes(size, size + digests)
                url = f"{self.serve(data)}#sha256={hashlib.sha256(data).hexdigest()}"
                self.assertEqual(self.succeeds(url, data)["unverified_files"], 0)
                self.assertTrue(self.succeeds(url, data)["unchanged"])
        self.assertEqual({path for _, path, _ in self.server.requests}, {"/weights.bin"})
        code, end = self.fetch(url.replace("sha256=", "sha256=00")[:-2])
        self.assertEqual(code, 1, end)

    def test_without_a_hash(self):
        self.server.digests = False
        data = some_bytes(3 * MIB)
        end = self.succeeds(self.serve(data), data)
        self.assertEqual(end["unverified_files"], 1)

    def test_again_moves_no_byte(self):
        data = some_bytes(3 * MIB)
        url = self.serve(data)
        self.succeeds(url, data)
        gets = self.server.count("GET")
        end = self.succeeds(url, data)
        self.assertTrue(end["unchanged"])
        self.assertEqual(self.server.count("GET"), gets)

    def test_another_version_replaces_it(self):
        url = self.serve(some_bytes(3 * MIB))
        self.succeeds(url, some_bytes(3 * MIB))
        data = some_bytes(2 * MIB, 2)
        self.serve(data)
        self.succeeds(url, data)

    def test_what_was_damaged_on_disk_is_fetched_again(self):
        data = some_bytes(3 * MIB)
        url = self.serve(data)
        self.succeeds(url, data)
        with open(os.path.join(self.target, "weights.bin"), "r+b") as file:
            file.write(b"damage")
        self.succeeds(url, data)

    def refusing_head(self, *others):
        """Refuses HEAD, as for a URL that is signed for GET; `others`: faults of the first GETs."""
        gets = iter(others)

        def fault(request):
            if request.command == "HEAD":
                return request.plain(self.status, b"")
            return next(gets, lambda _: False)(request)

        self.server.faulty = lambda request: True
        self.server.faults = [fault] * 1000

    def test_a_server_that_refuses_head(self):
        for self.status in (403, 405, 501):
            for size in (0, 1, 3 * MIB):
                with self.subTest(status=self.status, size=size):
                    shutil.rmtree(self.target, ignore_errors=True)
                    self.server.requests.clear()
                    self.refusing_head()
                    data = some_bytes(size)
                    end = self.succeeds(self.serve(data), data)
                    self.assertEqual((end["unverified_files"], end["retries"]), (0, 0))
                    probes = [said.get("Range") for method, _, said in self.server.requests if method == "GET"]
                    self.assertEqual(probes[0], "bytes=0-0")
                    self.assertTrue(all("If-Match" in said for method, _, said in self.server.requests[2:] if size))

    def test_a_server_that_refuses_head_and_knows_no_ranges(self):
        """The server begins to send the whole file, which is not read."""
        self.status = 403
        data = some_bytes(200 * MIB)
        sent = []
        self.server.sent = sent.append

        def all_of_it(request):
            del request.headers["Range"]

        self.refusing_head(all_of_it)
        code, end = self.fetch(self.serve(data), "--dry-run")
        self.assertEqual((code, end["files"], end["bytes"]), (0, 1, 200 * MIB), self.said)
        self.assertLess(sum(sent), 50 * MIB)
        data = some_bytes(3 * MIB)
        self.refusing_head(*[all_of_it] * 10)
        self.succeeds(self.serve(data), data)
        self.assertNotIn("Range", self.server.requests[-1][2])

    def test_a_redirect_where_head_is_refused(self):
        self.status = 405
        data = some_bytes(3 * MIB)
        self.serve(data, "/elsewhere/x")
        self.refusing_head(lambda request: request.plain(302, b"", ("Location", "/elsewhere/x?signed=1")))
        self.succeeds(self.server.url + "/weights.bin", data)

    def typed(self, kind):
        def fault(request):
            send_header = request.send_header

            def with_kind(name, value):
                if name == "ETag":
                    send_header("Content-Type", kind)
                send_header(name, value)

            request.send_header = with_kind
            return False

        return fault

    def test_web_pages_that_are_wanted(self):
        self.server.faulty = lambda request: True
        page = b"<html>1</html>"
        for name, flags in (
            ("page.html", ()),
            ("page.HTM", ()),
            ("page.xhtml", ()),
            ("README", ["--allow-html"]),
            ("page.php", ["--allow-html"]),
        ):
            shutil.rmtree(self.target, ignore_errors=True)
            self.server.faults = [self.typed("text/html; charset=utf-8")] * 9
            InitializerCase.succeeds(self, self.serve(page, "/" + name), {name: page}, *flags)

    def test_a_login_page_for_a_name_of_no_kind(self):
        """The name may be in the query."""
        self.server.faulty = lambda request: True
        self.server.faults = [self.typed("text/html")] * 9
        url = self.serve(b"<html>log in</html>", "/download")
        self.refused(
            url + "?file=model.safetensors&id=1", 1, "is it a login.* if the page is what is wanted, say --allow-html"
        )

    def test_a_dry_run_moves_nothing(self):
        code, end = self.fetch(self.serve(some_bytes(MIB)), "--dry-run")
        self.assertEqual((code, end["event"], end["files"], end["bytes"]), (0, "plan", 1, MIB), self.said)
        self.assertFalse(os.path.exists(self.target))
        self.assertEqual(self.server.count("GET"), 0)


class Transient(WebCase):
    """Each ends in success, with the right bytes."""

    SIZE = 20 * MIB + 5

    def repaired(self, *faults, flags=(), size=SIZE, faulty=None):
        data = some_bytes(size)
        self.server.faults = list(faults)
        if faulty:
            self.server.faulty = faulty
        end = self.succeeds(self.serve(data), data, *flags)
        self.assertEqual(self.server.faults, [])
        return end

    @staticmethod
    def cut(after):
        def fault(request):
            request.cut = after

        return fault

    @staticmethod
    def answer(status, text=b"", *headers):
        return lambda request: request.plain(status, text, *headers)

    def test_cut_in_the_body(self):
        end = self.repaired(*[self.cut(after) for after in (1, 100_000, 700_000, 3 * MIB)])
        self.assertLess(end["received"], self.SIZE + 8 * MIB)  # it continued where it was cut

    def test_cut_in_small_files(self):
        self.repaired(self.cut(0), self.cut(10), self.cut(70_000), size=100_000)

    def test_reset_before_any_byte(self):
        def reset(request):
            request.reset()
            return True

        self.repaired(reset, reset, reset)

    def test_a_busy_server_is_asked_again(self):
        self.repaired(*[self.answer(503, b"", ("Retry-After", "0"))] * 3, self.answer(429), self.answer(500))

    def test_busy_when_it_is_looked_for(self):
        self.repaired(
            self.answer(503), self.answer(502), self.answer(429), faulty=lambda request: request.command == "HEAD"
        )

    def test_shorter_than_it_was_listed(self):
        def shorter(request):
            request.shorter = 1000

        self.repaired(shorter, shorter)
        shutil.rmtree(self.target)
        self.repaired(shorter, shorter, size=100_000)

    def test_all_in_place_of_a_range(self):
        def all_of_it(request):
            del request.headers["Range"]

        self.repaired(all_of_it, all_of_it)

    def test_another_range(self):
        def other(request):
            request.first, request.last = 1, 1000

        self.repaired(other, other)

    def test_a_login_page(self):
        page = b"<html><body>Please log in</body></html>"
        self.repaired(self.answer(200, page, ("Content-Type", "text/html")), self.answer(200, page))

    def test_a_flipped_bit(self):
        def flip(request):
            request.flip = 5_000_000

        end = self.repaired(flip)
        self.assertEqual(end["unverified_files"], 0)

    def test_a_flipped_bit_in_a_small_file(self):
        def flip(request):
            request.flip = 1

        self.repaired(flip, size=100_000)

    def test_a_silent_server_is_asked_again(self):
        def silent(request):
            request.stall = 1000

        self.repaired(silent, flags=["--stall-timeout", "1"])

    def test_overwritten_while_it_is_read(self):
        before, after = some_bytes(self.SIZE), some_bytes(self.SIZE, 2)
        url = self.serve(before)

        def overwrite(request):
            self.serve(after)

        self.server.faults = [lambda request: False, overwrite]
        self.succeeds(url, after)

    def test_overwritten_between_a_cut_and_its_resume(self):
        before, after = some_bytes(self.SIZE), some_bytes(self.SIZE - MIB, 2)
        url = self.serve(before)

        def overwrite(request):
            request.cut = 3_000_000
            self.serve(after)
            request.server.files["/weights.bin"] = before
            request.server.faults.insert(0, lambda _: self.serve(after) and False)

        self.server.faults = [overwrite]
        self.succeeds(url, after)


class LittleRoom(WebCase):
    """A file system with room for one version, not for two."""

    SIZE = 20 * MIB + 5

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        os.mkdir(self.target)
        mounted = self.mount()
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", self.target], check=True)
        self.before, self.after = some_bytes(self.SIZE), some_bytes(self.SIZE, 2)
        self.url = self.serve(self.before)

    def mount(self):
        return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "tmpfs", self.target], capture_output=True)

    def succeeds(self, url, data):
        code, end = self.fetch(url)
        self.assertEqual(code, 0, self.said)
        self.assertTrue(list(self.target_files().values()) == [data], self.said)
        return end

    def sending(self, then):
        """Calls `then` once, when most of the file was sent."""
        sent = [0]

        def count(size):
            sent[0] += size
            if sent[0] >= 15 * MIB:
                self.server.sent = lambda _: None
                then()

        self.server.sent = count

    def killed_in_the_midst(self):
        started = queue.SimpleQueue()
        self.sending(lambda: started.get(timeout=DEADLINE).kill())  # sending counts from the first byte
        process = self.start(self.url)
        started.put(process)
        process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, -signal.SIGKILL)

    def test_overwritten_while_it_is_read(self):
        most = threading.Event()

        def overwrite(request):
            if int(request.headers["Range"].removeprefix("bytes=").partition("-")[0]) >= 16 * MIB:
                self.assertTrue(most.wait(DEADLINE))
                self.serve(self.after)

        self.sending(most.set)
        self.server.faults = [overwrite] * 6  # for as many ranges, of at most 4 MiB
        self.succeeds(self.url, self.after)
        self.assertIn("another version is there now", self.said)

    def test_overwritten_before_the_next_start(self):
        self.killed_in_the_midst()
        self.serve(self.after)
        self.succeeds(self.url, self.after)

    def test_what_another_source_left(self):
        self.killed_in_the_midst()
        self.succeeds(self.serve(self.after, "/other.bin"), self.after)

    def test_more_than_there_is(self):
        code, end = self.fetch(self.serve(some_bytes(40 * MIB)))
        self.assertEqual(code, 1, self.said)
        self.assertRegex(end["reason"], r"needs 4\d+ bytes and [23]\d+ are free in .*: give it a larger volume")


class LittleRoomOnDisk(LittleRoom):
    """On a file system that reserves space."""

    def mount(self):
        image = os.path.join(self.dir, "image")
        with open(image, "wb") as file:
            file.truncate(34 * MIB)
        made = subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", image], capture_output=True)
        return (
            made
            if made.returncode != 0
            else subprocess.run(["mount", "-o", "loop", image, self.target], capture_output=True)
        )


class Killed(WebCase):
    def noted(self):
        """Bytes of the file that are noted. Bytes in sockets are lost at a kill; how many depends on the scheduler."""
        lines = []
        for journal in glob.glob(os.path.join(self.target, ".muster", "staging", "*.ranges")):
            with open(journal) as file:
                lines += [line for line in file if line.endswith("\n")]
        return sum(int(line.split()[1]) for line in lines)

    def test_at_any_point(self):
        """Killed at twenty points, each start continues; noted bytes are not fetched again."""
        size = 160 * MIB
        data = some_bytes(size)
        url = self.serve(data)
        points = random.Random(3).sample(range(size // 10), 20)
        noted = [0]
        for point in points:
            process = self.start(url)
            sent = [0]

            def count(bytes_sent):
                sent[0] += bytes_sent
                if sent[0] >= point:
                    process.kill()

            self.server.sent = count
            process.wait(DEADLINE)
            self.assertIn(process.returncode, (0, -signal.SIGKILL))
            if process.returncode == 0:
                break
            noted.append(self.noted())
            self.check_nothing()
        brought = [after - before for before, after in zip(noted, noted[1:])]
        self.assertGreaterEqual(min(brought), 0, "nothing is lost again")
        self.assertGreater(noted[-1], max(brought), "more than any one start has brought")
        self.server.sent = lambda _: None
        end = self.succeeds(url, data)
        self.assertEqual(end["kept"] + end["received"], size)
        self.assertEqual(end["kept"], noted[-1])

    def test_what_is_noted_is_kept(self):
        size = 200 * MIB
        data = some_bytes(size)
        url = self.serve(data)
        process = self.start(url)
        sent = [0]

        def count(bytes_sent):
            sent[0] += bytes_sent
            if sent[0] >= size // 2:
                process.kill()

        self.server.sent = count
        self.assertEqual(process.wait(DEADLINE), -signal.SIGKILL)
        self.server.sent = lambda _: None
        noted = self.noted()
        self.assertGreater(noted, 0)
        code, plan = self.fetch(url, "--dry-run")
        file = next(event for event in map(json.loads, self.said.splitlines()) if event["event"] == "file")
        self.assertEqual((code, file["bytes"], plan["planned_bytes"]), (0, size, size - file["staged_bytes"]))
        end = self.succeeds(url, data)
        self.assertEqual(end["kept"] + end["received"], size)
        self.assertEqual(end["kept"], file["staged_bytes"])
        self.assertEqual(end["kept"], noted)


if __name__ == "__main__":
    main()
