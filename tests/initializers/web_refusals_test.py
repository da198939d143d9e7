# SPDX-License-Identifier: Apache-2.0
"""Faults of a web server that do not pass: the run ends at once, with a clear error."""

import hashlib
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import BINARY, DEADLINE, MIB, UNREACHABLE, main, some_bytes

from web_test import WebCase


class Permanent(WebCase):
    """Each ends in a clear error, and nothing is published."""

    def always(self, fault):
        class Endless(list):
            def pop(self, _):
                return fault

            def __bool__(self):
                return True

        self.server.faults = Endless()

    def test_always_a_flipped_bit(self):
        def flip(request):
            request.flip = 77

        self.always(flip)
        for size in (20 * MIB, 100_000):
            self.refused(
                self.serve(some_bytes(size)), 1, "weights.bin: .*expected sha256:.* got sha256:.*nothing was published"
            )

    def test_another_hash_in_the_fragment(self):
        data, wanted = some_bytes(3 * MIB), "0" * 64
        self.refused(
            f"{self.serve(data)}#sha256={wanted}",
            1,
            f"expected sha256:{wanted}, got sha256:{hashlib.sha256(data).hexdigest()}.*nothing was published",
        )
        self.refused(
            f"{self.serve(data)}#sha256={wanted}", 78, "is checked only with --verify=full", "--verify", "size"
        )
        self.refused(f"{self.serve(data)}#sha512={wanted}", 78, "'#sha512=' is not known in a fragment")

    def test_not_there(self):
        self.refused(self.server.url + "/nothing", 1, "/nothing: 404: there is no such file; check the URL")

    def test_a_login_page(self):
        """A redirect leads to a login page; also if HEAD is refused. The page may have no hash and any length."""
        page = b"<html><body>Please log in</body></html>"
        url = self.serve(b"weights", "/model.safetensors")
        self.server.faulty = lambda request: True
        for kind in ("text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"):
            for head in (200, 405):

                def led(request):
                    if request.path == "/model.safetensors":
                        return request.plain(302, b"", ("Location", "/login"))
                    if request.command == "HEAD" and head != 200:
                        return request.plain(head, b"")
                    return request.plain(200, page, ("Content-Type", kind))

                self.always(led)
                self.refused(
                    url,
                    1,
                    "/login: the answer is a web page in place of .*/model.safetensors: is it a login.*"
                    "must be public, or its URL signed",
                )

    def test_a_login_page_once_it_was_found(self):
        """A page, maybe as long as the file: the request is repeated, and the message names the page."""
        page = b"<html><body>Please log in</body></html>"
        self.server.digests = False
        self.always(lambda request: request.plain(200, page, ("Content-Type", "text/html")))
        self.refused(
            self.serve(b"w" * len(page), "/weights.bin"), UNREACHABLE, "a web page in place of", "--patience", "1"
        )

    def test_what_a_server_does_not_give(self):
        self.server.faulty = lambda request: True
        for status in (405, 400, 451):
            self.always(lambda request: request.plain(status, b""))
            self.refused(self.serve(b"x"), 1, f"{status}; .*check the URL")

    def test_denied_access_is_said(self):
        self.server.faulty = lambda request: True
        self.always(lambda request: request.plain(403, b""))
        self.refused(self.serve(b"x"), 1, "403: access is denied")

    def test_nobody_listens(self):
        self.server.close()
        self.refused(
            self.server.url + "/x",
            UNREACHABLE,
            "Connection refused|Failed to connect|Couldn't connect",
            "--patience",
            "1",
        )

    def test_always_busy(self):
        self.always(lambda request: request.plain(503, b""))
        self.refused(self.serve(some_bytes(MIB)), UNREACHABLE, "503", "--patience", "1")

    def test_a_redirect_loop(self):
        self.server.faulty = lambda request: True
        self.always(lambda request: request.plain(302, b"", ("Location", "/x")))
        self.refused(self.serve(b"x"), 1, "redirected more than 5 times")

    def test_no_name(self):
        self.refused("http://nowhere.invalid/x", UNREACHABLE, "nowhere.invalid", "--patience", "1")

    def test_the_target_is_a_file(self):
        with open(self.target, "w"):
            pass
        ended, end = self.fetch(self.serve(b"x"))
        self.assertEqual(ended, 1, self.said)
        self.assertIn("is a file, where a folder has to be", end["reason"])
        file, self.target = self.target, os.path.join(self.target, "sub", "folder")
        ended, end = self.fetch(self.serve(b"x"))
        self.assertEqual(ended, 1, self.said)
        self.assertIn(
            f"making {file}/sub: Not a directory; remove what is in the way, or name another target", end["reason"]
        )

    def test_a_link_in_the_target(self):
        outside = os.path.join(self.dir, "outside")
        os.mkdir(outside)
        os.mkdir(self.target)
        os.symlink(outside, os.path.join(self.target, ".muster"))
        ended, end = self.fetch(self.serve(b"x"))
        self.assertEqual(ended, 1, self.said)
        self.assertIn("is a link or a file", end["reason"])
        self.assertEqual(os.listdir(outside), [])

    def test_wrong_settings(self):
        for arguments, code in (
            ([], 64),
            (["model"], 64),
            (["model", "nonsense"], 78),
            (["model", "ftp://x/y"], 78),
            (["model", "http://x/y", "--verify", "maybe"], 64),
        ):
            done = subprocess.run(
                [BINARY, *arguments], capture_output=True, text=True, env=self.environment(), timeout=DEADLINE
            )
            self.assertEqual(done.returncode, code, (arguments, done.stderr))


if __name__ == "__main__":
    main()
