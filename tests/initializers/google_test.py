# SPDX-License-Identifier: Apache-2.0
"""muster-initializer's identity on Google Cloud: each kind of identity, against a double of Google's identity services
(google_server.py) and a real store behind a proxy that requires their tokens."""

import json
import os
import random
import shutil
import socket
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import MIB, SKIPPED, UNREACHABLE, InitializerCase, main, needs, with_clock_offset

needs("gcs-client", "run build-support/setup-venv gcs-client", "google_crc32c", "cryptography")

from google.auth import identity_pool
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import Request
from google.cloud import storage
from google.oauth2 import service_account

import gcs_server
from google_server import (
    ACCOUNT,
    AUDIENCE,
    IMPERSONATE,
    KEY_ID,
    READ,
    SUBJECT_TYPE,
    USER,
    GoogleServer,
    GuardedGcs,
)

if not gcs_server.binary():
    print("SKIPPED: run build-support/setup-go-server fake-gcs-server (needs Go)", file=sys.stderr)
    sys.exit(SKIPPED)

INVALID = b'{"error":"invalid_grant","error_description":"Invalid JWT Signature."}'


class GoogleCase(InitializerCase):
    flags = ("--patience", "20")

    @classmethod
    def setUpClass(cls):
        cls.server = gcs_server.FakeGcs()
        cls.addClassCleanup(cls.server.close)
        cls.google = GoogleServer()
        cls.addClassCleanup(cls.google.close)
        cls.proxy = GuardedGcs(cls.server.host, cls.server.port, cls.google)
        cls.addClassCleanup(cls.proxy.close)
        cls.bucket = storage.Client(
            project="muster", credentials=AnonymousCredentials(), client_options={"api_endpoint": cls.server.url}
        ).create_bucket("muster-bucket")
        cls.large = random.Random(1).randbytes(40 * MIB)
        cls.objects = {"1": b"one", "f/2": b"two"}
        for name, data in {"d/1": b"one", "d/f/2": b"two", "large": cls.large}.items():
            cls.bucket.blob(name).upload_from_string(data)

    def setUp(self):
        super().setUp()
        self.proxy.reset()
        self.google.reset()

    def tearDown(self):
        """No output contained a secret."""
        secrets = [
            USER["client_secret"],
            USER["refresh_token"],
            "ya29.",
            "subject-1",
            "Bearer",
            *self.google.private_key().splitlines()[1:-1],
        ]
        for secret in secrets:
            self.assertNotIn(secret, self.all_said)
        super().tearDown()

    uri = "gs://muster-bucket/d/"

    def file(self, value, name="credentials.json"):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def account(self, **more):
        return {
            "type": "service_account",
            "client_email": ACCOUNT,
            "private_key_id": KEY_ID,
            "private_key": self.google.private_key(),
            "token_uri": f"{self.google.url}/token",
            **more,
        }

    def user(self):
        return {"type": "authorized_user", **USER, "token_uri": f"{self.google.url}/token"}

    def external(self, source, **more):
        return {
            "type": "external_account",
            "audience": AUDIENCE,
            "subject_token_type": SUBJECT_TYPE,
            "token_url": f"{self.google.url}/sts",
            "credential_source": source,
            **more,
        }

    def impersonating(self):
        return f"{self.google.url}/iam/{ACCOUNT}:generateAccessToken"

    def as_file(self, value, **more):
        return {
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": self.proxy.url,
            "GOOGLE_APPLICATION_CREDENTIALS": self.file(value),
            **more,
        }

    def as_machine(self, **more):
        return {
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": self.proxy.url,
            "GCE_METADATA_HOST": self.google.host,
            **more,
        }

    def fetches(self, env, *asked):
        """Brings the data with one token, after exactly the requests `asked`: (what, scope)."""
        self.succeeds(self.uri, self.objects, env=env)
        self.assertEqual(self.google.asked, list(asked))
        self.assertEqual(self.proxy.refused, 0)

    def denied(self, env, words, code=1):
        """Fails, and no object was requested, though the bucket is public."""
        self.proxy.open = True
        self.refused(self.uri, code, words, env=env)
        self.assertEqual(self.proxy.exchanges, [])


class Identities(GoogleCase):
    def test_a_service_account(self):
        self.fetches(self.as_file(self.account()), ("account", READ))

    def test_a_service_account_with_a_clock_that_is_off(self):
        for offset, words in (("-7300", "behind"), ("7300", "ahead of")):
            self.google.reset()
            shutil.rmtree(self.target, ignore_errors=True)
            self.fetches(self.as_file(self.account(), **with_clock_offset(offset)), ("/token", None), ("account", READ))
            self.assertRegex(
                self.said, rf"this machine's clock is 7\d\d\d s {words} that of {self.google.url}/token; signatures"
            )

    def test_a_user(self):
        self.fetches(self.as_file(self.user()), ("user", READ))

    def test_what_gcloud_has_left(self):
        endpoint = {"CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": self.proxy.url}
        self.file(self.user(), ".config/gcloud/application_default_credentials.json")
        self.fetches(endpoint, ("user", READ))
        self.file(self.account(), "gcloud/application_default_credentials.json")
        self.google.reset()
        shutil.rmtree(self.target)
        self.fetches({**endpoint, "CLOUDSDK_CONFIG": os.path.join(self.dir, "gcloud")}, ("account", READ))

    def test_a_federated_workload_by_a_file(self):
        token = self.file("subject-1\n", "token")
        self.fetches(self.as_file(self.external({"file": token})), ("exchanged", READ))
        self.google.reset()
        shutil.rmtree(self.target)
        token = self.file({"id_token": "subject-1"}, "token.json")
        source = {"file": token, "format": {"type": "json", "subject_token_field_name": "id_token"}}
        self.fetches(self.as_file(self.external(source)), ("exchanged", READ))

    def test_a_federated_workload_by_a_url(self):
        source = {
            "url": f"{self.google.url}/subject?audience=x",
            "headers": {"Metadata": "True"},
            "format": {"type": "json", "subject_token_field_name": "access_token"},
        }
        self.fetches(self.as_file(self.external(source)), ("exchanged", READ))

    def test_a_federated_workload_that_impersonates(self):
        value = self.external(
            {"file": self.file("subject-1", "token")}, service_account_impersonation_url=self.impersonating()
        )
        self.fetches(self.as_file(value), ("exchanged", IMPERSONATE), ("impersonated", READ))

    def test_an_impersonated_service_account(self):
        for source, asked in (
            (self.account(), ("account", IMPERSONATE)),
            (self.user(), ("user", READ)),
            (self.external({"file": self.file("subject-1", "token")}), ("exchanged", IMPERSONATE)),
        ):
            with self.subTest(source["type"]):
                self.google.reset()
                shutil.rmtree(self.target, ignore_errors=True)
                self.fetches(
                    self.as_file(
                        {
                            "type": "impersonated_service_account",
                            "source_credentials": source,
                            "delegates": ["projects/-/serviceAccounts/between"],
                            "service_account_impersonation_url": self.impersonating(),
                        }
                    ),
                    asked,
                    ("impersonated", READ),
                )
                self.assertEqual(self.google.delegates, ["projects/-/serviceAccounts/between"])

    def test_the_machine(self):
        self.fetches(self.as_machine(), ("machine", READ))

    def test_the_machine_is_not_there_at_first(self):
        """Like GKE's metadata server in the first seconds of a pod."""
        self.google.missing = 2
        self.succeeds(self.uri, self.objects, env=self.as_machine())
        self.assertEqual([scope for _, scope in self.google.asked], [None, None, READ])

    def test_anonymous_asks_nobody(self):
        self.proxy.open = True
        self.succeeds(self.uri, self.objects, "--anonymous", env=self.as_file(self.account()))
        self.assertEqual(self.google.asked, [])
        self.assertTrue(all("authorization" not in headers for _, _, headers in self.proxy.exchanges))

    def test_googles_own_client_takes_the_double_for_google(self):
        account = self.account()
        external = self.external({"file": self.file("subject-1", "token")})
        for credentials in (
            service_account.Credentials.from_service_account_info(account, scopes=[READ]),
            identity_pool.Credentials.from_info(external, scopes=[READ]),
        ):
            credentials.refresh(Request())
            self.assertTrue(self.google.accepts(f"Bearer {credentials.token}"), credentials)


class Renewal(GoogleCase):
    uri = "gs://muster-bucket/large"

    def check_brought(self, env, *flags):
        self.succeeds(self.uri, {"large": self.large}, *flags, env=env)

    def test_one_that_expires_on_the_way(self):
        """Several ranges are cut and retried with the old token; a new token is requested once."""

        def cut(exchange):
            exchange.cut = 1000

        def revoke(exchange):
            cut(exchange)
            self.google.revoke()

        self.proxy.faults = [revoke, cut, cut]
        self.check_brought(self.as_file(self.account()))
        self.assertEqual([what for what, _ in self.google.asked], ["account"] * 2)
        self.assertGreater(self.proxy.refused, 0)

    def test_one_that_expires_again_and_again(self):
        def revoke(exchange):
            exchange.cut = 1_000_000
            self.google.revoke()

        self.proxy.faults = [revoke, lambda _: None] * 4
        self.check_brought(self.as_machine())
        self.assertGreater(len(self.google.asked), 2)

    def test_one_that_is_refused_from_the_start(self):
        """Such as a token that was cached for too long: the next one is valid."""
        self.google.faults = [(200, b'{"access_token":"ya29.old","expires_in":3000}', {"Metadata-Flavor": "Google"})]
        self.check_brought(self.as_machine())
        self.assertEqual([what for what, _ in self.google.asked], ["machine"])

    def test_one_that_has_no_life(self):
        self.google.life = 0
        self.check_brought(self.as_file(self.account()))
        self.assertGreater(len(self.google.asked), 2, "asked for anew each time")
        self.assertEqual(self.proxy.refused, 0)

    def test_a_subject_token_that_is_renewed_in_place(self):
        token = self.file("subject-1", "token")

        def renewed(exchange):
            exchange.cut = 1000
            self.google.subjects = {"subject-2"}
            self.file("subject-2", "token")
            self.google.revoke()

        self.proxy.faults = [renewed]
        self.check_brought(self.as_file(self.external({"file": token})))
        self.assertEqual([scope for _, scope in self.google.asked], [READ] * 2)

    def test_services_that_are_busy(self):
        self.google.faults = [
            (503, b"busy", {}),
            (429, b"", {"Retry-After": "0"}),
            (200, b"<html>Please log in</html>", {}),
            (200, b'{"error":"text"}', {}),
            (500, b"{}", {}),
        ]
        self.check_brought(self.as_file(self.account()))
        self.assertEqual(self.google.faults, [])


class Refused(GoogleCase):
    def test_a_key_that_was_deleted(self):
        self.google.faults = [(400, INVALID, {})]
        self.denied(
            self.as_file(self.account()),
            f"GOOGLE_APPLICATION_CREDENTIALS \\({self.dir}/credentials.json\\): "
            f"the service account {ACCOUNT} gets no token .*: "
            "http://127.0.0.1:\\d+/token answers 400 'invalid_grant': 'Invalid JWT Signature.'",
        )

    def test_another_key(self):
        other = GoogleServer()
        self.addCleanup(other.close)
        self.denied(
            self.as_file(self.account(private_key=other.private_key())), "invalid_grant': 'Invalid JWT Signature"
        )

    def test_a_key_that_is_none(self):
        self.denied(
            self.as_file(self.account(private_key="-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n")),
            "the private_key of GOOGLE_APPLICATION_CREDENTIALS .* is not an RSA key",
            code=78,
        )

    def test_a_user_who_has_left(self):
        self.denied(
            self.as_file({**self.user(), "refresh_token": "another-secret"}),
            "the user gets no token \\(log in again: gcloud auth application-default login\\): .*expired or revoked",
        )
        self.assertNotIn("another-secret", self.said)

    def test_a_workload_that_is_not_federated(self):
        token = self.file("a-foreign-secret", "token")
        self.denied(
            self.as_file(self.external({"file": token})),
            "the subject token is not exchanged for '//iam.*': .*/sts answers 400 'invalid_grant': "
            "'The subject token is expired",
        )
        self.assertNotIn("a-foreign-secret", self.said)
        self.denied(
            self.as_file(self.external({"file": token + "-not-there"})),
            "the subject token in '.*-not-there'.*No such file",
        )
        self.denied(
            self.as_file(self.external({"file": self.file(" \n", "empty")})), "the subject token in '.*empty' is empty"
        )
        source = {
            "file": self.file({"other": "x"}, "token.json"),
            "format": {"type": "json", "subject_token_field_name": "id_token"},
        }
        self.denied(self.as_file(self.external(source)), "token.json' has no 'id_token'")
        source = {"url": f"{self.google.url}/subject"}
        self.denied(self.as_file(self.external(source)), "the subject token: .*/subject answers 400 'invalid_request'")

    def test_one_who_may_not_impersonate(self):
        value = self.external(
            {"file": self.file("subject-1", "token")},
            service_account_impersonation_url=f"{self.google.url}/iam/other:generateAccessToken",
        )
        self.denied(
            self.as_file(value),
            "not impersonated .*Service Account Token Creator.*403 'PERMISSION_DENIED': 'Permission ",
        )

    def test_files_that_are_none(self):
        missing = {
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": self.proxy.url,
            "GOOGLE_APPLICATION_CREDENTIALS": "/not/there",
        }
        self.denied(
            missing,
            "GOOGLE_APPLICATION_CREDENTIALS names '/not/there', which is not there; mount it, or unset the variable",
        )
        self.denied(self.as_file("{"), "credentials.json\\) is not JSON: wrong at line 1, column 2", code=78)
        self.denied(self.as_file({"type": "other"}), "has the type 'other'; service_account, ")
        self.denied(
            self.as_file(self.external({"executable": {"command": "/bin/secret"}})),
            "running a program for a token is not supported",
        )
        self.assertEqual(self.google.asked, [])

    def test_no_machine(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            host = f"127.0.0.1:{closed.getsockname()[1]}"
            self.denied(
                self.as_machine(GCE_METADATA_HOST=host, GCE_METADATA_TIMEOUT="1"),
                "no identity was found: no credentials file is named \\(GOOGLE_APPLICATION_CREDENTIALS\\) "
                "or left by gcloud, "
                "and the metadata server gives no token .*--anonymous for a public bucket",
            )
        self.denied(self.as_machine(NO_GCE_CHECK="true"), "NO_GCE_CHECK forbids to ask")

    def test_something_else_at_the_machines_address(self):
        self.google.faults = [(200, b'{"access_token":"ya29.x","expires_in":3000}', {})] * 50
        self.denied(self.as_machine(GCE_METADATA_TIMEOUT="1"), "the server is not a metadata server")

    def test_a_token_that_is_not_good_for_it(self):
        """A new token is requested, once."""
        self.google.faults = [
            (200, json.dumps({"access_token": f"ya29.bad-{n}", "expires_in": 3000}).encode(), {}) for n in (1, 2, 3)
        ]
        self.refused(
            self.uri, 1, "401 authError: 'Invalid Credentials'; name an identity", env=self.as_file(self.account())
        )
        self.assertEqual((len(self.google.faults), self.proxy.refused), (1, 2))

    def test_a_token_that_is_good_for_lists_only(self):
        """A new token is requested once, though several objects are refused."""
        self.proxy.always(lambda exchange: exchange.answer(401, b"", ("Content-Type", "application/json")))
        for uri in (self.uri, "gs://muster-bucket/large"):
            self.google.reset()
            self.refused(uri, 1, "401; name an identity", env=self.as_file(self.account()))
            self.assertEqual(len(self.google.asked), 2)

    def test_an_identity_without_the_role(self):
        denied = (
            b'{"error":{"code":403,"message":"loader does not have storage.objects.list access",'
            b'"errors":[{"reason":"forbidden"}]}}'
        )
        self.proxy.faulty = gcs_server.is_list
        self.proxy.always(lambda exchange: exchange.answer(403, denied, ("Content-Type", "application/json")))
        self.refused(
            self.uri,
            1,
            "403 forbidden: 'loader does not have storage.objects.list access'; grant the identity "
            "storage.objects.get and storage.objects.list",
            env=self.as_file(self.account()),
        )
        self.assertEqual(len(self.google.asked), 1, "no other token")

    def test_services_that_stay_busy(self):
        self.google.faults = [(503, b"busy", {})] * 50
        ended, end = self.fetch(self.uri, "--patience", "1", env=self.as_file(self.account()))
        self.assertEqual(ended, UNREACHABLE, self.said)
        self.assertRegex(end["reason"], "/token answers 503: 'busy'")

    def test_an_endpoint_that_everybody_hears(self):
        self.denied(
            {**self.as_file(self.account()), "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": "http://elsewhere.invalid"},
            "over http a token may only go to this machine; use https, or --anonymous",
            code=78,
        )
        self.assertEqual(self.google.asked, [])


if __name__ == "__main__":
    main()
