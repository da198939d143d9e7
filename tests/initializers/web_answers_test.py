# SPDX-License-Identifier: Apache-2.0
"""muster-initializer and a web server that answers with something else than the file: another version, a page, another
object at the end of a redirect."""

import base64
import hashlib
import os
import shutil
import signal
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, MIB, UNREACHABLE, main, some_bytes

from web_test import WebCase


def chunks(request, status, text, endless=False):
    request.send_response(status)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    chunk = b"%x\r\n%s\r\n" % (len(text), text)
    request.wfile.write(chunk)
    while endless:
        request.wfile.write(chunk)  # until the client closes
    request.wfile.write(b"0\r\n\r\n")
    return True


class AnswersCase(WebCase):
    SIZE = 20 * MIB + 5

    def repaired(self, *faults, size=SIZE):
        data = some_bytes(size)
        self.server.faults = list(faults)
        self.succeeds(self.serve(data), data)
        self.assertEqual(self.server.faults, [])

    def always(self, fault):
        self.server.faulty = lambda request: True
        self.server.faults = [fault] * 10_000


class Other(AnswersCase):
    """Answers other than the requested bytes."""

    def test_a_page_of_no_length(self):
        """A chunked page with a clean end, shorter than the file: none of it counts as the file."""

        def page(request):
            return chunks(request, 200, b"<html>please wait</html>")

        self.server.digests = False
        self.repaired(page, page, size=100_000)
        shutil.rmtree(self.target)
        self.repaired(page, size=5 * MIB)

    def test_conditions_that_are_not_heeded(self):
        """Such as by a cache: all bytes must be of one version."""
        self.server.digests = False
        before, after = some_bytes(self.SIZE), some_bytes(self.SIZE, 2)
        url = self.serve(before)

        def heedless(request):
            del request.headers["If-Match"]

        def cut(request):
            request.cut = 300_000
            request.server.faults.insert(0, lambda request: heedless(request) or (self.serve(after) and False))

        self.server.faults = [cut] + [heedless] * 20
        self.succeeds(url, after)
        self.assertIn("another version is there now", self.said)

    def test_one_overwrite_that_many_requests_tell(self):
        """Many requests report it at once: the file is begun anew once."""
        data = bytes(128 * MIB)
        processes, started = [], threading.Event()

        def all_asked():
            started.wait(DEADLINE)
            processes[0].send_signal(signal.SIGSTOP)

        asked = threading.Barrier(8, all_asked)
        answered = threading.Barrier(8, lambda: processes[0].send_signal(signal.SIGCONT))

        def changed(request):
            asked.wait(DEADLINE)
            request.plain(412, b"changed")
            request.wfile.flush()
            answered.wait(DEADLINE)
            return True

        self.server.faults = [changed] * 8
        processes.append(self.start(self.serve(data)))
        started.set()
        out, err = processes[0].communicate(timeout=DEADLINE)
        self.assertEqual(
            (processes[0].returncode, (out + err).count("another version is there now")), (0, 1), out + err
        )
        self.check_right({"weights.bin": data})

    def test_all_in_place_of_a_range_is_not_read(self):
        def all_of_it(request):
            del request.headers["Range"]

        sent = []
        self.server.sent = sent.append
        self.repaired(all_of_it, all_of_it, size=64 * MIB)
        self.assertLess(sum(sent), 2 * 64 * MIB)

    def test_a_refusal_without_end(self):
        self.repaired(lambda request: chunks(request, 500, b"x" * 4096, endless=True))

    def test_always_longer_than_it_was_listed(self):
        data = some_bytes(1000)

        def longer(request):
            if request.command == "HEAD":
                return False
            request.send_response(200)
            request.send_header("Transfer-Encoding", "chunked")
            request.end_headers()
            request.wfile.write(b"3e9\r\n%sx\r\n0\r\n\r\n" % data)
            return True

        self.always(longer)
        self.refused(self.serve(data), UNREACHABLE, "more bytes came than were asked for; giving up", "--patience", "1")

    def test_always_cut_where_no_part_can_be_kept(self):
        """Neither version nor ranges: the bytes are thrown away each time, and are no progress."""

        def cut(request):
            request.send_response(200)
            request.send_header("Content-Length", "100000")
            request.end_headers()
            if request.command == "GET":
                request.wfile.write(bytes(50_000))
                request.reset()
            return True

        self.server.faulty = lambda request: True
        self.always(cut)
        self.refused(self.serve(bytes(100_000)), UNREACHABLE, "giving up after", "--patience", "1")

    def test_a_digest_of_no_content(self):
        """Content-Digest is the hash of an answer's content: an answer to HEAD has none."""
        data = some_bytes(1000)
        nothing = base64.b64encode(hashlib.sha256(b"").digest()).decode()

        def digested(request):
            request.send_response(200)
            request.send_header("ETag", '"v1"')
            if request.command == "HEAD":
                request.send_header("Content-Digest", f"sha-256=:{nothing}:")
            request.send_header("Content-Length", "1000")
            request.end_headers()
            if request.command == "GET":
                request.wfile.write(data)
            return True

        self.always(digested)
        end = self.succeeds(self.serve(data), data)
        self.assertEqual(end["unverified_files"], 1)

    def test_a_range_that_cannot_be_had_where_head_is_refused(self):
        """416 does not say that the file is empty."""
        data = some_bytes(1000)

        def rangeless(request):
            if request.command == "HEAD":
                return request.plain(403, b"")
            if request.headers.get("Range") == "bytes=0-0":
                return request.plain(416, b"")
            return request.plain(200, data)

        self.always(rangeless)
        self.succeeds(self.serve(data), data)


class Digests(AnswersCase):
    """Digests that come only with the bytes."""

    def setUp(self):
        super().setUp()
        self.server.faulty = lambda request: request.command == "GET" and request.headers.get("Range") != "bytes=0-0"

    def flipped(self, request):
        request.flip = 17
        return False

    def test_of_the_file(self):
        self.server.digests = "GET"
        for size in (1000, self.SIZE):
            data = some_bytes(size)
            shutil.rmtree(self.target, ignore_errors=True)
            self.server.faults = [self.flipped]
            end = self.succeeds(self.serve(data), data)
            self.assertEqual((end["unverified_files"], self.server.faults), (0, []))
            self.server.faults = [self.flipped] * 1000
            shutil.rmtree(self.target)
            self.refused(self.serve(data), 1, "expected .* got .*nothing was published")
            shutil.rmtree(self.target)

    def test_of_the_content(self):
        """Content-Digest is the hash of the file if the answer is the whole file."""
        data = some_bytes(1000)
        self.server.digests = False
        flips = [17]

        def digested(request):
            body = bytearray(data)
            if request.command == "GET" and flips:
                body[flips.pop()] ^= 1
            request.send_response(200)
            request.send_header("ETag", '"v1"')
            if request.command == "GET":
                request.send_header(
                    "Content-Digest", f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"
                )
            request.send_header("Content-Length", "1000")
            request.end_headers()
            if request.command == "GET":
                request.wfile.write(body)
            return True

        self.always(digested)
        self.assertEqual(self.succeeds(self.serve(data), data)["unverified_files"], 0)
        self.assertEqual(flips, [])


class Unpinned(AnswersCase):
    """Files without a strong ETag."""

    def setUp(self):
        super().setUp()
        self.server.digests = False

    def test_all_is_of_one_version(self):
        self.server.modified = None
        before, after = some_bytes(self.SIZE), some_bytes(self.SIZE, 2)
        for etag in (None, lambda tag: f"W/{tag}"):
            for gets in range(4):
                shutil.rmtree(self.target, ignore_errors=True)
                self.server.etag = etag
                url = self.serve(before)
                self.server.faults = [lambda request: False] * gets + [lambda request: self.serve(after) and False]
                code, _ = self.fetch(url)
                self.assertEqual(code, 0, self.said)
                self.assertIn(self.target_files()["weights.bin"], (before, after), "a mix of two versions")

    def test_pinned_by_its_date(self):
        self.server.etag = None
        before, after = some_bytes(self.SIZE), some_bytes(self.SIZE, 2)

        def overwrite(request):
            self.server.modified = "Mon, 23 Nov 2026 01:02:03 GMT"
            self.serve(after)

        url = self.serve(before)
        self.server.faults = [lambda request: False] * 2 + [overwrite]
        self.succeeds(url, after)
        self.assertEqual(
            {
                headers.get("If-Unmodified-Since")
                for method, _, headers in self.server.requests
                if method == "GET" and headers.get("Range") != "bytes=0-0"
            },
            {"Sun, 22 Nov 2026 01:02:03 GMT", "Mon, 23 Nov 2026 01:02:03 GMT"},
        )


class Redirects(AnswersCase):
    """Redirects to a URL whose signature expires."""

    def led(self, refusal, good, data):
        """/weights.bin redirects to /cdn/x?NUMBER, counted up. `good(number, gets)`: valid after so many GETs."""
        numbers, gets = [0], {}

        def fault(request):
            path, _, number = request.path.partition("?")
            if path == "/weights.bin":
                numbers[0] += 1
                return request.plain(302, b"", ("Location", f"/cdn/x?{self.name(numbers[0])}"))
            if request.command == "GET":
                gets[number] = gets.get(number, 0) + 1
                if not good(number, gets[number]):
                    return request.plain(refusal, b"")
            return False

        self.serve(data, "/cdn/x")
        self.always(fault)
        return self.server.url + "/weights.bin"

    @staticmethod
    def name(number):
        return str(number)

    def test_that_expires(self):
        data = some_bytes(40 * MIB)
        for refusal in (401, 403, 404, 410):
            with self.subTest(refusal):
                shutil.rmtree(self.target, ignore_errors=True)
                end = self.succeeds(self.led(refusal, lambda number, gets: number != "1" or gets < 2, data), data)
                self.assertEqual(end["received"], len(data), "what was there is kept")

    def test_that_is_of_another_version_then(self):
        before, after = some_bytes(40 * MIB), some_bytes(40 * MIB, 2)

        def good(number, gets):
            if number == "1" and gets == 2:
                self.serve(after, "/cdn/x")
            return number != "1" or gets < 2

        self.succeeds(self.led(403, good, before), after)

    def test_that_leads_to_the_same_again(self):
        self.name = lambda number: "always"
        for refusal, words in ((403, "/cdn/x: 403: access is denied"), (404, "/cdn/x: 404: there is no such file")):
            self.refused(self.led(refusal, lambda number, gets: False, some_bytes(1000)), 1, words)


if __name__ == "__main__":
    main()
