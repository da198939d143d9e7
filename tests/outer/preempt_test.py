# SPDX-License-Identifier: Apache-2.0
"""--preempt-file=http://...: notices as the clouds' metadata services give them, from a real HTTP server."""

import http.server
import json
import os
import queue
import re
import socket
import subprocess
import threading

from muster_case import DEADLINE, MUSTER, MusterCase, clean, main

AWS = "/latest/meta-data/spot/instance-action"
GCE = "/computeMetadata/v1/instance/preempted"
AZURE = "/metadata/scheduledevents?api-version=2020-07-01"


class Service(http.server.ThreadingHTTPServer):
    """Answers with `answer(request) -> (status, headers, body)`; `asked` has the requests."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answer, port=0):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, headers, body = answer(self)
                service.asked.put(self)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Transfer-Encoding" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except ConnectionError:
                    pass

            do_PUT = do_GET

            def log_message(self, *_):
                pass

        self.asked = queue.Queue()
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def next_question(self):
        """The next request that was answered."""
        return self.asked.get(timeout=DEADLINE)

    def end(self):
        self.shutdown()
        self.server_close()
        self.thread.join()


class MetadataServices(MusterCase):
    def service(self, answer, **more):
        service = Service(answer, **more)
        self.addCleanup(service.end)
        return service

    def begin(self, url, *arguments):
        """A command that waits for its TERM; the termination message is in self.log."""
        self.log = os.path.join(self.dir, "termination-log")
        with open(self.log, "w"):
            pass
        return self.start(
            "--standalone",
            "--no-python",
            "--preempt-file",
            url,
            "--preempt-interval",
            "20ms",
            "--termination-log",
            self.log,
            *arguments,
            "/bin/sleep",
            "1000",
            worker=False,
        )

    def reason(self):
        with open(self.log) as file:
            return json.load(file)["reason"]

    def ends(self, agent, reason):
        self.assertEqual(agent.wait(), 143, agent.output())
        self.assertEqual(self.reason(), "preempted: " + reason)

    def test_aws_with_session_tokens(self):
        notice = threading.Event()
        tokens = iter(["first", "second", "third"])
        state = {"valid": None, "expire": 2}

        def answer(request):
            if request.command == "PUT":
                if (
                    request.path != "/latest/api/token"
                    or request.headers["X-aws-ec2-metadata-token-ttl-seconds"] != "21600"
                ):
                    return 400, {}, b""
                state["valid"] = next(tokens)
                return 200, {}, state["valid"].encode()
            if state["valid"] is None or request.headers["X-aws-ec2-metadata-token"] != state["valid"]:
                return 401, {}, b""
            if request.path != AWS:
                return 400, {}, b""
            if notice.is_set():
                return 200, {}, b'{"action": "terminate", "time": "2017-09-18T08:22:00Z"}'
            if state["valid"] == "first":
                state["expire"] -= 1
                if state["expire"] == 0:
                    state["valid"] = None  # expired: the next request gets a 401
            return 404, {}, b"<?xml version='1.0'?><html>404 - Not Found</html>"

        service = self.service(answer)
        agent = self.begin(service.url + AWS)
        asked = [service.next_question().command for _ in range(8)]
        self.assertEqual(asked, ["GET", "PUT", "GET", "GET", "GET", "PUT", "GET", "GET"])
        notice.set()
        self.ends(agent, f"{service.url}{AWS}: terminate at 2017-09-18T08:22:00Z")
        self.assertNotRegex(agent.output(), r" W ")

    def test_gce_by_a_long_poll(self):
        waiting, notice = threading.Event(), threading.Event()

        def answer(request):
            if request.headers["Metadata-Flavor"] != "Google":
                return 403, {}, b""
            if "wait_for_change=true" in request.path:
                if "last_etag=abc1" not in request.path:
                    return 400, {}, b""
                waiting.set()
                notice.wait(DEADLINE)
                return 200, {"ETag": "abc2"}, b"TRUE"
            return 200, {"ETag": "abc1", "Metadata-Flavor": "Google"}, b"FALSE"

        service = self.service(answer)
        self.addCleanup(notice.set)
        agent = self.begin(service.url + GCE + "?wait_for_change=true")
        self.assertTrue(waiting.wait(DEADLINE))
        self.assertEqual(service.next_question().path, GCE)
        notice.set()
        self.ends(agent, f"{service.url}{GCE}?wait_for_change=true: TRUE")

    def test_gce_that_is_preempted_already(self):
        service = self.service(lambda request: (200, {"ETag": "x"}, b"TRUE\n"))
        self.ends(
            self.begin(service.url + GCE + "?wait_for_change=true"), f"{service.url}{GCE}?wait_for_change=true: TRUE"
        )

    def test_azure_tells_of_every_machine_of_a_scale_set(self):
        machines = ["vmss_1"]

        def answer(request):
            if request.headers["Metadata"] != "true":
                return 400, {}, b'{"error": "Bad request. Required metadata header not specified"}'
            if request.path.startswith("/metadata/instance/compute/name?"):
                return 200, {}, b"vmss_7"
            events = [
                {
                    "EventId": "A",
                    "EventType": "Preempt",
                    "ResourceType": "VirtualMachine",
                    "Resources": list(machines),
                    "EventStatus": "Scheduled",
                    "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
                }
            ]
            body = json.dumps({"DocumentIncarnation": 1, "Events": events}).encode()
            return (
                200,
                {"Transfer-Encoding": "chunked"},
                b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:10], body[10:])) + b"0\r\n\r\n",
            )

        service = self.service(answer)
        agent = self.begin(service.url + AZURE)
        for _ in range(4):
            service.next_question()
        self.assertIsNone(agent.process.poll())  # the event is for another machine
        machines.append("VMSS_7")
        self.ends(agent, f"{service.url}{AZURE}: Preempt at Mon, 19 Sep 2016 18:29:47 GMT")

    def test_troubles_are_said_once_and_end_nothing(self):
        status = [500]
        port = self.free_port()
        agent = self.begin(f"http://localhost:{port}/x")
        self.wait_for_output(agent, "W muster --preempt-file=.*Connection refused; it is asked again every 0.02 s")

        def answer(_request):
            code = status[0]
            return (200, {}, b"x" * 100_000) if code == 201 else (code, {}, {200: b"true"}.get(code, b"<html>"))

        self.service(answer, port=port)
        for code, said in (
            (500, "HTTP status 500"),
            (302, "HTTP status 302"),
            (201, "cannot be read: body limit exceeded"),
            (401, "HTTP status 401|asks for a token .401."),
        ):
            status[0] = code
            output = self.wait_for_output(agent, said)
        status[0] = 404
        self.wait_for_output(agent, "answers now")
        status[0] = 200
        self.ends(agent, f"http://localhost:{port}/x: true")
        output = agent.output()
        for said in ("refused; it is", "status 500", "status 302", "body limit"):
            self.assertEqual(len(re.findall(said, output)), 1, output)

    def test_answers_that_are_no_http(self):
        """A server that answers with nonsense, with nothing, with half an answer, or without an end."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(DEADLINE)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        agent = self.begin(url)
        for text, said in (
            (b"\0\1\2\r\n\r\n", "cannot be read"),
            (b"", "closed without an answer"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nTR", "cannot be read: partial message"),
            (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10000, "cannot be read: header limit exceeded"),
        ):
            link, _ = listener.accept()
            link.recv(65536)
            try:
                link.sendall(text)
                link.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            self.wait_for_output(agent, said)
            link.close()
        link, _ = listener.accept()
        link.recv(65536)
        link.sendall(b"HTTP/1.0 200 OK\r\n\r\nTRUE")  # no length: the answer ends with the connection
        link.close()
        self.ends(agent, f"{url}: TRUE")

    def test_the_other_nodes_go_on_without_it(self):
        notice = threading.Event()
        service = self.service(lambda _request: (200, {}, b"TRUE" if notice.is_set() else b"FALSE"))
        endpoint = f"127.0.0.1:{self.free_port()}"
        agents = [
            self.start(
                "--nnodes",
                "1:2",
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                endpoint,
                "--rdzv-conf",
                f"is_host={1 - i},last_call_timeout=90",
                "--node-name",
                f"n{i}",
                *(("--preempt-file", service.url, "--preempt-interval", "20ms") if i else ()),
            )
            for i in range(2)
        ]
        self.workers(2)
        notice.set()
        self.assertEqual(agents[1].wait(), 143)
        (worker,) = self.round_of(1, 1)
        self.assertEqual(worker.node, "n0")
        worker.tell("exit 0")
        self.assertEqual(agents[0].wait(), 0)

    def test_wrong_urls(self):
        for url, said in (
            ("https://169.254.169.254/x", "plain HTTP"),
            ("http://:80/", "host is missing"),
            ("http://me@host/", "user names"),
            ("ftp://host/", "want http://"),
        ):
            done = subprocess.run(
                [MUSTER, "exec", "--preempt-file", url, "--", "true"],
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                env=clean(),
            )
            self.assertEqual(done.returncode, 78, url)
            self.assertIn(f"--preempt-file={url}: ", done.stderr)
            self.assertIn(said, done.stderr)
        done = subprocess.run(
            [MUSTER, "exec", "--preempt-interval=0", "--", "true"],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=clean(),
        )
        self.assertEqual(done.returncode, 64)


if __name__ == "__main__":
    main()
