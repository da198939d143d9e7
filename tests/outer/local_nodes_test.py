# SPDX-License-Identifier: Apache-2.0
"""`--nodes-on-this-machine`: where its nodes meet, one Ctrl-C for all, a node that is killed, the code at the end."""

import os
import re
import signal
import socket
import subprocess

from muster_case import DEADLINE, MUSTER, MusterCase, alive, main


class LocalNodes(MusterCase):
    def nodes(self, count, *arguments, **more):
        return self.start("--nodes-on-this-machine", str(count), *arguments, **more)

    def endpoint_of(self, agent):
        return re.search(r"the rendezvous is at (\S+)", self.wait_for_output(agent, r"the rendezvous is at \S+\n"))[1]

    def test_they_meet_whatever_the_arguments_are(self):
        """At the given port, else at one that the kernel chose; the first line names it, for `muster status`."""
        port = self.free_port()
        for arguments, endpoint in (
            ((), None),
            (("--standalone",), None),
            (("--rdzv-backend", "c10d"), None),
            (("--master-port", str(port)), f"127.0.0.1:{port}"),
            (("--rdzv-backend=c10d", f"--rdzv-endpoint=elsewhere:{port}"), f"127.0.0.1:{port}"),
        ):
            with self.subTest(arguments=arguments):
                agent = self.nodes(2, *arguments, script_args=("--", "a", "--standalone"))
                workers = self.workers(2)
                self.assertEqual([worker.hello["argv"][1:] for worker in workers], [["a", "--standalone"]] * 2)
                said = self.endpoint_of(agent)
                self.assertIn(endpoint, (said, None))
                status = subprocess.run([MUSTER, "status", said], capture_output=True, text=True, timeout=DEADLINE)
                self.assertIn("node-1", status.stdout, status.stderr)
                for worker in workers:
                    worker.tell("exit 0")
                self.assertEqual(agent.wait(), 0, agent.output())
                self.assertTrue(self.no_worker_waits())

    def test_each_has_the_rank_of_its_name(self):
        """Whichever node comes first, and also after a restart."""
        agent = self.nodes(3, "--nproc-per-node", "2", "--max-restarts", "1")
        for number in (0, 1):
            workers = self.round_of(6, number)
            self.assertEqual([worker.node for worker in workers], ["node-0"] * 2 + ["node-1"] * 2 + ["node-2"] * 2)
            self.assertEqual([int(worker.env["GROUP_RANK"]) for worker in workers], [0, 0, 1, 1, 2, 2])
            if number == 0:
                workers[0].tell("exit 1")
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())
        self.assertNotIn("node-rank", agent.output())

    def test_a_port_that_is_taken(self):
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        agent = self.nodes(2, "--master-port", str(port))
        self.assertEqual(agent.wait(), 78)
        self.assertRegex(agent.output(), rf"cannot meet at 127.0.0.1:{port}: .* is taken by another process; free it")

    def test_a_token_holds_in_the_parent_too(self):
        token = os.path.join(self.dir, "token")
        agent = self.nodes(2, "--rdzv-conf", f"token_file={token}")
        self.assertEqual(agent.wait(), 78)
        self.assertIn(token, agent.output())
        with open(token, "w") as file:
            file.write("s3cret-of-this-test\n")
        agent = self.nodes(2, "--rdzv-conf", f"token_file={token}")
        workers = self.workers(2)
        status = [MUSTER, "status", self.endpoint_of(agent)]
        self.assertNotEqual(subprocess.run(status, capture_output=True, timeout=DEADLINE).returncode, 0)
        self.assertEqual(
            subprocess.run([*status, "--token-file", token], capture_output=True, timeout=DEADLINE).returncode, 0
        )
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())

    def test_one_interrupt_stops_all(self):
        agent = self.nodes(2, "--nproc-per-node", "2")
        workers = self.workers(4)
        agent.send(signal.SIGINT)
        self.assertEqual(agent.wait(), 130)
        for worker in workers:
            self.assertFalse(alive(worker.pid))
            self.assertFalse(alive(worker.hello["ppid"]))

    def test_a_second_interrupt_kills_at_once(self):
        agent = self.nodes(2, "--shutdown-timeout", "1000000")
        workers = self.workers(2)
        for worker in workers:
            worker.ask("ignore SIGINT")
            worker.ask("ignore SIGTERM")  # sent if the leaving of the other node is heard first
        agent.send(signal.SIGINT)
        for node in range(2):
            self.wait_for_output(agent, rf"\[node-{node}\] .*stopped by SIGINT")
        agent.send(signal.SIGINT)
        self.assertEqual(agent.wait(), 130)
        for worker in workers:
            self.assertFalse(alive(worker.pid))

    def test_the_others_go_on_without_a_killed_node(self):
        agent = self.nodes(3, "--nnodes", "1:3", "--max-restarts", "0")
        workers = self.workers(3)
        lost = workers[1]
        os.kill(lost.hello["ppid"], signal.SIGKILL)
        left = self.round_of(2, at_least=1)
        self.assertNotIn(lost.node, [worker.node for worker in left])
        self.assertEqual([worker.restarts for worker in left], [0, 0])
        for worker in left:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())
        self.assertRegex(agent.output(), rf"{lost.node} ended: killed by SIGKILL")

    def test_success_is_silent(self):
        """No node writes its record into a folder that is gone; the nodes end at different moments."""
        for _ in range(10):
            agent = self.nodes(2, "--no-python", "/bin/true", worker=False)
            self.assertEqual(agent.wait(), 0)
            self.assertNotRegex(agent.output(), r" [WE] muster |FAILED")
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("muster_")], [])

    def test_the_code_is_the_failed_workers(self):
        agent = self.nodes(2, "--max-restarts", "1")
        for restarts in range(2):
            workers = self.workers(2)
            self.assertEqual([worker.restarts for worker in workers], [restarts] * 2)
            workers[1].tell("exit 7")
        self.assertEqual(agent.wait(), 7)
        for node in range(2):
            self.assertIn(f"node-{node} ended: exit code 7", agent.output())

    def test_they_die_with_their_parent(self):
        agent = self.nodes(2)
        workers = self.workers(2)
        agent.send(signal.SIGKILL)
        agent.wait()
        for worker in workers:
            self.assertIsNone(worker.next_message())


if __name__ == "__main__":
    main()
