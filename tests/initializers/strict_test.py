"""muster-initializer against MinIO, a strict S3 server, filled by AWS's own client; also behind a faulty proxy."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, MIB, UNREACHABLE, main, with_clock_offset
from strict_case import XML, StrictCase  # first: it skips the test where its packages are missing

import certificate
import minio_server
from fault_proxy import FaultProxy
from store_faults import LOGIN_PAGE, KilledAnywhere, PermanentFaults, TransientFaults, answering, setting, some_bytes

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Strict(StrictCase):
    """No faults; the server checks the requests."""

    def test_keys_are_signed_as_they_are(self):
        names = [
            "with space",
            "plus+and&amp;",
            "ünïcode/日本",
            "per%20cent",
            "quote'\"",
            "a=b?c#d",
            "~tilde",
            "a(b)*c!",
            "x" * 200,
            "semi;colon,comma",
            "[bracket]",
            "@at$",
        ]
        for name in names:
            self.put(f"odd/{name}", name.encode())
        end = self.succeeds(f"{self.uri}/odd/", {name: name.encode() for name in names})
        self.assertEqual(end["unverified_files"], 0)
        shutil.rmtree(self.target)
        self.succeeds(f"{self.uri}/odd/per%20cent", {"per%20cent": b"per%20cent"})

    def test_every_checksum(self):
        """Single uploads and multipart uploads, with each algorithm; all are verified by the published hash."""
        expected = {}
        for algorithm in ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"):
            for key, size in ((f"{algorithm}/one", 6 * MIB + 1), (f"{algorithm}/small", 1000)):
                expected[key] = some_bytes(size, algorithm)
                self.put(key, expected[key], ChecksumAlgorithm=algorithm)
            expected[f"{algorithm}/parts"] = some_bytes(13 * MIB + 3, algorithm)
            self.put_in_parts(f"{algorithm}/parts", expected[f"{algorithm}/parts"], ChecksumAlgorithm=algorithm)
        end = self.succeeds(self.uri, expected)
        self.assertEqual((end["unverified_files"], end["retries"]), (0, 0))
        kinds = {file["path"]: file["hash"].split(":")[0] for file in self.manifest()["files"]}
        self.assertEqual(kinds["CRC64NVME/one"], "crc64nvme")
        self.assertEqual(kinds["SHA256/one"], "sha256")
        self.assertEqual(kinds["SHA256/parts"], f"sha256/{5 * MIB}")

    def test_without_checksums(self):
        """Uploads of an older client: only an MD5 of the whole, or of the parts."""
        expected = {"one": some_bytes(6 * MIB), "parts": some_bytes(12 * MIB)}
        self.older.put_object(Bucket=self.bucket, Key="one", Body=expected["one"])
        self.put_in_parts("parts", expected["parts"], client=self.older)
        end = self.succeeds(self.uri, expected)
        self.assertEqual(end["unverified_files"], 0)

    def test_parts_of_unequal_lengths(self):
        """Their hash cannot be checked, and right bytes must not count as wrong: also if the number of parts and the
        lengths of the first and the last fit parts of equal length."""
        for kind in ({}, {"ChecksumAlgorithm": "SHA256"}):
            for lengths, looks, verified in (
                ((6, 6, 5), 3, True),
                ((6, 5, 6), 3, False),
                ((7, 5, 5), 3, False),
                ((5, 6), 3, False),
                ((6, 5, 5, 5), 3, False),
                ((6, 5, 7, 4), 7, False),
            ):
                with self.subTest(lengths=lengths, **kind):
                    self.anew()
                    parts = [some_bytes(length * MIB, number) for number, length in enumerate(lengths)]
                    self.put_parts("w", parts, **kind)
                    end = self.succeeds(self.uri, {"w": b"".join(parts)})
                    self.assertEqual(
                        (end["unverified_files"], self.manifest()["files"][0]["verified"]),
                        (0 if verified else 1, verified),
                    )
                    self.assertEqual(self.proxy.count("HEAD"), looks)

    def test_a_flipped_bit_in_unequal_parts_that_look_equal(self):
        """After a mismatch the lengths of all parts are requested before it counts."""
        parts = [some_bytes(6 * MIB, number) for number in range(4)]
        self.put_parts("w", parts)
        self.proxy.always(lambda exchange: exchange.flip(4000))
        self.refused(
            self.uri, 1, "w: .*expected md5/6291456:.* got .*also after it was fetched again; nothing was published"
        )
        self.assertEqual(self.proxy.count("HEAD"), 3 + 5)

    def test_lengths_of_parts_that_cannot_be_asked_for(self):
        """A server without lengths of parts leaves only size and version; an error of the server is retried."""
        parts = [some_bytes(6 * MIB, number) for number in range(3)]
        self.put_parts("w", parts)
        for number in (1, 3):
            for answer in ((501,), (400,), (404,), (405,), (200, b"", ("ETag", '"other"'), ("Content-Length", "5"))):
                with self.subTest(number=number, answer=answer):
                    self.anew()
                    self.proxy.faulty = lambda exchange: f"partNumber={number}" in exchange.path
                    self.proxy.always(answering(*answer))
                    end = self.succeeds(self.uri, {"w": b"".join(parts)})
                    self.assertEqual(end["unverified_files"], 1)
        self.anew()
        self.proxy.faulty = lambda exchange: "partNumber" in exchange.path
        self.proxy.faults = [answering(503, SLOW_DOWN, XML)] * 3
        self.assertEqual(self.succeeds(self.uri, {"w": b"".join(parts)})["unverified_files"], 0)
        self.anew()
        self.proxy.faulty = lambda exchange: "partNumber" in exchange.path
        self.proxy.always(answering(500))
        self.refused(self.uri, UNREACHABLE, "w: 500", "--patience", "1")

    def test_versions(self):
        self.client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})
        first = self.client.put_object(Bucket=self.bucket, Key="w", Body=b"first")["VersionId"]
        self.put("w", b"second")
        self.succeeds(f"{self.uri}/w", {"w": b"first"}, "--version-id", first)
        self.succeeds(f"{self.uri}/w", {"w": b"second"})

    def test_a_version_of_what_has_none(self):
        self.client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})
        version = self.client.put_object(Bucket=self.bucket, Key="d/w", Body=b"1")["VersionId"]
        for uri in (self.uri, f"{self.uri}/d/", f"{self.uri}/d"):
            self.refused(
                uri, 78, "--version-id is of one object, and .* is a prefix; leave it out", "--version-id", version
            )
        self.refused(
            f"{self.uri}/none",
            1,
            f"none: there is no object of the version '{version}'; check key and --version-id",
            "--version-id",
            version,
        )
        self.refused(f"{self.uri}/d/w", 1, "version.*nonsense", "--version-id", "nonsense")
        deleted = self.client.delete_object(Bucket=self.bucket, Key="d/w")["VersionId"]
        self.refused(f"{self.uri}/d/w", 1, f"version.*{deleted}", "--version-id", deleted)

    def test_anonymous(self):
        self.put("a/w", b"public")
        self.refused(f"{self.uri}/a/", 1, "AccessDenied.*check the credentials", "--anonymous")
        arn = "arn:aws:s3:::" + self.bucket
        self.client.put_bucket_policy(
            Bucket=self.bucket,
            Policy=json.dumps(
                {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Principal": {"AWS": ["*"]},
                            "Action": ["s3:ListBucket", "s3:GetObject"],
                            "Resource": [arn, arn + "/*"],
                        }
                    ],
                }
            ),
        )
        self.succeeds(f"{self.uri}/a/", {"w": b"public"}, "--anonymous")

    def test_host_of_the_bucket(self):
        self.put("w", b"1")
        self.succeeds(
            self.uri,
            {"w": b"1"},
            env=self.keys(AWS_ENDPOINT_URL=f"http://localhost:{self.proxy.port}", S3_USER_VIRTUAL_BUCKET="true"),
        )
        hosts = {headers["host"] for _, _, headers in self.proxy.exchanges}
        self.assertEqual(hosts, {f"{self.bucket}.localhost:{self.proxy.port}"})

    def test_a_wrong_secret(self):
        self.put("w", b"1")
        self.refused(
            self.uri, 1, "SignatureDoesNotMatch.*check the credentials", env=self.keys(AWS_SECRET_ACCESS_KEY="wrong")
        )
        self.refused(
            self.uri, 1, "InvalidAccessKeyId.*check the credentials", env=self.keys(AWS_ACCESS_KEY_ID="nobody")
        )

    def test_no_such_place(self):
        self.refused("s3://muster-no-such-bucket/x", 1, "NoSuchBucket.*check the bucket's name and the endpoint")
        self.refused(f"{self.uri}/nothing", 1, "there is no such object, and nothing below")

    def test_a_role(self):
        """Kubeflow's ROLE_ARN: the role is assumed at the server's own STS."""
        self.put("w", b"1")
        self.succeeds(
            self.uri,
            {"w": b"1"},
            env=self.keys(ROLE_ARN="arn:minio:iam:::role/any", AWS_ENDPOINT_URL_STS=self.proxy.url),
        )
        self.assertEqual(self.proxy.count("POST"), 1)
        keys = [headers.get("x-amz-security-token") for method, _, headers in self.proxy.exchanges if method == "GET"]
        self.assertTrue(all(keys), "every request is signed with the role's keys")

    def test_keys_that_expire_on_the_way(self):
        data = some_bytes(40 * MIB)
        self.put("w", data)

        def expired(exchange):
            exchange.answer(
                400, b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>", XML
            )

        self.proxy.faults = [lambda exchange: None, expired]
        self.succeeds(
            self.uri,
            {"w": data},
            env=self.keys(ROLE_ARN="arn:minio:iam:::role/any", AWS_ENDPOINT_URL_STS=self.proxy.url),
        )
        self.assertEqual(self.proxy.count("POST"), 2, "other keys were asked for")

    def test_keys_that_a_head_finds_expired(self):
        """The answer has no body with the reason: new keys are requested once."""
        self.put("w", b"1")
        role = self.keys(ROLE_ARN="arn:minio:iam:::role/any", AWS_ENDPOINT_URL_STS=self.proxy.url)
        self.proxy.faulty = lambda exchange: exchange.method == "HEAD"
        self.proxy.faults = [answering(400)]
        self.succeeds(f"{self.uri}/w", {"w": b"1"}, env=role)
        self.assertEqual(self.proxy.count("POST"), 2, "other keys were asked for")
        self.anew()
        self.proxy.faulty = lambda exchange: exchange.method == "HEAD"
        self.proxy.always(answering(400))
        self.refused(f"{self.uri}/w", 1, "w: 400", env=role)
        self.assertEqual((self.proxy.count("POST"), self.proxy.count("HEAD")), (2, 2))

    def test_keys_that_all_requests_find_expired(self):
        """Many requests run with the old keys."""
        files = {f"{n}": b"%d" % n for n in range(60)}
        self.put_many(files)
        old = []

        def expired(exchange):
            old.append(exchange.request_headers["x-amz-security-token"]) if not old else None
            exchange.answer(
                400, b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>", XML
            )

        self.proxy.faulty = lambda exchange: (
            exchange.is_data and (not old or exchange.request_headers["x-amz-security-token"] == old[0])
        )
        self.proxy.always(expired)
        env = self.keys(ROLE_ARN="arn:minio:iam:::role/any", AWS_ENDPOINT_URL_STS=self.proxy.url)
        self.succeeds(self.uri, files, env=env)

    def test_expired_keys_that_cannot_be_renewed(self):
        self.put("w", b"1")
        self.proxy.always(lambda exchange: exchange.answer(400, b"<Error><Code>ExpiredToken</Code></Error>", XML))
        self.proxy.faulty = lambda exchange: True
        self.refused(self.uri, 1, "ExpiredToken.*renew the credentials")
        self.assertEqual(len(self.proxy.exchanges), 1)

    def test_a_clock_that_is_off(self):
        self.put("w", b"1")
        for offset, words in (("-7300", "behind"), ("7300", "ahead of")):
            shutil.rmtree(self.target, ignore_errors=True)
            self.succeeds(self.uri, {"w": b"1"}, env=self.keys(**with_clock_offset(offset)))
            self.assertRegex(self.said, rf"this machine's clock is 7\d\d\d s {words} that of")
            shutil.rmtree(self.target, ignore_errors=True)
            self.succeeds(f"{self.uri}/w", {"w": b"1"}, env=self.keys(**with_clock_offset(offset)))
            self.assertRegex(self.said, rf"this machine's clock is 7\d\d\d s {words} that of")

    def test_a_role_under_a_clock_that_is_off(self):
        self.put("w", b"1")
        for offset in ("-7300", "7300"):
            shutil.rmtree(self.target, ignore_errors=True)
            self.succeeds(
                self.uri,
                {"w": b"1"},
                env=self.keys(
                    **with_clock_offset(offset),
                    ROLE_ARN="arn:minio:iam:::role/any",
                    AWS_ENDPOINT_URL_STS=self.proxy.url,
                ),
            )
            self.assertRegex(
                self.said,
                r"this machine's clock is 7\d\d\d s .* that of .*; signatures and expirations use the server's time",
            )
            self.assertLessEqual(self.proxy.count("POST"), 2, "the keys hold for as long as the server says")
            self.proxy.reset()

    def put_many(self, files):
        keys = list(files)
        threads = [
            threading.Thread(target=lambda part: [self.put(key, files[key]) for key in part], args=(keys[start::4],))
            for start in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_many(self):
        expected = {f"{n % 7}/{n}": b"%d" % n for n in range(1205)}
        self.put_many({f"d/{key}": data for key, data in expected.items()})
        self.succeeds(f"{self.uri}/d", expected)
        self.assertEqual(self.proxy.count("GET", "list-type=2"), 2)
        gets = self.proxy.count("GET")
        end = self.succeeds(f"{self.uri}/d", expected)
        self.assertEqual((end["unchanged"], self.proxy.count("GET") - gets), (True, 2), "only the list")

    def test_a_list_that_changes_between_its_pages(self):
        files = {f"{n:04}": b"%d" % n for n in range(1003)}
        self.put_many(files)

        def change(_):
            self.put("0001", b"another content")
            self.client.delete_object(Bucket=self.bucket, Key="1002")
            self.put("1003", b"new")

        self.proxy.faulty = lambda exchange: "list-type" in exchange.path
        self.proxy.faults = [change]  # the first page passes unchanged
        del files["1002"]
        files.update({"0001": b"another content", "1003": b"new"})
        self.succeeds(self.uri, files)
        shutil.rmtree(self.target)

        def gone(_):
            self.client.delete_object(Bucket=self.bucket, Key="0007")

        self.proxy.faults = [gone]
        self.refused(self.uri, UNREACHABLE, "0007.*start it again")

    def test_the_longest_keys(self):
        files = {"/".join(["d" * 200] * 5) + "/" + "k" * 19: b"1", "ü" * 127: b"2"}
        self.put_many(files)
        self.assertEqual(max(len(key.encode()) for key in files), 1024)
        self.succeeds(self.uri, files)


class Secure(StrictCase):
    """https with a self-signed certificate."""

    @classmethod
    def setUpClass(cls):
        cls.certificates = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"muster-test-certificates-{os.getpid()}")
        cls.addClassCleanup(shutil.rmtree, cls.certificates)
        certificate.make(cls.certificates)
        cls.server = minio_server.Minio(cls.certificates)
        cls.addClassCleanup(cls.server.close)
        cls.client = cls.client_of(cls.server, verify=f"{cls.certificates}/public.crt")
        cls.proxy = FaultProxy(cls.server.host, cls.server.port)  # not used: it cannot decrypt
        cls.addClassCleanup(cls.proxy.close)

    def keys(self, **more):
        return super().keys(**{"AWS_ENDPOINT_URL": self.server.url, **more})

    def test_an_unknown_authority(self):
        self.put("w", b"1")
        self.refused(self.uri, 1, "certificate.*--ca-bundle")
        data = some_bytes(20 * MIB)
        self.put("w", data)
        self.succeeds(self.uri, {"w": data}, "--ca-bundle", f"{self.certificates}/public.crt")
        shutil.rmtree(self.target)
        self.succeeds(self.uri, {"w": data}, env=self.keys(AWS_CA_BUNDLE=f"{self.certificates}/public.crt"))

    def test_a_certificate_of_another_host(self):
        self.put("w", b"1")
        self.refused(
            self.uri,
            1,
            "(?i)certificate|host name",
            "--ca-bundle",
            f"{self.certificates}/public.crt",
            env=self.keys(AWS_ENDPOINT_URL=f"https://localhost:{self.server.port}"),
        )


class FaultCase(StrictCase):
    """A small object, a large one with a checksum of the whole, one in parts with a composite hash; and uploads of an
    older client: with MD5s only, and with an ETag that is no hash."""

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
