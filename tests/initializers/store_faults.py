"""What every store's client has to get through, whatever the store: mixins for tests of a store behind a FaultProxy.

A test class that takes one has `proxy`, `uri`, `put(name, data)`, and `objects`: name -> content, the large ones in several ranges.
"""
import os
import random
import re
import shutil
import signal

from initializer_case import DEADLINE, MIB, UNREACHABLE, some_bytes


def setting(**values):
    def fault(exchange):
        for name, value in values.items():
            setattr(exchange, name, value)
    return fault


def answering(*answer):
    return lambda exchange: exchange.answer(*answer)


LOGIN_PAGE = answering(200, b"<html><body>Please log in</body></html>", ("Content-Type", "text/html"))


class Store:
    large = ()          # names of `objects` that come in ranges
    unhashed = ()       # of `objects` of whose content the store publishes no hash: what is wrong within their length is not seen
    busy = None         # a fault: the store's own way to say 503
    is_data = staticmethod(lambda exchange: exchange.is_data)
    is_list = None      # of an exchange; wrap it in staticmethod


class TransientFaults(Store):
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
        shutil.rmtree(self.target, ignore_errors=True)
        self.proxy.reset()
        self.proxy.faulty = self.is_list
        self.proxy.faults = list(faults)
        self.succeeds(self.uri, self.objects, *flags)
        self.assertEqual(self.proxy.faults, [])

    def test_resets_before_any_byte(self):
        self.repaired(*[setting(reset=True)] * 3)

    def test_resets_in_the_body(self):
        self.repaired(*[setting(cut=after) for after in (0, 1, 5000)])

    def test_three_in_ten_fail(self):
        lot = random.Random(5)
        self.proxy.faulty = lambda exchange: lot.random() < 0.3
        self.proxy.always(self.busy)
        more = {f"many/{n}": some_bytes(100, n) for n in range(100)}
        for name, data in more.items():
            self.put(name, data)
        self.succeeds(self.uri, {**self.objects, **more}, "--patience", "60")

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

    def test_silence(self):
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

    def test_a_flipped_bit(self):
        flipped = []
        hashed = [name for name in self.objects if name not in self.unhashed]
        self.repaired(lambda exchange: flipped.append(exchange.flip((exchange.range or (0,))[0] + 17)), names=hashed)
        self.assertEqual(flipped, [True] * len(hashed))

    def test_overwritten_while_it_is_read(self):
        """All of one version, whichever: what was asked for before may be answered before."""
        for name in self.objects:
            before, after = self.objects[name], some_bytes(len(self.objects[name]), 9)
            for number in range(3 if name in self.large else 1):
                self.put(name, before)
                shutil.rmtree(self.target, ignore_errors=True)
                self.proxy.reset()
                self.proxy.faulty = self.is_data
                self.proxy.faults = [lambda _: None] * number + [lambda _: self.put(name, after)]
                code, _ = self.bring(f"{self.uri}/{name}")
                self.assertEqual(code, 0, self.said)
                self.assertIn(self.there()[name], (before, after), "a mix of two versions")

    def test_overwritten_between_a_cut_and_its_resume(self):
        for name in self.large:
            after = some_bytes(len(self.objects[name]) - 5, 9)

            def cut(exchange):
                exchange.cut = 300_000
                self.put(name, after)
            shutil.rmtree(self.target, ignore_errors=True)
            self.proxy.faults = [cut]
            self.succeeds(f"{self.uri}/{name}", {name: after})


class PermanentFaults(Store):
    """Each ends in a clear error, and nothing is published."""
    busy_words = ""

    def test_always_a_flipped_bit(self):
        for name in self.objects:
            self.proxy.always(lambda exchange: exchange.flip(4000))
            if name in self.unhashed:  # nobody could tell; but nobody is told that it was verified
                code, end = self.bring(f"{self.uri}/{name}")
                self.assertEqual((code, end["unverified_files"], self.manifest()["files"][0]["verified"]), (0, 1, False), self.said)
            else:
                self.refused(f"{self.uri}/{name}", 1, f"{name}: .*expected .* got .*nothing was published")
            shutil.rmtree(self.target)

    def test_always_busy(self):
        self.proxy.always(self.busy)
        for faulty in (self.is_data, self.is_list):
            self.proxy.faulty = faulty
            self.refused(self.uri, UNREACHABLE, self.busy_words, "--patience", "1")

    def never_enough(self, fault, *flags, names=None):
        """Some bytes come each time, or none: patience ends."""
        for name in names or self.large:
            with self.subTest(name):
                shutil.rmtree(self.target, ignore_errors=True)
                self.proxy.reset()
                self.proxy.faulty = self.is_data
                self.proxy.always(fault)
                self.refused(f"{self.uri}/{name}", UNREACHABLE, re.escape(name), "--patience", "2", *flags)

    def test_always_cut(self):
        for after in (0, 1, 1000):
            self.never_enough(setting(cut=after))

    def test_always_reset(self):
        self.never_enough(setting(reset=True))

    def test_always_silent(self):
        for after in (0, 1000):
            self.never_enough(setting(silent_after=after), "--stall-timeout", "1", names=self.large[:1])

    def test_never_an_answer(self):
        self.never_enough(setting(late=float("inf")), "--stall-timeout", "1", names=self.large[:1])

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

    def test_always_a_login_page(self):
        self.proxy.always(LOGIN_PAGE)
        for faulty in (self.is_data, self.is_list):
            self.proxy.faulty = faulty
            self.refused(self.uri, UNREACHABLE, "not the part that was asked for|HTML|no (list|XML|JSON)", "--patience", "1")


class KilledAnywhere(Store):
    def kill_after(self, process, enough):
        """Once the proxy has sent so many bytes."""
        sent = [0]

        def count(size):
            sent[0] += size
            if sent[0] >= enough:
                process.kill()
        self.proxy.sent = count

    def test_at_any_point(self):
        """Killed at twenty points of all of it, each start goes on, and the last ends right."""
        total = sum(map(len, self.objects.values()))
        lot = random.Random(3)
        killed = 0
        for _ in range(20):
            process = self.start(self.uri)
            self.kill_after(process, lot.randrange(total // 12))
            _, said = process.communicate(timeout=DEADLINE)
            self.assertIn(process.returncode, (0, -signal.SIGKILL), said)
            if process.returncode == 0:
                break
            killed += 1
            self.check_nothing()
        self.assertGreater(killed, 0)
        self.proxy.sent = lambda size: None
        self.succeeds(self.uri, self.objects)

    def test_overwritten_before_it_goes_on(self):
        for name in self.large:
            shutil.rmtree(self.target, ignore_errors=True)
            process = self.start(f"{self.uri}/{name}")
            self.kill_after(process, 9 * MIB)
            process.communicate(timeout=DEADLINE)
            self.assertEqual(process.returncode, -signal.SIGKILL)
            self.proxy.sent = lambda size: None
            after = some_bytes(len(self.objects[name]), 9)
            self.put(name, after)
            end = self.succeeds(f"{self.uri}/{name}", {name: after})
            self.assertEqual(end["kept"], 0, "of another version")

    def test_what_was_whole_is_read_again(self):
        """Killed before anything was published; the disk then loses what it had not yet written."""
        def zeros(path):
            with open(path, "r+b") as file:
                file.write(bytes(os.path.getsize(path)))
        total = sum(map(len, self.objects.values()))
        for damage in (None, zeros, lambda path: os.truncate(path, 0), lambda path: os.truncate(path, os.path.getsize(path) + 1)):
            shutil.rmtree(self.target, ignore_errors=True)
            self.assertTrue(self.dies_at_rename(len(self.objects) + 1, self.uri))
            self.check_nothing()
            self.assertEqual(len(self.staged()), len(self.objects))
            for path in self.staged() if damage else ():
                damage(path)
            end = self.succeeds(self.uri, self.objects)
            self.assertEqual(self.said.count("is not what it was"), 1 if damage else 0, self.said)
            self.assertEqual((end["kept"], end["unverified_files"]), (0 if damage else total, len(self.unhashed)))
            self.assertEqual([file["path"] for file in self.manifest()["files"] if not file["verified"]], sorted(self.unhashed))

    def test_goes_on_where_it_was(self):
        name = self.large[0]
        process = self.start(f"{self.uri}/{name}")
        self.kill_after(process, 15 * MIB)
        process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.proxy.sent = lambda size: None
        end = self.succeeds(f"{self.uri}/{name}", {name: self.objects[name]})
        self.assertGreater(end["kept"], 0)
