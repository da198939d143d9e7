# SPDX-License-Identifier: Apache-2.0
"""The node check: `--node-check` before a node joins and after two failures of its own in a row, and `muster check`."""

import json
import os
import signal
import subprocess

from exec_case import ExecCase
from muster_case import DEADLINE, MUSTER, main, wait_gone
from nodes_case import Nodes


def measuring(**figures):
    """A check that prints these figures, as `muster check --json` does."""
    return f"echo '{json.dumps({'measured': figures})}'"


class Joining(Nodes):
    def test_a_node_that_fails_it_never_joins(self):
        endpoint = self.endpoint()
        flags = ("--rdzv-conf", "last_call_timeout=1")
        log = os.path.join(self.dir, "termination-log")
        open(log, "w").close()
        good = [self.node(endpoint, "2:3", *flags, "--node-check", "echo all is well") for _ in range(2)]
        bad = self.node(
            endpoint,
            "2:3",
            *flags,
            "--node-check",
            "echo looking; echo no GPU answers >&2; exit 3",
            "--termination-log",
            log,
        )
        self.assertEqual(bad.wait(), 204)
        self.assertIn(
            "node check failed: `echo looking; echo no GPU answers >&2; exit 3` ended with 3: no GPU answers",
            bad.output(),
        )
        self.assertIn("[node check] looking", bad.output())
        with open(log) as file:
            message = json.load(file)
        self.assertEqual((message["exit_code"], message["class"]), (204, "retryable"))
        self.assertIn("no GPU answers", message["reason"])
        workers = self.workers(2)
        self.assertEqual([w.world_size for w in workers], [2, 2])
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in good], [0, 0])
        for agent in good:
            self.assertRegex(agent.output(), r"\[node check\] all is well(.|\n)*node check passed after")

    def test_it_comes_from_the_environment_and_sees_its_node(self):
        agent = self.start("--standalone", env={"MUSTER_NODE_CHECK": "test $MUSTER_NODE = n7", "MUSTER_NODE": "n7"})
        self.workers(1)[0].tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_slow_nodes_are_named_to_all_and_nobody_is_left_out(self):
        endpoint = self.endpoint()
        agents = [
            self.node(
                endpoint,
                "3",
                "--node-name",
                f"n{i}",
                "--node-check",
                measuring(memory=12.5 if i != 1 else 3.125, other=i),
            )
            for i in range(3)
        ]
        workers = self.workers(3)
        slow = "node n1 is slow: memory 3.1 GB/s, the others 12.5 GB/s"
        for agent in agents:
            self.wait_for_output(agent, slow)
        status = json.loads(
            subprocess.run(
                [MUSTER, "status", endpoint, "--json"], capture_output=True, text=True, timeout=DEADLINE, check=True
            ).stdout
        )
        self.assertIn(slow, status["reason"])
        self.assertEqual(
            {n["node"]: n.get("remark") for n in status["nodes"]},
            {"n0": None, "n1": "slow: memory 3.1 GB/s, the others 12.5 GB/s", "n2": None},
        )
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0, 0])

    def test_the_place_goes_to_a_spare(self):
        """A node whose check fails gets none of three places; one that comes later never becomes a spare."""
        endpoint = self.endpoint()
        broken = os.path.join(self.dir, "broken")

        def node(name):
            return self.node(endpoint, "3", "--node-name", name, "--node-check", f"test ! -e {broken}-{name}")

        for name in ("b", "e"):
            open(f"{broken}-{name}", "w").close()
        good = [node(name) for name in ("a", "c")]
        bad = node("b")
        self.assertEqual(bad.wait(), 204)
        self.assertTrue(self.no_worker_waits())
        good.append(node("d"))
        workers = self.workers(3)
        self.assertEqual({worker.node for worker in workers}, {"a", "c", "d"})
        self.assertEqual(node("e").wait(), 204)
        spare = node("f")
        self.wait_for_output(spare, "waits as a spare")
        self.agent_of(workers[1]).send(signal.SIGKILL)
        again = self.round_of(3, at_least=1)
        self.assertEqual({worker.node for worker in again}, {"a", "c", "d", "f"} - {workers[1].node})
        for worker in again:
            worker.tell("exit 0")
        left = [agent for agent in [*good, spare] if agent is not self.agent_of(workers[1])]
        self.assertEqual([agent.wait() for agent in left], [0, 0, 0])

    def test_the_place_of_a_pod_goes_to_its_replacement(self):
        """By rank, as a TrainJob's pods are replaced: in a static torch job, and in a JAX job."""
        port, rendezvous = str(self.free_port()), f"127.0.0.1:{self.free_port()}"
        for wire, env in (
            ("torch", {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": port, "PET_NPROC_PER_NODE": "1"}),
            ("jax", {"PET_MASTER_ADDR": "127.0.0.1", "PET_RDZV_ENDPOINT": rendezvous}),
        ):

            def pod(rank, check):
                return self.start(
                    "--wire",
                    wire,
                    "--node-check",
                    check,
                    "--",
                    "sh",
                    "-c",
                    f"echo of {wire} >> {self.dir}/{wire}",
                    subcommand="exec",
                    worker=False,
                    env={"PET_NNODES": "2", "PET_NODE_RANK": str(rank), **env},
                )

            first = pod(0, "true")
            self.assertEqual(pod(1, "echo ECC error >&2; exit 1").wait(), 204)
            self.assertFalse(os.path.exists(f"{self.dir}/{wire}"), "nobody starts without it")
            second = pod(1, "true")
            self.assertEqual([first.wait(), second.wait()], [0, 0], first.output() + second.output())
            with open(f"{self.dir}/{wire}") as file:
                self.assertEqual(file.read(), f"of {wire}\n" * 2)


class Endings(ExecCase):
    def checked(self, check, *flags, command=("true",), **more):
        return self.run_exec("--node-check", check, *flags, "--", *command, **more)

    def test_exec_says_how_the_check_ended(self):
        for check, code, said in (
            ("true", 0, "node check passed"),
            ("exit 7", 204, "node check failed: `exit 7` ended with 7"),
            ("echo why; exit 7", 204, "ended with 7: why"),
            ("kill -SEGV $$", 204, "was killed by SIGSEGV"),
            ("no-such-tool --deep", 204, "ended with 127: "),
        ):
            with self.subTest(check):
                done = self.checked(check, command=("echo", "ran"))
                self.assertEqual((done.returncode, "ran\n" in done.stdout), (code, code == 0), done.stderr)
                self.assertIn(said, done.stderr)

    def test_wrong_settings(self):
        for flags in (("--node-check-timeout", "soon"), ("--node-check-timeout", "0")):
            self.assertEqual(self.checked("true", *flags).returncode, 64)
        self.assertEqual(self.checked("").returncode, 0)

    def test_timeout_ends_all_of_it(self):
        pids = os.path.join(self.dir, "pids")
        check = f"sleep 1000 & echo $! $$ > {pids}; wait"
        done = self.checked(check, "--node-check-timeout", "5s")
        self.assertEqual(done.returncode, 204)
        self.assertIn("did not end within 5 s", done.stderr)
        with open(pids) as file:
            for pid in file.read().split():
                self.assertTrue(wait_gone(int(pid)))

    def test_what_it_leaves_running_ends_with_it(self):
        pid = os.path.join(self.dir, "pid")
        self.assertEqual(self.checked(f"sleep 1000 & echo $! > {pid}").returncode, 0)
        with open(pid) as file:
            self.assertTrue(wait_gone(int(file.read())))

    def test_stdin_is_the_commands(self):
        done = self.run_exec("--node-check", "cat", "--", "cat", stdin=None, input="for the command\n")
        self.assertEqual((done.returncode, done.stdout), (0, "for the command\n"))

    def test_a_signal_ends_check_and_agent(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            pid = os.path.join(self.dir, f"pid-{number}")
            os.mkfifo(pid)
            agent = self.begin(
                "--shutdown-timeout",
                "1",
                "--node-check",
                f"trap 'echo asked >&2; exit 0' TERM INT; echo $$ > {pid}; sleep 1000 & wait",
                "--",
                "true",
            )
            with open(pid) as file:
                check = int(file.read())
            agent.send_signal(number)
            self.assertEqual(agent.wait(DEADLINE), 128 + number)
            self.assertIn("[node check] asked", agent.stderr.read())
            self.assertTrue(wait_gone(check))

    def test_a_second_signal_kills_before_the_remote_shell_is_served(self):
        pid = os.path.join(self.dir, "pid")
        os.mkfifo(pid)
        agent = self.begin(
            "--serve-rsh",
            "--rsh-listen",
            "127.0.0.1:0",
            "--shutdown-timeout",
            "100000",
            "--node-check",
            f"trap 'echo asked >&2' TERM; echo $$ > {pid}; while :; do sleep 1000 & wait; done",
        )
        with open(pid) as file:
            check = int(file.read())
        agent.send_signal(signal.SIGTERM)
        while "[node check] asked" not in agent.stderr.readline():
            pass
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(DEADLINE), 143)
        self.assertTrue(wait_gone(check))

    def test_a_second_signal_kills(self):
        pid = os.path.join(self.dir, "pid")
        os.mkfifo(pid)
        agent = self.begin(
            "--node-check", f"trap 'echo asked >&2' TERM; echo $$ > {pid}; while :; do sleep 1000; done", "--", "true"
        )
        with open(pid) as file:
            check = int(file.read())
        agent.send_signal(signal.SIGTERM)
        self.assertIn("leaving", agent.stderr.readline() + agent.stderr.readline())
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(DEADLINE), 143)
        self.assertTrue(wait_gone(check))


class Again(Nodes):
    """After two failures of its own in a row a node is checked before it goes on."""

    def setUp(self):
        super().setUp()
        self.runs = os.path.join(self.dir, "runs")  # one line for each run of a check
        self.broken = os.path.join(self.dir, "broken")

    def check(self, name):
        return ("--node-name", name, "--node-check", f"echo {name} >> {self.runs}; test ! -e {self.broken}-{name}")

    def checks(self):
        with open(self.runs) as file:
            return file.read().split()

    def fails(self, workers, node):
        next(w for w in workers if w.node == node).tell("exit 1")

    def test_a_healthy_node_goes_on_and_consequences_do_not_count(self):
        endpoint = self.endpoint()
        agents = [self.node(endpoint, "2", "--max-restarts", "4", *self.check(name)) for name in ("a", "b")]
        for _ in range(2):
            workers = self.workers(2)
            self.assertEqual(sorted(self.checks()), ["a", "b"])
            self.fails(workers, "b")
        workers = self.workers(2)
        self.assertEqual(sorted(self.checks()), ["a", "b", "b"])
        self.assertEqual({w.restarts for w in workers}, {2})
        # A round in which b did not fail ends b's failures in a row.
        for failing in ("b", "a"):
            self.fails(workers, failing)
            workers = self.workers(2)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertEqual(sorted(self.checks()), ["a", "b", "b"])

    def test_an_unhealthy_node_gives_its_place_to_the_spare(self):
        endpoint = self.endpoint()
        one = ("--max-restarts", "1")
        first = self.node(endpoint, "2", *one, *self.check("a"))
        self.wait_for_output(first, "waiting for 1 more node")
        bad = self.node(endpoint, "2", *one, *self.check("b"))
        workers = self.workers(2)
        spare = self.node(endpoint, "2", *one, *self.check("c"))
        self.wait_for_output(spare, "waits as a spare")
        self.fails(workers, "b")
        workers = self.workers(2)
        self.assertEqual({w.restarts for w in workers}, {1}, "the budget is used up")
        open(f"{self.broken}-b", "w").close()
        self.fails(workers, "b")
        self.assertEqual(bad.wait(), 204)
        self.assertRegex(bad.output(), "node check failed: `.*` ended with 1")
        workers = self.workers(2)
        self.assertEqual({w.node for w in workers}, {"a", "c"})
        self.assertEqual({w.restarts for w in workers}, {1}, "not charged")
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([first.wait(), spare.wait()], [0, 0])
        self.assertRegex(first.output(), r"node b \(host .*\) is leaving \(node check failed")

    def test_an_unhealthy_node_gives_its_place_to_a_replacement(self):
        """There is no spare: the other nodes wait for the replacement."""
        endpoint = self.endpoint()
        limits = ("--max-restarts", "1")
        agents = {name: self.node(endpoint, "2", *limits, *self.check(name)) for name in ("a", "b")}
        for broken in (False, True):
            if broken:
                open(f"{self.broken}-b", "w").close()
            workers = self.workers(2)
            self.fails(workers, "b")
        self.assertEqual(agents["b"].wait(), 204)
        for worker in workers:
            self.assertTrue(wait_gone(worker.pid))
        self.assertIsNone(agents["a"].process.poll())
        self.assertTrue(self.no_worker_waits())
        os.unlink(f"{self.broken}-b")
        agents["b"] = self.node(endpoint, "2", *limits, *self.check("b"))
        workers = self.workers(2)
        self.assertEqual({(worker.node, worker.restarts) for worker in workers}, {("a", 1), ("b", 1)})
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents.values()], [0, 0])

    def test_a_failed_check_ends_a_single_node(self):
        agent = self.start("--standalone", "--max-restarts", "5", *self.check("a"))
        self.workers(1)[0].tell("exit 1")
        worker = self.workers(1)[0]
        open(f"{self.broken}-a", "w").close()
        worker.tell("exit 1")
        self.assertEqual(agent.wait(), 204)
        self.assertEqual(self.checks(), ["a", "a"])


if __name__ == "__main__":
    main()
