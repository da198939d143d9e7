"""muster-initializer and the place of a bucket on a strict S3 server: its region, where it is led to, who pays, what is archived."""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import main  # noqa: E402
from strict_case import XML, StrictCase  # noqa: E402
from store_faults import answering  # noqa: E402


class PlaceCase(StrictCase):
    def signed_for(self):
        """The regions of all requests, in their order."""
        scopes = (re.search("Credential=[^/]*/[0-9]*/([^/]*)/s3/", headers.get("authorization", ""))
                  for _, _, headers in self.proxy.exchanges)
        return [scope[1] if scope else None for scope in scopes]


class Region(PlaceCase):
    """The server refuses what is signed for another one, and says which it wants."""
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
        """The first answer leads elsewhere, as AWS does for a bucket of another region."""
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
        self.led(400, told)  # without a body, as of a HEAD
        self.led(301, body=b"<Error><Code>PermanentRedirect</Code><Region>eu-central-1</Region></Error>")

    def test_that_leads_in_a_circle(self):
        regions = ["us-west-1", "us-west-2"] * 50

        def lead(exchange):
            exchange.answer(301, b"<Error><Code>PermanentRedirect</Code></Error>", XML, ("x-amz-bucket-region", regions.pop()))
        self.proxy.faulty = lambda exchange: True
        self.proxy.always(lead)
        self.refused(self.uri, 1, "301 PermanentRedirect.*the bucket is elsewhere; name its region")
        self.assertLess(len(self.proxy.exchanges), 10)


class Refusals(PlaceCase):
    def test_a_redirect_without_a_region(self):
        self.proxy.faulty = lambda exchange: True
        self.proxy.always(answering(301, b"<Error><Code>PermanentRedirect</Code><Endpoint>b.s3.example</Endpoint></Error>", XML))
        self.refused(self.uri, 1, "the bucket is elsewhere: b.s3.example; name its region .AWS_REGION. or endpoint")

    def test_archived(self):
        self.put("old", b"1")
        self.proxy.always(answering(403, b"<Error><Code>InvalidObjectState</Code><Message>not restored</Message></Error>", XML))
        self.refused(f"{self.uri}/old", 1, "old: 403 InvalidObjectState: not restored; it is archived: restore it first, or leave it "
                                           "out with --ignore")


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


if __name__ == "__main__":
    main()
