# SPDX-License-Identifier: Apache-2.0
"""The live page of an agent, its events, and /status?ranks=1: what a person sees who looks at a run."""

import http.client
import json
import os
import re
import time

from muster_case import DEADLINE, MUSTER, WORKER, main

from watch_test import WatchCase


class LiveCase(WatchCase):
    def ranks(self, port, wanted):
        """The ranks of all nodes once `wanted` says so. Each request keeps the nodes telling."""
        end = time.monotonic() + DEADLINE
        while True:
            status = json.loads(self.ask(port, "/status?ranks=1")[1])
            ranks = {rank["rank"]: rank for node in status["nodes"] for rank in node.get("ranks", [])}
            if wanted(ranks):
                return status, ranks
            self.assertLess(time.monotonic(), end, status)

    def events(self, port, query="open=all"):
        """An open stream of events."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        self.addCleanup(connection.close)
        connection.request("GET", f"/events?{query}")
        return connection.getresponse()

    def read_until(self, stream, wanted):
        """The data of the events, up to the first that contains `wanted`."""
        data = []
        while not data or wanted not in data[-1]:
            line = stream.readline().decode()
            self.assertNotEqual(line, "", f"the stream ended before {wanted!r}: {data[-3:]}")
            if line.startswith("data:"):
                data.append(line[5:].strip())
        return data


class Looking(LiveCase):
    def test_two_nodes(self):
        port = self.free_port()
        agents = [
            self.start(
                *("--nnodes", "2", "--node-rank", str(rank), "--nproc-per-node", "2", "--max-restarts", "2"),
                *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "<job>"),
                *("--node-name", f"node-{rank}", "--http-port", "127.0.0.1:0"),
            )
            for rank in (0, 1)
        ]
        workers = self.workers(4)
        for rank, worker in enumerate(workers):
            worker.ask(f"print epoch 1 step {10 + rank}/100 loss 0.5 <b>&{rank}")
        for agent in agents:  # each agent shows the whole job
            watch = self.port_of(agent)
            status, ranks = self.ranks(watch, lambda ranks: sum("last_line" in rank for rank in ranks.values()) == 4)
            self.assertEqual(status["source"], "coordinator")
            for rank, told in ranks.items():
                self.assertEqual(told["last_line"], f"epoch 1 step {10 + rank}/100 loss 0.5 <b>&{rank}")
                self.assertEqual((told["position"], told["loss"]), (110 + rank, 0.5))
                self.assertGreater(told["memory_bytes"], 0)
            self.assertEqual([mark["world_size"] for mark in status["rounds"]], [4])
            code, page = self.ask(watch, "/")
            self.assertEqual(code, 200)
            self.assertTrue("&lt;job&gt;" in page)
            self.assertFalse("<b>" in page)
            self.assertTrue("&lt;b&gt;&amp;3" in page)
        stream = self.events(watch)
        self.assertEqual((stream.status, stream.headers["Content-Type"]), (200, "text/event-stream"))
        self.read_until(stream, "epoch 1 step 13")
        workers[0].ask("error a line that is new")
        self.read_until(stream, "a line that is new")
        workers[0].tell("exit 3")
        self.read_until(stream, "exit code 3")
        for worker in self.workers(4):
            worker.tell("exit 0")
        self.assertEqual([self.code(agent) for agent in agents], [0, 0])
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("muster-status")], [])

    def test_a_torchrun_inside_a_shell(self):
        """The agent around it has the port, and shows what the one inside knows."""
        run = f"{MUSTER} run --standalone --nproc-per-node 2 --node-name inside {WORKER}"
        agent = self.start(
            "--http-port", "127.0.0.1:0", "--", "sh", "-c", run + "; exit 0", worker=False, subcommand="exec"
        )
        port = self.port_of(agent)
        workers = self.workers(2)
        workers[1].ask("print of rank 1")
        _, ranks = self.ranks(port, lambda ranks: "last_line" in ranks.get(1, {}))
        self.assertEqual(ranks[1]["last_line"], "of rank 1")
        self.assertTrue("of rank 1" in self.ask(port, "/")[1])
        self.read_until(self.events(port), "of rank 1")
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(self.code(agent), 0)

    def test_a_token(self):
        token = os.path.join(self.dir, "token")
        with open(token, "w") as file:
            file.write("s3cret/+\n")
        os.chmod(token, 0o600)
        agent = self.start("--standalone", "--http-port", "127.0.0.1:0", "--http-token-file", token)
        port = self.port_of(agent)
        (worker,) = self.workers(1)
        for path in ("/", "/events", "/status?ranks=1", "/?token=other"):
            code, body = self.ask(port, path)
            self.assertEqual((code, "token" in body), (401, True), path)
        self.assertEqual(self.ask(port, "/status")[0], 200)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        connection.request("GET", "/?token=s3cret%2F%2B")
        answer = connection.getresponse()
        answer.read()
        cookie = answer.headers["Set-Cookie"]
        self.assertEqual((answer.status, "HttpOnly" in cookie), (200, True))
        self.assertEqual(answer.headers["Content-Security-Policy"], "frame-ancestors 'none'")
        for headers in ({"Cookie": cookie.partition(";")[0]}, {"Authorization": "Bearer s3cret/+"}):
            connection.request("GET", "/status?ranks=1", headers=headers)
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200, headers)
        connection.close()
        worker.tell("exit 0")
        self.assertEqual(self.code(agent), 0)

    def test_the_name_of_the_job(self):
        """It comes from outside, so it may be anything."""
        for variables, name in (
            ({"PET_MASTER_ADDR": "digits-node-0-0.digits"}, "digits"),
            ({"MUSTER_JOB": "</title><script>x()</script>"}, "&lt;/title&gt;&lt;script&gt;x()&lt;/script&gt;"),
        ):
            agent = self.start("--standalone", "--http-port", "127.0.0.1:0", env=variables)
            port = self.port_of(agent)
            (worker,) = self.workers(1)
            page = self.ask(port, "/")[1]
            self.assertEqual(re.search("<title>(.*)</title>", page)[1], f"Running - {name}")
            self.assertEqual(re.search(r'<p id="job"[^>]*>(.*?), run', page)[1], name)
            self.assertFalse("x()</script>" in page)
            worker.tell("exit 0")
            self.assertEqual(self.code(agent), 0)

    def test_the_end_of_the_run(self):
        """Who looks at it hears of it before the agent's port is gone: a page, and who asks again and again."""
        for code, said in ((0, "all workers"), (3, "exit code 3")):
            agent = self.start("--standalone", "--http-port", "127.0.0.1:0")
            port = self.port_of(agent)
            (worker,) = self.workers(1)
            stream = self.events(port)
            self.read_until(stream, "1")
            self.ranks(port, lambda ranks: 0 in ranks)
            worker.tell(f"exit {code}")
            end = time.monotonic() + DEADLINE
            while (status := json.loads(self.ask(port, "/status?ranks=1")[1]))["phase"] != "finished":
                self.assertLess(time.monotonic(), end, status)
            self.assertIn(said, status["reason"])
            self.assertEqual(self.code(agent), code)
            self.assertRegex(stream.read(), rb'event: title\ndata: "Ended - \S+"\n\nevent: ended\n')

    def test_many_viewers(self):
        """Probes and scrapers are answered beside them; a viewer that leaves makes room."""
        agent = self.start("--standalone", "--http-port", "127.0.0.1:0")
        port = self.port_of(agent)
        (worker,) = self.workers(1)
        streams = [self.events(port) for _ in range(16)]
        for stream in streams:
            self.assertEqual(stream.status, 200)
            self.read_until(stream, "1")
        self.assertEqual(self.events(port).status, 503)
        self.assertEqual(self.ask(port, "/healthz"), (200, "ok\n"))
        self.assertEqual(self.ask(port, "/")[0], 200)
        self.scrape(port)
        streams.pop().close()
        end = time.monotonic() + DEADLINE
        while self.events(port).status != 200:
            self.assertLess(time.monotonic(), end, "no place becomes free")
        worker.tell("exit 0")
        self.assertEqual(self.code(agent), 0)
        for stream in streams:  # they end with the agent, at the latest
            stream.read()


if __name__ == "__main__":
    main()
