# SPDX-License-Identifier: Apache-2.0
"""muster-initializer against MinIO behind a faulty proxy: the bytes are right, or the run ends with a clear error."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, MIB, UNREACHABLE, main
from strict_case import SLOW_DOWN, XML, StrictCase  # first: it skips the test where its packages are missing

import minio_server
from store_faults import LOGIN_PAGE, KilledAnywhere, PermanentFaults, TransientFaults, answering, setting, some_bytes


class FaultCase(StrictCase):
    """A small object, a large one with a checksum of the whole, one in parts with a composite hash; and uploads of an
    older client: with MD5s only, and with an ETag that is not a hash."""

    large = ("large", "parts", "md5")
    unhashed = ("opaque",)
    busy = staticmethod(answering(503, SLOW_DOWN, XML))
    is_list = staticmethod(lambda exchange: "list-type" in exchange.path)

    def setUp(self):
        super().setUp()
        self.objects = {
            "small": some_bytes(8 << 10, 1),
            "large": some_bytes(20 * MIB + 5, 2),
            "parts": some_bytes(17 * MIB, 3),
        }
        self.put("small", self.objects["small"], ChecksumAlgorithm="CRC64NVME")
        self.put("large", self.objects["large"], ChecksumAlgorithm="CRC64NVME")
        self.put_in_parts("parts", self.objects["parts"], ChecksumAlgorithm="SHA256")
        self.objects.update(
            {
                "md5-small": some_bytes(5000, 4),
                "md5": some_bytes(18 * MIB + 1, 5),
                "md5-parts": some_bytes(11 * MIB, 6),
                "opaque": some_bytes(2 * MIB + 3, 7),
            }
        )
        for name in ("md5-small", "md5"):
            self.older.put_object(Bucket=self.bucket, Key=name, Body=self.objects[name])
        self.put_in_parts("md5-parts", self.objects["md5-parts"], client=self.older)
        self.older.put_object(
            Bucket=self.bucket,
            Key="opaque",
            Body=self.objects["opaque"],
            ServerSideEncryption="aws:kms",
            SSEKMSKeyId=minio_server.KMS_KEY,
        )


class Transient(FaultCase, TransientFaults):
    def test_slow_down(self):
        self.repaired(*[answering(503, SLOW_DOWN, XML, ("Retry-After", "0"))] * 4, answering(429), answering(500))

    def test_slow_down_on_lists_and_looks(self):
        self.repaired(*[self.busy] * 3, faulty=lambda exchange: exchange.method == "HEAD")
        self.all_listed(self.busy, setting(reset=True), setting(cut=20), answering(502))

    def test_a_page_in_place_of_a_head(self):
        """The login page of a proxy: without an ETag, or of any length."""
        is_head = lambda exchange: exchange.method == "HEAD"
        self.repaired(
            LOGIN_PAGE,
            answering(200, b"", ("Content-Length", "1000")),
            answering(200, b"", ("ETag", '"page"')),
            faulty=is_head,
        )
        self.anew()
        self.proxy.faulty = is_head
        self.proxy.faults = [LOGIN_PAGE, lambda exchange: exchange.header("Content-Length", "1000")]
        self.succeeds(self.uri, self.objects)
        self.assertEqual(self.proxy.faults, [])

    def test_answers_without_an_etag(self):
        """Nothing shows that the bytes are the object's."""

        def nameless(exchange):
            exchange.header("ETag", None)

        self.repaired(nameless, nameless)

    def test_conditions_that_are_not_heeded(self):
        """All bytes are of one version even with --verify=size."""
        pass_on = self.proxy.pass_on

        def heedless(handler, body):
            del handler.headers["If-Match"]
            return pass_on(handler, body)

        self.proxy.pass_on = heedless
        self.addCleanup(delattr, self.proxy, "pass_on")
        for name in self.large:
            after = some_bytes(len(self.objects[name]), 9)

            def cut(exchange):
                exchange.cut = len(exchange.body) // 2  # however short a range it is
                self.put(name, after)

            shutil.rmtree(self.target, ignore_errors=True)
            self.proxy.faults = [cut]
            self.succeeds(f"{self.uri}/{name}", {name: after}, "--verify", "size")

    def test_overwritten_between_the_list_and_the_look(self):
        after = some_bytes(18 * MIB, 9)

        def overwrite(_):
            self.put("large", after)

        self.proxy.faulty = self.is_list
        self.proxy.faults = [overwrite]
        self.succeeds(self.uri, {**self.objects, "large": after})
        self.assertIn("large: another version is there now than was listed", self.said)


class Permanent(FaultCase, PermanentFaults):
    busy_words = "SlowDown"

    def test_the_disk_is_full(self):
        """On a small file system: too small for the listed sizes, and too small for a file that has grown."""
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        os.mkdir(self.target)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16m,nr_inodes=200", "tmpfs", self.target], capture_output=True
        )
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", self.target])
        ended, end = self.fetch(f"{self.uri}/large")
        self.assertEqual(ended, 1, self.said)
        self.assertRegex(end["reason"], "needs 20\\d+ bytes and 1\\d+ are free in .*: give it a larger volume")
        self.assertEqual(self.proxy.count("GET"), 0, "nothing was moved")
        for n in range(250):
            self.put(f"many/{n:03}", b"x")
        ended, end = self.fetch(f"{self.uri}/many/")
        self.assertEqual(ended, 1, self.said)
        self.assertRegex(
            end["reason"], "has \\d+ files and there is room for \\d+ more in .* \\(inodes\\): give it another volume"
        )
        # Another program fills it during the run.
        for n in range(50):
            self.put(f"some/{n:02}", some_bytes(200 << 10, n))

        def fill(_):
            with open(os.path.join(self.target, "other"), "wb") as file:
                try:
                    for _ in range(16):
                        file.write(bytes(MIB))
                        file.flush()
                except OSError:
                    pass

        self.proxy.faults = [fill]
        ended, end = self.fetch(f"{self.uri}/some/")
        self.assertEqual(ended, 1, self.said)
        self.assertRegex(end["reason"], "some/\\d+: .*No space left on device; give it a larger volume, or make room")
        self.assertEqual(list(self.target_files()), ["other"])
        os.unlink(os.path.join(self.target, "other"))
        self.succeeds(f"{self.uri}/some/", {f"{n:02}": some_bytes(200 << 10, n) for n in range(50)})

    def test_how_far_it_came_is_its_last_word(self):
        """The termination message of a run that fails, of one that succeeds, and of one that is stopped."""
        path = os.path.join(self.dir, "termination-log")

        def word():
            with open(path) as file:
                return json.load(file)

        for fault, class_name in ((answering(403), "fatal"), (answering(500), "retryable")):
            self.anew()
            open(path, "w").close()
            self.proxy.faults = [lambda _: None] + [fault] * 1000  # one range comes
            code, end = self.fetch(f"{self.uri}/md5", "--termination-log", path, "--patience", "1")
            last = word()
            self.assertEqual((last["exit_code"], last["class"], last["reason"]), (code, class_name, end["reason"]))
            self.assertEqual((last["files"], last["bytes"], last["files_done"]), (1, len(self.objects["md5"]), 0))
            if class_name == "retryable":
                self.assertGreater(min(last["received"], last["retries"]), 0, last)
            self.assertGreater(last["requests"], 0)
            self.assertGreater(last["seconds"], 0)
            self.assertEqual(last["bytes_per_second"] > 0, last["received"] > 0)
        self.anew()
        open(path, "w").close()
        seen = threading.Event()

        def silent(exchange):
            exchange.silent_after = MIB
            seen.set()

        self.proxy.always(silent)
        process = self.start(f"{self.uri}/md5", "--termination-log", path)
        self.assertTrue(seen.wait(DEADLINE))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE)
        last = word()
        self.assertEqual((process.returncode, last["exit_code"], last["bytes"]), (143, 143, len(self.objects["md5"])))
        self.assertIn("bytes_per_second", last)

    def test_an_object_that_may_be_listed_but_not_read(self):
        self.proxy.faulty = lambda exchange: exchange.method == "HEAD"
        self.proxy.always(lambda exchange: exchange.answer(403))
        ended, end = self.fetch(f"{self.uri}/large")
        self.assertEqual(ended, 1, self.said)
        self.assertRegex(end["reason"], "large: 403; check the credentials")

    def test_always_a_page_in_place_of_a_head(self):
        """Also from a site with one index.html for every path."""
        self.put("model.bin", b"weights")
        page = answering(200, b"", ("Content-Type", "text/html"), ("Content-Length", "612"), ("ETag", '"5f3e-264"'))
        self.proxy.faulty = lambda exchange: exchange.method == "HEAD"
        for fault, name in ((LOGIN_PAGE, "small"), (page, "model.bin")):
            self.proxy.always(fault)
            self.refused(
                f"{self.uri}/{name}",
                UNREACHABLE,
                f"{name}: the answer to HEAD .* does not describe the object, .* login page: .*check the endpoint",
                "--patience",
                "1",
            )

    def test_a_target_that_cannot_be_written(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        os.mkdir(self.target)
        if (
            subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", self.target], capture_output=True).returncode
            != 0
        ):
            self.skipTest("cannot mount")
        self.addCleanup(subprocess.run, ["umount", self.target])
        ended, end = self.fetch(f"{self.uri}/small")
        self.assertEqual(ended, 1, self.said)
        self.assertRegex(
            end["reason"], "target/.muster: Read-only file system; mount it writable, or name another target"
        )
        self.target = os.path.join(self.target, "new")
        ended, end = self.fetch(f"{self.uri}/small")
        self.assertRegex(end["reason"], "making .*target/new: Read-only file system; mount it writable")


class Killed(FaultCase, KilledAnywhere):
    def test_what_was_left_in_pieces_of_another_size(self):
        """Ranges end at odd offsets, through the page cache; the next start's direct I/O cannot begin there."""
        data = some_bytes(150 * MIB)
        self.put_in_parts("odd", data, part=5 * MIB + 1, ChecksumAlgorithm="SHA256")
        processes, held, started = [], [], threading.Event()

        def first_alone(exchange):
            if exchange.range[0] == 0:
                return
            exchange.late = float("inf")
            held.append(exchange)
            if len(held) == 8:  # one more than with the first file, which is whole by now
                started.wait(DEADLINE)
                processes[0].kill()

        self.proxy.always(first_alone)
        processes.append(self.start(f"{self.uri}/odd"))
        started.set()
        processes[0].communicate(timeout=DEADLINE)
        self.assertEqual(processes[0].returncode, -signal.SIGKILL)
        self.proxy.reset()
        self.proxy.faulty = lambda exchange: "partNumber" in exchange.path
        self.proxy.always(answering(501))
        end = self.succeeds(f"{self.uri}/odd", {"odd": data})
        self.assertGreater(end["kept"], 10 * MIB)

    def test_hashes_that_come_with_the_bytes_alone(self):
        """The lists have no hashes, and a whole file is not requested again."""
        files = {"md5": some_bytes(1000, 1), "crc": some_bytes(1000, 2)}
        self.older.put_object(Bucket=self.bucket, Key="of/md5", Body=files["md5"])
        self.put("of/crc", files["crc"], ChecksumAlgorithm="CRC32")
        self.assertTrue(self.dies_at_rename(len(files) + 1, f"{self.uri}/of/"))
        gets = self.proxy.count("GET")
        end = self.succeeds(f"{self.uri}/of/", files)
        self.assertEqual(
            (end["received"], end["unverified_files"], self.proxy.count("GET") - gets), (0, 0, 1), "only the list"
        )
        self.assertEqual(
            {file["path"]: (file["hash"].split(":")[0], file["verified"]) for file in self.manifest()["files"]},
            {"md5": ("md5", True), "crc": ("crc32", True)},
        )


if __name__ == "__main__":
    main()
