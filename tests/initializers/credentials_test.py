# SPDX-License-Identifier: Apache-2.0
"""muster-initializer's identity on AWS: every step of the chain, with keys from a strict server (MinIO's STS)."""

import hashlib
import json
import os
import shutil
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import DEADLINE, MIB, SKIPPED, UNREACHABLE, InitializerCase, main, needs, some_bytes

needs("s3-server", "run build-support/setup-venv s3-server", "awscrt", "boto3")

import boto3

import certificate
import minio_server
from aws_machine_server import ROLE, AwsMachine
from fault_proxy import FaultProxy
from forward_proxy import ForwardProxy

if not minio_server.binary():
    print("SKIPPED: run build-support/setup-go-server minio (needs Go)", file=sys.stderr)
    sys.exit(SKIPPED)

FILES = {"a": b"one", "b/c": bytes(range(256)) * 100}
EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"


# A credential_process that asks the metadata service, and checks that it is run as configured.
PROGRAM = """#!{python}
import json, sys, urllib.request
assert sys.argv[1:] == ["--user", "some one"] and sys.stdin.read() == "", "not run as it is configured"
print("for people", file=sys.stderr)
ask = urllib.request.Request("{url}/v1/credentials", headers={{"Authorization": "{session}"}})
keys = json.load(urllib.request.urlopen(ask))
print(json.dumps({{"Version": 1, "SessionToken": keys.pop("Token"), **keys}}))
"""


class Identities(InitializerCase):
    flags = ("--patience", "20")

    @classmethod
    def setUpClass(cls):
        cls.server = minio_server.Minio()
        cls.addClassCleanup(cls.server.close)
        root = {
            "endpoint_url": cls.server.url,
            "aws_access_key_id": minio_server.KEY,
            "aws_secret_access_key": minio_server.SECRET,
            "region_name": "us-east-1",
        }
        cls.client = boto3.client("s3", **root)
        for bucket in ("data", "large"):
            cls.client.create_bucket(Bucket=bucket)
        for key, data in FILES.items():
            cls.client.put_object(Bucket="data", Key=key, Body=data)
        sts = boto3.client("sts", **root)
        cls.keys, cls.later = (
            {
                "AccessKeyId": given["AccessKeyId"],
                "SecretAccessKey": given["SecretAccessKey"],
                "Token": given["SessionToken"],
            }
            for given in (
                sts.assume_role(RoleArn="arn:minio:iam:::role/any", RoleSessionName="test")["Credentials"]
                for _ in range(2)
            )
        )
        cls.proxy = FaultProxy(cls.server.host, cls.server.port)
        cls.addClassCleanup(cls.proxy.close)

    def setUp(self):
        super().setUp()
        self.proxy.reset()
        self.machine = AwsMachine(self.keys)
        self.addCleanup(self.machine.close)
        self.token = os.path.join(self.dir, "token")
        with open(self.token, "w") as file:
            file.write(self.machine.session + "\n")

    def around(self, **more):
        return {
            "AWS_ENDPOINT_URL_S3": self.proxy.url,
            "AWS_REGION": "us-east-1",
            "HOME": self.dir,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9",
            **more,
        }

    def works(self, **more):
        self.succeeds("s3://data/", FILES, env=self.around(**more))
        self.assertEqual(self.machine.wrong, [])
        tokens = {headers.get("x-amz-security-token") for _, _, headers in self.proxy.exchanges}
        self.assertEqual(tokens, {self.keys["Token"]})

    def fails(self, code, words, **more):
        self.refused("s3://data/", code, words, env=self.around(**more))
        self.assertEqual(self.proxy.exchanges, [], "nothing is asked as somebody else")
        self.assertNotIn(self.machine.session, self.said)
        self.assertNotIn(self.keys["SecretAccessKey"], self.said)

    def process(self, command, profile="default"):
        """Variables of a profile with that credential_process."""
        config = os.path.join(self.dir, "config")
        with open(config, "w") as file:
            file.write(
                f"[{profile if profile == 'default' else 'profile ' + profile}]\ncredential_process = {command}\n"
            )
        return {"AWS_CONFIG_FILE": config}

    def program(self):
        """A command line that prints the keys of the metadata service."""
        path = os.path.join(self.dir, "my tools", "keys")
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as file:
            file.write(PROGRAM.format(python=sys.executable, url=self.machine.url, session=self.machine.session))
        os.chmod(path, 0o755)
        return f"\"{path}\" --user 'some one'"

    def kept(self):
        """A command line that prints a file's keys, without an expiration; and a function that changes it."""
        path = os.path.join(self.dir, "answer")

        def keep(keys):
            with open(path + ".new", "w") as file:
                json.dump({"Version": 1, "SessionToken": keys["Token"], **keys}, file)
            os.rename(path + ".new", path)

        keep(self.keys)
        return f"cat {path}", keep


class Machine(Identities):
    def test_of_the_machine(self):
        """IMDSv2: gets a session token, then the role's name, then its keys."""
        self.works(AWS_EC2_METADATA_SERVICE_ENDPOINT=self.machine.url)
        self.assertEqual(
            self.machine.requests,
            [
                ("PUT", "/latest/api/token"),
                ("GET", "/latest/meta-data/iam/security-credentials/"),
                ("GET", f"/latest/meta-data/iam/security-credentials/{ROLE}"),
            ],
        )

    def test_a_machine_that_is_busy(self):
        self.machine.busy = [503, 429]
        self.works(AWS_EC2_METADATA_SERVICE_ENDPOINT=self.machine.url, AWS_METADATA_SERVICE_NUM_ATTEMPTS="5")

    def test_a_machine_that_is_busy_for_longer(self):
        """AWS's default of one attempt of a second is for a service that does not answer; this one answers."""
        self.machine.busy = [503, 500, 429, 503]
        self.works(AWS_EC2_METADATA_SERVICE_ENDPOINT=self.machine.url)
        self.assertIn(f"{self.machine.url}/latest/api/token: 503, trying again", self.said)

    def test_a_machine_that_stays_busy(self):
        self.machine.busy = [503] * 1000
        self.refused(
            "s3://data/",
            UNREACHABLE,
            "instance metadata: .*/latest/api/token: 503; giving up after",
            "--patience",
            "3",
            env=self.around(AWS_EC2_METADATA_SERVICE_ENDPOINT=self.machine.url),
        )

    def test_a_machine_that_is_silent(self):
        self.fails(
            1, "no credentials were found: .*AWS_ACCESS_KEY_ID", AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:9"
        )

    def test_others_that_are_busy(self):
        """The message names the busy service."""
        self.machine.busy = [503]
        self.works(
            AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{self.machine.url}/v1/credentials",
            AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=self.token,
        )
        self.assertIn(f"{self.machine.url}/v1/credentials: 503, trying again", self.said)
        self.machine.busy = [429]
        shutil.rmtree(self.target)
        self.proxy.reset()
        self.works(
            AWS_ENDPOINT_URL_STS=self.machine.url,
            AWS_WEB_IDENTITY_TOKEN_FILE=self.token,
            AWS_ROLE_ARN="arn:aws:iam::123456789012:role/reader",
        )
        self.assertIn(f"{self.machine.url}/: 429, trying again", self.said)

    def test_answers_of_somebody_before_them(self):
        """A page, a cut answer, a 408: asked again. A Retry-After beyond the patience ends the run."""
        page = (200, "<html>Please log in</html>")
        sts = {
            "AWS_ENDPOINT_URL_STS": self.machine.url,
            "AWS_WEB_IDENTITY_TOKEN_FILE": self.token,
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/reader",
        }
        pod = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.machine.url}/v1/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": self.token,
        }
        for around in (sts, pod, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.machine.url}):
            for wrong in (page, (200, '{"AccessKeyId": "A'), (408, "late")):
                with self.subTest(wrong=wrong, around=list(around)):
                    shutil.rmtree(self.target, ignore_errors=True)
                    self.proxy.reset()
                    self.machine.busy = [wrong]
                    self.works(**around)
                    self.assertIn("trying again", self.said)
        shutil.rmtree(self.target)
        self.machine.busy = [(503, "busy", ("Retry-After", "1000"))]
        self.refused("s3://data/", UNREACHABLE, "503; the server asks for a pause of 1000 s", env=self.around(**sts))

    def test_a_store_that_is_not_checked(self):
        """The certificate of a service that gives out keys is still checked."""
        folder = os.path.join(self.dir, "certificates")
        bundle = certificate.make(folder)
        machine = AwsMachine(self.keys, certificate.server_context(folder))
        self.addCleanup(machine.close)
        around = {
            "AWS_ENDPOINT_URL_STS": machine.url,
            "AWS_WEB_IDENTITY_TOKEN_FILE": self.token,
            "S3_VERIFY_SSL": "0",
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/reader",
        }
        self.fails(1, "certificate", **around)
        self.assertEqual(machine.requests, [])
        self.works(AWS_CA_BUNDLE=bundle, **around)
        self.assertEqual(machine.requests, [("POST", "/")])

    def test_no_identity_at_all(self):
        self.fails(1, "AWS_EC2_METADATA_DISABLED", AWS_EC2_METADATA_DISABLED="true")

    def test_of_the_pod(self):
        """EKS Pod Identity: the token file is read for each request."""
        self.works(
            AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{self.machine.url}/v1/credentials",
            AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=self.token,
        )
        self.assertEqual(self.machine.count("/v1/credentials"), 1)

    def test_of_the_task(self):
        """ECS: the token itself."""
        self.works(
            AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{self.machine.url}/v1/credentials",
            AWS_CONTAINER_AUTHORIZATION_TOKEN=self.machine.session,
        )

    def test_a_pod_that_is_refused(self):
        with open(self.token, "w") as file:
            file.write("wrong")
        self.fails(
            1,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{self.machine.url}/v1/credentials",
            AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=self.token,
        )
        self.fails(
            78,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            AWS_CONTAINER_CREDENTIALS_FULL_URI="http://example.com/v1/credentials",
        )

    def test_of_the_service_account(self):
        """IRSA."""
        self.works(
            AWS_ENDPOINT_URL_STS=self.machine.url,
            AWS_WEB_IDENTITY_TOKEN_FILE=self.token,
            AWS_ROLE_ARN="arn:aws:iam::123456789012:role/reader",
        )
        self.assertEqual(self.machine.requests, [("POST", "/")])

    def test_a_role_of_an_endpoint_with_a_path(self):
        config = os.path.join(self.dir, "config")
        with open(config, "w") as file:
            file.write(
                "[profile reader]\nrole_arn = arn:aws:iam::123456789012:role/reader\nsource_profile = base\n"
                f"[profile base]\naws_access_key_id = {self.keys['AccessKeyId']}\n"
                f"aws_secret_access_key = {self.keys['SecretAccessKey']}\n"
            )
        self.works(AWS_CONFIG_FILE=config, AWS_PROFILE="reader", AWS_ENDPOINT_URL_STS=f"{self.machine.url}/sts")
        self.assertEqual(self.machine.requests, [("POST", "/sts/")])

    def test_a_service_account_that_is_refused(self):
        with open(self.token, "w") as file:
            file.write("wrong")
        self.fails(
            1,
            "InvalidIdentityToken",
            AWS_ENDPOINT_URL_STS=self.machine.url,
            AWS_WEB_IDENTITY_TOKEN_FILE=self.token,
            AWS_ROLE_ARN="arn:aws:iam::123456789012:role/reader",
        )

    def signed_on(self, token):
        """Makes the files of `aws sso login` and a portal under its real name; returns variables that lead there."""
        portal = "portal.sso.eu-west-1.amazonaws.com"
        authority = certificate.make(os.path.join(self.dir, "portal"), f"DNS:{portal}")
        self.machine = AwsMachine(self.keys, certificate.server_context(os.path.join(self.dir, "portal")))
        self.addCleanup(self.machine.close)
        proxy = ForwardProxy(leads_to=self.machine.server.server_address)
        self.addCleanup(proxy.close)
        cached = os.path.join(self.dir, ".aws", "sso", "cache", hashlib.sha1(b"firm").hexdigest() + ".json")
        os.makedirs(os.path.dirname(cached))
        with open(cached, "w") as file:
            json.dump({"startUrl": "https://firm.example/start", "region": "eu-west-1", "accessToken": token}, file)
        with open(os.path.join(self.dir, ".aws", "config"), "w") as file:
            file.write(
                "[sso-session firm]\nsso_start_url = https://firm.example/start\nsso_region = eu-west-1\n[default]\n"
                f"sso_session = firm\nsso_account_id = 123456789012\nsso_role_name = {ROLE}\n"
            )
        return {"HTTPS_PROXY": f"http://{proxy.address}", "AWS_CA_BUNDLE": authority}, proxy, f"{portal}:443"

    def test_of_single_sign_on(self):
        variables, proxy, portal = self.signed_on(self.machine.session)
        self.works(**variables)
        self.assertEqual(proxy.requests, [("CONNECT", portal)])
        self.assertEqual(self.machine.requests, [("GET", "/federation/credentials")])

    def test_a_sign_on_that_is_over(self):
        variables, _, _ = self.signed_on("of yesterday")
        self.fails(1, "run `aws sso login` again: .*: 401", **variables)

    def test_keys_that_hold_for_some_minutes(self):
        """The metadata service has no newer keys yet: it is not asked again for each request."""
        self.machine.lifetime = 300
        self.works(AWS_EC2_METADATA_SERVICE_ENDPOINT=self.machine.url)
        self.assertEqual(self.machine.count("/latest/api/token"), 1)

    def test_keys_that_expire_while_ranges_are_fetched(self):
        """Running requests get the error that the keys have expired. Later ones are signed with new keys, which are
        requested once. No byte is fetched twice."""
        files = {"w": some_bytes(40 * MIB), **{str(n): some_bytes(2 * MIB, n) for n in range(12)}}
        for key, data in files.items():
            self.client.put_object(Bucket="large", Key=key, Body=data)
        pod = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.machine.url}/v1/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": self.token,
        }
        account = {
            "AWS_ENDPOINT_URL_STS": self.machine.url,
            "AWS_WEB_IDENTITY_TOKEN_FILE": self.token,
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/reader",
        }
        for around, asked in (
            (pod, "/v1/credentials"),
            (account, "/"),
            (self.process(self.program()), "/v1/credentials"),
            ({"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.machine.url}, f"/security-credentials/{ROLE}"),
        ):
            with self.subTest(list(around)):
                shutil.rmtree(self.target, ignore_errors=True)
                self.machine.keys, self.machine.requests = self.keys, []
                self.proxy.reset()
                good, bad, renewed = [], [], threading.Event()

                def expire(exchange):
                    token = exchange.request_headers["x-amz-security-token"]
                    with self.proxy.lock:
                        if self.machine.keys is self.keys and len(good) == 2:
                            self.machine.keys = self.later
                        expired = token == self.keys["Token"] and self.machine.keys is self.later
                        (bad if expired else good).append(token)
                        held = expired and len(bad) == 2
                    if token == self.later["Token"]:
                        renewed.set()
                    if held:
                        renewed.wait(DEADLINE)  # its answer comes after the renewal
                    if expired:
                        exchange.answer(400, EXPIRED, ("Content-Type", "application/xml"))

                self.proxy.always(expire)
                end = self.succeeds("s3://large", files, env=self.around(**around))
                self.assertEqual((end["received"], end["unverified_files"]), (sum(map(len, files.values())), 0))
                self.assertGreater(len(bad), 1)
                self.assertEqual(good[:2] + good[-1:], [self.keys["Token"]] * 2 + [self.later["Token"]])
                self.assertEqual(
                    sum(path.endswith(asked) for _, path in self.machine.requests), 2, "once, and once more"
                )
                self.assertEqual(self.machine.wrong, [])

    def test_keys_that_expire_and_are_not_renewed(self):
        """The metadata service has no newer keys: the run fails when its patience is over."""
        self.proxy.always(lambda exchange: exchange.answer(400, EXPIRED, ("Content-Type", "application/xml")))
        self.refused(
            "s3://data/",
            UNREACHABLE,
            "ExpiredToken",
            "--patience",
            "2",
            env=self.around(
                AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{self.machine.url}/v1/credentials",
                AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=self.token,
            ),
        )
        self.assertLess(self.machine.count("/v1/credentials"), 60, "it is not asked without a pause")

    def test_past_a_proxy(self):
        proxy = ForwardProxy()
        self.addCleanup(proxy.close)
        self.works(AWS_EC2_METADATA_SERVICE_ENDPOINT=self.machine.url, HTTP_PROXY=f"http://{proxy.address}")
        self.assertTrue(proxy.requests)
        self.assertFalse([url for _, url in proxy.requests if url.startswith(self.machine.url)])

    def test_keys_that_are_about_to_expire(self):
        """New keys are fetched before each use."""
        self.machine.lifetime = 30
        self.succeeds(
            "s3://data/",
            FILES,
            env=self.around(
                AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{self.machine.url}/v1/credentials",
                AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=self.token,
            ),
        )
        self.assertGreater(self.machine.count("/v1/credentials"), 1)

    def test_nobody_answers(self):
        self.refused(
            "s3://data/",
            UNREACHABLE,
            "127.0.0.1",
            "--patience",
            "1",
            env=self.around(
                AWS_CONTAINER_CREDENTIALS_FULL_URI="http://127.0.0.1:9/v1/credentials",
                AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=self.token,
            ),
        )


if __name__ == "__main__":
    main()
