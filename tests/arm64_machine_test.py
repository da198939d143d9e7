# SPDX-License-Identifier: Apache-2.0
"""The packages for arm64 on a whole emulated machine, with Debian's kernel for arm64 and nothing beside it but busybox.

with-arm64 emulates the processor alone, above this machine's kernel. Here ptrace and /proc are those of arm64: exits by
drill, stacks. The machine starts once, runs the scripts of CASES, and turns itself off.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import class_runner

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
sys.dont_write_bytecode = True
import debian_files
import package_tree

BUILD = os.path.dirname(os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin")))
EMULATOR = "qemu-system-aarch64"
SECONDS = 1700  # until the machine must have turned itself off: more than all cases may take
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/opt/bin:/bin HOME=/home
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
ip link set lo up
cd /home
for case in /cases/*; do
  echo "== $(basename $case)"
  timeout 200 sh $case 2>&1
  echo "== ended with $?"
done
poweroff -f
"""
JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s}
spec:
  runtimeRef: {name: plain}
  trainer: {numNodes: 1, command: [sh, -c, "%s"]}
"""
DRILL = "muster local -f /jobs/%s.yaml --kill node:0:exit=%s@first"
JOBS = {
    "greets": "uname -m; echo host $JOB_COMPLETION_INDEX",
    "sleeps": "echo first; sleep 1000",
    "counts": "if [ -e /tmp/counted ]; then echo again; exit; fi; touch /tmp/counted; echo first; while :; do :; done",
}
CASES = {
    "programs": "".join(f"{package.name} --version &&" for package in package_tree.PACKAGES) + "true",
    "job": "muster local -f /jobs/greets.yaml",
    "initializer": "mkdir d; echo 1 >d/one; muster-initializer dataset file:///home/d --to /home/copy; cat copy/one",
    "exit_of_a_sleeper": DRILL % ("sleeps", 3),
    "exit_of_a_counter": DRILL % ("counts", 143),
    "stacks": "sleep 1000 & muster stacks $!",
    "crash": "muster exec -- sh -c 'kill -SEGV $$'",
}


class Machine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in (EMULATOR, "cpio"):
            if not shutil.which(program):
                raise unittest.SkipTest(
                    f"SKIPPED: {program} is missing: run build-support/install-deps debian-packages-arm64.txt"
                )
        if debian_files.architecture_of(os.path.join(BUILD, "bin", "muster")) != "arm64":
            raise unittest.SkipTest(f"SKIPPED: {BUILD} is not for arm64: make arm64")
        with tempfile.TemporaryDirectory(prefix="muster-arm64-") as folder:
            cls.said = cls.run_machine(folder)

    @classmethod
    def run_machine(cls, folder):
        """Returns what each case has written, and how it has ended."""
        root = os.path.join(folder, "root")
        shutil.copytree(cls.root_of("busybox", "busybox-static"), root, symlinks=True)
        for name in ("proc", "dev", "tmp", "home", "cases", "jobs", "opt"):
            os.makedirs(os.path.join(root, name), exist_ok=True)
        build = package_tree.Build(BUILD, os.path.join(BUILD, "bin"), debian_files.debian_of(f"{BUILD}/bin/muster"))
        for package in package_tree.PACKAGES:
            package_tree.write(os.path.join(root, "opt"), package.name, build)
        for name, script in CASES.items():
            with open(os.path.join(root, "cases", name), "w") as file:
                file.write(script + "\n")
        for name, script in JOBS.items():
            with open(os.path.join(root, "jobs", f"{name}.yaml"), "w") as file:
                file.write(JOB % (name, script))
        with open(os.path.join(root, "init"), "w") as file:
            file.write(INIT)
        os.chmod(os.path.join(root, "init"), 0o755)
        disk = os.path.join(folder, "disk")
        subprocess.run(f"find . | cpio --quiet -o -H newc | gzip -1 >{disk}", shell=True, cwd=root, check=True)
        [kernel] = glob.glob(os.path.join(cls.root_of("kernel", "linux-image-cloud-arm64"), "boot/vmlinuz-*"))
        command = [EMULATOR, "-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", "2", "-m", "2G", "-nic", "none"]
        command += ["-nographic", "-no-reboot", "-kernel", kernel, "-initrd", disk]
        command += ["-append", "console=ttyAMA0 loglevel=0 panic=-1"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=SECONDS)
        said = done.stdout.decode(errors="replace").replace("\r", "")
        parts = re.findall(r"^== (\w+)\n(.*?)^== ended with (\d+)$", said, re.MULTILINE | re.DOTALL)
        if len(parts) != len(CASES):
            raise AssertionError(f"the machine has run {len(parts)} of {len(CASES)} cases:\n{said}")
        return {name: (int(code), text) for name, text, code in parts}

    @staticmethod
    def root_of(name, package):
        setup = os.path.join(ROOT, "build-support", "setup-root")
        done = subprocess.run(
            [setup, "--for", "arm64", f"{name}-arm64", "bookworm", package], capture_output=True, text=True
        )
        if done.returncode:
            raise unittest.SkipTest(f"SKIPPED: {done.stderr.strip()}")
        return done.stdout.strip()

    def ended(self, name, code):
        """What the case has written. It must have ended with `code`."""
        ended, text = self.said[name]
        self.assertEqual(ended, code, text)
        return text

    def test_the_programs_run(self):
        said = self.ended("programs", 0)
        for package in package_tree.PACKAGES:
            self.assertRegex(said, rf"(?m)^{package.name} \d")

    def test_a_job_runs(self):
        said = self.ended("job", 0)
        self.assertIn("[greets-node-0-0] aarch64", said)
        self.assertIn("[greets-node-0-0] host 0", said)

    def test_the_initializer_copies(self):
        self.assertTrue(self.ended("initializer", 0).endswith("\n1\n"))

    def test_a_drill_makes_a_process_exit(self):
        """In a system call, and in none. A code below 128 ends the job; after the other it starts again."""
        said = self.ended("exit_of_a_sleeper", 3)
        self.assertRegex(said, r"drill node:0:exit=3@first: node 0 on .* ends with 3")
        said = self.ended("exit_of_a_counter", 0)
        self.assertRegex(said, r"drill node:0:exit=143@first: node 0 on .* ends with 143")
        self.assertIn("again", said)

    def test_stacks_come_from_the_kernel(self):
        said = self.ended("stacks", 0)
        self.assertRegex(said, r"process \d+ \(sleep\)")
        self.assertRegex(said, r"hrtimer_nanosleep|nanosleep")

    def test_a_signal_of_a_process_is_its_end(self):
        self.assertIn("SIGSEGV", self.ended("crash", 139))


if __name__ == "__main__":
    class_runner.main()
