# SPDX-License-Identifier: Apache-2.0
"""`muster run` on several nodes of one machine: rendezvous, failures, lost nodes, newcomers, the same end
everywhere."""

import os
import signal
import socket
import subprocess
import threading

from muster_case import DEADLINE, MUSTER, main, wait_gone
from nodes_case import Nodes

from class_runner import not_emulated


class NameServer:
    """Has the address `answer` for each name; None: there is no such name."""

    def __init__(self):
        self.answer = None
        self.address = f"127.53.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((self.address, 53))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while (received := self._socket.recvfrom(512))[0]:
            question, asker = received
            end = question.index(b"\0", 12) + 5
            head, asked, answer = question[:2], question[12:end], self.answer
            if answer is None:  # NXDOMAIN
                self._socket.sendto(head + b"\x81\x83\0\1\0\0\0\0\0\0" + asked, asker)
            elif asked[-4:-2] == b"\0\1":  # A
                record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(answer)
                self._socket.sendto(head + b"\x81\x80\0\1\0\1\0\0\0\0" + asked + record, asker)
            else:
                self._socket.sendto(head + b"\x81\x80\0\1\0\0\0\0\0\0" + asked, asker)

    def close(self):
        with self._socket, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (self.address, 53))
            self._thread.join()


class Causes(Nodes):
    """A worker prints its own error and stays in its teardown; a worker that lost it ends first."""

    LOST = "RuntimeError: [pair.cc:534] gloo: Connection closed by peer [127.0.0.1]:2"
    TRACE = ("Traceback (most recent call last):", '  File "t.py", line 3, in <module>')

    def write(self, worker, *lines):
        for line in lines:
            worker.tell(f"error {line}")
            self.assertEqual(worker.next_message()["what"], "done")

    def ended(self, cause, lost, ends):
        agents = self.pair("--restart-policy", "exit-code", "--max-restarts", "6", nproc=2)
        workers = self.workers(4)
        self.write(workers[cause], *self.TRACE, "KeyError: 'x'")
        self.write(workers[lost], *self.TRACE, self.LOST)
        workers[lost].tell("exit 1")
        if ends:
            workers[cause].tell(f"exit {ends}")
        self.assertEqual([agent.wait() for agent in agents], [ends or 1] * 2, agents[0].output())
        for agent in agents:
            self.assertRegex(
                agent.output(),
                rf"worker rank {cause} ended with exit code {ends or 1} \(stderr: KeyError: 'x'\), "
                "which is fatal",
            )
            self.assertRegex(agent.output(), rf"(?s)Root Cause.*rank +: {cause} ")

    def test_on_another_node(self):
        self.ended(cause=3, lost=0, ends=None)

    def test_on_the_coordinators_node(self):
        self.ended(cause=0, lost=3, ends=None)

    def test_on_the_same_node(self):
        self.ended(cause=1, lost=0, ends=None)

    def test_that_ends_by_itself_a_moment_later(self):
        self.ended(cause=3, lost=0, ends=3)

    def test_a_lost_peer_without_a_cause_is_a_restart(self):
        agents = self.pair("--restart-policy", "exit-code", "--max-restarts", "1", nproc=1)
        workers = self.workers(2)
        self.write(workers[0], *self.TRACE, self.LOST)
        workers[0].tell("exit 1")
        for worker in self.round_of(2, at_least=1):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])


class Rendezvous(Nodes):
    def test_ranks_and_one_store(self):
        agents = self.pair(nproc=2)
        workers = self.workers(4)
        self.assertEqual([w.rank for w in workers], [0, 1, 2, 3])
        self.assertEqual([w.local_rank for w in workers], [0, 1, 0, 1])
        self.assertEqual([w.env["GROUP_RANK"] for w in workers], ["0", "0", "1", "1"])
        self.assertEqual({w.world_size for w in workers}, {4})
        self.assertEqual(len({(w.env["MASTER_ADDR"], w.env["MASTER_PORT"]) for w in workers}), 1)
        with socket.create_connection((workers[0].env["MASTER_ADDR"], int(workers[0].env["MASTER_PORT"]))):
            pass
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_the_endpoints_name_comes_later(self):
        """The endpoint's name does not resolve at first; the node serves the endpoint once it means this machine."""
        hosts, servers = (os.path.join(self.dir, name) for name in ("hosts", "resolv.conf"))
        for path, text in ((hosts, ""), (servers, "nameserver 127.0.0.1\n")):
            with open(path, "w") as file:
                file.write(text)
        script = f'mount --bind {hosts} /etc/hosts && mount --bind {servers} /etc/resolv.conf && exec "$@"'
        prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode:
            self.skipTest("NOT TESTED: no namespaces to be had here")
        port = self.free_port()
        first = self.node(f"late.example:{port}", "2", prefix=prefix)
        self.wait_for_output(first, "waiting for the coordinator at late.example")
        with open(hosts, "a") as file:
            file.write("127.0.0.1 late.example\n")
        second = self.node(f"127.0.0.1:{port}", "2", "--rdzv-conf", "is_host=0")
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([first.wait(), second.wait()], [0, 0])

    @not_emulated("with-arm64's user namespace has no right to port 53 of the machine")
    def test_a_pod_begins_alone_only_when_its_name_leads_to_it(self):
        """Until then no other node finds it."""
        if os.geteuid() != 0:
            self.skipTest("SKIPPED: a host name and a resolv.conf of its own take root")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing
            except OSError:
                self.skipTest("SKIPPED: this machine has no address but loopback")
            own = probe.getsockname()[0]
        names = NameServer()
        self.addCleanup(names.close)
        servers = os.path.join(self.dir, "resolv.conf")
        with open(servers, "w") as file:
            file.write(f"nameserver {names.address}\n")
        script = f'hostname job-node-0-0 && mount --bind {servers} /etc/resolv.conf && exec "$@"'
        agent = self.node(
            f"job-node-0-0.job:{self.free_port()}",
            "1:2",
            *("--rdzv-conf", "is_host=1,last_call_timeout=1"),
            prefix=["unshare", "--mount", "--uts", "sh", "-c", script, "sh"],
            env={"KUBERNETES_SERVICE_HOST": "192.0.2.1", "MUSTER_HTTP_PORT": "off"},
        )
        self.wait_for_output(agent, 'have 1 of 2 nodes, and no other one can come yet: .*"job-node-0-0.job"')
        names.answer = "192.0.2.7"
        self.wait_for_output(agent, "no other one can come yet: job-node-0-0.job leads to 192.0.2.7, and not here")
        names.answer = own
        (worker,) = self.workers(1)
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)
        self.assertIn("1 of 2 nodes are ready and the last call is over", agent.output())

    def test_ranks_do_not_depend_on_who_comes_first(self):
        def started(arguments, *places):
            endpoint = self.endpoint()
            agents = {}
            for number, place in enumerate(places):
                agents[place] = self.node(
                    endpoint, "3", *arguments(place), "--rdzv-conf", f"is_host={int(number == 0)}"
                )
                if number == 0:
                    self.wait_for_port(endpoint)
            workers = self.workers(3)
            self.assertEqual([self.agent_of(w) for w in workers], [agents[0], agents[1], agents[2]])
            for worker in workers:
                worker.tell("exit 0")
            self.assertEqual([agent.wait() for agent in agents.values()], [0, 0, 0])

        for arguments in (
            lambda place: ("--node-rank", str(place)),
            lambda place: ("--local-addr", f"127.0.0.{2 + place}"),
        ):
            started(arguments, 2, 0, 1)

    def test_static_nodes_meet_at_the_master(self):
        port = str(self.free_port())
        common = ("--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", port)
        second = self.start(*common, "--node-rank", "1")  # comes first, and waits for the endpoint
        first = self.start(*common, "--node-rank", "0")
        workers = self.workers(2)
        self.assertEqual([self.agent_of(w) for w in workers], [first, second])
        self.assertEqual({w.env["MASTER_PORT"] for w in workers}, {port})
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([first.wait(), second.wait()], [0, 0])

    def test_static_restarts_both_nodes_on_the_same_port(self):
        port = str(self.free_port())
        common = ("--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", port, "--max-restarts", "1")
        agents = [self.start(*common, "--node-rank", str(rank)) for rank in range(2)]
        self.workers(2)[1].tell("exit 1")
        for worker in self.workers(2):
            self.assertEqual((worker.env["MASTER_PORT"], worker.restarts), (port, 1))
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_elastic_starts_after_the_last_call(self):
        agent = self.node(self.endpoint(), "1:3", "--rdzv-conf", "last_call_timeout=1")
        (worker,) = self.workers(1)
        self.assertEqual(worker.world_size, 1)
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def want(self, nodes):
        """Replaces the file of wanted nodes as a kubelet does. Returns its path."""
        wanted = os.path.join(self.dir, "nodes")
        with open(wanted + ".new", "w", encoding="utf-8") as file:
            file.write(nodes)
        os.rename(wanted + ".new", wanted)
        return wanted

    def test_elastic_starts_with_the_nodes_that_are_wanted(self):
        wanted = self.want("2")
        endpoint = self.endpoint()
        flags = ("--nodes-file", wanted, "--rdzv-conf", "last_call_timeout=600")
        agents = [self.node(endpoint, "1:4", *flags) for _ in range(2)]
        self.assertEqual({worker.world_size for worker in self.workers(2)}, {2})
        agents += [self.node(endpoint, "1:4", *flags)]
        self.wait_for_output(agents[2], "waits as a spare")
        self.want("no number")
        self.wait_for_output(agents[0], "'no number' is not a whole number")
        self.want("4\n")
        agents += [self.node(endpoint, "1:4", *flags)]
        workers = self.workers(4)
        self.assertEqual({(worker.world_size, worker.restarts) for worker in workers}, {(4, 0)})
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0] * 4)

    def test_a_node_that_waits_ends_once_the_run_is_over(self):
        flags = ("--nodes-file", self.want("2"))
        running = self.node(self.endpoint(), "1:4", *flags, "--rdzv-conf", "last_call_timeout=0")
        (worker,) = self.workers(1)
        alone = self.node(self.endpoint(), "2:4", *flags)
        self.wait_for_output(alone, "waiting for 1 more node")
        nowhere = self.node(self.endpoint(), "2:4", *flags, "--rdzv-conf", "is_host=0")
        self.wait_for_output(nowhere, "nothing listens there yet")
        self.want("0")
        late = self.node(self.endpoint(), "2:4", *flags)
        for agent in (alone, nowhere, late):
            self.assertEqual(agent.wait(), 0)
            self.assertIn("the run has succeeded on other nodes", agent.output())
        worker.tell("exit 3")  # who runs workers goes on, and ends as they do
        self.assertEqual(running.wait(), 3)

    def test_coordinator_alone(self):
        coordinator = self.with_pipes(
            [MUSTER, "coordinator", "--listen", "127.0.0.1:0"], stderr=subprocess.DEVNULL, text=True
        )
        port = coordinator.stdout.readline().rsplit(":", 1)[1].strip()
        agents = [self.node(f"127.0.0.1:{port}", "2", "--rdzv-conf", "is_host=0") for _ in range(2)]
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_nodes_on_this_machine(self):
        agent = self.start("--nodes-on-this-machine", "3", "--nproc-per-node", "2")
        workers = self.workers(6)
        self.assertEqual({w.env["GROUP_WORLD_SIZE"] for w in workers}, {"3"})
        for worker in workers:
            worker.ask(f"print line of {worker.rank}")
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)
        self.assertRegex(agent.output(), r"\[node-\d\] line of 5")

    def test_disagreement_is_refused_with_both_values(self):
        endpoint = self.endpoint()
        first = self.node(endpoint, "2")
        self.wait_for_port(endpoint)
        other = self.node(endpoint, "3")
        self.assertEqual(other.wait(), 78)
        self.assertIn("has nnodes 3:3, the job's first node had 2:2", other.output())
        second = self.node(endpoint, "2")
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([first.wait(), second.wait()], [0, 0])


class Faults(Nodes):
    def test_who_was_refused_is_told_where_he_is_missed(self):
        token = os.path.join(self.dir, "token")
        with open(token, "w") as file:
            file.write("of-this-job\n")
        endpoint = self.endpoint()
        host = self.node(
            endpoint, "2", "--rdzv-conf", f"join_timeout=20,token_file={token}"
        )  # the others must come and go meanwhile
        self.wait_for_port(endpoint)
        no_token = self.node(endpoint, "2", "--rdzv-conf", "join_timeout=20,is_host=0")
        self.assertEqual(no_token.wait(), 78)
        self.wait_for_output(host, r"refused: 127\.0\.0\.1: this job requires a token")
        stranger = self.node(
            endpoint, "2", "--rdzv-id", "other", "--rdzv-conf", f"join_timeout=20,is_host=0,token_file={token}"
        )
        self.assertEqual(stranger.wait(), 78)
        self.wait_for_output(host, r'refused: node .*"job", the node asks for run id "other"')
        other = [
            self.node(endpoint, "3", "--node-name", "b", "--rdzv-conf", f"join_timeout=20,is_host=0,token_file={token}")
            for _ in range(2)
        ]
        self.assertEqual([agent.wait() for agent in other], [78, 78])
        self.assertEqual(host.wait(), 200)
        refusal = r"node b .*has nnodes 3:3, the job's first node had 2:2: give every node the same value"
        self.assertRegex(host.output(), rf"1 of 2 nodes came within 20 s: .*; the last one refused: {refusal}")
        self.assertEqual(
            len([line for line in host.output().splitlines() if "refused: node b" in line and "came" not in line]), 1
        )

    def test_missing_node_ends_with_200_and_says_so(self):
        agent = self.node(self.endpoint(), "2", "--rdzv-conf", "join_timeout=1")
        self.assertEqual(agent.wait(), 200)
        self.assertRegex(agent.output(), "1 of 2")

    def test_a_node_that_comes_before_node_0_says_what_it_waits_for(self):
        port = self.free_port()
        agent = self.start(
            "--nnodes=2", "--node-rank=1", "--master-addr=127.0.0.1", f"--master-port={port}", "--local-addr=192.0.2.1"
        )
        self.wait_for_output(
            agent, rf"waiting for node 0 at 127\.0\.0\.1:{port}: nothing listens there yet \(up to 900 s\)\n"
        )
        self.assertRegex(
            agent.output(),
            r"standing by on port \d+ of every address, to coordinate the job if its coordinator is lost",
        )
        self.assertNotIn("refused", agent.output())
        agent.send(signal.SIGTERM)
        self.assertEqual(agent.wait(), 143)

    def test_a_name_that_only_node_0_serves_needs_no_hint(self):
        agent = self.start(
            "--nnodes=2", "--node-rank=0", f"--master-addr={socket.gethostname()}", f"--master-port={self.free_port()}"
        )
        self.wait_for_output(agent, r"waiting for 1 more node: have 1 of 2 \(up to 900 s\)\n")
        agent.send(signal.SIGTERM)
        self.assertEqual(agent.wait(), 143)

    def test_refused_endpoint_ends_with_200(self):
        endpoint = self.endpoint()
        agent = self.node(endpoint, "2", "--rdzv-conf", "join_timeout=1,is_host=0")
        self.assertEqual(agent.wait(), 200)
        self.assertIn(endpoint, agent.output())
        self.assertIn("refused", agent.output())

    def test_an_endpoint_that_its_owner_gives_up_is_served_by_the_job(self):
        # A predecessor that is about to end still has the port when the agents come.
        with socket.create_server(("127.0.0.1", 0)) as predecessor:
            endpoint = f"127.0.0.1:{predecessor.getsockname()[1]}"
            agents = [self.node(endpoint, "2"), self.node(endpoint, "2")]
            knocked = set()
            predecessor.settimeout(DEADLINE)
            while len(knocked) < 2:
                caller, _ = predecessor.accept()
                caller.recv(1)
                caller.close()
                knocked = {agent for agent in agents if "waiting for the coordinator at" in agent.output()}
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertIn("no agent serves the endpoint any more", "".join(agent.output() for agent in agents))

    def test_garbage_on_the_endpoint_harms_nobody(self):
        endpoint = self.endpoint()
        first = self.node(endpoint, "2")
        self.wait_for_port(endpoint)
        host, port = endpoint.rsplit(":", 1)
        held = []
        for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096, b"\xff" * 65536, b""):
            link = socket.create_connection((host, int(port)))
            held.append(link)
            try:
                link.sendall(noise)
            except OSError:
                pass
        second = self.node(endpoint, "2")
        workers = self.workers(2)
        store = socket.create_connection((workers[0].env["MASTER_ADDR"], int(workers[0].env["MASTER_PORT"])))
        store.sendall(b"\xff" * 1000)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([first.wait(), second.wait()], [0, 0])
        for link in [*held, store]:
            link.close()

    def test_failure_ends_both_nodes_with_its_code(self):
        agents = self.pair()
        workers = self.workers(2)
        workers[1].tell("exit 3")
        self.assertEqual([agent.wait() for agent in agents], [3, 3])
        for agent in agents:
            self.assertRegex(agent.output(), r"rank\s*:\s*1 ")

    def test_failure_restarts_both_nodes(self):
        agents = self.pair("--max-restarts", "1", nproc=2)
        self.workers(4)[3].tell("signal 9")
        again = self.workers(4)
        self.assertEqual({w.restarts for w in again}, {1})
        self.assertEqual({w.round for w in again}, {1})
        for worker in again:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_success_waits_for_the_others(self):
        agents = self.pair("--max-restarts", "1")
        workers = self.workers(2)
        workers[0].tell("exit 0")
        self.assertTrue(wait_gone(workers[0].pid))
        workers[1].tell("exit 4")
        for worker in self.workers(2):  # the worker that had succeeded runs again
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def one_killed(self, victim, its_worker, survivor):
        """The survivor goes on alone at once."""
        victim.send(signal.SIGKILL)
        (alone,) = self.round_of(1, at_least=1)
        self.assertEqual((alone.world_size, alone.restarts), (1, 0))
        self.assertTrue(wait_gone(its_worker.pid))
        alone.tell("exit 0")
        self.assertEqual(survivor.wait(), 0)

    def test_a_killed_node_is_left_behind(self):
        _, host, guest, _, worker = self.running()
        self.one_killed(guest, worker, host)

    def test_the_killed_node_was_the_host(self):
        _, host, guest, worker, _ = self.running()
        self.one_killed(host, worker, guest)

    def test_a_replacement_joins(self):
        endpoint = self.endpoint()
        agents = [self.node(endpoint, "2") for _ in range(2)]
        workers = self.workers(2)
        victim = self.agent_of(workers[1])
        victim.send(signal.SIGKILL)
        survivor = next(agent for agent in agents if agent is not victim)
        replacement = self.node(endpoint, "2")
        for worker in self.round_of(2, at_least=1):
            worker.tell("exit 0")
        self.assertEqual([survivor.wait(), replacement.wait()], [0, 0])

    def test_a_third_node_scales_up(self):
        endpoint = self.endpoint()
        agents = [self.node(endpoint, "2:3", "--rdzv-conf", "last_call_timeout=1") for _ in range(2)]
        self.workers(2)
        agents.append(self.node(endpoint, "2:3", "--rdzv-conf", "last_call_timeout=1"))
        for worker in self.round_of(3, at_least=1):
            self.assertEqual(worker.restarts, 0)
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0, 0])

    def test_a_spare_replaces_a_lost_node(self):
        endpoint = self.endpoint()
        agents = [self.node(endpoint, "2") for _ in range(2)]
        workers = self.workers(2)
        spare = self.node(endpoint, "2")
        self.wait_for_output(spare, "spare")
        self.assertTrue(self.no_worker_waits())
        victim = self.agent_of(workers[1])
        survivor = next(agent for agent in agents if agent is not victim)
        victim.send(signal.SIGKILL)
        for worker in self.round_of(2, at_least=1):
            worker.tell("exit 0")
        self.assertEqual([survivor.wait(), spare.wait()], [0, 0])

    def test_sigterm_of_one_node_lets_the_others_go_on(self):
        _, stayer, leaver, _, _ = self.running()
        leaver.send(signal.SIGTERM)
        (alone,) = self.round_of(1, at_least=1)
        self.assertEqual(leaver.wait(), 143)
        alone.tell("exit 0")
        self.assertEqual(stayer.wait(), 0)

    def leave_with_a_slow_worker(self, leaver, slow, stayer):
        """The other node goes on while the leaving node's worker still writes its checkpoint."""
        slow.ask("ignore SIGTERM")
        leaver.send(signal.SIGTERM)
        (alone,) = self.round_of(1, at_least=1)
        self.assertEqual(slow.ask("asked SIGTERM")["what"], "asked")
        self.assertIsNone(leaver.process.poll())
        slow.tell("exit 0")
        self.assertEqual(leaver.wait(), 143)
        self.assertEqual(alone.ask("print still here")["what"], "done")
        self.assertTrue(self.no_worker_waits())
        alone.tell("exit 0")
        self.assertEqual(stayer.wait(), 0)

    def test_a_leaving_node_may_take_its_time(self):
        _, host, guest, _, slow = self.running()
        self.leave_with_a_slow_worker(guest, slow, host)

    def test_the_leaving_host_may_take_its_time(self):
        _, host, guest, slow, _ = self.running()
        self.leave_with_a_slow_worker(host, slow, guest)

    def test_a_frozen_agent_is_lost_after_the_heartbeat_limit(self):
        _, survivor, victim, _, _ = self.running(conf=",heartbeat_timeout=5")
        victim.send(signal.SIGSTOP)
        (alone,) = self.round_of(1, at_least=1)
        alone.tell("exit 0")
        self.assertEqual(survivor.wait(), 0)
        victim.send(signal.SIGKILL)
        victim.send(signal.SIGCONT)

    def test_a_frozen_coordinator_is_replaced_by_the_majority(self):
        endpoint = self.endpoint()
        host = self.node(endpoint, "2:3", "--rdzv-conf", "heartbeat_timeout=5,last_call_timeout=1")
        self.wait_for_port(endpoint)
        others = [
            self.node(endpoint, "2:3", "--rdzv-conf", "heartbeat_timeout=5,last_call_timeout=1") for _ in range(2)
        ]
        self.round_of(3, at_least=0)
        host.send(signal.SIGSTOP)
        for worker in self.round_of(2, at_least=1):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in others], [0, 0])
        host.send(signal.SIGKILL)
        host.send(signal.SIGCONT)

    def test_the_coordinator_dies_while_a_round_is_stopped(self):
        _, host, other, hosts, others = self.running("--max-restarts", "1")
        others.ask("ignore SIGTERM")
        hosts.tell("exit 1")
        self.assertTrue(wait_gone(hosts.pid))
        host.send(signal.SIGKILL)
        os.kill(others.pid, signal.SIGKILL)
        (alone,) = self.round_of(1, at_least=1)
        alone.tell("exit 0")
        self.assertEqual(other.wait(), 0)

    def test_a_live_name_is_not_given_away(self):
        endpoint = self.endpoint()
        first = self.node(endpoint, "2", "--node-name", "a")
        self.wait_for_port(endpoint)
        double = self.node(endpoint, "2", "--node-name", "a", "--rdzv-conf", "is_host=0")
        self.assertEqual(double.wait(), 78)
        self.assertRegex(double.output(), rf"the name a is held by node a .*\(pid {first.pid}\), which is alive")
        second = self.node(endpoint, "2", "--node-name", "b", "--rdzv-conf", "is_host=0")
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([first.wait(), second.wait()], [0, 0])

    def test_a_node_that_comes_too_late_gets_the_verdict_or_nothing(self):
        endpoint = self.endpoint()
        agents = [self.node(endpoint, "2", "--rdzv-conf", "join_timeout=2") for _ in range(2)]
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        late = self.node(endpoint, "2", "--rdzv-conf", "join_timeout=1")
        self.assertEqual(late.wait(), 200)
        self.assertTrue(self.no_worker_waits())

    def test_an_agent_killed_before_the_round_harms_nobody(self):
        endpoint = self.endpoint()
        first = self.node(endpoint, "3")
        self.wait_for_port(endpoint)
        early = self.node(endpoint, "3")  # one of three: whether or not it has joined by now, no round starts with it
        early.send(signal.SIGKILL)
        self.assertEqual(early.wait(), 137)
        others = [self.node(endpoint, "3") for _ in range(2)]
        for worker in self.round_of(3, at_least=0):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in (first, *others)], [0, 0, 0])


if __name__ == "__main__":
    main()
