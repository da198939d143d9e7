# SPDX-License-Identifier: Apache-2.0
"""AWS's services around a container, as strict as the real ones: IMDSv2, container endpoint, STS, SSO portal.

Each of them gives out `keys`, with a `lifetime` in seconds; `wrong`: paths of requests that a real one would refuse.
`busy` is answered first: a status, or (status, text, headers ...). Signed with `keys`, a request gets the role.
"""

import datetime
import http.server
import json
import threading
import urllib.parse

import server_errors

ROLE = "training-node"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_one(self):
        machine = self.server.machine
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = self.path.partition("?")[0]
        with machine.lock:
            machine.requests.append((self.command, path))
            busy = machine.busy.pop(0) if machine.busy else None
        if busy:
            return self.say(*busy) if isinstance(busy, tuple) else self.say(busy, "busy")
        if path == "/latest/api/token":
            seconds = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
            good = self.command == "PUT" and seconds and 1 <= int(seconds) <= 21600
            return self.say(200 if good else 400, machine.session)
        if path.startswith("/latest/meta-data/iam/security-credentials/"):
            if self.headers.get("X-aws-ec2-metadata-token") != machine.session:
                return self.say(401, "Unauthorized")
            name = path.rsplit("/", 1)[1]
            if not name:
                return self.say(200, ROLE)
            return (
                self.say(200, json.dumps({"Code": "Success", "Type": "AWS-HMAC", **machine.handed()}))
                if name == ROLE
                else self.say(404, "Not Found")
            )
        if path == "/v1/credentials":
            if self.headers.get("Authorization") != machine.session:
                return self.say(401, json.dumps({"code": "Unauthorized", "message": "wrong token"}))
            return self.say(200, json.dumps(machine.handed()))
        if path == "/federation/credentials":
            asked = dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))
            if self.headers.get("x-amz-sso_bearer_token") != machine.session or asked != {
                "role_name": ROLE,
                "account_id": "123456789012",
            }:
                return self.say(
                    401,
                    json.dumps({"__type": "UnauthorizedException", "message": "Session token not found or invalid"}),
                )
            keys = machine.handed()
            ends = datetime.datetime.fromisoformat(keys["Expiration"].replace("Z", "+00:00")).timestamp()
            return self.say(
                200,
                json.dumps(
                    {
                        "roleCredentials": {
                            "accessKeyId": keys["AccessKeyId"],
                            "secretAccessKey": keys["SecretAccessKey"],
                            "sessionToken": keys["Token"],
                            "expiration": int(ends * 1000),
                        }
                    }
                ),
            )
        if self.command == "POST" and path in ("/", "/sts/"):
            form = dict(urllib.parse.parse_qsl(body))
            if form.get("Action") == "AssumeRole" and machine.signed_well(self, body):
                form = {"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": machine.session}
            if form.get("Action") != "AssumeRoleWithWebIdentity" or form.get("WebIdentityToken") != machine.session:
                return self.say(
                    400,
                    "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>No OpenIDConnect provider found"
                    "</Message></Error></ErrorResponse>",
                )
            keys = machine.handed()
            return self.say(
                200,
                "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
                f"<AccessKeyId>{keys['AccessKeyId']}</AccessKeyId><SecretAccessKey>{keys['SecretAccessKey']}"
                f"</SecretAccessKey><SessionToken>{keys['Token']}</SessionToken><Expiration>{keys['Expiration']}"
                "</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
            )
        return self.say(404, "Not Found")

    do_GET = do_PUT = do_POST = handle_one

    def say(self, status, text, *headers):
        if status in (400, 401, 404):
            with self.server.machine.lock:
                self.server.machine.wrong.append(self.path)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


class Server(server_errors.Recording, http.server.ThreadingHTTPServer):
    daemon_threads = True


class AwsMachine:
    session = "session-token-of-this-test"

    def __init__(self, keys, context=None):
        """`keys`: AccessKeyId, SecretAccessKey, Token that the store will accept. `context`: of TLS."""
        self.keys = keys
        self.lifetime = 3600
        self.requests, self.wrong, self.busy = [], [], []
        self.lock = threading.Lock()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.machine = self
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.server.server_address[1]}"
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def handed(self):
        expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.lifetime)
        return {**self.keys, "Expiration": expiry.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def signed_well(self, request, body):
        """True if AWS's own client makes the same signature."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        said = dict(
            part.strip().split("=", 1) for part in request.headers["Authorization"].partition(" ")[2].split(",")
        )
        scope = said["Credential"].split("/")
        signer = SigV4Auth(Credentials(self.keys["AccessKeyId"], self.keys["SecretAccessKey"]), scope[3], scope[2])
        signed = {name: request.headers[name] for name in said["SignedHeaders"].split(";")}
        again = AWSRequest(
            request.command, f"http://{request.headers['Host']}{request.path}", data=body, headers=signed
        )
        again.context["timestamp"] = request.headers["X-Amz-Date"]
        return (
            signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again) == said["Signature"]
        )

    def count(self, words):
        with self.lock:
            return sum(1 for _, path in self.requests if words in path)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
