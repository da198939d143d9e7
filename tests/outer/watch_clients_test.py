# SPDX-License-Identifier: Apache-2.0
"""Clients that misbehave on the HTTP port of an agent."""

import http.client
import socket

from muster_case import DEADLINE, main, sanitized

from watch_test import WatchCase


class Clients(WatchCase):
    """Clients that do something wrong."""

    def setUp(self):
        super().setUp()
        self.agent = self.start("--standalone", "--http-port", "127.0.0.1:0", "--max-restarts", "1")
        self.port = self.port_of(self.agent)
        (self.worker,) = self.workers(1)

    def connect(self):
        link = socket.create_connection(("127.0.0.1", self.port), DEADLINE)
        self.addCleanup(link.close)
        return link

    def say(self, text):
        """Sends, reads until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), DEADLINE) as link:
            link.sendall(text)
            link.shutdown(socket.SHUT_WR)  # half-open: the client still wants its answer
            answer = b""
            while part := link.recv(65536):
                answer += part
            return answer

    def alive(self):
        self.assertEqual(self.ask(self.port, "/healthz"), (200, "ok\n"))

    def test_methods_and_paths(self):
        self.assertEqual(self.ask(self.port, "/healthz", "HEAD"), (200, ""))
        self.assertEqual(self.ask(self.port, "/healthz?verbose=1"), (200, "ok\n"))
        code, body = self.ask(self.port, "/nothing")
        self.assertEqual(
            (code, body.splitlines()[1:]), (404, ["/", "/events", "/healthz", "/metrics", "/readyz", "/status"])
        )
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"):
            code = self.ask(self.port, "/metrics", method)[0]
            self.assertIn(code, (405, 400) if method == "BREW" else (405,))
        head = self.say(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertRegex(head, rb"(?s)^HTTP/1.1 200 OK\r\n.*Content-Length: [1-9]\d+\r\n.*\r\n\r\n$")

    def test_keep_alive_and_pipelining(self):
        one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        self.assertEqual(self.say(one * 100).count(b"HTTP/1.1 200 OK"), 100)
        self.assertEqual(
            self.say(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + one).count(b"200 OK"), 1
        )
        self.assertEqual(self.say(b"GET /healthz HTTP/1.0\r\n\r\n" + one).count(b"200 OK"), 1)
        self.assertEqual(
            self.say(b"GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" + one).count(b"HTTP/1.1 200"), 1
        )
        self.assertEqual(self.say(b"\r\n" + one + b"\r\n\r\n" + one).count(b"HTTP/1.1 200"), 2)  # RFC 9112, 2.2
        # /status is slower than the requests before and after it; its answer keeps its place between theirs.
        many = self.say(one + b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n" + b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertRegex(many, rb"(?s)^HTTP/1.1 200 .*ok\n.*HTTP/1.1 200 .*\"run_id\".*HTTP/1.1 404 ")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        for _ in range(50):
            connection.request("GET", "/metrics")
            self.assertEqual(connection.getresponse().read()[:6], b"# HELP")
        connection.close()

    def test_a_byte_at_a_time(self):
        link = self.connect()
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
            link.sendall(bytes([byte]))
        self.assertRegex(link.makefile("rb").read(), rb"(?s)^HTTP/1.1 200 OK.*ok\n$")

    def test_bad_requests(self):
        for text, code in (
            (b"\0\1\2\3\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\0\1\0\1\xfc\x03\x03" * 20, 400),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
            (b"GET / HTTP/9.9\r\n\r\n", 400),
            (b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n", 400),
            (b"GET /healthz HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"GET /healthz HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
            (b"GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", 431),
            (b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100000 + b"\r\n\r\n", 431),
        ):
            self.assertRegex(self.say(text), b"^HTTP/1.1 %d " % code, text[:60])
        self.assertEqual(self.say(b"GET /healthz HT"), b"")
        self.alive()

    def test_those_that_never_finish_keep_nobody_out(self):
        links = [self.connect() for _ in range(200)]
        for i, link in enumerate(links):
            try:
                link.sendall((b"", b"GET /metrics HTTP/1.1\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")[i % 3])
            except OSError:
                pass  # that connection was replaced already
        self.alive()
        self.worker.tell("exit 1")  # a restart works all the same
        (worker,) = self.workers(1)
        self.assertEqual(self.scrape(self.port)["muster_rounds_total"], 2)
        worker.tell("exit 0")
        self.assertEqual(self.agent.wait(), 0)

    def test_those_that_do_not_read(self):
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        links = []
        for _ in range(8):
            link = self.connect()
            link.setblocking(False)
            try:
                while link.send(request * 1000):
                    pass
            except (BlockingIOError, ConnectionError):
                links.append(link)
        self.alive()
        self.worker.tell("exit 1")
        (worker,) = self.workers(1)
        if not sanitized():
            self.assertLess(self.scrape(self.port)["process_resident_memory_bytes"], 64e6)
        worker.tell("exit 0")
        self.assertEqual(self.agent.wait(), 0)


if __name__ == "__main__":
    main()
