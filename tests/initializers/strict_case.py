# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests against a strict S3 server: a bucket on a MinIO, filled by AWS's own client, behind a proxy."""

import io
import os
import shutil
import sys

from initializer_case import MIB, SKIPPED, InitializerCase, clean_environment, needs

needs("s3-server", "run build-support/setup-venv s3-server", "awscrt", "boto3")

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

import minio_server
from fault_proxy import FaultProxy

if not minio_server.binary():
    print("SKIPPED: run build-support/setup-go-server minio (needs Go)", file=sys.stderr)
    sys.exit(SKIPPED)

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
XML = ("Content-Type", "application/xml")


class StrictCase(InitializerCase):
    flags = ("--patience", "20")
    region = None  # that the server requires; None: any

    @classmethod
    def setUpClass(cls):
        cls.server = minio_server.Minio(region=cls.region)
        cls.addClassCleanup(cls.server.close)
        cls.client = cls.client_of(cls.server)
        cls.older = cls.client_of(cls.server, checksums="when_required")  # its objects have MD5s only
        cls.proxy = FaultProxy(cls.server.host, cls.server.port)
        cls.addClassCleanup(cls.proxy.close)

    @classmethod
    def client_of(cls, server, checksums="when_supported", **more):
        return boto3.client(
            "s3",
            endpoint_url=server.url,
            aws_access_key_id=minio_server.KEY,
            aws_secret_access_key=minio_server.SECRET,
            region_name=cls.region or "us-east-1",
            config=Config(s3={"addressing_style": "path"}, request_checksum_calculation=checksums),
            **more,
        )

    def setUp(self):
        super().setUp()
        self.proxy.reset()
        self.bucket = "b" + os.path.basename(self.dir).lower().replace("_", "x").removeprefix("muster-test-")
        self.client.create_bucket(Bucket=self.bucket)
        self.addCleanup(self.remove_bucket)

    def remove_bucket(self):
        for page in self.client.get_paginator("list_object_versions").paginate(Bucket=self.bucket):
            for version in page.get("Versions", []) + page.get("DeleteMarkers", []):
                self.client.delete_object(Bucket=self.bucket, Key=version["Key"], VersionId=version["VersionId"])
        self.client.delete_bucket(Bucket=self.bucket)

    def keys(self, **more):
        return {
            "AWS_ENDPOINT_URL": self.proxy.url,
            "AWS_ACCESS_KEY_ID": minio_server.KEY,
            "AWS_SECRET_ACCESS_KEY": minio_server.SECRET,
            "AWS_REGION": "us-east-1",
            "HOME": self.dir,
            **more,
        }

    def environment(self):
        return clean_environment(**self.keys())

    def anew(self):
        shutil.rmtree(self.target, ignore_errors=True)
        self.proxy.reset()

    def put(self, key, data, **more):
        self.client.put_object(Bucket=self.bucket, Key=key, Body=data, **more)

    def put_in_parts(self, key, data, part=5 * MIB, client=None, **more):
        (client or self.client).upload_fileobj(
            io.BytesIO(data),
            self.bucket,
            key,
            ExtraArgs=more or None,
            Config=TransferConfig(multipart_threshold=part, multipart_chunksize=part),
        )

    def put_parts(self, key, parts, **more):
        """Puts an object of parts of any lengths; all but the last must have at least 5 MiB."""
        place = {"Bucket": self.bucket, "Key": key}
        client = self.client if more else self.older
        place["UploadId"] = client.create_multipart_upload(**place, **more)["UploadId"]
        done = []
        for number, data in enumerate(parts, 1):
            part = client.upload_part(**place, PartNumber=number, Body=data, **more)
            sums = {
                name: value for name, value in part.items() if name.startswith("Checksum") and name != "ChecksumType"
            }
            done.append({"PartNumber": number, "ETag": part["ETag"], **sums})
        client.complete_multipart_upload(**place, MultipartUpload={"Parts": done})

    @property
    def uri(self):
        return f"s3://{self.bucket}"
