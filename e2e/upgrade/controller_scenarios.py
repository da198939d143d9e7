# SPDX-License-Identifier: Apache-2.0
"""The controller is upgraded and rolled back while jobs of each kind run, on a real Kubernetes. The definitions are
applied before it, as docs/install.md says, or after it."""

from installation import await_leader, install_controller, install_definitions
from running_jobs import RunningJobs
from versions import NEW, OLD


class Upgrades(RunningJobs):
    def setUp(self):
        super().setUp()
        install_definitions(self.cluster, OLD.sources)
        self.lead(OLD)

    def lead(self, version, agent=None):
        """Installs the controller of that version. `agent`: the version of the agents in new pods, if it is another."""
        agent = (agent or version).name
        install_controller(self.cluster, version.name, version.sources, agent)
        await_leader(self.cluster, version.name)

    def test_rolled_back(self):
        """New definitions, the new controller, jobs of it; then all of the old version, which ends all jobs."""
        self.begin("old")
        before = self.pods()
        install_definitions(self.cluster, NEW.sources)
        self.lead(NEW)
        self.step(1)
        self.assertEqual(self.pods(), before)
        names = self.begin("new", ("torch", "pytorch"))
        self.assertEqual(self.agents_of(*names), {NEW.name})
        before = self.pods()
        install_definitions(self.cluster, OLD.sources)
        self.lead(OLD)
        self.step(2)
        self.assertEqual(self.pods(), before)
        self.all_succeed()

    def test_definitions_last(self):
        """The new controller meets the old definitions. Jobs of the old one are ended by the new one."""
        self.begin("old")
        before = self.pods()
        self.assertEqual(self.agents_of(), {OLD.name})
        self.lead(NEW)
        self.step(1)
        install_definitions(self.cluster, NEW.sources)
        self.step(2)
        self.assertEqual(self.pods(), before)
        self.all_succeed()

    def runs_with_agents_of(self, controller, agent):
        if controller is NEW:
            install_definitions(self.cluster, NEW.sources)
        self.lead(controller, agent)
        names = self.begin("mixed")
        self.assertEqual(self.agents_of(*names), {agent.name})
        before = self.pods()
        for number in (1, 2):
            self.step(number)
        self.assertEqual(self.pods(), before)
        self.all_succeed()

    def test_old_agents_of_the_new_controller(self):
        self.runs_with_agents_of(NEW, OLD)

    def test_new_agents_of_the_old_controller(self):
        self.runs_with_agents_of(OLD, NEW)
