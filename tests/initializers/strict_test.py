# SPDX-License-Identifier: Apache-2.0
"""muster-initializer against MinIO, a strict S3 server, filled by AWS's own client; also behind a faulty proxy."""

import json
import os
import shutil
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import MIB, UNREACHABLE, main, with_clock_offset
from strict_case import SLOW_DOWN, XML, StrictCase  # first: it skips the test where its packages are missing

import certificate
import minio_server
from fault_proxy import FaultProxy
from store_faults import answering, some_bytes


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

    def test_a_version_can_be_asked_for(self):
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

    def test_anonymous_reads_public_objects_only(self):
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

    def test_a_folder_of_many_files_is_fetched(self):
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


if __name__ == "__main__":
    main()
