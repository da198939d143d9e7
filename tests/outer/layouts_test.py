# SPDX-License-Identifier: Apache-2.0
"""Jobs whose nodes are given their ranks, or differ in their flags, sizes and roles."""

import os
import re
import signal
import subprocess

from muster_case import main, wait_gone
from nodes_case import Nodes


class StaticRanks(Nodes):
    def static(self, rank, port, *arguments):
        return self.start(
            "--nnodes", "2", "--node-rank", str(rank), "--master-addr", "127.0.0.1", "--master-port", port, *arguments
        )

    def test_a_live_double_is_refused_with_who_holds_the_rank(self):
        port = str(self.free_port())
        agents = [self.static(rank, port) for rank in range(2)]
        workers = self.workers(2)
        double = self.static(1, port)
        self.assertEqual(double.wait(), 78)
        self.assertRegex(double.output(), rf"held by .*{agents[1].pid}")
        self.assertTrue(self.no_worker_waits())
        for worker in workers:
            self.assertEqual(worker.restarts, 0)
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_a_dead_one_is_replaced(self):
        soon = ("--rdzv-conf", "heartbeat_timeout=5")
        for how in (signal.SIGKILL, signal.SIGSTOP):  # gone at once, or silent for the heartbeat limit
            with self.subTest(how=how.name):
                port = str(self.free_port())
                agents = [self.static(rank, port, *soon) for rank in range(2)]
                before = {worker.hello["ppid"]: worker for worker in self.workers(2)}
                agents[1].send(how)
                replacement = self.static(1, port, *soon)
                again = self.round_of(2, at_least=1)
                self.assertEqual([self.agent_of(worker) for worker in again], [agents[0], replacement])
                self.assertEqual({worker.restarts for worker in again}, {0})
                for worker in again:
                    worker.tell("exit 0")
                self.assertEqual([agents[0].wait(), replacement.wait()], [0, 0])
                agents[1].send(signal.SIGKILL)
                self.assertTrue(wait_gone(before[agents[1].pid].pid))

    def test_a_rank_out_of_range(self):
        agent = self.static(2, str(self.free_port()))
        self.assertEqual(agent.wait(), 64, agent.output())
        self.assertTrue(re.search(r"rank.*2", agent.output()), agent.output())

    def test_two_that_both_claim_rank_0(self):
        port = str(self.free_port())
        first = self.static(0, port)
        self.wait_for_port(f"127.0.0.1:{port}")
        double = self.static(0, port)
        self.assertEqual(double.wait(), 78)
        self.assertIn(f"cannot serve port {port} (--master-port)", double.output())
        self.assertIn(f"`muster status 127.0.0.1:{port}` shows the job whose agent holds the port", double.output())
        second = self.static(1, port)
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([first.wait(), second.wait()], [0, 0])

    def test_a_master_address_that_leads_elsewhere_is_said(self):
        agent = self.start(
            "--nnodes",
            "2",
            "--node-rank",
            "0",
            "--master-addr",
            "192.0.2.1",
            "--master-port",
            str(self.free_port()),
            "--rdzv-conf",
            "join_timeout=1",
        )
        self.assertEqual(agent.wait(), 200)
        self.assertIn(
            "node rank 0 is here, but 192.0.2.1 is not an address of this machine; give --master-addr", agent.output()
        )


class Layouts(Nodes):
    def test_nodes_of_several_roles_and_sizes(self):
        endpoint = self.endpoint()
        agents = [
            self.node(endpoint, "3", "--role", role, nproc=size)
            for role, size in (("trainer", 2), ("reader", 1), ("trainer", 1))
        ]
        workers = self.workers(4)
        self.assertEqual([w.rank for w in workers], [0, 1, 2, 3])
        sizes = {"trainer": 3, "reader": 1}
        for role, size in sizes.items():
            members = [w for w in workers if w.env["ROLE_NAME"] == role]
            self.assertEqual([int(w.env["ROLE_RANK"]) for w in members], list(range(size)))
            self.assertEqual({w.env["ROLE_WORLD_SIZE"] for w in members}, {str(size)})
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0, 0])

    def test_more_workers_than_gpus(self):
        """Runs in a mount namespace whose /dev has two GPUs."""
        script = (
            'old=$(mktemp -d) && mount --rbind /dev "$old" && mount -t tmpfs tmpfs /dev && '
            "for name in null zero full random urandom tty; do touch /dev/$name && "
            'mount --bind "$old/$name" /dev/$name; '
            'done && ln -s /proc/self/fd /dev/fd && touch /dev/nvidia0 /dev/nvidia1 && exec "$@"'
        )
        prefix = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
        tried = subprocess.run(
            [*prefix, "/bin/true"], capture_output=True, text=True, env={"PATH": os.environ["PATH"], "TMPDIR": self.dir}
        )
        if tried.returncode:
            self.skipTest(f"more workers than GPUs is NOT tested here: {tried.stderr.strip()}")
        for count, warned in (("3", True), ("2", False), ("gpu", False)):
            agent = self.start(
                "--standalone",
                "--nproc-per-node",
                count,
                "--no-python",
                "/bin/true",
                worker=False,
                prefix=prefix,
                env={"TMPDIR": self.dir, "OMP_NUM_THREADS": "1"},
            )
            self.assertEqual(agent.wait(), 0)
            self.assertEqual("GPU" in agent.output(), warned, agent.output())


if __name__ == "__main__":
    main()
