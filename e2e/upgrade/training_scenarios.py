# SPDX-License-Identifier: Apache-2.0
"""PyTorch trains under agents of both versions, with the store of one of them, and goes on from a checkpoint of the
other one. The losses depend neither on interruptions nor on the number of workers."""

import functools
import json
import os
import subprocess
import tempfile
import time
import unittest

import torch_programs
import versions
from training_run import TRAIN, TrainingRun, digits_file, epochs_done, free_port

EPOCHS = 8
SECONDS = 400  # until something that takes some seconds has happened


@functools.lru_cache
def undisturbed():
    """The loss after each epoch, of one process that no agent has started."""
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    with tempfile.TemporaryDirectory(prefix="muster-upgrade-") as folder:
        words = ["--epochs", str(EPOCHS), "--checkpoints", f"{folder}/checkpoints", "--events", f"{folder}/events"]
        subprocess.run(
            [torch_programs.PYTHON, TRAIN, "--data", digits_file(), "--min-accuracy", "0", *words],
            env={**os.environ, **alone},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with open(f"{folder}/events") as file:
            return json.loads(file.readlines()[-1])["history"]


class MixedRun(TrainingRun):
    """Each node has the agent that `agents` names."""

    agents = {}

    def _agent(self, name, host):
        command, environment = super()._agent(name, host)
        return [self.agents[name], *command[1:]], environment


class Trains:
    """A mixin of TestCase, beside OldFirst or NewFirst: the first version's agent coordinates and has the store."""

    def setUp(self):
        if missing := torch_programs.missing():
            self.skipTest(f"there is {missing}")
        folder = tempfile.TemporaryDirectory(prefix="muster-upgrade-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.deadline = time.monotonic() + SECONDS
        self.events = []

    def training(self, *options, name="run", **agents):
        """Starts the nodes, with train.py on 2 workers each; the first one owns the endpoint."""
        folder = os.path.join(self.folder, name)
        checkpoints = os.path.join(self.folder, "checkpoints")
        run = MixedRun(
            folder,
            python=torch_programs.PYTHON,
            nnodes=str(len(agents)),
            nproc=1,
            run_options=["--max-restarts", "3"],
            train_options=[
                *("--data", digits_file(), "--epochs", str(EPOCHS), "--min-accuracy", "0"),
                *("--checkpoints", checkpoints, "--epoch-seconds", "0.3"),
                *options,
            ],
        )
        self.addCleanup(run.close)
        run.agents = {node.replace("_", "-"): version.muster for node, version in agents.items()}
        for index, node in enumerate(run.agents):
            run.start_node(node, host=index == 0)
        return run

    def until(self, run, wanted):
        return run.wait_for(wanted, self.deadline, self.events.append)

    def finish(self, run):
        left = {name for name, node in run.nodes.items() if not node.killed}
        while left:
            event = self.until(run, lambda event: event["event"] == "node_ended")
            if event["node"] in left:
                self.assertEqual(event["code"], 0, run.tails())
                left.remove(event["node"])

    def worlds(self):
        return [event["world"] for event in self.events if event["event"] == "start"]

    def check_epochs(self):
        """Each epoch has come once, in its order, with the loss of the undisturbed run."""
        done = epochs_done(self.events)
        self.assertEqual([epoch for epoch, _ in done], list(range(1, EPOCHS + 1)))
        for (epoch, loss), expected in zip(done, undisturbed()):
            self.assertAlmostEqual(loss, expected, delta=1e-4, msg=f"epoch {epoch}")

    def test_three_nodes(self):
        self.finish(self.training(node_0=self.first, node_1=self.second, node_2=self.first))
        self.assertEqual(self.worlds(), [3])
        self.check_epochs()

    def test_a_worker_of_each_version_is_killed(self):
        faults = ("--fault", "kill:rank=0,epoch=3", "--fault", "kill:rank=1,epoch=5,attempt=1")
        self.finish(self.training(*faults, node_0=self.first, node_1=self.second))
        self.assertEqual(self.worlds(), [2, 2, 2])
        self.check_epochs()

    def test_the_other_version_replaces_a_node(self):
        run = self.training(node_0=self.first, node_1=self.first)
        self.until(run, lambda event: event["event"] == "epoch" and event["epoch"] >= 3)
        run.kill_node("node-1", self.deadline)
        run.agents["node-2"] = self.second.muster
        run.start_node("node-2", host=False)
        self.finish(run)
        self.assertEqual(self.worlds(), [2, 2])
        self.check_epochs()

    def test_a_checkpoint_of_the_other_version(self):
        """The whole job is stopped under one version, and started again under the other one."""
        run = self.training(node_0=self.first, node_1=self.first)
        self.until(run, lambda event: event["event"] == "epoch" and event["epoch"] >= 3)
        for node in run.nodes:
            run.kill_node(node, self.deadline)
        again = self.training(name="again", node_0=self.second, node_1=self.second)
        self.finish(again)
        starts = [event for event in self.events if event["event"] == "start"]
        self.assertEqual([event["world"] for event in starts], [2, 2])
        self.assertGreaterEqual(starts[1]["epoch"], 3)
        self.check_epochs()


class OldStore(Trains, versions.OldFirst, unittest.TestCase):
    pass


class NewStore(Trains, versions.NewFirst, unittest.TestCase):
    pass
