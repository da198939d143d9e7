# SPDX-License-Identifier: Apache-2.0
"""The agent in real containers: from scratch (the static binary alone), Debian, an old glibc, musl; not as root, on a
read-only root."""

import glob
import json
import os
import shutil
import subprocess
import unittest

from muster_case import DEADLINE, HERE, MusterCase, main

import containers
from containers import Container, bind, debian_root


class ContainerCase(MusterCase):
    @classmethod
    def setUpClass(cls):
        if reason := containers.why_not():
            raise unittest.SkipTest(reason)

    def setUp(self):
        super().setUp()
        self.log = os.path.join(self.dir, "termination-log")
        self.message = bind(self.log, "/dev/termination-log", writable=True)

    def box(self, image, *command, mounts=(), **more):
        with open(self.log, "w"):
            pass
        os.chmod(self.log, 0o666)  # the mode that the kubelet gives it
        box = Container(self.dir, image, list(command), mounts=[*mounts, self.message], **more)
        self.addCleanup(box.remove)
        return box

    def begin(self, box):
        return self.with_pipes(box.command(), stdin=subprocess.DEVNULL, text=True)

    def left(self):
        with open(self.log) as file:
            return json.load(file)

    def installed(self):
        """A volume filled by an init container that has the binary and nothing else."""
        shared = os.path.join(self.dir, "volume")
        os.mkdir(shared)
        os.chmod(shared, 0o777)
        done = self.box(
            "scratch", "/muster", "install", "/volume/bin", mounts=[bind(shared, "/volume", writable=True)]
        ).run()
        self.assertEqual(done.returncode, 0, done.stderr)
        return bind(shared, "/muster")


class Containers(ContainerCase):
    def test_from_scratch(self):
        done = self.box("scratch", "/muster", "exec", "--", "/muster", "version").run()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("rendezvous protocol", done.stdout)
        self.assertEqual(self.left()["class"], "success")
        done = self.box("scratch", "/muster", "exec", "--", "python", "train.py").run()
        self.assertEqual(done.returncode, 127)
        self.assertEqual(self.left()["host"], "pod-0")
        self.assertIn("python", self.left()["cause"]["error_message"])

    def test_the_runtimes_signal_ends_it(self):
        box = self.box("scratch", "/muster", "exec", "--", "/muster", "store", "--host", "127.0.0.1", "--port", "0")
        process = self.begin(box)
        self.assertIn("listening on", process.stdout.readline())
        box.kill("TERM")
        self.assertEqual(process.wait(DEADLINE), 143)
        self.assertEqual(self.left()["reason"], "preempted: SIGTERM")

    def test_exit_codes_and_signals_in_debian(self):
        volume = self.installed()
        for script, code in (("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)):
            done = self.box("debian", "/muster/bin/muster", "exec", "--", "sh", "-c", script, mounts=[volume]).run()
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(self.left()["exit_code"], code)
            self.assertFalse(self.left().get("cause", {}).get("oom_killed", False))

    def test_a_torchrun_inside_an_unchanged_image(self):
        volume = self.installed()
        worker = (
            "echo $RANK; [ $RANK = 1 ] || { : >/tmp/said; sleep 1000; }; until [ -e /tmp/said ]; do :; done; exit 5"
        )
        script = f"torchrun --nproc-per-node 2 --no-python sh -c '{worker}'"
        done = self.box(
            "debian", "/muster/bin/muster", "exec", "--", "sh", "-c", script, user=2000, mounts=[volume]
        ).run()
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(sorted(done.stdout.split()), ["0", "1"])
        self.assertEqual((self.left()["class"], self.left()["cause"]["rank"]), ("fatal", 1))

    def test_without_a_place_for_logs(self):
        box = self.box(
            "debian",
            "/muster/bin/torchrun",
            "--no-python",
            "sh",
            "-c",
            "echo $RANK; exit 6",
            tmp=False,
            mounts=[self.installed()],
        )
        done = box.run()
        self.assertEqual((done.returncode, done.stdout), (6, "0\n"), done.stderr)
        self.assertIn("no logs are kept", done.stderr)

    def test_killed_for_memory(self):
        eater = "import sys; print('here', flush=True); b = bytearray(1 << 30)"
        done = self.box(
            "debian",
            "/muster/bin/muster",
            "exec",
            "--",
            "/usr/bin/python3",
            "-c",
            eater,
            memory=64 << 20,
            mounts=[self.installed()],
        ).run()
        self.assertEqual((done.returncode, done.stdout), (137, "here\n"), done.stderr)
        self.assertTrue(self.left()["cause"]["oom_killed"])
        self.assertIn("out of memory", self.left()["reason"])

    def test_a_child_of_the_command_is_killed_for_memory(self):
        volume = self.installed()
        eater = "python3 -c 'b = bytearray(1 << 30)'"
        for script, code, words in (
            (f"{eater}; exit $?", 137, "(out of memory)"),
            (f"{eater} || exit 3", 3, "(a process that it started was killed: out of memory)"),
        ):
            done = self.box(
                "debian", "/muster/bin/muster", "exec", "--", "/bin/sh", "-c", script, memory=64 << 20, mounts=[volume]
            ).run()
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertTrue(self.left()["cause"]["oom_killed"])
            self.assertIn(words, self.left()["reason"])

    def test_as_many_workers_as_the_container_has_cpus(self):
        done = self.box(
            "debian",
            "/muster/bin/muster",
            "exec",
            "--wire=torch",
            "--nproc-per-node=cpu",
            "--no-python",
            "--",
            "sh",
            "-c",
            "echo $WORLD_SIZE",
            mounts=[self.installed()],
            cpus=1,
        ).run()
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)


class FirstProcess(ContainerCase):
    """The duties of an init, with signals from a real runtime, as the kubelet has them sent."""

    def started(self, script, *flags, **more):
        box = self.box(
            "debian",
            "/muster/bin/muster",
            "exec",
            *flags,
            "--",
            "/usr/bin/python3",
            "-c",
            script,
            mounts=[self.installed()],
            **more,
        )
        process = self.begin(box)
        self.assertEqual(process.stdout.readline(), "ready\n", process.poll())
        return box, process

    def test_signals_reach_a_grandchild(self):
        box, process = self.started(
            """
import os, signal
numbers = [signal.SIGHUP, signal.SIGUSR1, signal.SIGWINCH, signal.SIGTERM]
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
def listen(who):
    while number := signal.sigwait(numbers): os.write(1, f"{who} {number.name}\\n".encode())
ready, told = os.pipe()
if os.fork() == 0:
    os.write(told, b".")
    listen("grandchild")
os.read(ready, 1)
os.write(1, b"ready\\n")
listen("command")
""",
            "--shutdown-timeout",
            "100000",
        )
        for name in ("HUP", "USR1", "WINCH", "TERM"):
            box.kill(name)
            self.assertEqual(
                {process.stdout.readline() for _ in range(2)}, {f"command SIG{name}\n", f"grandchild SIG{name}\n"}
            )
        box.kill("TERM")
        self.assertEqual(process.wait(DEADLINE), 143)
        self.assertEqual(self.left()["reason"], "preempted: SIGTERM")

    def test_the_commands_own_answer_to_the_runtimes_signal(self):
        box, process = self.started("""
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.write(1, b"ready\\n")
signal.sigwait([signal.SIGTERM])
sys.exit(3)
""")
        box.kill("TERM")
        self.assertEqual(process.wait(DEADLINE), 3)

    def test_orphans_leave_no_zombie(self):
        """There are more orphans than the container's limit of processes allows."""
        _, process = self.started("""
import os, threading
pause = threading.Event()
def others():
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
for _ in range(20):
    gate, opened = os.pipe()
    if os.fork() == 0:
        os.close(opened)
        for _ in range(100):
            if os.fork() == 0:
                os.read(gate, 1)
                os._exit(0)
        os._exit(0)
    os.close(gate)
    os.wait()
    parents = set()
    for pid in others():
        with open(f"/proc/{pid}/stat") as stat: parents.add(stat.read().rpartition(")")[2].split()[1])
    assert parents == {"1"}, parents
    os.close(opened)
    while others(): pause.wait(0.001)
os.write(1, b"ready\\n")
os._exit(9)
""")
        self.assertEqual(process.wait(DEADLINE), 9, process.stderr.read())

    def test_a_stopped_command_is_ended(self):
        box, process = self.started("""
import os, signal
if os.fork() == 0:
    os.write(1, b"ready\\n")
    os.kill(os.getppid(), signal.SIGSTOP)
    while True: signal.pause()
while True: signal.pause()
""")
        box.kill("TERM")
        self.assertEqual(process.wait(DEADLINE), 143)


class Foreign:
    """Tests for images with a libc of their own. The agent must not use that libc, whose name services are modules."""

    def image(self):
        """A root without an /etc, in a folder of the test."""
        root = os.path.join(self.dir, "image")
        os.makedirs(os.path.join(root, "etc"))
        return root

    def setUp(self):
        super().setUp()
        self.root = self.image()
        for name, text in (
            ("passwd", "trainer:x:1000:1000::/home/trainer:/bin/sh\n"),
            ("resolv.conf", "nameserver 127.0.0.1\n"),
            ("hosts", "127.0.0.1 localhost\n127.0.0.1 pod-0.job.default.svc pod-0\n"),
            ("nsswitch.conf", "passwd: compat files\nhosts: files mdns4_minimal dns\n"),
        ):
            with open(os.path.join(self.root, "etc", name), "w") as file:
                file.write(text)

    def run_in_it(self, *arguments):
        return self.box(self.root, *arguments, mounts=[self.installed()]).run()

    def test_codes_pass(self):
        done = self.run_in_it("/muster/bin/muster", "exec", "--", *self.program, *self.ending(7))
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(self.left()["exit_code"], 7)

    def test_nodes_that_meet_by_name(self):
        done = self.run_in_it(
            "/muster/bin/muster",
            "exec",
            "--",
            "torchrun",
            "--nodes-on-this-machine",
            "2",
            "--nnodes",
            "2",
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            "pod-0.job.default.svc:29400",
            "--no-python",
            *self.program,
            *self.ending(0),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            sorted(line.split("rank ")[1] for line in done.stdout.splitlines() if "rank " in line),
            ["0, home /home/trainer", "1, home /home/trainer"],
            done.stdout + done.stderr,
        )


class OldGlibc(Foreign, ContainerCase):
    """glibc 2.31, with its own name service modules where a static glibc would look for them."""

    program = ["/bin/sh", "-c"]

    @staticmethod
    def ending(code):
        return [f"echo rank ${{RANK-none}}, home ~trainer; exit {code}"]

    def image(self):
        old, why_not = debian_root("debian-11", "bullseye", "dash", "coreutils")
        if why_not:
            self.skipTest(why_not)
        root = super().image()
        subprocess.run(["cp", "-a", f"{old}/.", root], check=True)
        return root


class Musl(Foreign, ContainerCase):
    """No glibc at all, as in Alpine's images."""

    program = ["/bin/program"]

    @staticmethod
    def ending(code):
        return [str(code)]

    def image(self):
        if shutil.which("musl-gcc") is None:
            self.skipTest("SKIPPED: musl-gcc is not installed")
        root = super().image()
        for folder in ("bin", "lib"):
            os.mkdir(os.path.join(root, folder))
        program = os.path.join(HERE, "musl_program.c")
        subprocess.run(["musl-gcc", "-O1", "-o", os.path.join(root, "bin", "program"), program], check=True)
        (loader,) = glob.glob("/lib/ld-musl-*.so.1")
        shutil.copy(loader, os.path.join(root, "lib"))
        return root


if __name__ == "__main__":
    main()
