# SPDX-License-Identifier: Apache-2.0
"""An HTTP server for tests, whose answers can have every fault of a network or a server.

A file has versions. `faults`: functions, each applied to one request: fault(request) may answer by itself and return
True, or set `request.cut`, `request.flip` and the like and return False.
"""

import base64
import functools
import hashlib
import http.server
import socket
import struct
import threading

import server_errors


@functools.lru_cache(maxsize=8)  # every request needs it, and a large file takes long
def hashes(data):
    return f'"{hashlib.sha1(data).hexdigest()}"', base64.b64encode(hashlib.sha256(data).digest()).decode()


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.serve(False)

    def do_GET(self):
        self.serve(True)

    def serve(self, body):
        server = self.server
        self.cut = None  # connection reset after this many bytes of the body
        self.shorter = None  # only this many bytes, with a clean end
        self.flip = None  # offset in the object of a flipped bit
        self.stall = None  # silence after this many bytes
        self.first = self.last = None
        with server.lock:
            server.requests.append((self.command, self.path, dict(self.headers)))
            fault = server.faults.pop(0) if server.faults and server.faulty(self) else None
        if fault and fault(self):
            return
        with server.lock:
            data = server.files.get(self.path.split("?")[0])
        if data is None:
            return self.plain(404, b"no such file")
        etag, digest = hashes(data)
        if self.headers.get("If-Match") not in (None, etag) or self.headers.get("If-Unmodified-Since") not in (
            None,
            server.modified,
        ):
            return self.plain(412, b"changed")
        first, last, status = 0, len(data) - 1, 200
        if self.headers.get("Range"):
            low, high = self.headers["Range"].removeprefix("bytes=").split("-")
            first, last, status = int(low), min(int(high), len(data) - 1), 206
            if first >= len(data):
                return self.plain(416, b"")
        if self.first is not None:
            first, last = self.first, self.last
        part = bytearray(data[first : last + 1])
        if self.flip is not None and first <= self.flip <= last:
            part[self.flip - first] ^= 1
        self.send_response(status)
        if server.etag:
            self.send_header("ETag", server.etag(etag))
        self.send_header("Accept-Ranges", "bytes")
        if server.modified:
            self.send_header("Last-Modified", server.modified)
        if server.digests is True or server.digests == self.command:
            self.send_header("Repr-Digest", f"sha-256=:{digest}:")
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        if self.shorter is not None and body:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            part = part[: self.shorter]
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(part), bytes(part)))
            return
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if not body:
            return
        try:
            self.send_body(part)
        except OSError:
            self.close_connection = True

    def send_body(self, part):
        server = self.server
        if self.cut is not None:
            self.wfile.write(part[: self.cut])
            return self.reset()
        if self.stall is not None:
            self.wfile.write(part[: self.stall])
            server.stalled.wait(60)  # until the test is over
            return self.reset()
        for begin in range(0, len(part), 1 << 16):
            self.wfile.write(part[begin : begin + (1 << 16)])
            server.sent(len(part[begin : begin + (1 << 16)]))

    def reset(self):
        """Ends the connection with a RST."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def plain(self, status, text, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
        return True


class WebServer(server_errors.Recording, http.server.ThreadingHTTPServer):
    daemon_threads = True
    host = "127.0.0.1"

    def __init__(self):
        super().__init__((self.host, 0), Request)
        self.lock = threading.Lock()
        self.files = {}
        self.faults = []
        self.faulty = lambda request: request.command == "GET"  # which requests take the next fault
        self.requests = []
        self.digests = True  # True: in every answer; "GET": only in answers to GET
        self.etag = lambda tag: tag  # makes the sent ETag; None: none is sent
        self.modified = "Sun, 22 Nov 2026 01:02:03 GMT"
        self.stalled = threading.Event()
        self.sent = lambda count: None
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, method):
        with self.lock:
            return sum(1 for said, _, _ in self.requests if said == method)

    def close(self):
        self.stalled.set()
        self.shutdown()
        self.server_close()
