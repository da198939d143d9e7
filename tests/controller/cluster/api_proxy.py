# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy between a controller and the API server that injects faults: ApiProxy(cluster).

The controller speaks plain HTTP to it: its kubeconfig needs `proxy.url` as server, and its own token. `rule(request)`
returns a Fault, or None to let the request pass. It is called with `lock` held, for one request at a time.
"""

import contextlib
import http.client
import http.server
import json
import socket
import ssl
import struct
import threading
import time
import urllib.parse

from api_client import WAIT


class Request:
    """A request of the controller. `status` and `answer` (JSON; None for a watch) are set with the server's answer."""

    def __init__(self, method, target, body):
        self.method, self.body = method, body
        self.path, _, self.query = target.partition("?")
        self.fields = dict(urllib.parse.parse_qsl(self.query))
        self.status = self.answer = None

    @property
    def is_watch(self):
        return self.fields.get("watch") == "true"

    @property
    def is_stream(self):
        """A watch that begins with all objects."""
        return "sendInitialEvents" in self.fields

    @property
    def is_page(self):
        """Of a list."""
        return "limit" in self.fields

    @property
    def resource(self):
        """The plural: trainjobs, jobs, pods, leases ..."""
        parts = self.path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        return parts[2] if parts[0] == "namespaces" and len(parts) > 2 else parts[0]

    @property
    def is_write(self):
        """True for every write but that of a Lease, which candidates write, too."""
        return self.method != "GET" and self.resource != "leases"

    def __repr__(self):
        return f"{self.method} {self.path}{'?' if self.query else ''}{self.query} -> {self.status}"


class Fault:
    """answer: (status, headers, body) instead of the server's. lost: the request does not reach the server, and its
    connection is reset. wait: an Event before the request is passed on. hold: an Event before the answer is. query:
    replaces the request's. cut: a reset after so many bytes of the answer's body; -1: before its head. by_byte: sends
    each byte of the body by itself. stream: for a watch, function(lines, send): `lines` yields the server's lines,
    `send` sends to the controller; when it returns, the connection is reset."""

    def __init__(self, answer=None, lost=False, wait=None, hold=None, query=None, cut=None, by_byte=False, stream=None):
        self.answer, self.lost, self.wait, self.hold, self.query = answer, lost, wait, hold, query
        self.cut, self.by_byte, self.stream = cut, by_byte, stream


class WriteLimit:
    """A rule: lets `most` writes pass and loses the later ones."""

    def __init__(self, most):
        self.most, self.count, self.is_over = most, 0, False

    def __call__(self, request):
        if not request.is_write:
            return None
        self.count += 1
        if self.count <= self.most:
            return None
        self.is_over = True
        return Fault(lost=True)


def status_answer(code, reason, headers=None):
    """An error answer in the API server's format."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{reason}, says the proxy",
        "reason": reason,
        "code": code,
    }
    return code, {"Content-Type": "application/json", **(headers or {})}, json.dumps(body).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    upstream = None

    def log_message(self, *_):
        pass

    def handle(self):
        with contextlib.suppress(ConnectionError):
            super().handle()

    def finish(self):
        with contextlib.suppress(OSError):
            super().finish()
        if self.upstream:
            self.upstream.close()

    def serve(self):
        proxy = self.server.proxy
        request = Request(self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        with proxy.changed:
            fault = proxy.rule(request) or Fault()
            proxy.requests.append(request)
            proxy.changed.notify_all()
        if fault.wait:
            fault.wait.wait()
        if fault.lost:
            return self.reset()
        if fault.answer:
            status, headers, body = fault.answer
            return self.send_whole(fault, status, headers, body)
        if request.is_watch:
            return self.pass_watch(request, fault)
        answer = self.ask(request, fault)
        body = answer.read()
        proxy.note(request, answer.status, body)
        if fault.hold:
            fault.hold.wait()
        return self.send_whole(fault, answer.status, {"Content-Type": answer.headers.get("Content-Type", "")}, body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def ask(self, request, fault):
        kept = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("host", "connection", "accept-encoding")
        }
        target = request.path + ("?" + (fault.query or request.query) if request.query else "")
        for is_last in (False, True):
            fresh = self.upstream is None
            if fresh:
                self.upstream = self.server.proxy.connect()
            try:
                self.upstream.request(request.method, target, request.body or None, kept)
                return self.upstream.getresponse()
            except (OSError, http.client.HTTPException):
                self.upstream.close()
                self.upstream = None
                if fresh or is_last:  # an idle connection to a server that has ended is closed
                    raise ConnectionResetError from None

    def reset(self):
        """Resets the connection to the controller."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionResetError

    def send_whole(self, fault, status, headers, body):
        if fault.cut == -1:
            self.reset()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        sent = body if fault.cut is None else body[: fault.cut]
        for part in (sent[i : i + 1] for i in range(len(sent))) if fault.by_byte else (sent,):
            self.wfile.write(part)
        if fault.cut is not None:
            self.wfile.flush()
            self.finish_sending()

    def finish_sending(self):
        """Closes the connection after all that was sent has arrived. A reset would overtake it."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
        raise ConnectionResetError

    def pass_watch(self, request, fault):
        answer = self.ask(request, fault)
        if answer.status != 200:
            body = answer.read()
            self.server.proxy.note(request, answer.status, body)
            return self.send_whole(fault, answer.status, {"Content-Type": answer.headers.get("Content-Type", "")}, body)
        self.server.proxy.note(request, 200, None)
        threading.Thread(target=self.follow_client, args=[self.upstream.sock], daemon=True).start()
        self.send_response(200)
        self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        left = fault.cut

        def send(data):
            nonlocal left
            data = data if left is None else data[:left]
            for part in (data[i : i + 1] for i in range(len(data))) if fault.by_byte else (data,):
                if part:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            if left is not None:
                left -= len(data)
                if left == 0:
                    self.finish_sending()

        with self.server.proxy.streaming(request, self.connection):
            if fault.stream:
                fault.stream(self.lines_of(answer), send)
                self.finish_sending()
            try:
                while data := answer.read1(1 << 16):
                    send(data)
            except (OSError, http.client.HTTPException):
                self.reset()
            self.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def lines_of(answer):
        kept = b""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while data := answer.read1(1 << 16):
                *lines, kept = (kept + data).split(b"\n")
                for line in lines:
                    yield line + b"\n"

    def follow_client(self, upstream):
        """Ends the watch at the server when the controller has closed its connection."""
        with contextlib.suppress(OSError):
            self.connection.recv(1, socket.MSG_PEEK)
        with contextlib.suppress(OSError, ValueError):
            upstream.shutdown(socket.SHUT_RDWR)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    block_on_close = False


class ApiProxy:
    """`port`: where it listens; 0: the kernel chooses."""

    def __init__(self, cluster, port=0):
        self.upstream = urllib.parse.urlsplit(cluster.server)
        self.context = ssl.create_default_context(cafile=cluster.certificates.path("ca.crt"))
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.rule = lambda request: None
        self.requests = []  # in the order of their arrival
        self.streams = {}  # the connection of each watch that is under way
        self.server = Server((cluster.address, port), Handler)
        self.server.proxy = self
        self.url = f"http://{cluster.address}:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.cut_watches()
        self.server.shutdown()
        self.server.server_close()

    def connect(self):
        connection = http.client.HTTPSConnection(self.upstream.hostname, self.upstream.port, context=self.context)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def obey(self, rule=None):
        """Sets the rule, and forgets the requests until now."""
        with self.changed:
            self.rule = rule or (lambda request: None)
            self.requests.clear()

    def note(self, request, status, body):
        with self.changed:
            request.status = status
            with contextlib.suppress(ValueError, TypeError):
                request.answer = json.loads(body)
            self.changed.notify_all()

    @contextlib.contextmanager
    def streaming(self, request, connection):
        with self.changed:
            self.streams[request] = connection
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                del self.streams[request]

    def cut_watches(self, *resources):
        """Cuts the watches of these resources, or all watches."""
        with self.lock:
            for request, connection in self.streams.items():
                if not resources or request.resource in resources:
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)

    def writes(self):
        with self.lock:
            return [request for request in self.requests if request.is_write]

    def await_(self, happened, what, seconds=WAIT):
        """Waits until happened() is true, which is called whenever a request or an answer passes."""
        until = time.monotonic() + seconds
        with self.changed:
            while not (result := happened()):
                if not self.changed.wait(max(0, until - time.monotonic())) and not happened():
                    raise AssertionError(f"not within {seconds} s: {what}; passed: {self.requests[-20:]}")
            return result
