# SPDX-License-Identifier: Apache-2.0
"""Faults that the client of every store must survive: mixins for tests of a store behind a FaultProxy.

The test class has `proxy`, `uri`, `put(name, data)`, and `objects`: name -> content, large ones in several ranges.
"""

import os
import queue
import random
import re
import shutil
import signal
import threading
import time

from initializer_case import DEADLINE, MIB, UNREACHABLE, some_bytes

from class_runner import EMULATED


def setting(**values):
    def fault(exchange):
        for name, value in values.items():
            setattr(exchange, name, value)

    return fault


def answering(*answer):
    return lambda exchange: exchange.answer(*answer)


LOGIN_PAGE = answering(200, b"<html><body>Please log in</body></html>", ("Content-Type", "text/html"))


class Store:
    large = ()  # names of `objects` that are fetched in ranges
    unhashed = ()  # names of `objects` without a published hash: wrong bytes in them are not detected
    busy = None  # a fault: the store's own form of 503
    too_many = staticmethod(answering(429, b"", ("Retry-After", "1")))
    many = 100  # more objects than `objects`, for tests that bring many
    is_data = staticmethod(lambda exchange: exchange.is_data)
    is_list = None  # predicate of an exchange; wrap it in staticmethod

    def runs(self, objects):
        """The runs that bring `objects`, all that the store has, as [(URI, path -> content)]: one if it has lists."""
        return [(self.uri, objects)]

    def each_run(self, objects):
        """The same, each with its own target."""
        for uri, part in self.runs(objects):
            shutil.rmtree(self.target, ignore_errors=True)
            yield uri, part

    def put_many(self, count):
        """Puts `count` objects beside `objects`."""
        more = {f"many/{n}": some_bytes(100, n) for n in range(count)}
        for name, data in more.items():
            self.put(name, data)
        return {**self.objects, **more}

    def kill_after(self, enough, uri):
        """Kills a process when the proxy has sent `enough` bytes; the proxy sends no more until then."""
        started, lock, sent = queue.SimpleQueue(), threading.Lock(), [0]

        def count(size):
            with lock:
                before, sent[0] = sent[0], sent[0] + size
                if before < enough <= sent[0]:
                    started.get(timeout=DEADLINE).kill()

        self.proxy.sent = count
        process = self.start(uri)
        started.put(process)
        _, said = process.communicate(timeout=DEADLINE)
        self.proxy.sent = lambda size: None
        self.assertEqual(process.returncode, -signal.SIGKILL, said)


class Repaired(Store):
    """Each ends in success, with the right bytes."""

    def repaired(self, *faults, flags=(), faulty=None, names=None):
        for name in names or self.objects:
            with self.subTest(name):
                shutil.rmtree(self.target, ignore_errors=True)
                self.proxy.reset()
                self.proxy.faults = list(faults)
                self.proxy.faulty = faulty or self.is_data
                end = self.succeeds(f"{self.uri}/{name}", {name: self.objects[name]}, *flags)
                self.assertEqual((self.proxy.faults, end["unverified_files"]), ([], int(name in self.unhashed)))

    def all_listed(self, *faults, flags=()):
        for uri, objects in self.each_run(self.objects):
            self.proxy.reset()
            self.proxy.faulty = self.is_list
            self.proxy.faults = list(faults)
            self.succeeds(uri, objects, *flags)
            self.assertEqual(self.proxy.faults, [])


class TransientFaults(Repaired):
    """Faults that each provider must find in its store's answers."""

    def test_resets_before_any_byte(self):
        self.repaired(*[setting(reset=True)] * 3)

    def test_resets_in_the_body(self):
        self.repaired(*[setting(cut=after) for after in (0, 1, 5000)])

    def test_three_in_ten_fail(self):
        lot = random.Random(5)
        objects = self.put_many(self.many)
        self.proxy.faulty = lambda exchange: lot.random() < 0.3
        self.proxy.always(self.busy)
        for uri, part in self.each_run(objects):
            self.succeeds(uri, part, "--patience", "60")

    def test_three_in_ten_are_too_many(self):
        """Also the first request of each kind. None is repeated before the server's Retry-After allows it."""
        objects = self.put_many(self.many // 5)
        lot, seen, due, early = random.Random(6), set(), {}, []

        def of(exchange):
            return exchange.method, exchange.path, (exchange.request_headers.get("Range") or "").partition("-")[0]

        def faulty(exchange):
            if exchange.asked < due.pop(of(exchange), 0):
                early.append(of(exchange))
            kind = (exchange.method, self.is_list(exchange), self.is_data(exchange))
            first = kind not in seen
            seen.add(kind)
            return lot.random() < 0.3 or first

        def too_many(exchange):
            due[of(exchange)] = time.monotonic() + 1
            self.too_many(exchange)

        for uri, part in self.each_run(objects):
            self.proxy.faulty = faulty
            self.proxy.always(too_many)
            self.succeeds(uri, part, "--patience", "60")
            # A retried range may have another length, or be part of an earlier one: its bytes are checked above.
            left = [asked for asked in due if not asked[2]]
            self.assertEqual((early, left), ([], []), "asked too early; not asked again")
        self.assertGreaterEqual(len(seen), 2)
        self.assertIn("as the server asks", self.all_said)

    def test_shorter_than_it_was_listed(self):
        def shorter(exchange):
            del exchange.body[1000:]

        self.repaired(shorter, shorter)

    def test_a_chunked_body_that_ends_early_and_cleanly(self):
        self.repaired(setting(ends_early=1000), setting(ends_early=0))

    def test_a_login_page(self):
        self.repaired(LOGIN_PAGE, LOGIN_PAGE)
        self.all_listed(LOGIN_PAGE, LOGIN_PAGE)

    def test_all_in_place_of_a_part(self):
        for name in self.large:

            def whole(exchange):
                exchange.status, exchange.body = 200, bytearray(self.objects[name])
                exchange.header("Content-Range", None)

            self.repaired(whole, whole, names=[name])

    def test_another_range(self):
        for name in self.large:

            def other(exchange):
                exchange.header("Content-Range", f"bytes 1-{len(exchange.body)}/{len(self.objects[name])}")

            self.repaired(other, other, names=[name])

    def test_a_flipped_bit(self):
        flipped = []
        hashed = [name for name in self.objects if name not in self.unhashed]
        self.repaired(lambda exchange: flipped.append(exchange.flip((exchange.range or (0,))[0] + 3)), names=hashed)
        self.assertEqual(flipped, [True] * len(hashed))

    def test_overwritten_while_it_is_read(self):
        """All bytes are of one version, either one: earlier requests may be answered before the change."""
        for name in self.objects:
            before, after = self.objects[name], some_bytes(len(self.objects[name]), 9)
            for number in range(3 if name in self.large else 1):
                self.put(name, before)
                shutil.rmtree(self.target, ignore_errors=True)
                self.proxy.reset()
                self.proxy.faulty = self.is_data
                self.proxy.faults = [lambda _: None] * number + [lambda _: self.put(name, after)]
                code, _ = self.fetch(f"{self.uri}/{name}")
                self.assertEqual(code, 0, self.said)
                self.assertIn(self.target_files()[name], (before, after), "a mix of two versions")

    def test_overwritten_between_a_cut_and_its_resume(self):
        for name in self.large:
            after = some_bytes(len(self.objects[name]) - 5, 9)

            def cut(exchange):
                exchange.cut = len(exchange.body) // 2  # however short a range it is
                self.put(name, after)

            shutil.rmtree(self.target, ignore_errors=True)
            self.proxy.faults = [cut]
            self.succeeds(f"{self.uri}/{name}", {name: after})


class LatencyFaults(Repaired):
    """Decisions of the transfer by time. They are the same for every store, so one store tests them."""

    def test_a_silent_server_is_asked_again(self):
        self.repaired(setting(silent_after=1000), flags=["--stall-timeout", "1"])

    def test_an_answer_that_never_comes(self):
        never = setting(late=float("inf"))
        self.repaired(never, flags=["--stall-timeout", "1"], names=self.large[:1])
        self.all_listed(never, flags=["--stall-timeout", "1"])

    def test_five_seconds_of_latency(self):
        late = setting(late=5)
        self.repaired(late, names=self.large[:1])
        self.all_listed(late)

    def test_a_drip(self):
        self.repaired(setting(drip=(1600, 0.1)), flags=["--stall-timeout", "1"], names=self.large[:1])


class PermanentFaults(Store):
    """Each ends in a clear error, and nothing is published."""

    busy_words = ""

    def test_always_a_flipped_bit(self):
        for name in self.objects:
            self.proxy.always(lambda exchange: exchange.flip(4000))
            if name in self.unhashed:  # not detectable; but it must not count as verified
                code, end = self.fetch(f"{self.uri}/{name}")
                self.assertEqual(
                    (code, end["unverified_files"], self.manifest()["files"][0]["verified"]), (0, 1, False), self.said
                )
            else:
                self.refused(f"{self.uri}/{name}", 1, f"{name}: .*expected .* got .*nothing was published")
            shutil.rmtree(self.target)

    def test_always_busy(self):
        self.proxy.always(self.busy)
        for uri, _ in self.each_run(self.objects):
            for faulty in (self.is_data, self.is_list):
                self.proxy.faulty = faulty
                self.refused(uri, UNREACHABLE, self.busy_words, "--patience", "1")

    def test_always_a_login_page(self):
        self.proxy.always(LOGIN_PAGE)
        for faulty in (self.is_data, self.is_list):
            self.proxy.faulty = faulty
            self.refused(self.uri, UNREACHABLE, "not the requested range|HTML|not (a list|XML|JSON)", "--patience", "1")


class PatienceFaults(Store):
    """Decisions of the transfer by patience, after a fault was found (TransientFaults): for one store."""

    def never_enough(self, fault, *flags, names=None, patience="1"):
        """Each answer brings some bytes, or none; the run ends when its patience is over."""
        for name in names or self.large:
            with self.subTest(name):
                shutil.rmtree(self.target, ignore_errors=True)
                self.proxy.reset()
                self.proxy.faulty = self.is_data
                self.proxy.always(fault)
                self.refused(f"{self.uri}/{name}", UNREACHABLE, re.escape(name), "--patience", patience, *flags)

    def test_always_cut(self):
        for after in (0, 1, 1000):
            self.never_enough(setting(cut=after))

    def test_always_reset(self):
        self.never_enough(setting(reset=True))

    def never_heard(self, fault):
        """The limits are long enough for the listing on a busy machine."""
        self.never_enough(fault, "--stall-timeout", "2", names=self.large[:1], patience="3")

    def test_always_silent(self):
        for after in (0, 1000):
            self.never_heard(setting(silent_after=after))

    def test_never_an_answer(self):
        self.never_heard(setting(late=float("inf")))

    def test_always_shorter(self):
        def shorter(exchange):
            del exchange.body[1000:]

        self.never_enough(shorter)
        self.never_enough(setting(ends_early=1000))

    def test_always_another_range(self):
        self.never_enough(lambda exchange: exchange.header("Content-Range", f"bytes 1-{len(exchange.body)}/99999999"))

    def test_always_all_in_place_of_a_part(self):
        def whole(exchange):
            exchange.status = 200
            exchange.header("Content-Range", None)

        self.never_enough(whole)


class KilledAnywhere(Store):
    ROOM = 4 * MIB  # bytes in the threads that send, and in the sockets
    points = 6  # how many points it is killed at

    def largest_run(self):
        """(URI, path -> content, bytes)"""
        uri, objects = max(self.runs(self.objects), key=lambda run: sum(map(len, run[1].values())))
        return uri, objects, sum(map(len, objects.values()))

    def published(self):
        return [
            (file["path"], file["size"], file["hash"], file["verified"], file["version"])
            for file in self.manifest()["files"]
        ]

    def test_at_any_point(self):
        """Killed at many points of the whole, each start continues, and the last succeeds."""
        uri, objects, total = self.largest_run()
        lot = random.Random(3)
        left = total - self.ROOM
        for _ in range(self.points):
            self.kill_after(1 + lot.randrange(left // (2 * self.points)), uri)
            self.check_nothing()
        self.succeeds(uri, objects)

    def test_each_kill_is_followed_by_a_run_that_ends_right(self):
        """Killed at any point; the next run publishes the same as an undisturbed run."""
        uri, objects, total = self.largest_run()
        self.succeeds(uri, objects)
        expected = self.published()
        lot = random.Random(8)
        kept = 0
        for _ in range(self.points):
            shutil.rmtree(self.target)
            point = 1 + lot.randrange(total - self.ROOM)
            with self.subTest(point):
                self.kill_after(point, uri)
                self.check_nothing()
                end = self.succeeds(uri, objects)
                self.assertEqual(self.published(), expected)
                self.assertEqual((end["kept"] + end["received"], end["unverified_files"]), (total, len(self.unhashed)))
                kept += end["kept"]
        self.assertGreater(kept, 0)

    def test_killed_at_any_rename(self):
        """The renames of the first and the last file within the staging folder, of next.json, of the first and the last
        file to its place, of the manifest."""
        for uri, objects in self.each_run(self.objects):
            self.succeeds(uri, objects)
            expected = self.published()
            files = len(objects)
            for number in sorted({1, files, files + 1, files + 2, 2 * files + 1, 2 * files + 2}):
                shutil.rmtree(self.target)
                self.assertTrue(self.dies_at_rename(number, uri))
                self.assertFalse(os.path.exists(os.path.join(self.target, ".muster", "manifest.json")))
                end = self.succeeds(uri, objects)
                self.assertEqual((self.published(), end["unverified_files"]), (expected, len(self.unhashed)))
            shutil.rmtree(self.target)
            self.assertFalse(self.dies_at_rename(2 * files + 3, uri), "that was the last")

    def test_overwritten_before_it_goes_on(self):
        for name in self.large:
            shutil.rmtree(self.target, ignore_errors=True)
            self.kill_after(9 * MIB, f"{self.uri}/{name}")
            after = some_bytes(len(self.objects[name]), 9)
            self.put(name, after)
            end = self.succeeds(f"{self.uri}/{name}", {name: after})
            self.assertEqual(end["kept"], 0, "of another version")

    def test_what_was_whole_is_read_again(self):
        """Killed before anything was published; then the disk loses bytes that it had not written yet."""

        def zeros(path):
            with open(path, "r+b") as file:
                file.write(bytes(os.path.getsize(path)))

        uri, objects, total = self.largest_run()
        for damage in (
            None,
            zeros,
            lambda path: os.truncate(path, 0),
            lambda path: os.truncate(path, os.path.getsize(path) + 1),
        ):
            shutil.rmtree(self.target, ignore_errors=True)
            self.assertTrue(self.dies_at_rename(len(objects) + 1, uri))
            self.check_nothing()
            self.assertEqual(len(self.staged()), len(objects))
            for path in self.staged() if damage else ():
                damage(path)
            end = self.succeeds(uri, objects)
            self.assertEqual(self.said.count("an earlier start left is damaged"), 1 if damage else 0, self.said)
            self.assertEqual((end["kept"], end["unverified_files"]), (0 if damage else total, len(self.unhashed)))
            self.assertEqual(
                [file["path"] for file in self.manifest()["files"] if not file["verified"]], sorted(self.unhashed)
            )

    def test_goes_on_where_it_was(self):
        name = self.large[0]
        # An emulated processor reads slower than the sockets fill.
        self.kill_after((19 if EMULATED else 15) * MIB, f"{self.uri}/{name}")
        end = self.succeeds(f"{self.uri}/{name}", {name: self.objects[name]})
        self.assertGreater(end["kept"], 0)
