# SPDX-License-Identifier: Apache-2.0
"""GoogleServer(): Google's identity services as one server for tests. GuardedGcs: a store that requires its tokens.

/token      the OAuth endpoint: jwt-bearer with an RS256 assertion, which is verified, and refresh tokens
/sts        workload identity federation: exchanges subject tokens
/iam/NAME:generateAccessToken
/computeMetadata/v1/instance/service-accounts/default/token
/subject    another cloud's identity service, which gives subject tokens
"""

import base64
import datetime
import http.server
import json
import threading
import time
import urllib.parse

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

import server_errors
from fault_proxy import Exchange
from gcs_server import GcsProxy

READ = "https://www.googleapis.com/auth/devstorage.read_only"
IMPERSONATE = "https://www.googleapis.com/auth/iam"
ACCOUNT = "loader@project.iam.gserviceaccount.com"
KEY_ID = "key-1"
USER = {"client_id": "client-1", "client_secret": "secret-of-the-client", "refresh_token": "secret-to-refresh"}
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/cluster"
SUBJECT_TYPE = "urn:ietf:params:oauth:token-type:jwt"


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(body)
        self.status, self.body = status, body


def refuse(status, error, words):
    raise Refused(status, {"error": error, "error_description": words})


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_any(self):
        google = self.server.google
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        with google.lock:
            fault = google.faults.pop(0) if google.faults else None
            if fault:
                status, answer, headers = fault
            else:
                status, answer, headers = google.answer(self.command, self.path, self.headers, body)
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_any


class Server(server_errors.Recording, http.server.ThreadingHTTPServer):
    daemon_threads = True


class GoogleServer:
    def __init__(self):
        self.lock = threading.Lock()
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.reset()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.google = self
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"http://{self.host}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def reset(self):
        with self.lock:
            self.asked = []  # (what, scope) of each token given; scope None: refused
            self.tokens = {}  # token -> scope
            self.revoked = set()
            self.faults = []  # (status, body, headers) of the next answers
            self.life = 3600  # seconds
            self.missing = 0  # how often the metadata server will still answer 404
            self.subjects = {"subject-1"}
            self.delegates = None  # of the last generateAccessToken

    def revoke(self):
        with self.lock:
            self.revoked |= set(self.tokens)

    def accepts(self, authorization):
        with self.lock:
            token = (authorization or "").removeprefix("Bearer ")
            return self.tokens.get(token) == READ and token not in self.revoked

    def private_key(self):
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()

    def answer(self, method, path, headers, body):
        """(status, JSON or bytes, headers)"""
        place = path.split("?")[0]
        try:
            if place == "/token" and method == "POST":
                return self.token(dict(urllib.parse.parse_qsl(body)))
            if place == "/sts" and method == "POST":
                return self.exchange(dict(urllib.parse.parse_qsl(body)))
            if place.startswith("/iam/") and method == "POST":
                return self.impersonate(place, headers, json.loads(body))
            if place == "/subject" and method == "GET":
                return self.subject(headers)
            if place.startswith("/computeMetadata/"):
                return self.metadata(place, headers)
            refuse(404, "not_found", path)
        except Refused as refused:
            self.asked.append((place, None))
            return refused.status, refused.body, {}

    def give(self, what, scope):
        self.asked.append((what, scope))
        token = f"ya29.token-{len(self.asked)}-{what}"
        self.tokens[token] = scope
        return token

    def oauth(self, what, scope):
        return 200, {"access_token": self.give(what, scope), "expires_in": self.life, "token_type": "Bearer"}, {}

    def token(self, form):
        if form.get("grant_type") == "refresh_token":
            if {name: form.get(name) for name in USER} != USER:
                refuse(400, "invalid_grant", "Token has been expired or revoked.")
            return self.oauth("user", READ)
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            refuse(400, "unsupported_grant_type", "Invalid grant_type")
        head, claims, signature = form["assertion"].split(".")
        try:
            self.key.public_key().verify(
                decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except InvalidSignature:
            refuse(400, "invalid_grant", "Invalid JWT Signature.")
        head, claims = json.loads(decoded(head)), json.loads(decoded(claims))
        if head != {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}:
            refuse(400, "invalid_grant", f"header {head}")
        # Google's Python client names Google's endpoint as audience, whatever the file says.
        right = (
            claims["iss"] == ACCOUNT
            and claims["aud"] in (f"{self.url}/token", "https://oauth2.googleapis.com/token")
            and claims["exp"] - claims["iat"] == 3600
            and abs(claims["iat"] - time.time()) < 300
        )
        if not right:
            refuse(400, "invalid_grant", f"claims {claims}")
        return self.oauth("account", claims["scope"])

    def exchange(self, form):
        wanted = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "audience": AUDIENCE,
            "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "subject_token_type": SUBJECT_TYPE,
        }
        if {name: form.get(name) for name in wanted} != wanted:
            refuse(400, "invalid_request", f"{form}")
        if form["subject_token"] not in self.subjects:
            refuse(400, "invalid_grant", "The subject token is expired.")
        return self.oauth("exchanged", form["scope"])

    def impersonate(self, place, headers, wanted):
        token = (headers.get("Authorization") or "").removeprefix("Bearer ")
        if place != f"/iam/{ACCOUNT}:generateAccessToken" or self.tokens.get(token) not in (IMPERSONATE, READ):
            raise Refused(
                403,
                {
                    "error": {
                        "code": 403,
                        "message": "Permission 'iam.serviceAccounts.getAccessToken' denied",
                        "status": "PERMISSION_DENIED",
                    }
                },
            )
        self.delegates = wanted.get("delegates")
        seconds = int(wanted["lifetime"].removesuffix("s"))
        expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
        return (
            200,
            {
                "accessToken": self.give("impersonated", wanted["scope"][0]),
                "expireTime": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
            {},
        )

    def subject(self, headers):
        if headers.get("Metadata") != "True":
            refuse(400, "invalid_request", "Metadata: True is missing")
        return 200, {"access_token": "subject-1", "expires_in": "3599"}, {}

    def metadata(self, place, headers):
        if headers.get("Metadata-Flavor") != "Google":
            refuse(403, "forbidden", "Metadata-Flavor: Google is missing")
        if self.missing > 0:
            self.missing -= 1
            refuse(404, "not_found", "not yet")
        if not place.endswith("/instance/service-accounts/default/token"):
            refuse(404, "not_found", place)
        status, answer, _ = self.oauth("machine", READ)
        return status, answer, {"Metadata-Flavor": "Google"}


class GuardedGcs(GcsProxy):
    """In front of a store that checks no identity: 401 without a token with read scope. `open`: no check."""

    def __init__(self, host, port, google):
        self.google = google
        super().__init__(host, port)

    def reset(self):
        super().reset()
        self.open = False
        self.refused = 0

    def pass_on(self, handler, body):
        if self.open or self.google.accepts(handler.headers.get("Authorization")):
            return super().pass_on(handler, body)
        with self.lock:
            self.refused += 1
        error = {"error": {"code": 401, "message": "Invalid Credentials", "errors": [{"reason": "authError"}]}}
        return Exchange(handler, 401, [("Content-Type", "application/json")], json.dumps(error).encode())
