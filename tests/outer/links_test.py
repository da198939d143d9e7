# SPDX-License-Identifier: Apache-2.0
"""Blackholed links: nodes in network namespaces, packets dropped without an error at either end.

Whatever the cut, two halves of one job never run at once, and a link that is back in time changes nothing.
"""

from muster_case import MusterCase, alive, main, wait_gone

import networks

WHY_NOT = networks.permitted()


class Blackholes(MusterCase):
    LIMITS = "heartbeat_timeout=2,last_call_timeout=600"

    def setUp(self):
        super().setUp()
        if WHY_NOT:
            self.skipTest(f"blackholed links are NOT tested here: {WHY_NOT}")
        self.network = networks.Network(3, routed="no_route" not in self._testMethodName)

    def tearDown(self):
        super().tearDown()
        if not WHY_NOT:
            self.network.close()

    def node(self, number, nnodes, conf):
        return self.start(
            "--nnodes",
            nnodes,
            "--rdzv-backend",
            "c10d",
            "--rdzv-id",
            "job",
            "--node-name",
            f"n{number}",
            "--rdzv-endpoint",
            f"{self.network.address(0)}:29400",
            "--rdzv-conf",
            conf,
            prefix=self.network.enter(number),
        )

    def three(self, nnodes, conf):
        """Agents of n0 (which owns the endpoint), n1 and n2, and their workers by node."""
        agents = [self.node(number, nnodes, conf) for number in range(3)]
        return agents, {worker.node: worker for worker in self.round_of(3, at_least=0)}

    def others_go_on(self, lost, agents, members):
        """Checks that the two other nodes run a later round without `lost`, and succeed."""
        again = self.round_of(2, at_least=1)
        self.assertEqual({worker.node for worker in again}, {"n0", "n1", "n2"} - {f"n{lost}"})
        self.assertEqual({worker.restarts for worker in again}, {0})
        self.assertTrue(alive(members[f"n{lost}"].pid) or agents[lost].process.poll() is None)
        for worker in again:
            worker.tell("exit 0")
        self.assertEqual([agents[number].wait() for number in range(3) if number != lost], [0, 0])

    def nothing_new_ran_on(self, node):
        self.assertTrue(self.no_worker_waits())
        self.assertEqual([w.round for w in self._seen if w.node == node and w.round > 0], [])

    def cut_off(self, lost, code):
        # min 1: a half with one node would have enough nodes for a round, but must not start one.
        agents, members = self.three("1:3", f"{self.LIMITS},join_timeout=10")
        self.network.cut(lost)
        self.others_go_on(lost, agents, members)
        self.assertEqual(agents[lost].wait(), code)
        self.assertTrue(wait_gone(members[f"n{lost}"].pid))
        self.nothing_new_ran_on(f"n{lost}")

    def test_one_of_three_is_cut_off(self):
        self.cut_off(2, 201)

    def test_the_coordinator_is_cut_off(self):
        self.cut_off(0, 200)

    def fenced(self, lost, reason):
        """The workers of the lost node have ended when the others start without it. They did not end by themselves."""
        agents, members = self.three("1:3", "heartbeat_timeout=8,last_call_timeout=600,join_timeout=300")
        self.network.cut(lost)
        again = self.round_of(2, at_least=1)
        self.assertFalse(alive(members[f"n{lost}"].pid))
        self.assertIn(reason, agents[lost].output())
        self.assertIsNone(agents[lost].process.poll())
        self.network.heal(lost)
        everybody = self.round_of(3, at_least=2)
        self.assertNotIn(again[0].pid, [worker.pid for worker in everybody])
        for worker in everybody:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0, 0])

    def test_a_node_is_fenced(self):
        self.fenced(2, "no coordinator has answered for 6.4 s: a round may start without this node")

    def test_the_coordinator_is_fenced(self):
        self.fenced(0, "fell silent")

    def test_the_link_comes_back_in_time(self):
        for quiet in (1, 0):  # the link of a node, then that of the coordinator
            with self.subTest(cut=quiet):
                agents, members = self.three("3", "heartbeat_timeout=60")
                self.network.cut(quiet)
                packets = self.network.packets_from(1, 4)  # its report, sent several times
                for worker in members.values():  # their reports arrive when the link is back
                    worker.tell("exit 0")
                self.assertEqual(packets.wait(), 0)
                packets.stdout.close()
                self.network.heal(quiet)
                self.assertEqual([agent.wait() for agent in agents], [0, 0, 0])
                self.assertTrue(self.no_worker_waits())  # no worker was started again

    def comes_back_late(self, lost):
        """The others have gone on; the lost node is told so and takes part again, and nothing ran twice."""
        agents, members = self.three("2:3", f"{self.LIMITS},join_timeout=300")
        self.network.cut(lost)
        self.round_of(2, at_least=1)
        self.network.heal(lost)
        again = self.round_of(3, at_least=2)
        self.assertTrue(wait_gone(members[f"n{lost}"].pid))
        self.assertEqual({worker.node for worker in again}, {"n0", "n1", "n2"})
        self.assertEqual({worker.restarts for worker in again}, {0})
        for worker in again:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0, 0])

    def test_a_node_comes_back_late(self):
        self.comes_back_late(2)

    def test_the_coordinator_comes_back_late(self):
        self.comes_back_late(0)

    def two_nodes_cut_apart(self):
        """Neither half has a majority or proof; at most the coordinator's side may go on."""
        conf = f"{self.LIMITS},join_timeout=10"
        agents = [self.node(number, "1:2", conf) for number in range(2)]
        members = {worker.node: worker for worker in self.round_of(2, at_least=0)}
        self.network.cut(1)
        (alone,) = self.round_of(1, at_least=1)
        self.assertEqual(alone.node, "n0")
        alone.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 201])
        self.assertTrue(wait_gone(members["n1"].pid))
        self.nothing_new_ran_on("n1")

    def test_two_nodes_cut_apart_never_both_run(self):
        self.two_nodes_cut_apart()

    def test_the_coordinators_agent_dies_behind_a_cut(self):
        """No packet tells n1 that n0 is gone. A new n0 at the endpoint proves it, and both go on at once."""
        conf = "heartbeat_timeout=2,last_call_timeout=600,join_timeout=300"
        agents = [self.node(number, "1:2", conf) for number in range(2)]
        self.round_of(2, at_least=0)
        self.network.cut(0)
        agents[0].process.kill()
        agents[0].wait()
        self.wait_for_output(agents[1], "takes its place once most of the 2 nodes")
        self.network.heal(0)
        agents[0] = self.node(0, "1:2", conf)
        again = self.round_of(2, at_least=1)
        self.assertEqual({worker.restarts for worker in again}, {0})
        for worker in again:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_no_route_to_host_is_no_proof_of_death(self):
        self.two_nodes_cut_apart()


if __name__ == "__main__":
    main()
