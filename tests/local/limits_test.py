# SPDX-License-Identifier: Apache-2.0
"""resources.limits: by cgroup v2, of this machine or, where its cgroups are older, of a Linux of the test's own."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import BIN, LocalCase, plain_job, runtime

import class_runner  # local_case.py says where it is
import own_linux
from sanitizer import sanitizer_of

ONCE = "failurePolicy: {maxRestarts: 0},"
CGROUP = "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)"


def limited(name, script, limits):
    containers = f"containers: [{{name: node, image: i, resources: {{limits: {limits}}}}}]"
    return plain_job(name, script, runtime_name=name), runtime(name, containers, spec=ONCE)


class Limits(LocalCase):
    def test_they_are_set_or_one_line_says_why_not(self):
        """On this machine, whatever its cgroups are."""
        said = self.run_job(*limited("set", f"cat {CGROUP}/cpu.max || true", "{cpu: 250m, memory: 1Gi}"))
        if "limits of CPU and memory are not set" in said:
            self.assertEqual(said.count("limits of CPU and memory are not set: "), 1, said)
        else:
            self.assertIn("25000 100000", said)

    def test_gpus_that_are_not_there_are_said(self):
        said = self.run_job(*limited("gpus", "echo runs", "{nvidia.com/gpu: 1000}"))
        self.assertRegex(said, r"resources.limits.nvidia.com/gpu: 1000 asked for, this machine has \d+")
        self.assertIn("runs", said)


class OwnLinux(LocalCase):
    """With cgroup v2, in its root or in a cgroup as systemd makes one for a scope."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if sanitizer_of(f"{BIN}/muster-local") is not None:
            raise unittest.SkipTest("SKIPPED: a sanitizer's shadow memory does not fit into user-mode Linux")
        own_linux.require()

    def command(self, name, script, limits, binary=f"{BIN}/muster-local"):
        files = [self.file(f"{name}-{i}.yaml", text) for i, text in enumerate(limited(name, script, limits))]
        return f"{binary} --network shared -f {files[0]} -f {files[1]}"

    def run_script(self, script):
        code, said = own_linux.run(script, self.folder, XDG_STATE_HOME=os.path.join(self.folder, "state"))
        self.assertEqual(code, 0, said)
        return said

    def test_they_are_set_and_removed(self):
        shows = f"cat /proc/self/cgroup {CGROUP}/cpu.max {CGROUP}/memory.max"
        said = self.run_script(
            self.command("set", shows, "{cpu: 250m, memory: 200Mi}")
            + "; code=$?; ls -d /sys/fs/cgroup/muster*; exit $code"
        )
        self.assertRegex(said, r"0::/muster-local\.set/set-node-0-0[^/]*/node")
        for line in ("25000 100000", str(200 << 20)):
            self.assertIn(f"] {line}\n", said)
        self.assertRegex(said, r"ls: .*No such file")
        self.assertNotIn("are not set", said)

    def test_too_much_memory_is_oomkilled(self):
        """All of the container, and no other."""
        eats = (
            f"sh -c 'echo I stay > {self.folder}/stays; sleep 1000' & {sys.executable} -c 'a = [b\"x\" * (1 << "
            f"20) for _ in range(400)]'; echo ate"
        )
        said = self.run_script(self.command("oom", eats, "{memory: 100Mi}") + "; code=$?; ps ax; [ $code = 137 ]")
        self.assertNotIn("ate\n", said)
        self.assertRegex(said, "out of memory|OOMKilled")
        self.assertNotIn("sleep 1000", said)
        self.assertNotIn("are not set", said)

    def test_in_a_scope(self):
        """muster local moves out of a cgroup that it has for itself, so that this can have children, and back."""
        scope = "/sys/fs/cgroup/scope"
        said = self.run_script(f"""mkdir {scope}; echo '+cpu +memory' > /sys/fs/cgroup/cgroup.subtree_control
          sh -c 'echo $$ > {scope}/cgroup.procs; exec {self.command("scoped", "cat /proc/self/cgroup", "{cpu: 1}")}'
          code=$?; echo left $(ls -d {scope}/*/) $(cat {scope}/cgroup.procs); exit $code""")
        self.assertRegex(said, r"0::/scope/muster-local\.scoped/")
        self.assertIn("left \n", said.replace("left\n", "left \n"))

    def test_a_run_that_was_killed_leaves_a_cgroup_that_the_next_one_removes(self):
        command = self.command("killed", f"echo > {self.folder}/here; cat {self.folder}/again", "{cpu: 1}")
        said = self.run_script(f"""mkfifo here again gone; {command} > gone 2>&1 & started=$!
          (cat here; kill -9 $started) & cat gone; echo left $(ls -d /sys/fs/cgroup/muster-local.*)
          (cat here; echo again > again) & {command}; code=$?
          echo then $(ls -d /sys/fs/cgroup/muster-local.* 2>/dev/null); exit $code""")
        self.assertIn("left /sys/fs/cgroup/muster-local.killed", said)
        self.assertIn("] again", said)
        self.assertRegex(said, r"then ?\n")

    def test_a_user_without_cgroups_is_told_the_remedy(self):
        command = self.command("user", "echo runs", "{cpu: 1}", self.copy_for_all())
        said = self.run_script(
            f"export XDG_STATE_HOME=/mnt/state; setpriv --reuid=65534 --regid=65534 --clear-groups {command}"
        )
        self.assertEqual(said.count("limits of CPU and memory are not set: "), 1, said)
        self.assertIn("systemd-run --user --scope", said)
        self.assertIn("] runs", said)


if __name__ == "__main__":
    class_runner.main()
