# SPDX-License-Identifier: Apache-2.0
"""Wrong answers of a hub and of its CDN: the bytes are right, or the run ends with a clear error."""

import os
import random
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub_case import FILES, URI, HubCase, hash_of, subset
from initializer_case import DEADLINE, MIB, UNREACHABLE, main

LOGIN = b"<html><body>Please log in</body></html>"

RANGES = 6  # of model.safetensors: five of 4 MiB, while the latency of the store is unknown, and the rest


class FaultCase(HubCase):
    # Each kind of file: small and of several blocks in git, small and large in LFS.
    kinds = ("config.json", "tokenizer.json", "small.bin", "model.safetensors")

    def setUp(self):
        super().setUp()
        self.uri = f"{URI}@{self.repository.branches['main']}"

    def repaired(self, *faults, kinds=kinds, faulty=None, flags=(), env=None):
        for path in kinds:
            with self.subTest(path):
                self.anew()
                self.hub.faults = list(faults)
                self.hub.faulty = faulty or self.hub.faulty
                end = self.succeeds(f"{self.uri}/{path}", subset(path), *flags, env=env)
                self.assertEqual((self.hub.faults, end["unverified_files"]), ([], 0))


def answering(*answer):
    return lambda request: request.plain(*answer)


def setting(**values):
    def fault(request):
        for name, value in values.items():
            setattr(request, name, value)

    return fault


class Transient(FaultCase):
    """Each ends in success, with the right bytes."""

    def test_a_link_that_expires(self):
        self.repaired(
            lambda request: self.hub.expire(),
            kinds=("small.bin", "model.safetensors"),
            faulty=lambda request: request.is_cdn,
        )
        self.anew()
        # Renamed once, in the middle of the transfer.
        moved = [0]

        def count(size):
            moved[0] += size
            if moved[0] > 6 * MIB and not self.hub.epoch:
                self.hub.expire()

        self.hub.epoch, self.hub.sent = 0, count
        self.hub.faults = [setting(cut=100_000) for _ in range(8)]
        self.hub.faulty = lambda request: request.is_cdn and self.hub.epoch == 0
        self.succeeds(URI, FILES)
        self.assertEqual(self.hub.epoch, 1)

    def test_a_link_that_is_gone(self):
        """A link expires while ranges are fetched. Some stores answer another status than 403 then."""
        for status in (400, 401, 403, 404, 410):
            with self.subTest(status):
                self.anew()
                self.hub.expired = status
                all_of_them = threading.Barrier(RANGES, self.hub.expire)

                def fault(request, all_of_them=all_of_them):
                    request.cut = 300_000
                    request.answer()
                    all_of_them.wait(DEADLINE)  # the connection is cut after that
                    return True

                self.hub.faulty = lambda request: request.is_cdn
                self.hub.faults = [fault] * RANGES
                end = self.succeeds(f"{self.uri}/model.safetensors", subset("model.safetensors"))
                self.assertEqual(end["received"], len(FILES["model.safetensors"]))
                self.assertLessEqual(
                    self.hub.count("hub", "GET", "/resolve/"), 2 * RANGES, "each range asks once more at most"
                )

    def test_links_that_hold_once(self):
        self.hub.faulty = lambda request: request.is_cdn

        def cut_and_expire(request):
            request.cut = 3 * MIB
            request.answer()
            self.hub.expire()
            return True

        self.hub.faults = [cut_and_expire] * 6
        self.succeeds(f"{self.uri}/model.safetensors", subset("model.safetensors"))
        self.assertEqual(self.hub.faults, [])

    def test_a_link_is_used_for_the_rest_of_its_range(self):
        self.hub.faults = [setting(cut=300_000)] * 4
        self.hub.faulty = lambda request: request.is_cdn
        self.succeeds(f"{self.uri}/model.safetensors", subset("model.safetensors"))
        self.assertLessEqual(self.hub.count("hub", "GET", "/resolve/"), RANGES, "one for each range at most")
        self.assertGreaterEqual(self.hub.count("cdn"), RANGES + 3)

    def test_an_answer_that_is_cut_off_is_asked_for_again(self):
        self.repaired(*[setting(cut=after) for after in (0, 1, 5)])

    def test_a_silent_server_is_asked_again(self):
        self.repaired(setting(stall=5), kinds=("small.bin",), flags=["--stall-timeout", "1"])

    def test_a_flipped_bit(self):
        def flip(request):
            low, high = request.headers["Range"].removeprefix("bytes=").split("-")
            request.flip = (int(low) + int(high)) // 2

        self.repaired(flip)

    def test_a_login_page_for_data(self):
        page = answering(200, LOGIN, ("Content-Type", "text/html"))
        self.repaired(page, page)
        self.repaired(page, page, faulty=lambda request: "/resolve/" in request.url)

    def test_a_login_page_for_lists(self):
        page = answering(200, LOGIN, ("Content-Type", "text/html"))
        self.hub.faulty = lambda request: request.is_api
        self.hub.faults = [page, page, lambda _: None, page, answering(502, b"")]
        self.succeeds(URI, FILES)
        self.assertEqual(self.hub.faults, [])

    def test_a_busy_server_is_asked_again(self):
        busy = [answering(429, b"", ("Retry-After", "0")), answering(503, b""), answering(500, b"")]
        self.repaired(*busy)
        self.repaired(
            *busy, faulty=lambda request: "/resolve/" in request.url, kinds=("config.json", "model.safetensors")
        )
        self.repaired(*busy, answering(408, b""), faulty=lambda request: request.is_tree, kinds=("config.json",))

    def test_too_many_requests(self):
        """The run waits as long as RateLimit or Retry-After says."""
        for headers in ([("Retry-After", "1")], [("RateLimit", '"resolvers";r=0;t=0')]):
            for faulty in (lambda request: request.is_api, lambda request: "/resolve/" in request.url):
                self.anew()
                self.hub.faulty = faulty
                self.hub.faults = [answering(429, b"", *headers)]
                end = self.succeeds(URI, subset("config.json"), "--include", "config.json")
                self.assertGreaterEqual(end["seconds"], 1)
                self.assertRegex(self.said, "429.*trying again in 1\\.[01] s as the server asks")

    def test_a_quota_is_not_overdrawn(self):
        """After r=0 the next request waits, so that there is no 429. The window of 0.9 s is reported as t=0, which
        means 1 s. It allows one request, so that it is used up even on a slow machine."""
        self.hub.page, self.hub.quota, self.hub.window = 4, {"api": 1}, 0.9
        self.succeeds(self.uri, FILES)
        self.assertEqual(self.hub.refused, 0)
        self.assertIn("the hub's rate limit is used up; going on in 1 s (it is higher with a token", self.said)

    def test_three_in_ten_fail(self):
        many = {f"many/{n}": b"%d" % n for n in range(40)}
        self.hub.add("muster/many", {**FILES, **many}, lfs={f"many/{n}" for n in range(0, 40, 2)})
        lot = random.Random(5)
        self.hub.page = 10
        self.hub.faulty = lambda request: lot.random() < 0.3
        self.hub.always(answering(503, b"busy"))
        self.succeeds("hf://muster/many", {**FILES, **many}, "--patience", "60")


class Permanent(FaultCase):
    """Each ends in a clear error, and nothing is published."""

    def test_always_a_flipped_bit(self):
        for path in self.kinds:
            with self.subTest(path):
                self.anew()
                self.hub.always(setting(flip=5))
                self.refused(
                    f"{self.uri}/{path}", 1, f"{path}: .*expected {hash_of(path, FILES[path])}.* nothing was published"
                )

    def test_always_busy(self):
        self.hub.always(answering(503, b""))
        for faulty in (lambda request: request.is_api, lambda request: request.is_data):
            self.hub.faulty = faulty
            self.refused(URI, UNREACHABLE, "503.*giving up", "--patience", "1")

    def test_always_a_login_page(self):
        self.hub.always(answering(200, LOGIN, ("Content-Type", "text/html")))
        for faulty, words in (
            (lambda request: request.is_api, "it is not JSON: '<html><body>Please log in"),
            (lambda request: request.is_data, "is not the requested range"),
        ):
            self.hub.faulty = faulty
            self.refused(URI, UNREACHABLE, words, "--patience", "1")

    def test_links_that_never_hold(self):
        self.hub.faulty = lambda request: request.is_cdn
        self.hub.always(lambda request: self.hub.expire())
        self.refused(
            f"{self.uri}/model.safetensors", UNREACHABLE, "403 from http.*the link has expired", "--patience", "1"
        )

    def test_a_cdn_that_refuses(self):
        self.hub.faulty = lambda request: request.is_cdn
        self.hub.always(answering(400, b"<Error><Code>InvalidArgument</Code></Error>"))
        self.refused(self.uri, 1, "400 from http.*InvalidArgument")

    def test_the_hub_asks_for_too_long(self):
        self.hub.faulty = lambda request: request.is_api
        self.hub.always(answering(429, b"", ("Retry-After", "3600")))
        self.refused(URI, UNREACHABLE, "asks for a pause of 3600 s")


class Killed(FaultCase):
    def test_at_any_point(self):
        """Killed at twenty points, each start continues; the last succeeds. Little is fetched twice."""
        total = sum(map(len, FILES.values()))
        lot = random.Random(3)
        killed = 0
        for _ in range(20):
            process = self.start(URI)
            enough = lot.randrange(total // 8)
            sent = [0]

            def count(size):
                sent[0] += size
                if sent[0] >= enough:
                    process.kill()

            self.hub.sent = count
            _, said = process.communicate(timeout=DEADLINE)
            self.assertIn(process.returncode, (0, -signal.SIGKILL), said)
            if process.returncode == 0:
                break
            killed += 1
            self.check_nothing()
        self.assertGreater(killed, 0)
        self.hub.sent = lambda size: None
        end = self.succeeds(URI, FILES)
        self.assertLess(end["received"], total, "what was there was gone on with")

    def test_room_that_is_taken_already_is_not_asked_for_again(self):
        """On a file system with room for all files, but not for the staged ones twice."""
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        os.mkdir(self.target)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "tmpfs", self.target], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", self.target])
        process = self.start(URI)
        moved = [0]

        def count(size):
            moved[0] += size
            if moved[0] > 16 * MIB:
                process.kill()

        self.hub.sent = count
        process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.hub.sent = lambda size: None
        self.assertGreater(self.succeeds(URI, FILES)["kept"], 0)


if __name__ == "__main__":
    main()
