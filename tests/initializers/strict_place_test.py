# SPDX-License-Identifier: Apache-2.0
"""muster-initializer and the place of a bucket on a strict S3 server: region, redirects, who pays, archived objects,
and KServe's storage configuration."""

import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import MIB, UNREACHABLE, main
from strict_case import XML, StrictCase

import minio_server
from store_faults import answering, some_bytes


class PlaceCase(StrictCase):
    def signed_for(self):
        """The regions that all requests were signed for, in order."""
        scopes = (
            re.search("Credential=[^/]*/[0-9]*/([^/]*)/s3/", headers.get("authorization", ""))
            for _, _, headers in self.proxy.exchanges
        )
        return [scope[1] if scope else None for scope in scopes]


class Region(PlaceCase):
    """The server refuses a request that is signed for another region, and names the right one."""

    region = "eu-central-1"

    def setUp(self):
        super().setUp()
        self.files = {f"d/{n}": b"%d" % n for n in range(20)}
        for key, data in self.files.items():
            self.put(key, data)

    def test_is_learnt(self):
        for told in ("", "us-west-2"):
            with self.subTest(told):
                self.anew()
                self.succeeds(self.uri, self.files, env=self.keys(AWS_REGION=told))
                regions = self.signed_for()
                self.assertEqual(regions[0], told or "us-east-1")
                self.assertEqual(set(regions[1:]), {self.region}, "learnt once, for all that comes after")

    def test_that_is_right_is_asked_at_once(self):
        self.succeeds(self.uri, self.files, env=self.keys(AWS_REGION=self.region))
        self.assertEqual(set(self.signed_for()), {self.region})

    def led(self, status, *headers, body=b""):
        """The first answer is a redirect, as from AWS for a bucket of another region."""
        self.anew()
        self.proxy.faulty = lambda exchange: True
        self.proxy.faults = [answering(status, body, XML, *headers)]
        self.succeeds(self.uri, self.files, env=self.keys(AWS_REGION="us-east-1"))
        self.assertEqual(self.proxy.faults, [])
        self.assertEqual(set(self.signed_for()[1:]), {self.region})

    def test_of_a_redirect(self):
        told = ("x-amz-bucket-region", self.region)
        self.led(301, told, body=b"<Error><Code>PermanentRedirect</Code></Error>")
        self.led(307, told, body=b"<Error><Code>TemporaryRedirect</Code></Error>")
        self.led(400, told)  # without a body, as for a HEAD
        self.led(301, body=b"<Error><Code>PermanentRedirect</Code><Region>eu-central-1</Region></Error>")

    def test_that_leads_in_a_circle(self):
        regions = ["us-west-1", "us-west-2"] * 50

        def lead(exchange):
            exchange.answer(
                301, b"<Error><Code>PermanentRedirect</Code></Error>", XML, ("x-amz-bucket-region", regions.pop())
            )

        self.proxy.faulty = lambda exchange: True
        self.proxy.always(lead)
        self.refused(self.uri, 1, "301 PermanentRedirect.*the bucket is at another endpoint; set its region")
        self.assertLess(len(self.proxy.exchanges), 10)


class Refusals(PlaceCase):
    def test_a_redirect_without_a_region(self):
        self.proxy.faulty = lambda exchange: True
        self.proxy.always(
            answering(301, b"<Error><Code>PermanentRedirect</Code><Endpoint>b.s3.example</Endpoint></Error>", XML)
        )
        self.refused(
            self.uri, 1, "the bucket is at another endpoint: b.s3.example; set its region .AWS_REGION. or endpoint"
        )

    def test_one_page_for_everything(self):
        """A site that is not a store answers every path with one page: a prefix seems to be an object."""
        self.put("llama/w", b"1")
        page = b"<html>" + bytes(600)
        self.proxy.faulty = lambda exchange: True
        self.proxy.always(
            answering(
                200, page, ("Content-Type", "text/html"), ("Content-Length", str(len(page))), ("ETag", '"5f3e-264"')
            )
        )
        for name in ("llama", "llama/w"):
            self.refused(
                f"{self.uri}/{name}",
                UNREACHABLE,
                f"{name}: the answer to HEAD .* does not describe the object",
                "--patience",
                "1",
            )

    def test_objects_that_are_called_web_pages(self):
        """Objects that were uploaded as text/html; also from a store that sends none of S3's own headers."""
        data = {"page": b"<html>", "weights": some_bytes(MIB), "parts": some_bytes(6 * MIB), "m.bin": some_bytes(5000)}
        for key in ("page", "weights", "m.bin"):
            self.put(key, data[key], ContentType="text/html")
        self.put_in_parts("parts", data["parts"], ContentType="text/html")

        def strip(exchange):
            exchange.headers = [
                (name, value) for name, value in exchange.headers if not name.lower().startswith("x-amz-")
            ]

        for fault, keys in ((lambda exchange: None, data), (strip, ["page", "weights", "parts"])):
            self.anew()
            self.proxy.faulty = lambda exchange: True
            self.proxy.always(fault)
            for key in keys:
                with self.subTest(key):
                    shutil.rmtree(self.target, ignore_errors=True)
                    self.succeeds(f"{self.uri}/{key}", {key: data[key]}, "--patience", "2")

    def test_an_archived_object_is_said(self):
        self.put("old", b"1")
        self.proxy.always(
            answering(403, b"<Error><Code>InvalidObjectState</Code><Message>not restored</Message></Error>", XML)
        )
        self.refused(
            f"{self.uri}/old",
            1,
            "old: 403 InvalidObjectState: not restored; it is archived: restore it first, or leave it "
            "out with --ignore",
        )


class Payer(PlaceCase):
    def test_is_told_in_every_request(self):
        self.put("w", b"1")
        self.succeeds(self.uri, {"w": b"1"}, env=self.keys(AWS_REQUEST_PAYER="requester"))
        told = [headers for _, _, headers in self.proxy.exchanges]
        self.assertGreater(len(told), 1)
        for headers in told:
            self.assertEqual(headers.get("x-amz-request-payer"), "requester")
            self.assertIn("x-amz-request-payer", headers["authorization"], "signed, too")
        self.anew()
        self.succeeds(self.uri, {"w": b"1"})
        for _, _, headers in self.proxy.exchanges:
            self.assertNotIn("x-amz-request-payer", headers)


class StorageConfig(PlaceCase):
    """KServe's storage configuration, from a secret."""

    def setUp(self):
        super().setUp()
        self.put("d/w", b"1")
        self.config = {
            "type": "s3",
            "endpoint_url": self.proxy.url,
            "access_key_id": minio_server.KEY,
            "secret_access_key": minio_server.SECRET,
            "region": "eu-west-1",
            "bucket": "another",
            "ca_bundle": "/nothing",
        }

    def keys(self, override=None, **more):
        """The pod's other variables are for another store."""
        environment = {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
            "AWS_REGION": "us-west-2",
            "AWS_ACCESS_KEY_ID": "another",
            "AWS_SECRET_ACCESS_KEY": "another",
            "AWS_SESSION_TOKEN": "another",
            "STORAGE_CONFIG": self.config if isinstance(self.config, str) else json.dumps(self.config),
            "HOME": self.dir,
        }
        if override is not None:
            environment["STORAGE_OVERRIDE_CONFIG"] = json.dumps(override)
        return {**environment, **more}

    def test_it_says_where_and_who(self):
        self.succeeds(f"{self.uri}/d", {"w": b"1"})
        self.assertEqual(set(self.signed_for()), {"eu-west-1"})

    def test_an_override_wins(self):
        self.config.update(endpoint_url="http://127.0.0.1:9", type="hdfs")
        self.succeeds(f"{self.uri}/d", {"w": b"1"}, env=self.keys({"endpoint_url": self.proxy.url, "type": "s3"}))
        self.anew()
        del self.config["access_key_id"]
        self.refused(
            f"{self.uri}/d", 1, "403", env=self.keys({"endpoint_url": self.proxy.url, "type": "s3", "anonymous": True})
        )
        self.assertIsNone(self.signed_for()[-1])

    def test_what_is_none(self):
        for config, words in (
            ("{s3cret", "STORAGE_CONFIG is not JSON: wrong at line 1, column 2"),
            (["s3cret"], "STORAGE_CONFIG is not a JSON object"),
            ({"type": "s3", "secret_access_key": ["s3cret"]}, "secret_access_key of STORAGE_CONFIG is not text"),
            ({"type": "hdfs", "x": "s3cret"}, "STORAGE_CONFIG is of the type 'hdfs', but s3://.* needs s3"),
            ({"access_key_id": "s3cret"}, "STORAGE_CONFIG is of the type '', but s3://.* needs s3"),
        ):
            with self.subTest(words):
                self.config = config
                self.refused(self.uri, 78, words)
                self.assertNotIn("s3cret", self.said)

    def test_what_is_wrong_is_named_as_it_was_written(self):
        for field, value in (("endpoint_url", "minio:9000"), ("region", "eu west"), ("verify_ssl", "never")):
            with self.subTest(field):
                self.refused(
                    self.uri,
                    78,
                    f"{field} of STORAGE_CONFIG",
                    env=self.keys({}, STORAGE_CONFIG=json.dumps({**self.config, field: value})),
                )
                self.refused(self.uri, 78, f"{field} of STORAGE_OVERRIDE_CONFIG", env=self.keys({field: value}))

    def test_an_empty_one_says_nothing(self):
        for config in ("", " ", "{}"):
            self.anew()
            self.config = config
            self.succeeds(f"{self.uri}/d", {"w": b"1"}, env={**super().keys(), "STORAGE_CONFIG": config})


if __name__ == "__main__":
    main()
