# SPDX-License-Identifier: Apache-2.0
"""Requests of /status that wait for news of an agent."""

import contextlib
import http.client
import json
import os
import queue
import signal
import threading

from muster_case import DEADLINE, MUSTER, WORKER, main

from watch_test import WatchCase


class News(WatchCase):
    def nodes(self, count, nnodes, *more):
        """Starts the agents n0, n1 ..., of which n0 coordinates. Returns them and their HTTP ports."""
        endpoint = f"127.0.0.1:{self.free_port()}"
        agents = [
            self.start(
                *("--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--node-name", f"n{i}"),
                *("--http-port", "127.0.0.1:0", "--max-restarts", "1"),
                *("--rdzv-conf", f"is_host={1 if i == 0 else 0},last_call_timeout=90"),
                *more,
            )
            for i in range(count)
        ]
        return agents, [self.port_of(agent) for agent in agents]

    def wait_for_news(self, port, version, wait=60, answers=None):
        """Begins a request in another thread. Returns a queue that gets its answer, as (code, JSON or None)."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        connection.request("GET", f"/status?after={version}&wait={wait}")
        answers = answers or queue.Queue()

        def read():
            with contextlib.suppress(http.client.RemoteDisconnected):  # the agent has ended
                answer = connection.getresponse()
                body = answer.read()
                answers.put((answer.status, json.loads(body) if body else None))
            connection.close()

        threading.Thread(target=read, daemon=True).start()
        return answers

    def news(self, *request):
        return self.wait_for_news(*request).get(timeout=DEADLINE)

    @staticmethod
    def lost(status):
        return [(node["node"], node["how"], node["address"]) for node in status["lost"]]

    def test_a_lost_node_is_news_on_every_node(self):
        agents, ports = self.nodes(3, "2:3")
        self.workers(3)
        statuses = [self.status(port) for port in ports]
        self.assertEqual([status["lost"] for status in statuses], [[], [], []])
        (version,) = {status["version"] for status in statuses}
        self.assertEqual(self.news(ports[1], version, 1), (304, None))
        answers = [self.wait_for_news(port, version) for port in ports[:2]]
        self.assertEqual(self.news(ports[0], "another")[1]["version"], version)  # at once
        agents[2].send(signal.SIGKILL)
        for answer in answers:
            code, told = answer.get(timeout=DEADLINE)
            self.assertEqual((code, self.lost(told), told["cut_off"]), (200, [("n2", "closed", "127.0.0.1")], False))
            self.assertEqual((told["source"], told["heartbeat_timeout_seconds"]), ("coordinator", 15))
            self.assertNotEqual(told["version"], version)
        for worker in self.round_of(2, 1):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents[:2]], [0, 0])

    def test_a_stand_in_tells_the_loss_of_the_coordinator(self):
        agents, ports = self.nodes(3, "2:3")
        self.workers(3)
        version = self.status(ports[1])["version"]
        answers = self.wait_for_news(ports[1], version)
        agents[0].send(signal.SIGKILL)
        code, told = answers.get(timeout=DEADLINE)
        while told["source"] == "node":  # it had not asked the coordinator yet, and has none now
            code, told = self.news(ports[1], version)
        self.assertEqual((code, self.lost(told)), (200, [("n0", "closed", "127.0.0.1")]))
        for worker in self.round_of(2, 1):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents[1:]], [0, 0])

    def test_of_a_torchrun_inside_a_shell(self):
        """The agent around it has the port, and passes the request on."""
        endpoint = f"127.0.0.1:{self.free_port()}"
        agents = []
        for i in range(2):
            conf = f"is_host={1 - i},last_call_timeout=90"
            run = f"{MUSTER} run --nnodes 1:2 --rdzv-backend c10d --rdzv-endpoint {endpoint} --rdzv-conf {conf}"
            command = ["sh", "-c", f"echo installing; {run} --node-name n{i} {WORKER}; exit 0"]
            agents.append(self.start("--http-port", "127.0.0.1:0", "--", *command, worker=False, subcommand="exec"))
        port = self.port_of(agents[0])
        self.workers(2)
        status = self.status(port)
        pids = {node["node"]: node["pid"] for node in status["nodes"]}  # in the order of their process ids
        self.assertEqual(sorted(pids), ["n0", "n1"])
        answers = self.wait_for_news(port, status["version"])
        os.kill(pids["n1"], signal.SIGKILL)
        code, told = answers.get(timeout=DEADLINE)
        self.assertEqual((code, self.lost(told)), (200, [("n1", "closed", "127.0.0.1")]))
        (worker,) = self.round_of(1, 1)
        self.assertNotIn("MUSTER_STATUS_FILE", worker.env)
        worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_waits_have_bounds(self):
        agents, (port,) = self.nodes(1, "1:1")
        (worker,) = self.workers(1)
        version = self.status(port)["version"]
        for wait in ("61", "-1", "x"):
            code, body = self.ask(port, f"/status?after={version}&wait={wait}")
            self.assertEqual((code, body), (400, f"wait={wait}: want whole seconds from 0 to 60\n"))
        answers = queue.Queue()
        for _ in range(5):
            self.wait_for_news(port, version, answers=answers)
        self.assertEqual(answers.get(timeout=DEADLINE / 8), (304, None), "the oldest gives way to the fifth")
        self.assertEqual(self.ask(port, "/healthz"), (200, "ok\n"))
        worker.tell("exit 0")
        self.assertEqual(agents[0].wait(), 0)


if __name__ == "__main__":
    main()
