# SPDX-License-Identifier: Apache-2.0
"""The old chart is installed, upgraded to the new one and rolled back, while jobs of each kind run."""

import os
import subprocess

from installation import NAMESPACE, ROOT, await_leader, install_definitions
from processes import Broken
from running_jobs import RunningJobs
from versions import NEW, OLD

RELEASE = "muster"
SETUP = [os.path.join(ROOT, "build-support", "setup-go-server"), "helm"]


class Helm(RunningJobs):
    def setUp(self):
        built = subprocess.run(SETUP, stdout=subprocess.PIPE, text=True)
        if built.returncode:
            self.skipTest("Helm could not be built")
        self.program = built.stdout.strip()
        super().setUp()

    def helm(self, *words):
        done = self.try_helm(*words)
        if done.returncode:
            raise Broken(f"helm {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def try_helm(self, *words):
        folders = {f"HELM_{part}_HOME": self.cluster.folder for part in ("CACHE", "CONFIG", "DATA")}
        return subprocess.run(
            self.cluster.inside([self.program, *words, "--namespace", NAMESPACE]),
            capture_output=True,
            text=True,
            env={**self.cluster.environment, **folders},
        )

    @staticmethod
    def chart(version):
        """The chart of the version, and the values for its images."""
        images = ("image", "agentImage", "initializerImage")
        return [
            os.path.join(version.sources, "charts", "muster"),
            *(word for image in images for word in ("--set", f"{image}.tag={version.name}")),
            *("--wait", "--timeout", "180s"),
        ]

    def upgrade(self, *flags):
        install_definitions(self.cluster, NEW.sources, "--force-conflicts")
        self.helm("upgrade", RELEASE, *self.chart(NEW), *flags)
        await_leader(self.cluster, NEW.name)

    def test_upgraded_and_rolled_back(self):
        switch = ("--set", "pytorchJobs.enabled=true")
        self.helm("install", RELEASE, *self.chart(OLD), *switch, "--create-namespace")
        self.addCleanup(self.helm, "uninstall", RELEASE, "--wait")
        await_leader(self.cluster, OLD.name)
        self.begin("old")
        before = self.pods()
        self.assertEqual(self.agents_of(), {OLD.name})
        reused = self.try_helm("upgrade", RELEASE, *self.chart(NEW), "--reuse-values", "--dry-run")
        if reused.returncode:  # the new chart has parts that the old one lacks
            self.assertIn("upgrade with --reset-then-reuse-values", reused.stderr)
        self.upgrade("--reset-then-reuse-values")
        self.step(1)
        self.assertEqual(self.pods(), before)
        names = self.begin("new", ("torch", "pytorch"))
        self.assertEqual(self.agents_of(*names), {NEW.name})
        before = self.pods()
        self.helm("rollback", RELEASE, "--wait", "--timeout", "180s")
        await_leader(self.cluster, OLD.name)
        self.step(2)
        self.assertEqual(self.pods(), before)
        self.all_succeed()
