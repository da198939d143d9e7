# SPDX-License-Identifier: Apache-2.0
"""HubServer(): a Hugging Face hub for tests, with a CDN at another origin. huggingface_hub works with it.

Answers and headers follow the real hub's docs and clients. A CDN link is signed and valid until expire(); the CDN
refuses a token. `faults`: functions, each applied to one request that `faulty(request)` accepts: fault(request) may
answer by itself and return True, or set `request.cut`, `request.flip`, `request.stall` and return False.
"""

import base64
import hashlib
import hmac
import http.server
import json
import socket
import struct
import threading
import time
import urllib.parse

import server_errors

SECRET = b"of the CDN"
LFS_FROM = 1 << 20  # bytes; a smaller file is in LFS only if the repository lists it


def git_oid(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repository:
    def __init__(self, files, lfs=()):
        """`files`: path -> content, on main. `lfs`: paths of small files that are in LFS."""
        self.lfs = set(lfs)
        self.commits, self.branches = {}, {}
        self.private = self.gated = self.disabled = False
        self.readers = set()  # tokens
        self.commit("main", files)

    def commit(self, branch, files):
        name = hashlib.sha1(json.dumps([branch, len(self.commits), sorted(files)]).encode()).hexdigest()
        self.commits[name] = dict(files)
        self.branches[branch] = name
        return name

    def is_lfs(self, path, data):
        return path in self.lfs or len(data) >= LFS_FROM

    def resolve(self, revision):
        return self.branches.get(revision, revision if revision in self.commits else None)


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    is_cdn = False

    def log_message(self, *_):
        pass

    def serve(self):
        hub = self.server.hub
        self.cut = self.flip = self.stall = None
        self.url, _, self.query = self.path.partition("?")
        self.query = urllib.parse.parse_qs(self.query)
        self.token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        with hub.lock:
            hub.requests.append(
                (
                    "cdn" if self.is_cdn else "hub",
                    self.command,
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                )
            )
            fault = hub.faults.pop(0) if hub.faults and hub.faulty(self) else None
        try:
            if not (fault and fault(self)):
                self.answer()
        except OSError:
            self.close_connection = True

    do_GET = do_HEAD = do_POST = serve

    # --- what the hub answers

    kinds = {"models": "model", "datasets": "dataset", "spaces": "space"}

    @property
    def is_api(self):
        return not self.is_cdn and self.url.startswith("/api/") and not self.url.startswith("/api/resolve-cache/")

    @property
    def is_tree(self):
        return self.is_api and "/tree/" in self.url

    @property
    def is_data(self):
        """True if the answer is to bring bytes of a file."""
        return self.is_cdn or self.url.startswith("/api/resolve-cache/")

    def answer(self):
        hub = self.server.hub
        if self.token and self.token not in hub.tokens:
            return self.error(401, None, "Invalid credentials in Authorization header")
        if not self.take_quota():
            return self.error(429, None, "We had to rate limit you")
        parts = [urllib.parse.unquote(part) for part in self.url.strip("/").split("/")]
        if parts[0] == "api" and len(parts) > 4 and parts[1] in self.kinds:
            repository = self.repository(parts[1], "/".join(parts[2:4]), lambda name: self.moved(name, 2, 4))
            return repository and self.api(repository, "/".join(parts[2:4]), parts[4], parts[5:])
        if parts[:2] == ["api", "resolve-cache"]:
            repository = self.repository(parts[2], "/".join(parts[3:5]), None)
            return repository and self.file_content(repository.commits[parts[5]]["/".join(parts[6:])], parts[5])
        kind = parts.pop(0) if parts[0] in self.kinds else "models"
        if len(parts) > 4 and parts[2] == "resolve":
            offset = 0 if kind == "models" else 1
            repository = self.repository(kind, "/".join(parts[:2]), lambda name: self.moved(name, offset, offset + 2))
            return repository and self.resolve(repository, kind, "/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        return self.error(404, None, "Sorry, we can't find the page you are looking for.")

    def moved(self, name, begin, end):
        """Redirects to the new name of a renamed repository, with a relative URL as on the hub."""
        parts = self.path.strip("/").split("/")
        self.plain(307, b"", ("Location", "/" + "/".join([*parts[:begin], name, *parts[end:]])))

    def repository(self, kind, name, moved):
        hub = self.server.hub
        if moved and (kind, name) in hub.renamed:
            return moved(hub.renamed[kind, name])
        repository = hub.repositories.get((kind, name))
        if repository is None or (repository.private and self.token not in repository.readers):
            if self.token:
                return self.error(404, "RepoNotFound", "Repository not found")
            return self.error(401, "RepoNotFound", "Invalid username or password.")
        if repository.disabled:
            return self.error(403, None, "Access to this resource is disabled.")
        return repository

    def commit_of(self, repository, revision):
        commit = repository.resolve(revision)
        return commit or self.error(404, "RevisionNotFound", f"Invalid rev id: {revision}")

    def api(self, repository, name, what, rest):
        commit = self.commit_of(repository, rest[0])
        if not commit:
            return None
        files = repository.commits[commit]
        if what == "revision":
            return self.json(
                {
                    "_id": "6217",
                    "id": name,
                    "sha": commit,
                    "private": repository.private,
                    "gated": "auto" if repository.gated else False,
                    "tags": [],
                    "downloads": 1,
                    "siblings": [self.sibling(repository, path, data) for path, data in files.items()],
                }
            )
        if what == "tree" and not self.server.hub.has_tree:
            return self.plain(404, b"<html>Not here</html>", ("Content-Type", "text/html"))
        return (
            self.tree(repository, files, "/".join(rest[1:])) if what == "tree" else self.error(404, None, "No such API")
        )

    def sibling(self, repository, path, data):
        about = {"rfilename": path}
        if "blobs" in self.query and self.server.hub.has_blobs:
            about.update(size=len(data), blobId=git_oid(data))
            if repository.is_lfs(path, data):
                sha256 = hashlib.sha256(data).hexdigest()
                about.update(
                    blobId=git_oid(sha256.encode()), lfs={"sha256": sha256, "size": len(data), "pointerSize": 134}
                )
        return about

    def tree(self, repository, files, folder):
        start = folder and folder + "/"
        recursive = self.query.get("recursive", ["false"])[0] == "true"
        below = {path.removeprefix(start): path for path in files if path.startswith(start)}
        if folder and not below:
            return self.error(404, "EntryNotFound", f"{folder} does not exist on this revision")
        entries = []
        for part in sorted({path[:at] for path in below for at, c in enumerate(path) if c == "/"}):
            entries.append({"type": "directory", "oid": git_oid(part.encode()), "size": 0, "path": start + part})
        for path in sorted(below.values()):
            data = files[path]
            entry = {"type": "file", "oid": git_oid(data), "size": len(data), "path": path}
            if repository.is_lfs(path, data):
                sha256 = hashlib.sha256(data).hexdigest()
                entry.update(
                    oid=git_oid(sha256.encode()),
                    xetHash=hashlib.sha256(sha256.encode()).hexdigest(),
                    lfs={"oid": sha256, "size": len(data), "pointerSize": 134},
                )
            entries.append(entry)
        if not recursive:
            entries = [entry for entry in entries if "/" not in entry["path"].removeprefix(start)]
        begin = int(base64.urlsafe_b64decode(self.query["cursor"][0])) if "cursor" in self.query else 0
        end = begin + self.server.hub.page
        headers = []
        if end < len(entries):
            cursor = urllib.parse.quote(base64.urlsafe_b64encode(b"%06d" % end).decode())
            query = "&".join(f"{key}={value[0]}" for key, value in self.query.items() if key != "cursor")
            headers.append(("Link", f'<{self.server.hub.link_base}{self.url}?{query}&cursor={cursor}>; rel="next"'))
        self.server.hub.listed()
        return self.json(entries[begin:end], *headers)

    def resolve(self, repository, kind, name, revision, path):
        hub = self.server.hub
        commit = self.commit_of(repository, revision)
        if not commit:
            return None
        if repository.gated and self.token not in repository.readers:
            return self.error(
                403 if self.token else 401, "GatedRepo", f"Access to {self.kinds[kind]} {name} is restricted."
            )
        data = repository.commits[commit].get(path)
        if data is None:
            return self.error(404, "EntryNotFound", "Entry not found", ("X-Repo-Commit", commit))
        if repository.is_lfs(path, data):
            sha256 = hashlib.sha256(data).hexdigest()
            return self.plain(
                302,
                b"Found. Redirecting",
                ("Location", hub.signed(data)),
                ("X-Repo-Commit", commit),
                ("X-Linked-Size", str(len(data))),
                ("X-Linked-ETag", f'"{sha256}"'),
                ("X-Xet-Hash", hashlib.sha256(sha256.encode()).hexdigest()),
                ("Link", f'<{hub.url}/api/{kind}/{name}/xet-read-token/{commit}>; rel="xet-auth"'),
            )
        if repository.private or repository.gated or not data:
            return self.file_content(data, commit)
        quoted, tag = urllib.parse.quote(path), urllib.parse.quote(git_oid(data))
        where = f"/api/resolve-cache/{kind}/{name}/{commit}/{quoted}?etag={tag}"
        return self.plain(
            307,
            b"Temporary Redirect",
            ("Location", where),
            ("X-Repo-Commit", commit),
            ("ETag", f'"{git_oid(data)}"'),
            ("X-Linked-Size", str(len(data))),
        )

    def file_content(self, data, commit):
        return self.content(data, f'"{git_oid(data)}"', ("X-Repo-Commit", commit))

    # --- how

    def take_quota(self):
        """Takes one request of the window's quota; False: none is left."""
        hub, kind = self.server.hub, "api" if self.is_api else "resolvers"
        with hub.lock:
            now = time.monotonic()
            if now > hub.window_end.get(kind, 0):
                hub.left[kind], hub.window_end[kind] = hub.quota.get(kind, 100_000), now + hub.window
            taken = hub.left[kind] > 0
            hub.left[kind] -= taken
            hub.refused += not taken
            self.limit = f'"{kind}";r={hub.left[kind]};t={int(hub.window)}'
        return taken

    def content(self, data, etag, *headers):
        first, last, status = 0, len(data) - 1, 200
        if self.headers.get("Range") and self.server.hub.has_ranges:
            low, high = self.headers["Range"].removeprefix("bytes=").split("-")
            first, last, status = int(low), min(int(high or len(data)), len(data) - 1), 206
            if first >= len(data):
                return self.plain(416, b"", ("Content-Range", f"bytes */{len(data)}"))
            headers += (("Content-Range", f"bytes {first}-{last}/{len(data)}"),)
        part = bytearray(data[first : last + 1])
        if self.flip is not None and first <= self.flip <= last:
            part[self.flip - first] ^= 1
        return self.plain(
            status, part, ("ETag", etag), ("Accept-Ranges", "bytes" if self.server.hub.has_ranges else "none"), *headers
        )

    def json(self, value, *headers):
        return self.plain(200, json.dumps(value).encode(), ("Content-Type", "application/json"), *headers)

    def error(self, status, code, message, *headers):
        self.plain(
            status,
            json.dumps({"error": message}).encode(),
            ("Content-Type", "application/json"),
            *([("X-Error-Code", code)] if code else []),
            ("X-Error-Message", message),
            *headers,
        )

    def plain(self, status, body, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not self.is_cdn:
            self.send_header("RateLimit", getattr(self, "limit", '"api";r=1000;t=300'))
            self.send_header("RateLimit-Policy", '"fixed window";"api";q=1000;w=300')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return True
        if self.cut is not None or self.stall is not None:
            self.write(body[: self.cut if self.stall is None else self.stall])
            if self.stall is not None:
                self.server.hub.closing.wait()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return True
        self.write(body)
        return True

    def write(self, body):
        for at in range(0, len(body), 1 << 16):
            self.wfile.write(body[at : at + (1 << 16)])
            self.server.hub.sent(len(body[at : at + (1 << 16)]))


class CdnRequest(Request):
    is_cdn = True

    def answer(self):
        hub = self.server.hub
        if self.headers.get("Authorization"):
            return self.xml(400, "InvalidArgument", "Only one auth mechanism allowed")
        sha256, epoch = self.url.removeprefix("/lfs/"), self.query.get("Expires", [""])[0]
        if not hmac.compare_digest(self.query.get("Signature", [""])[0], hub.signature(sha256, epoch)):
            return self.xml(403, "SignatureDoesNotMatch", "The request signature we calculated does not match")
        if int(epoch) < hub.epoch:
            return self.xml(hub.expired, "AccessDenied", "Request has expired")
        data = hub.objects[sha256]
        # The CDN's ETag looks like a hash of the content but is none.
        return self.content(data, f'"{hashlib.sha256(sha256.encode()).hexdigest()}"')

    def xml(self, status, code, message):
        self.plain(
            status,
            f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode(),
            ("Content-Type", "application/xml"),
        )


class Server(server_errors.Recording, http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, hub, handler, address, port):
        super().__init__((address, port), handler)
        self.hub = hub
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return "http://{}:{}".format(*self.server_address)


class HubServer:
    """`port`: of the hub; 0: the kernel chooses it, as it does for the CDN."""

    def __init__(self, address="127.0.0.1", port=0):
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.repositories = {}  # ("models", "org/name") -> Repository
        self.renamed = {}  # the same key -> its new "org/name"
        self.tokens = set()
        self.objects = {}  # of the CDN
        self.epoch, self.expired = 0, 403  # status for an expired link
        self.page = 1000
        self.has_tree = self.has_blobs = self.has_ranges = True  # False: like a mirror without it
        self.quota, self.left, self.window_end, self.window, self.refused = {}, {}, {}, 300, 0
        self.reset()
        self.server, self.cdn = Server(self, Request, address, port), Server(self, CdnRequest, address, 0)
        self.url = self.link_base = self.server.url

    def reset(self):
        with self.lock:
            self.requests, self.faults = [], []
            self.faulty = lambda request: request.is_data
            self.sent = lambda count: None
            self.listed = lambda: None  # called when a page was listed

    def always(self, fault):
        class Endless(list):
            def pop(self, _):
                return fault

            def __bool__(self):
                return True

        self.faults = Endless()

    def add(self, name, files, kind="models", **more):
        repository = self.repositories[kind, name] = Repository(files, **more)
        return repository

    def signature(self, sha256, epoch):
        return hmac.new(SECRET, f"{sha256} {epoch}".encode(), hashlib.sha256).hexdigest()

    def signed(self, data):
        sha256 = hashlib.sha256(data).hexdigest()
        self.objects[sha256] = data
        return f"{self.cdn.url}/lfs/{sha256}?Expires={self.epoch}&Signature={self.signature(sha256, self.epoch)}"

    def expire(self):
        """Expires all links given so far."""
        self.epoch += 1

    def count(self, origin, method="", words=""):
        with self.lock:
            return sum(
                1 for at, verb, path, _ in self.requests if at == origin and method in ("", verb) and words in path
            )

    def close(self):
        self.closing.set()
        for server in (self.server, self.cdn):
            server.shutdown()
            server.server_close()
