# SPDX-License-Identifier: Apache-2.0
"""muster-initializer against a real S3 server (moto), filled by AWS's own client, both from a venv that
build-support/setup-venv s3-server makes. Ends with 77 (ctest: skipped) and the reason if the venv is missing."""

import io
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, MIB, InitializerCase, clean_environment, main, needs

needs("s3-server", "run build-support/setup-venv s3-server", "awscrt", "boto3", "moto")

import boto3
from boto3.s3.transfer import TransferConfig
from moto.server import ThreadedMotoServer


def some_bytes(count):
    return os.urandom(count)


class S3Case(InitializerCase):
    flags = ("--patience", "5")

    @classmethod
    def setUpClass(cls):
        cls.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        host, port = cls.server.get_host_and_port()
        cls.url = f"http://{host}:{port}"
        cls.client = boto3.client(
            "s3", endpoint_url=cls.url, aws_access_key_id="K", aws_secret_access_key="S", region_name="us-east-1"
        )

    def setUp(self):
        super().setUp()
        self.bucket = "b" + os.path.basename(self.dir).lower().replace("_", "x").removeprefix("muster-test-")
        self.client.create_bucket(Bucket=self.bucket)

    def environment(self):
        return clean_environment(
            AWS_ENDPOINT_URL=self.url,
            AWS_ACCESS_KEY_ID="K",
            AWS_SECRET_ACCESS_KEY="S",
            AWS_REGION="us-east-1",
            HOME=self.dir,
        )

    def put(self, objects):
        for key, data in objects.items():
            self.client.put_object(Bucket=self.bucket, Key=key, Body=data)


class Prefixes(S3Case):
    def test_siblings_stay_where_they_are(self):
        self.put({"a/b/1": b"one", "a/b/c/2": b"two", "a/bc/3": b"no", "a/b.txt": b"no"})
        for uri in (f"s3://{self.bucket}/a/b", f"s3://{self.bucket}/a/b/"):
            shutil.rmtree(self.target, ignore_errors=True)
            self.succeeds(uri, {"1": b"one", "c/2": b"two"})

    def test_one_object(self):
        self.put({"models/weights.bin": b"w" * 1000, "models/weights.bin.old": b"no"})
        self.succeeds(f"s3://{self.bucket}/models/weights.bin", {"weights.bin": b"w" * 1000})

    def test_a_whole_bucket(self):
        self.put({"1": b"one", "f/2": b"two"})
        self.succeeds(f"s3://{self.bucket}", {"1": b"one", "f/2": b"two"})

    def test_empty_objects_and_folder_markers(self):
        self.put({"d/": b"", "d/empty": b"", "d/sub/": b"", "d/data": b"x"})
        self.succeeds(f"s3://{self.bucket}/d/", {"empty": b"", "data": b"x"})
        self.assertTrue(os.path.isdir(os.path.join(self.target, "sub")))
        end = self.succeeds(f"s3://{self.bucket}/d/", {"empty": b"", "data": b"x"})
        self.assertTrue(end["unchanged"])

    def test_odd_keys(self):
        keys = [
            "with space",
            "plus+and&amp;",
            "ünïcode/日本",
            "per%20cent",
            "quote'\"",
            "a=b?c#d",
            "x" * 255,
            "~tilde",
            "a(b)*c!",
        ]
        self.put({f"odd/{key}": key.encode() for key in keys})
        self.succeeds(f"s3://{self.bucket}/odd/", {key: key.encode() for key in keys})

    def test_keys_that_leave_the_target(self):
        for key in ("odd/../../escape", "odd//twice", "odd/./dot"):
            self.client.put_object(Bucket=self.bucket, Key=key, Body=b"x")
            code, _end = self.fetch(f"s3://{self.bucket}/odd/")
            self.assertNotEqual(code, 0, self.said)
            self.assertEqual(os.listdir(self.dir), ["target"])
            self.client.delete_object(Bucket=self.bucket, Key=key)

    def test_names_that_collide(self):
        self.put({"c/a": b"file", "c/a/b": b"below it"})
        code, end = self.fetch(f"s3://{self.bucket}/c/")
        self.assertNotEqual(code, 0)
        self.assertIn("one is a file where the other needs a folder", end["reason"])

    def test_patterns_choose_the_files(self):
        self.put({"p/a.json": b"{}", "p/a.bin": b"b", "p/sub/c.json": b"{}", "p/sub/skip.json": b"{}"})
        self.succeeds(
            f"s3://{self.bucket}/p", {"a.json": b"{}", "sub/c.json": b"{}"}, "--include", "*.json", "--ignore", "*skip*"
        )

    def test_several_pages(self):
        objects = {f"many/{number:04}": str(number).encode() for number in range(1203)}
        self.put(objects)
        end = self.succeeds(
            f"s3://{self.bucket}/many", {key.removeprefix("many/"): data for key, data in objects.items()}
        )
        self.assertEqual((end["files"], end["unverified_files"]), (1203, 0))
        end = self.succeeds(
            f"s3://{self.bucket}/many", {key.removeprefix("many/"): data for key, data in objects.items()}
        )
        self.assertTrue(end["unchanged"])
        self.assertEqual(end["received"], 0)


class Content(S3Case):
    def test_large_with_each_checksum(self):
        for kind in ("CRC32", "CRC32C", "SHA1", "SHA256", "CRC64NVME"):
            data = some_bytes(20 * MIB + 7)
            self.client.put_object(Bucket=self.bucket, Key="large", Body=data, ChecksumAlgorithm=kind)
            shutil.rmtree(self.target, ignore_errors=True)
            end = self.succeeds(f"s3://{self.bucket}/large", {"large": data})
            self.assertEqual(end["unverified_files"], 0)

    def test_of_several_parts(self):
        data = some_bytes(40 * MIB + 7)
        parts = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=6 * MIB)
        self.client.upload_fileobj(io.BytesIO(data), self.bucket, "parts", Config=parts)
        end = self.succeeds(f"s3://{self.bucket}/parts", {"parts": data})
        self.assertEqual(end["unverified_files"], 0)

    def test_changed_objects_alone_are_fetched_again(self):
        self.put({"v/same": b"s" * 10000, "v/changed": b"before"})
        self.succeeds(f"s3://{self.bucket}/v", {"same": b"s" * 10000, "changed": b"before"})
        self.put({"v/changed": b"after", "v/new": b"new"})
        end = self.succeeds(f"s3://{self.bucket}/v", {"same": b"s" * 10000, "changed": b"after", "new": b"new"})
        self.assertEqual((end["kept_files"], end["received"]), (1, 8))

    def test_one_version_of_an_object(self):
        self.client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"})
        first = self.client.put_object(Bucket=self.bucket, Key="k", Body=b"first")["VersionId"]
        self.put({"k": b"second"})
        self.succeeds(f"s3://{self.bucket}/k", {"k": b"first"}, "--version-id", first)
        end = self.succeeds(f"s3://{self.bucket}/k", {"k": b"first"}, "--version-id", first)
        self.assertTrue(end["unchanged"])


class Settings(S3Case):
    def test_kubeflows_variables(self):
        self.put({"d/1": b"one", "d/skip.bin": b"no"})
        self.succeeds(
            None,
            {"1": b"one"},
            env={
                "STORAGE_URI": f"s3://{self.bucket}/d",
                "ENDPOINT": self.url,
                "ACCESS_KEY_ID": "K",
                "SECRET_ACCESS_KEY": "S",
                "REGION": "us-east-1",
                "IGNORE_PATTERNS": "*.bin, *.pt",
            },
        )

    def test_kubeflows_variables_alone(self):
        """Each role fills its own folder of the volume."""
        if os.geteuid() != 0:
            self.skipTest("only root can have mounts of its own")
        self.put({"d/1": b"one", "d/2": b"two", "d/skip.bin": b"no"})
        volume = os.path.join(self.dir, "volume")
        os.mkdir(volume)
        for role in ("dataset", "model"):
            run = self.in_a_pod(
                role,
                volume,
                {
                    "STORAGE_URI": f"s3://{self.bucket}/d",
                    "ENDPOINT": self.url,
                    "ACCESS_KEY_ID": "K",
                    "SECRET_ACCESS_KEY": "S",
                    "REGION": "us-east-1",
                    "IGNORE_PATTERNS": "*.bin",
                },
            )
            _, said = run.communicate(timeout=DEADLINE)
            self.assertEqual(run.returncode, 0, said)
            self.target = os.path.join(volume, role)
            self.check_right({"1": b"one", "2": b"two"})

    def test_a_profile(self):
        self.put({"d/1": b"one"})
        for name, text in (
            ("config", f"[profile dev]\nregion = us-east-1\nendpoint_url = {self.url}\n"),
            ("credentials", "[dev]\naws_access_key_id = K\naws_secret_access_key = S\n"),
        ):
            with open(os.path.join(self.dir, name), "w") as file:
                file.write(text)
        self.succeeds(
            f"s3://{self.bucket}/d",
            {"1": b"one"},
            env={
                "AWS_PROFILE": "dev",
                "AWS_CONFIG_FILE": os.path.join(self.dir, "config"),
                "AWS_SHARED_CREDENTIALS_FILE": os.path.join(self.dir, "credentials"),
            },
        )

    def test_a_web_identity(self):
        self.put({"d/1": b"one"})
        token = os.path.join(self.dir, "token")
        with open(token, "w") as file:
            file.write("header.payload.signature")
        self.succeeds(
            f"s3://{self.bucket}/d",
            {"1": b"one"},
            env={
                "AWS_ENDPOINT_URL": self.url,
                "AWS_REGION": "us-east-1",
                "AWS_WEB_IDENTITY_TOKEN_FILE": token,
                "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/reader",
            },
        )

    def test_the_machines_role(self):
        self.put({"d/1": b"one"})
        self.succeeds(
            f"s3://{self.bucket}/d",
            {"1": b"one"},
            env={
                "AWS_ENDPOINT_URL": self.url,
                "AWS_REGION": "us-east-1",
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url,
                "HOME": self.dir,
            },
        )

    def test_a_web_identity_that_fails_is_an_error(self):
        code, end = self.fetch(
            f"s3://{self.bucket}/d",
            env={
                "AWS_ENDPOINT_URL": self.url,
                "AWS_REGION": "us-east-1",
                "AWS_WEB_IDENTITY_TOKEN_FILE": "/no/such/token",
                "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/reader",
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url,
            },
        )
        self.assertNotEqual(code, 0)
        self.assertIn("/no/such/token", end["reason"])

    def test_nothing_there(self):
        for uri, words in (
            (f"s3://{self.bucket}/nothing", "no such object"),
            ("s3://no-such-bucket-here/x", "NoSuchBucket"),
            (f"s3://{self.bucket}/", "nothing below it"),
        ):
            code, end = self.fetch(uri)
            self.assertEqual(code, 1, self.said)
            self.assertIn(words, end["reason"])

    def test_a_wildcard_is_no_part_of_a_uri(self):
        self.put({"d/a.json": b"{}"})
        self.refused(
            f"s3://{self.bucket}/d/*.json",
            1,
            r"there is no such object.*; a URI has no wildcards: give the folder, and --include '\*.json'$",
        )

    def test_https_to_a_port_that_serves_http(self):
        """Not tried again for the patience: no wait changes it."""
        self.refused(
            f"s3://{self.bucket}/d",
            1,
            "the server speaks no TLS at this port .*; if it serves http alone, write http://",
            "--patience",
            "1000",
            env={**self.environment(), "AWS_ENDPOINT_URL": self.url.replace("http:", "https:")},
        )


if __name__ == "__main__":
    main()
