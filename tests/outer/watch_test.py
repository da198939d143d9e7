# SPDX-License-Identifier: Apache-2.0
"""The HTTP port of an agent, as used by a kubelet, a scraper and by clients that misbehave."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

from prometheus_client.parser import text_string_to_metric_families

from muster_case import DEADLINE, MUSTER, Agent, MusterCase, clean, main

CAUSES = ("waiting", "start", "redone", "hang", "restart")
SAID = r"/healthz, /metrics, .* on (?:127\.0\.0\.1 )?port (\d+)"


class WatchCase(MusterCase):
    def port_of(self, agent):
        """The port that the agent's log names."""
        return int(re.search(SAID, self.wait_for_output(agent, SAID)).group(1))

    def ask(self, port, path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def scrape(self, port):
        """All samples: name or (name, label value) -> number. Read by Prometheus' own parser."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        self.assertEqual(
            (answer.status, answer.headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8")
        )
        text = answer.read().decode()
        connection.close()
        samples = {}
        for family in text_string_to_metric_families(text):
            self.assertNotEqual(family.type, "unknown", family.name)
            self.assertTrue(family.documentation.endswith("."), family.name)
            for sample in family.samples:
                key = (sample.name, *sample.labels.values()) if sample.labels else sample.name
                self.assertNotIn(key, samples)
                samples[key] = sample.value
        return samples

    def status(self, port):
        code, body = self.ask(port, "/status")
        self.assertEqual(code, 200)
        return json.loads(body)

    def await_status(self, port, wanted):
        end = time.monotonic() + DEADLINE
        while not wanted(status := self.status(port)):
            self.assertLess(time.monotonic(), end, status)
        return status

    def wait_until_ready(self, port):
        end = time.monotonic() + DEADLINE
        while self.ask(port, "/readyz")[0] != 200:
            self.assertLess(time.monotonic(), end, "it does not become ready")


class Watching(WatchCase):
    def test_rounds_and_restarts(self):
        agent = self.start("--standalone", "--nproc-per-node", "2", "--max-restarts", "3", "--http-port", "127.0.0.1:0")
        port = self.port_of(agent)
        workers = self.workers(2)
        with socket.create_connection(
            (workers[0].env["MASTER_ADDR"], int(workers[0].env["MASTER_PORT"])), DEADLINE
        ) as store:
            store.sendall(b"\0" + (0x3C85F7CE).to_bytes(4, "little"))  # VALIDATE
            store.sendall(b"\x0d" + (7).to_bytes(4, "little"))  # PING
            store.recv(4, socket.MSG_WAITALL)
            first = self.scrape(port)
            self.assertEqual(first["muster_store_connections"], 1)
        self.assertEqual(self.ask(port, "/healthz"), (200, "ok\n"))
        self.assertEqual(self.ask(port, "/readyz"), (200, "ok\n"))
        self.assertEqual(
            [
                first[name]
                for name in (
                    "muster_in_round",
                    "muster_round",
                    "muster_rounds_total",
                    "muster_workers",
                    "muster_workers_running",
                    "muster_world_size",
                    "muster_nodes",
                    "muster_restarts_allowed",
                    "muster_time_lost_seconds_total",
                )
            ],
            [1, 0, 1, 2, 2, 2, 1, 3, 0],
        )
        self.assertGreaterEqual(first["muster_store_operations_total"], 2)
        self.assertGreater(first["process_resident_memory_bytes"], 1e6)

        workers[1].tell("exit 3")
        workers = self.workers(2)
        workers[0].tell("signal 9")
        workers = self.workers(2)
        second = self.scrape(port)
        self.assertEqual(
            [second[("muster_restarts_total", cause)] for cause in ("fatal", "retryable", "membership", "peer")],
            [1, 1, 0, 0],
        )
        self.assertEqual([second[("muster_worker_failures_total", c)] for c in ("fatal", "retryable")], [1, 1])
        self.assertEqual(
            [
                second[name]
                for name in (
                    "muster_rounds_total",
                    "muster_round",
                    "muster_restarts_charged",
                    "muster_time_to_restart_seconds_count",
                    "muster_store_connections",
                )
            ],
            [3, 2, 2, 2, 0],
        )
        self.assertEqual(second[("muster_time_to_restart_seconds_bucket", "+Inf")], 2)
        self.assertGreater(second["muster_time_lost_seconds_total"], 0)
        self.assertAlmostEqual(second["muster_time_lost_seconds_total"], second["muster_time_to_restart_seconds_sum"])
        self.assertGreaterEqual(second["muster_store_operations_total"], first["muster_store_operations_total"])
        for name, value in first.items():
            if "_total" in str(name) or "_bucket" in str(name) or "_count" in str(name):
                self.assertGreaterEqual(second[name], value, name)

        status = self.status(port)
        self.assertEqual(
            [status[key] for key in ("phase", "round", "restart_count", "max_restarts", "source")],
            ["running", 2, 2, 3, "coordinator"],
        )
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_the_first_output(self):
        agent = self.start("--max-restarts", "1", "--http-port", "127.0.0.1:0", "--log-level", "debug")
        port = self.port_of(agent)
        for attempt in range(2):
            (worker,) = self.workers(1)
            came = time.monotonic()
            self.assertNotIn("muster_first_output_seconds", self.scrape(port))
            self.assertNotIn("first_output_seconds", self.status(port))
            waited = time.monotonic() - came
            worker.ask("error first")
            self.wait_for_output(agent, rf"(?s)(first output of the workers .*){{{attempt + 1}}}")
            seconds = self.scrape(port)["muster_first_output_seconds"]
            self.assertGreaterEqual(seconds, waited)
            self.assertEqual(self.status(port)["first_output_seconds"], seconds)
            worker.tell("exit 0" if attempt else "exit 3")
        self.assertEqual(agent.wait(), 0)

    def test_the_training_and_where_the_time_went(self):
        agent = self.start("--max-restarts", "1", "--http-port", "127.0.0.1:0", "--nproc-per-node", "2")
        port = self.port_of(agent)

        lost = {}
        for steps, use in (((1, 8), "training"), ((5, 9), "redone")):
            workers = self.workers(2)
            self.assertNotIn("training", self.status(port))
            for step in steps:
                workers[1].ask(f"error step {step}/40 loss {step / 8}")
                status = self.await_status(
                    port, lambda status, step=step: status.get("training", {}).get("position") == step
                )
            training = status["training"]
            self.assertEqual(
                [training[name] for name in ("rank", "unit", "position", "end", "loss")],
                [1, "steps", steps[-1], 40, steps[-1] / 8],
            )
            self.assertAlmostEqual(training["left_seconds"], training["step_seconds"] * (40 - steps[-1]))
            self.assertGreater(status["seconds"][use], 0)
            share = status["seconds"]["training"] / sum(status["seconds"].values())
            self.assertAlmostEqual(status["goodput"], share, delta=0.05)  # of whole milliseconds
            samples = self.scrape(port)
            self.assertGreater(samples["muster_goodput_ratio"], 0)
            before, lost = lost, {cause: samples[("muster_lost_seconds_total", cause)] for cause in CAUSES}
            for cause, seconds in before.items():
                self.assertGreaterEqual(lost[cause], seconds, cause)
            workers[1].tell("exit 3")
        self.assertGreater(lost["redone"], 0)
        self.assertGreater(lost["restart"], 0)
        self.assertEqual(agent.wait(), 3)

    def test_which_lines_tell_of_the_training(self):
        rows = (  # flags, command of the worker, whether the line tells of its training
            ((), "error step 3/9", True),
            ((), "print step 3/9", True),
            ((), "print turn 3", False),
            (("--tee", "1"), "print step 3/9", True),
            (("--progress-pattern", r"turn (?P<step>\d+)"), "print turn 3", True),
            (("--progress", "off"), "print step 3/9", False),
            (("--progress-pattern", r"turn (?P<step>\d+)"), "error turn 3", True),
            (("--progress", "off"), "error step 3/9", False),
        )
        for flags, command, tells in rows:
            with self.subTest(flags=flags, command=command):
                agent = self.start(*flags, "--http-port", "127.0.0.1:0")
                port = self.port_of(agent)
                (worker,) = self.workers(1)
                self.assertNotIn("training", self.status(port))
                worker.ask(command)
                if tells:
                    self.await_status(port, lambda status: status.get("training", {}).get("position") == 3)
                    worker.tell("exit 0")
                else:
                    worker.ask("error the end")
                    self.wait_for_output(agent, "the end")
                    self.assertNotIn("training", self.status(port))
                    worker.tell("exit 0")
                self.assertEqual(agent.wait(), 0)

    def test_workers_that_began_in_a_standby(self):
        agent = self.start(
            *("--max-restarts", "1", "--http-port", "127.0.0.1:0", "--log-level", "debug"),
            *("--standby-workers", "auto", "--standby-delay", "0s", "--standby-imports", "json,socket"),
        )
        port = self.port_of(agent)
        for attempt in range(2):
            (worker,) = self.workers(1)
            self.wait_until_ready(port)
            self.assertEqual(self.status(port)["standby_workers"], attempt)
            self.assertEqual(self.scrape(port)["muster_standby_starts_total"], attempt)
            self.wait_for_output(agent, rf"(?s)(a standby worker is ready.*){{{attempt + 1}}}")
            self.assertEqual(self.scrape(port)["muster_standby_workers"], 1)
            worker.tell("exit 0" if attempt else "exit 3")
        self.assertEqual(agent.wait(), 0)

    def test_not_ready_while_workers_stop(self):
        agent = self.start("--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "--http-port", "127.0.0.1:0")
        port = self.port_of(agent)
        dying, staying = self.workers(2)
        staying.ask("ignore SIGTERM")
        dying.tell("exit 3")
        staying.ask("asked SIGTERM")
        code, body = self.ask(port, "/readyz")
        self.assertEqual(code, 503)
        self.assertEqual(body, "round 0 is over: worker rank 0: exit code 3\n")
        self.assertEqual(self.scrape(port)["muster_workers_running"], 1)
        staying.tell("exit 0")
        for worker in self.workers(2):
            self.assertEqual(self.ask(port, "/readyz")[0], 200)
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_not_ready_before_the_first_round(self):
        agent = self.start(
            "--nnodes",
            "2",
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            f"127.0.0.1:{self.free_port()}",
            "--http-port",
            "127.0.0.1:0",
        )
        port = self.port_of(agent)
        self.assertEqual(self.ask(port, "/healthz"), (200, "ok\n"))
        self.assertEqual(self.ask(port, "/readyz"), (503, "waiting for the first round\n"))
        samples = self.scrape(port)
        self.assertEqual((samples["muster_in_round"], samples["muster_round"]), (0, -1))
        self.assertEqual(self.status(port)["phase"], "gathering")
        agent.send(signal.SIGTERM)
        self.assertEqual(agent.wait(), 143)

    def test_every_node_shows_the_whole_job(self):
        endpoint = f"127.0.0.1:{self.free_port()}"
        agents = [
            self.start(
                "--nnodes",
                "2",
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                endpoint,
                "--rdzv-id",
                "job",
                "--node-name",
                f"n{i}",
                "--http-port",
                "127.0.0.1:0",
                "--max-restarts",
                "1",
                "--rdzv-conf",
                f"is_host={1 - i}",
            )
            for i in range(2)
        ]
        ports = [self.port_of(agent) for agent in agents]
        workers = self.workers(2)
        for port in ports:
            self.wait_until_ready(port)
        asked = subprocess.run([MUSTER, "status", endpoint, "--json"], capture_output=True, text=True, timeout=DEADLINE)
        wanted = self.without_time(json.loads(asked.stdout))
        for port in ports:
            told = self.status(port)
            self.assertEqual((told.pop("source"), told.pop("standby_workers")), ("coordinator", 0))
            self.assertEqual(self.without_time(told), wanted)

        by_node = {worker.node: worker for worker in workers}
        by_node["n0"].tell("exit 3")
        workers = self.workers(2)
        for port in ports:
            self.wait_until_ready(port)
        restarts = [
            {cause: self.scrape(port)[("muster_restarts_total", cause)] for cause in ("fatal", "peer")}
            for port in ports
        ]
        self.assertEqual(restarts, [{"fatal": 1, "peer": 0}, {"fatal": 0, "peer": 1}])

        agents[0].send(signal.SIGSTOP)  # the coordinator's host does not answer
        told = self.status(ports[1])
        self.assertEqual(
            (told["source"], told["phase"], told["round"], [node["node"] for node in told["nodes"]]),
            ("node", "running", 1, ["n1"]),
        )
        self.assertRegex(told["source_reason"], "did not answer within 3 s")
        agents[0].send(signal.SIGCONT)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    @staticmethod
    def without_time(status):
        for node in status["nodes"]:
            node.pop("last_heard_seconds")
        for name in ("goodput", "seconds", "began_unix_ms"):  # of the agent that answers
            status.pop(name, None)
        return status

    def test_a_preempted_peer(self):
        endpoint = f"127.0.0.1:{self.free_port()}"
        agents = [
            self.start(
                "--nnodes",
                "1:2",
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                endpoint,
                "--node-name",
                f"n{i}",
                "--http-port",
                "127.0.0.1:0",
                "--rdzv-conf",
                f"is_host={1 - i},last_call_timeout=90",
            )
            for i in range(2)
        ]
        port = self.port_of(agents[0])
        self.workers(2)
        agents[1].send(signal.SIGTERM)
        self.assertEqual(agents[1].wait(), 143)
        (worker,) = self.round_of(1, 1)
        samples = self.scrape(port)
        self.assertEqual(
            [samples[("muster_restarts_total", cause)] for cause in ("preemption", "membership", "peer")], [1, 0, 0]
        )
        worker.tell("exit 0")
        self.assertEqual(agents[0].wait(), 0)

    def test_simulated_nodes(self):
        agent = self.start("--nodes-on-this-machine", "2", "--http-port", "127.0.0.1:0")
        workers = self.workers(2)
        output = self.wait_for_output(agent, f"(?s){SAID}.*{SAID}")
        for port in re.findall(SAID, output):
            self.assertEqual(self.status(int(port))["max_nodes"], 2)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

        port = self.free_port()
        agent = self.start("--nodes-on-this-machine", "2", "--http-port", f"127.0.0.1:{port}")
        workers = self.workers(2)
        self.assertEqual(self.status(port)["max_nodes"], 2)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)
        self.assertNotRegex(
            agent.output(), f"cannot serve|{SAID}"
        )  # only the first node opens it, and who named it knows it


class Coordinators(WatchCase):
    def test_a_coordinator_alone(self):
        output = os.path.join(self.dir, "coordinator.txt")
        with open(output, "w") as file:
            process = self.with_pipes(
                [MUSTER, "coordinator", "--listen", "127.0.0.1:0", "--http-port", "127.0.0.1:0"], stderr=file, text=True
            )
        endpoint = process.stdout.readline().split()[-1]
        port = self.port_of(Agent(process, output))
        self.assertEqual(self.ask(port, "/readyz"), (200, "ok\n"))
        self.assertEqual(self.ask(port, "/status")[0], 404)
        runs = ("a", "b")
        agents = []
        for run in runs:
            agents.append(
                self.start(
                    "--nnodes",
                    "1:2",
                    "--rdzv-backend",
                    "c10d",
                    "--rdzv-endpoint",
                    endpoint,
                    "--rdzv-id",
                    run,
                    "--rdzv-conf",
                    "is_host=0,last_call_timeout=0",
                )
            )
        workers = self.workers(2)
        code, body = self.ask(port, "/status")
        self.assertEqual(code, 404)
        self.assertIn("2 runs are coordinated here; name one of: a, b", body)
        for run in runs:
            code, body = self.ask(port, f"/status?run_id={run}")
            self.assertEqual((code, json.loads(body)["run_id"]), (200, run))
        self.assertEqual(self.scrape(port)[("muster_build_info", *self.version())], 1)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_a_worker_pod_of_mpi(self):
        output = os.path.join(self.dir, "worker.txt")
        with open(output, "w") as file:
            process = subprocess.Popen(
                [MUSTER, "exec", "--serve-rsh", "--rsh-listen", "127.0.0.1:0", "--http-port", "127.0.0.1:0"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                text=True,
            )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        port = self.port_of(Agent(process, output))
        self.assertEqual(
            [self.ask(port, path)[0] for path in ("/healthz", "/readyz", "/metrics", "/status")], [200, 200, 200, 404]
        )
        process.terminate()
        self.assertEqual(process.wait(DEADLINE), 143)

    @staticmethod
    def version():
        told = json.loads(subprocess.run([MUSTER, "version", "--json"], capture_output=True, text=True).stdout)
        return told["version"], told["commit"]


class Settings(WatchCase):
    def exec(self, *arguments, command=("true",), **environment):
        return subprocess.run(
            [MUSTER, "exec", *arguments, "--", *command],
            env=clean(**environment),
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE,
        )

    def test_off_unless_given(self):
        self.assertEqual(self.exec().stderr, "")
        for off in ("off", ""):
            done = self.exec(MUSTER_HTTP_PORT=off, KUBERNETES_SERVICE_HOST="10.0.0.1")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.exec("--http-port=off", MUSTER_HTTP_PORT="0")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^.* flags win over the environment: --http-port=off over MUSTER_HTTP_PORT=0\n$")

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = self.exec("--http-port", f"127.0.0.1:{port}")
            self.assertEqual(done.returncode, 78)
            self.assertRegex(
                done.stderr,
                rf"--http-port: 127.0.0.1 port {port} is taken by another process; free it, or choose another one",
            )

    def test_under_kubernetes_the_default_port_is_a_favour(self):
        """The first agent gets it (or another process of this machine has it); the second agent runs without."""
        inner = [MUSTER, "exec", "--", "sh", "-c", "exit 7"]
        done = self.exec(command=["env", "-u", "MUSTER_HTTP_PORT", *inner], KUBERNETES_SERVICE_HOST="10.0.0.1")
        self.assertEqual(done.returncode, 7)
        self.assertRegex(done.stderr, "W muster cannot serve /, .*: port 29480 is taken by another process")
        # A muster inside opens no port: the port belongs to the outer one.
        done = self.exec("--http-port=127.0.0.1:0", command=["sh", "-c", "echo $MUSTER_HTTP_PORT"])
        self.assertEqual((done.returncode, done.stdout), (0, "off\n"))

    def test_wrong_values(self):
        for value, wanted in (("http", "want PORT"), ("70000", "want PORT"), ("-1", "want PORT"), (":80", "want PORT")):
            done = self.exec(f"--http-port={value}")
            self.assertEqual(done.returncode, 64, value)
            self.assertIn(f"--http-port={value}: {wanted}", done.stderr)
        done = self.exec("--http-port=example.org:80")
        self.assertEqual(done.returncode, 78)
        self.assertIn('"example.org" is not a numeric address', done.stderr)


if __name__ == "__main__":
    main()
