# SPDX-License-Identifier: Apache-2.0
"""Agents of both versions in one rendezvous, on this machine. The first version's agent coordinates."""

import json
import os
import signal
import socket
import subprocess

from muster_case import DEADLINE, clean, wait_gone
from nodes_case import Nodes

import credentials_test
import versions
from http2_frames import CALL, answer, field, message

WRONG_PROTOCOL = 99


class Mixed:
    """A mixin of Nodes, beside OldFirst or NewFirst."""

    def of(self, version, endpoint, nnodes, *arguments, host=False, conf="last_call_timeout=1", **more):
        """An agent of that version. `host`: it owns the endpoint, so it coordinates."""
        conf = f"{conf},is_host={int(host)}"
        return self.node(endpoint, nnodes, "--rdzv-conf", conf, *arguments, binary=version.muster, **more)

    def mixed_pair(self, *arguments, nnodes="2", **more):
        """(endpoint, the coordinator of the first version, a node of the second one)"""
        endpoint = self.endpoint()
        host = self.of(self.first, endpoint, nnodes, *arguments, host=True, **more)
        return endpoint, host, self.of(self.second, endpoint, nnodes, *arguments, **more)

    def worker_of(self, agent, workers):
        return next(worker for worker in workers if worker.hello["ppid"] == agent.pid)

    def all_exit(self, workers, *agents):
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0] * len(agents))

    def test_success(self):
        _, *pair = self.mixed_pair(nproc=2)
        workers = self.workers(4)
        self.assertEqual([worker.rank for worker in workers], [0, 1, 2, 3])
        self.assertEqual({worker.world_size for worker in workers}, {4})
        self.assertEqual({worker.env["MASTER_PORT"] for worker in workers}, {workers[0].env["MASTER_PORT"]})
        self.all_exit(workers, *pair)

    def fails_and_restarts(self, which):
        _, *pair = self.mixed_pair("--max-restarts", "1", nproc=2)
        self.worker_of(pair[which], self.workers(4)).tell("exit 3")
        again = self.workers(4)
        self.assertEqual({(worker.restarts, worker.round) for worker in again}, {(1, 1)})
        self.all_exit(again, *pair)

    def test_a_worker_of_the_coordinator_fails(self):
        self.fails_and_restarts(0)

    def test_a_worker_of_the_member_fails(self):
        self.fails_and_restarts(1)

    def fails_for_good(self, which):
        """Both agents end with the worker's code, and both name it as the cause."""
        _, *pair = self.mixed_pair(nproc=2)
        workers = self.workers(4)
        failing = self.worker_of(pair[which], workers)
        failing.tell("exit 3")
        self.assertEqual([agent.wait() for agent in pair], [3, 3])
        for agent in pair:
            self.assertRegex(agent.output(), rf"rank\s*:\s*{failing.rank} ")

    def test_a_failure_of_the_coordinators_node_ends_both(self):
        self.fails_for_good(0)

    def test_a_failure_of_the_members_node_ends_both(self):
        self.fails_for_good(1)

    def test_the_other_version_takes_over(self):
        """The coordinator is killed. The other version coordinates, and takes in a new node of the first version,
        which owns the endpoint again and is told who coordinates."""
        endpoint, host, guest = self.mixed_pair(nnodes="1:2")
        before = self.workers(2)
        host.send(signal.SIGKILL)
        self.assertTrue(wait_gone(self.worker_of(host, before).pid))
        (alone,) = self.round_of(1, at_least=1)
        self.assertEqual((alone.hello["ppid"], alone.restarts), (guest.pid, 0))
        back = self.of(self.first, endpoint, "1:2", host=True)
        both = self.round_of(2, at_least=alone.round + 1)
        self.assertEqual({worker.hello["ppid"] for worker in both}, {guest.pid, back.pid})
        self.all_exit(both, guest, back)

    def test_the_other_version_is_replaced(self):
        _, host, guest = pair = self.mixed_pair()
        lost = self.worker_of(guest, self.workers(2))
        guest.send(signal.SIGKILL)
        self.assertTrue(wait_gone(lost.pid))
        replacement = self.of(self.first, pair[0], "2")
        self.all_exit(self.round_of(2, at_least=1), host, replacement)

    def test_three_nodes_of_which_one_leaves(self):
        """Two of the first version and one of the second, which is told to stop: the others go on."""
        endpoint, host, guest = self.mixed_pair(nnodes="2:3", conf="last_call_timeout=600")
        third = self.of(self.first, endpoint, "2:3", conf="last_call_timeout=600")
        self.assertEqual({worker.world_size for worker in self.workers(3)}, {3})
        guest.send(signal.SIGTERM)
        left = self.round_of(2, at_least=1)
        self.assertEqual(guest.wait(), 143)
        self.assertEqual({worker.restarts for worker in left}, {0})
        self.all_exit(left, host, third)

    def test_certificates_and_a_token(self):
        """The coordinator is killed, too: the stand-in of the other version is reached with them."""
        authority = credentials_test.Authority(self.dir, "job")
        token = os.path.join(self.dir, "token")
        with open(token, "w") as file:
            file.write("of-this-job\n")
        endpoint = self.endpoint()
        host, *others = (
            self.of(
                version,
                endpoint,
                "1:3",
                host=number == 0,
                conf=f"last_call_timeout=600,token_file={token},{authority.conf(f'n{number}')}",
            )
            for number, version in enumerate((self.first, self.second, self.first))
        )
        self.assertEqual({worker.world_size for worker in self.workers(3)}, {3})
        host.send(signal.SIGKILL)
        self.all_exit(self.round_of(2, at_least=1), *others)

    def test_a_coordinator_alone(self):
        """It is of the first version. `muster wait` of the second one sees that it is there."""
        server = self.with_pipes(
            [self.first.muster, "coordinator", "--listen", "127.0.0.1:0"], stderr=subprocess.DEVNULL, text=True
        )
        endpoint = f"127.0.0.1:{server.stdout.readline().rsplit(':', 1)[1].strip()}"
        waits = self.start("--rendezvous", endpoint, subcommand="wait", worker=False, binary=self.second.muster)
        self.assertEqual(waits.wait(), 0, waits.output())
        agents = [self.of(version, endpoint, "2") for version in (self.first, self.second)]
        self.all_exit(self.workers(2), *agents)

    def test_what_the_other_version_shows(self):
        """`muster status` and `muster top` of each version ask the coordinator."""
        endpoint, *pair = self.mixed_pair()
        workers = self.workers(2)
        for version in (self.first, self.second):
            words = [version.muster, "status", endpoint, "--json"]
            done = subprocess.run(words, capture_output=True, text=True, env=clean(), timeout=DEADLINE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(self.has_pids(done.stdout, pair), done.stdout)
            top = self.with_pipes(
                [version.muster, "top", endpoint, "--json"], stderr=subprocess.DEVNULL, text=True, env=clean()
            )
            # A node tells of its ranks only when somebody looks. with_pipes() ends a top that never has them.
            self.assertTrue(any(self.has_pids(line, workers) for line in top.stdout))
        self.all_exit(workers, *pair)

    @staticmethod
    def has_pids(text, processes):
        return all(f'"pid":{one.pid},' in text.replace(" ", "") for one in processes)

    def test_records_of_the_other_version(self):
        """`muster report` of each version reads the records of both."""
        endpoint = self.endpoint()
        logs = os.path.join(self.dir, "logs")
        pair = [
            self.of(version, endpoint, "2", "--log-dir", os.path.join(logs, version.name), host=version is self.first)
            for version in (self.first, self.second)
        ]
        failing = self.worker_of(pair[1], self.workers(2))
        failing.tell("exit 3")
        self.assertEqual([agent.wait() for agent in pair], [3, 3])
        for version in (self.first, self.second):
            done = subprocess.run(
                [version.muster, "report", logs, "--json"],
                capture_output=True,
                text=True,
                env=clean(),
                timeout=DEADLINE,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            (run,) = json.loads(done.stdout)["runs"]
            (attempt,) = run["attempts"]
            self.assertEqual((run["exit_code"], len(attempt["nodes"])), (3, 2), run)
            self.assertIn((failing.rank, 3), [(one["rank"], one["exit_code"]) for one in attempt["failures"]])

    def test_standby_workers(self):
        """After a failure the workers of both nodes begin in standbys."""
        words = ["--standby-workers", "auto", "--standby-delay", "0s", "--log-level", "debug"]
        words += ["--standby-imports", "json,socket,subprocess"]  # so the first standby that is ready has them all
        _, *pair = self.mixed_pair("--max-restarts", "1", *words)
        workers = self.workers(2)
        for agent in pair:
            self.wait_for_output(agent, "a standby worker is ready")
        workers[1].tell("exit 3")
        again = self.workers(2)
        for agent in pair:
            self.wait_for_output(agent, "1 of 1 worker began in a standby")
        self.all_exit(again, *pair)

    def test_another_protocol_is_refused(self):
        """By the bytes of a node that speaks it. The job goes on."""
        endpoint = self.endpoint()
        host = self.of(self.first, endpoint, "2", host=True)
        self.wait_for_port(endpoint)
        name, _, port = endpoint.rpartition(":")
        node = field(1, b"from-afar")
        hello = field(1, WRONG_PROTOCOL) + field(2, b"9.9.9") + field(3, b"job") + field(4, node)
        with socket.create_connection((name, int(port)), DEADLINE) as link:
            link.sendall(CALL + message(field(1, hello)))
            said = answer(link).decode(errors="replace")
        refusal = (
            rf"from-afar.* speaks rendezvous protocol {WRONG_PROTOCOL} \(muster 9\.9\.9\), "
            r"this coordinator protocol \d+ \(muster \d\S*\): use the same muster on every node"
        )
        for text in (said, self.wait_for_output(host, "from-afar")):
            self.assertRegex(text, refusal)
        guest = self.of(self.second, endpoint, "2")
        self.all_exit(self.workers(2), host, guest)


class OldCoordinator(Mixed, versions.OldFirst, Nodes):
    pass


class NewCoordinator(Mixed, versions.NewFirst, Nodes):
    pass
