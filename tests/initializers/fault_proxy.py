# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy in front of a real server that damages answers: FaultProxy(host, port).

`faults` is a list of functions; each is applied to the next answer that `faulty(exchange)` accepts, and may
change its status, headers and body, or how it is sent (cut, stall, drip, ...). When the list is empty, answers pass
unchanged. Requests are passed on byte for byte, with their Host header, so signatures stay valid.

After a reset() only newer connections count: requests that an ended client left behind belong to no run.
"""

import contextlib
import http.client
import http.server
import socket
import struct
import threading
import time

import server_errors


class Exchange:
    """One request, and its answer as the server gave it."""

    def __init__(self, handler, status, headers, body):
        self.method, self.path, self.request_headers = handler.command, handler.path, handler.headers
        self.status, self.headers, self.body = status, headers, bytearray(body)
        self.cut = None  # connection reset after this many bytes of the body
        self.silent_after = None  # silence after this many bytes, until the proxy is closed
        self.reset = False  # connection reset instead of an answer
        self.asked = None  # when the request came (time.monotonic)
        self.late = 0  # seconds until the answer begins; float("inf"): never
        self.ends_early = None  # chunked, with a clean end after this many bytes
        self.drip = None  # (bytes at a time, pause in seconds before each)

    @property
    def range(self):
        """(first, last) of the requested range; None: the whole object."""
        value = self.request_headers.get("Range")
        return tuple(map(int, value.removeprefix("bytes=").split("-"))) if value else None

    @property
    def is_data(self):
        return self.method == "GET" and "list-type" not in self.path and self.status in (200, 206)

    def header(self, name, value):
        self.headers = [(key, old) for key, old in self.headers if key.lower() != name.lower()]
        if value is not None:
            self.headers.append((name, value))

    def answer(self, status, body=b"", *headers):
        self.status, self.body, self.headers = status, bytearray(body), list(headers)

    def flip(self, offset):
        """Flips a bit of the object at `offset`, if this answer has that byte."""
        first = self.range[0] if self.range and self.status == 206 else 0
        if first <= offset < first + len(self.body):
            self.body[offset - first] ^= 1
            return True
        return False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_any(self):
        proxy = self.server.proxy
        asked = time.monotonic()
        length = int(self.headers.get("Content-Length") or 0)
        exchange = proxy.pass_on(self, self.rfile.read(length) if length else b"")
        exchange.asked = asked
        with proxy.lock:
            fault = None
            if proxy.rounds.get(self.client_address) == proxy.round:
                proxy.exchanges.append(
                    (
                        exchange.method,
                        exchange.path,
                        {name.lower(): value for name, value in exchange.request_headers.items()},
                    )
                )
                fault = proxy.faults.pop(0) if proxy.faults and proxy.faulty(exchange) else None
        if fault:
            fault(exchange)
        self.send(exchange)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_any

    def send(self, exchange):
        if exchange.late and self.server.proxy.closing.wait(min(exchange.late, threading.TIMEOUT_MAX)):
            return self.abort()
        if exchange.reset:
            return self.abort()
        chunked = exchange.ends_early is not None
        lines = [f"HTTP/1.1 {exchange.status} {http.client.responses.get(exchange.status, '')}"]
        told = exchange.method == "HEAD"
        for name, value in exchange.headers:
            if name.lower() in ("transfer-encoding", "connection") or (name.lower() == "content-length" and not told):
                continue
            lines.append(f"{name}: {value}")
        if chunked:
            lines.append("Transfer-Encoding: chunked")
        elif not told:
            lines.append(f"Content-Length: {len(exchange.body)}")
        try:
            self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
            if not told:
                self.send_body(exchange, bytes(exchange.body), chunked)
        except OSError:
            self.close_connection = True

    def send_body(self, exchange, body, chunked):
        if chunked:
            part = body[: exchange.ends_early]
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(part), part) if part else b"0\r\n\r\n")
            return
        if exchange.drip:
            size, seconds = exchange.drip
            for at in range(0, len(body), size):
                self.write(body[at : at + size])
                if self.server.proxy.closing.wait(seconds):
                    return self.abort()
            return
        end = min(value for value in (exchange.cut, exchange.silent_after, len(body)) if value is not None)
        self.write(body[:end])
        if exchange.silent_after is not None:
            self.server.proxy.closing.wait()
        if exchange.cut is not None or exchange.silent_after is not None:
            self.abort()

    def write(self, body):
        for at in range(0, len(body), 65536):
            self.wfile.write(body[at : at + 65536])
            self.server.proxy.sent(len(body[at : at + 65536]))

    def abort(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class Server(server_errors.Recording, http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def process_request(self, request, client_address):
        with self.proxy.lock:
            self.proxy.rounds[client_address] = self.proxy.round
        super().process_request(request, client_address)


class FaultProxy:
    def __init__(self, host, port, tls=None):
        """`tls`: an ssl.SSLContext of a server, for https to the client."""
        self.upstream = (host, port)
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.round = 0
        self.rounds = {}  # of each connection, by the client's address
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.proxy = self
        if tls:
            self.server.socket = tls.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )  # the connection's thread does it
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.reset()

    def reset(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 30) as last:
            last.shutdown(socket.SHUT_WR)
            last.recv(1)  # earlier connections have been accepted by now
        with self.lock:
            self.round += 1
            self.faults = []
            self.faulty = lambda exchange: exchange.is_data
            self.exchanges = []
            self.sent = lambda count: None

    def always(self, fault):
        class Endless(list):
            def pop(self, _):
                return fault

            def __bool__(self):
                return True

        self.faults = Endless()

    def count(self, method, words=""):
        with self.lock:
            return sum(1 for verb, path, _ in self.exchanges if verb == method and words in path)

    def pass_on(self, handler, body, upstream=None):
        connection = http.client.HTTPConnection(*(upstream or self.upstream), timeout=60)
        try:
            connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                if name.lower() != "connection":
                    connection.putheader(name, value)
            connection.putheader("Connection", "close")
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return Exchange(handler, answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
