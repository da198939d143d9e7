# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of each process at each stage, late and doubled nodes, nodes that disagree."""

import json
import os
import signal
import subprocess

from muster_case import DEADLINE, MUSTER, main, wait_gone
from nodes_case import Nodes


class Staged(Nodes):
    """Brings a job to a stage, and knows which agent owns the endpoint."""

    def host_of(self, endpoint, nnodes, *arguments):
        host = self.node(endpoint, nnodes, "--rdzv-conf", self.conf("is_host=1"), *arguments)
        self.wait_for_port(endpoint)
        return host

    def guest_of(self, endpoint, nnodes, *arguments):
        return self.node(endpoint, nnodes, "--rdzv-conf", self.conf("is_host=0"), *arguments)

    def conf(self, more):
        return "last_call_timeout=600," + more

    def follow(self, endpoint):
        """`muster status --follow` of the coordinator: its reports, change by change."""
        return self.with_pipes(
            [MUSTER, "status", endpoint, "--json", "--follow", "--timeout", str(DEADLINE)],
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def wait_for_status(self, follower, holds):
        for line in follower.stdout:
            report = json.loads(line)
            if holds(report):
                return report
        self.fail("the status ended before it said what was waited for")

    def all_succeed(self, workers, agents):
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0] * len(agents))
        self.assertTrue(self.no_worker_waits())

    def goes_on_alone(self, agent, restarts):
        (alone,) = self.round_of(1, at_least=1)
        self.assertEqual((alone.hello["ppid"], alone.restarts), (agent.pid, restarts))
        self.all_succeed([alone], [agent])


class KilledAgents(Staged):
    def test_a_guest_while_gathering(self):
        endpoint = self.endpoint()
        host = self.host_of(endpoint, "3")
        guest = self.guest_of(endpoint, "3")
        self.wait_for_output(guest, "2 of 3")
        guest.send(signal.SIGKILL)
        guests = [self.guest_of(endpoint, "3") for _ in range(2)]
        self.all_succeed(self.round_of(3, at_least=0), [host, *guests])

    def test_the_host_while_gathering(self):
        endpoint = self.endpoint()
        host = self.host_of(endpoint, "3")
        guest = self.guest_of(endpoint, "3")
        self.wait_for_output(guest, "2 of 3")
        host.send(signal.SIGKILL)
        host.wait()
        host = self.host_of(endpoint, "3")  # its replacement takes the port over; the waiting nodes have not given up
        other = self.guest_of(endpoint, "3")
        self.all_succeed(self.round_of(3, at_least=0), [host, guest, other])

    def test_either_as_soon_as_its_round_starts(self):
        for victim_is_host in (False, True):
            with self.subTest(victim="host" if victim_is_host else "guest"):
                endpoint = self.endpoint()
                host = self.host_of(endpoint, "1:2")
                guest = self.guest_of(endpoint, "1:2")
                victim, survivor = (host, guest) if victim_is_host else (guest, host)
                for agent in (survivor, victim):  # a guest that does not know it would wait for a new host
                    self.wait_for_output(agent, "round 0: this is node")
                victim.send(signal.SIGKILL)
                self.goes_on_alone(survivor, 0)

    def test_either_while_stopping(self):
        for victim_is_host in (False, True):
            with self.subTest(victim="host" if victim_is_host else "guest"):
                _, host, guest, hosts, guests = self.running("--max-restarts", "1")
                victim, survivor = (host, guest) if victim_is_host else (guest, host)
                stubborn, failing = (hosts, guests) if victim_is_host else (guests, hosts)
                stubborn.ask("ignore SIGTERM")
                failing.tell("exit 1")
                self.wait_for_stop(stubborn)
                victim.send(signal.SIGKILL)
                self.assertTrue(wait_gone(stubborn.pid))
                (alone,) = self.round_of(1, at_least=1)
                self.assertEqual(alone.hello["ppid"], survivor.pid)
                self.assertEqual(alone.restarts, 1)
                self.all_succeed([alone], [survivor])

    def wait_for_stop(self, worker):
        """Waits until `worker`, which ignores SIGTERM, has got that signal."""
        self.assertEqual(worker.ask("asked SIGTERM")["what"], "asked")

    def guest_succeeded(self):
        """Returns host, guest, the worker that still runs, and the follower of the status."""
        endpoint, host, guest, hosts, guests = self.running("--max-restarts", "1")
        follower = self.follow(endpoint)
        guests.tell("exit 0")
        self.wait_for_status(follower, lambda report: self.state_of(report, guest) == "succeeded")
        return host, guest, hosts, follower

    def test_a_guest_that_had_succeeded(self):
        host, guest, hosts, _ = self.guest_succeeded()
        guest.send(signal.SIGKILL)
        guest.wait()
        self.assertEqual(hosts.ask("print here")["what"], "done")
        self.all_succeed([hosts], [host])  # no worker had to run again

    def state_of(self, report, agent):
        return next((n["state"] for n in report["nodes"] if n["node"].endswith(f"_{agent.pid}")), None)

    def test_the_host_after_the_verdict(self):
        """The guest is frozen while the host decides and dies: it still finds the verdict in its socket."""
        host, guest, hosts, follower = self.guest_succeeded()
        guest.send(signal.SIGSTOP)
        hosts.tell("exit 0")
        self.wait_for_status(follower, lambda report: report["phase"] == "finished")
        host.send(signal.SIGKILL)
        host.wait()
        guest.send(signal.SIGCONT)
        self.assertEqual(guest.wait(), 0)
        self.assertTrue(self.no_worker_waits())

    def test_the_guest_after_the_verdict(self):
        host, guest, hosts, follower = self.guest_succeeded()
        guest.send(signal.SIGSTOP)
        hosts.tell("exit 0")
        self.wait_for_status(follower, lambda report: report["phase"] == "finished")
        guest.send(signal.SIGKILL)
        self.assertEqual(host.wait(), 0)
        self.assertTrue(self.no_worker_waits())

    def three_by_rank(self, endpoint):
        self.host_of(endpoint, "1:3")
        for _ in range(2):
            self.guest_of(endpoint, "1:3")
        return [self.agent_of(worker) for worker in self.workers(3)]

    def kill_at_once(self, host, other):
        """Kills both before the host hears of the other's death; the other's port refuses the survivor."""
        host.send(signal.SIGSTOP)
        other.send(signal.SIGKILL)
        other.wait()
        host.send(signal.SIGKILL)
        host.wait()

    def test_the_host_and_its_first_successor_at_once(self):
        host, successor, last = self.three_by_rank(self.endpoint())
        self.kill_at_once(host, successor)
        self.goes_on_alone(last, 0)

    def test_the_host_and_the_last_node_at_once(self):
        host, successor, last = self.three_by_rank(self.endpoint())
        self.kill_at_once(host, last)
        self.goes_on_alone(successor, 0)

    def test_the_host_of_a_fixed_job_is_replaced(self):
        endpoint = self.endpoint()
        host = self.host_of(endpoint, "2")
        guest = self.guest_of(endpoint, "2")
        before = self.workers(2)
        host.send(signal.SIGKILL)
        host.wait()
        replacement = self.host_of(endpoint, "2")
        again = self.round_of(2, at_least=1)
        self.assertTrue(all(wait_gone(worker.pid) for worker in before))
        self.all_succeed(again, [guest, replacement])

    def test_all_but_one_and_then_they_come_back(self):
        endpoint = self.endpoint()
        host, successor, last = self.three_by_rank(endpoint)
        self.kill_at_once(host, successor)
        self.round_of(1, at_least=1)
        again = [self.host_of(endpoint, "1:3"), self.guest_of(endpoint, "1:3")]
        self.all_succeed(self.round_of(3, at_least=2), [last, *again])


class KilledWorkers(Staged):
    def test_while_it_is_being_stopped(self):
        """The failure that began the stop is charged to the budget, the death during the stop is not."""
        _, host, guest, hosts, guests = self.running("--max-restarts", "1")
        hosts.ask("ignore SIGTERM")
        guests.tell("exit 1")
        self.assertEqual(hosts.ask("asked SIGTERM")["what"], "asked")
        os.kill(hosts.pid, signal.SIGKILL)
        again = self.round_of(2, at_least=1)
        self.assertEqual({worker.restarts for worker in again}, {1})
        self.all_succeed(again, [host, guest])

    def test_all_at_once_are_one_failure(self):
        _, host, guest, hosts, guests = self.running("--max-restarts", "1")
        for agent in (host, guest):  # neither must hear of one death before the other
            agent.send(signal.SIGSTOP)
        for worker in (hosts, guests):
            os.kill(worker.pid, signal.SIGKILL)
        for agent in (host, guest):
            agent.send(signal.SIGCONT)
        again = self.round_of(2, at_least=1)
        self.assertEqual({worker.restarts for worker in again}, {1})
        self.all_succeed(again, [host, guest])

    def test_when_no_restart_is_left(self):
        _, host, guest, _, guests = self.running("--max-restarts", "1")
        guests.tell("exit 1")
        again = self.round_of(2, at_least=1)
        os.kill(again[1].pid, signal.SIGKILL)
        self.assertEqual([host.wait(), guest.wait()], [137, 137])


class KilledCoordinator(Staged):
    """`muster coordinator`, alone."""

    def serve(self, port=0):
        coordinator = self.with_pipes(
            [MUSTER, "coordinator", "--listen", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL, text=True
        )
        line = coordinator.stdout.readline()
        self.assertIn("listening", line)
        return coordinator, "127.0.0.1:" + line.rsplit(":", 1)[1].strip()

    def kill(self, coordinator):
        coordinator.kill()
        coordinator.wait()

    def again(self, endpoint):
        """Starts the coordinator again on the same port, without its state."""
        return self.serve(endpoint.rsplit(":", 1)[1])[0]

    def job(self, *arguments):
        coordinator, endpoint = self.serve()
        agents = [self.guest_of(endpoint, "2", *arguments) for _ in range(2)]
        return coordinator, endpoint, agents

    def test_before_anybody_came(self):
        coordinator, endpoint = self.serve()
        self.kill(coordinator)
        agents = [self.guest_of(endpoint, "2") for _ in range(2)]
        self.wait_for_output(agents[0], "waiting for the coordinator at .*: nothing listens there yet")
        self.again(endpoint)
        self.all_succeed(self.workers(2), agents)

    def test_while_gathering(self):
        coordinator, endpoint = self.serve()
        first = self.guest_of(endpoint, "2")
        self.wait_for_output(first, "1 of 2")
        self.kill(coordinator)
        second = self.guest_of(endpoint, "2")
        self.again(endpoint)
        self.all_succeed(self.workers(2), [first, second])

    def test_while_running_and_it_comes_back_empty(self):
        coordinator, endpoint, agents = self.job()
        workers = self.workers(2)
        self.kill(coordinator)
        for agent in agents:
            self.wait_for_output(agent, "lost")
        self.again(endpoint)
        for worker in workers:
            self.assertEqual(worker.ask("print here")["what"], "done")
        self.all_succeed(workers, agents)

    def test_while_running_and_it_never_comes_back(self):
        coordinator, _, agents = self.job("--max-restarts", "1")
        workers = self.workers(2)
        self.kill(coordinator)
        self.wait_for_output(self.agent_of(workers[0]), "stands in")
        workers[1].tell("exit 1")  # the job can still restart ...
        again = self.round_of(2, at_least=1)
        self.assertEqual({worker.restarts for worker in again}, {1})
        self.all_succeed(again, agents)  # ... and end

    def test_while_running_and_the_first_successor_is_slow(self):
        """The node that notices first dials the first successor, which has not noticed yet: the node waits for it."""
        coordinator, _, agents = self.job("--max-restarts", "1")
        workers = self.workers(2)
        slow, quick = (self.agent_of(worker) for worker in workers)
        slow.send(signal.SIGSTOP)
        self.kill(coordinator)
        self.wait_for_output(quick, "refused")
        slow.send(signal.SIGCONT)
        self.wait_for_output(slow, "stands in")
        workers[1].tell("exit 1")
        again = self.round_of(2, at_least=1)
        self.assertEqual({worker.restarts for worker in again}, {1})
        self.all_succeed(again, agents)
        self.assertNotIn("stands in", quick.output())

    def test_while_running_and_a_worker_fails_before_anybody_stands_in(self):
        coordinator, _, agents = self.job("--max-restarts", "1")
        workers = self.workers(2)
        slow, quick = (self.agent_of(worker) for worker in workers)
        slow.send(signal.SIGSTOP)
        self.kill(coordinator)
        self.wait_for_output(quick, "refused")
        workers[1].tell("exit 1")
        self.assertTrue(wait_gone(workers[1].pid))
        slow.send(signal.SIGCONT)
        again = self.round_of(2, at_least=1)
        self.assertEqual({worker.restarts for worker in again}, {1})
        self.all_succeed(again, agents)

    def test_while_stopping(self):
        for back in (True, False):
            with self.subTest(comes_back=back):
                coordinator, endpoint, agents = self.job("--max-restarts", "1")
                workers = self.workers(2)
                workers[0].ask("ignore SIGTERM")
                workers[1].tell("exit 1")
                self.assertEqual(workers[0].ask("asked SIGTERM")["what"], "asked")
                self.kill(coordinator)
                if back:
                    self.again(endpoint)
                os.kill(workers[0].pid, signal.SIGKILL)
                again = self.round_of(2, at_least=1)
                self.assertEqual({worker.restarts for worker in again}, {1})
                self.all_succeed(again, agents)

    def test_after_the_verdict(self):
        coordinator, endpoint, agents = self.job()
        workers = {worker.hello["ppid"]: worker for worker in self.workers(2)}
        follower = self.follow(endpoint)
        frozen, other = agents
        workers[frozen.pid].tell("exit 0")
        self.wait_for_status(follower, lambda report: KilledAgents.state_of(self, report, frozen) == "succeeded")
        frozen.send(signal.SIGSTOP)
        workers[other.pid].tell("exit 0")
        self.assertEqual(other.wait(), 0)
        self.kill(coordinator)
        frozen.send(signal.SIGCONT)
        self.assertEqual(frozen.wait(), 0)
        self.assertTrue(self.no_worker_waits())


class Uninvited(Nodes):
    """Late, doubled and superfluous nodes never touch the round that runs."""

    def job(self, nnodes="2", *arguments):
        endpoint = self.endpoint()
        agents = [self.node(endpoint, nnodes, *arguments) for _ in range(2)]
        return endpoint, agents, self.workers(2)

    def untouched(self, workers, agents):
        for worker in workers:
            self.assertEqual(worker.ask("print here")["what"], "done")
            self.assertEqual((worker.restarts, worker.round), (0, 0))
        self.assertTrue(self.no_worker_waits())
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertTrue(self.no_worker_waits())

    def test_spares_come_die_and_come_again(self):
        endpoint, agents, workers = self.job()
        for _ in range(3):
            spare = self.node(endpoint, "2", "--node-name", "again")
            self.wait_for_output(spare, "spare")
            spare.send(signal.SIGKILL)
            spare.wait()
        last = self.node(endpoint, "2", "--node-name", "again")
        self.wait_for_output(last, "spare")
        self.untouched(workers, agents)
        self.assertEqual(last.wait(), 0)  # this node hears of the end, too

    def test_one_node_twice(self):
        endpoint, agents, workers = self.job()
        first = self.node(endpoint, "2", "--node-name", "twin", "--rdzv-conf", "is_host=0")
        self.wait_for_output(first, "spare")
        second = self.node(endpoint, "2", "--node-name", "twin", "--rdzv-conf", "is_host=0")
        self.assertEqual(second.wait(), 78)
        self.assertIn("twin is held by", second.output())
        self.untouched(workers, agents)
        self.assertEqual(first.wait(), 0)

    def test_room_that_is_not_to_be_used_before_a_restart(self):
        options = ("--scale-up", "at-restart", "--max-restarts", "1", "--rdzv-conf", "last_call_timeout=1")
        endpoint, agents, workers = self.job("2:3", *options)
        late = self.node(endpoint, "2:3", *options)
        self.wait_for_output(late, "waits|at the next restart|spare")
        for worker in workers:
            self.assertEqual(worker.ask("print here")["what"], "done")
        self.assertTrue(self.no_worker_waits())
        workers[0].tell("exit 1")
        again = self.round_of(3, at_least=1)
        self.assertEqual({worker.restarts for worker in again}, {1})
        for worker in again:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in [*agents, late]], [0, 0, 0])

    def test_nodes_of_other_jobs(self):
        endpoint, agents, workers = self.job()
        for options, values in (
            (("--rdzv-id", "elsewhere"), ("job", "elsewhere")),
            (("--max-restarts", "7"), ("0", "7")),
            (("--rdzv-conf", "heartbeat_timeout=33"), ("15 s", "33 s")),
        ):
            other = self.node(endpoint, "2", *options)
            self.assertEqual(other.wait(), 78)
            for value in values:
                self.assertIn(value, other.output())
        self.untouched(workers, agents)


if __name__ == "__main__":
    main()
