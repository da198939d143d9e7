# SPDX-License-Identifier: Apache-2.0
"""What is left of a run that a signal ends: SIGHUP of a closed terminal, SIGKILL of `muster local`, and of its guard,
too."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import BIN, DEADLINE, CommandCase, OpenCase, clean, plain_job, runtime, wait_gone

import class_runner  # local_case.py says where it is

SECRET = """
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {text: of-this-test-alone}
"""
WITH_SECRET = (
    "containers: [{name: node, image: i, volumeMounts: [{name: s, mountPath: /srv/key}]}], volumes: [{name: s, "
    "secret: {secretName: key}}]"
)
# A process that has left its group and lost its parent.
LEAVES = "setsid sh -c 'echo pid $$; exec sleep infinity' & exec sleep infinity"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def guard_of(pid):
    own = os.readlink(f"/proc/{pid}/exe")
    return next(child for child in children(pid) if os.readlink(f"/proc/{child}/exe") == own)


class Secrets(CommandCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.muster, "stop", "--all", "--now")

    def files(self):
        """The paths of all copies of the Secret, each with the modes of the file and of the folders above it."""
        found = {}
        for folder, _, names in os.walk(self.path("secret")):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.getsize(path) > 1 << 20:  # the agent's binary
                    continue
                with open(path, errors="replace") as file:
                    if "of-this-test-alone" not in file.read():
                        continue
                parts = os.path.relpath(path, self.path("secret")).split("/")
                found[path] = [
                    os.stat(self.path("secret", *parts[:i])).st_mode & 0o777 for i in range(1, len(parts) + 1)
                ]
        return found

    def running(self, script="cat /srv/key/text; echo; echo up; exec sleep infinity"):
        job = self.start(plain_job("secret", script, runtime_name="s"), runtime("s", WITH_SECRET) + SECRET)
        job.await_("] up")
        return job

    def test_copies_are_the_users_alone_and_go_at_the_end(self):
        job = self.running()
        self.assertIn("] of-this-test-alone", job.said)
        (modes,) = [modes for path, modes in self.files().items() if "/logs/" not in path]
        self.assertEqual(modes[-1], 0o600)
        self.assertIn(0o700, modes[:-1])
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 143)
        self.assertEqual([path for path in self.files() if "/logs/" not in path], [])

    def test_they_go_after_a_kill(self):
        job = self.running()
        guard = guard_of(job.process.pid)
        job.process.kill()
        job.wait()
        self.assertTrue(wait_gone(guard))
        self.assertEqual([path for path in self.files() if "/logs/" not in path], [])

    def test_they_go_with_stop_if_the_guard_was_killed_too(self):
        job = self.running()
        os.kill(guard_of(job.process.pid), signal.SIGKILL)
        job.process.kill()
        job.wait()
        self.assertNotEqual([path for path in self.files() if "/logs/" not in path], [])
        self.assertIn("none of its processes is left", self.muster("stop", "secret"))
        self.assertEqual([path for path in self.files() if "/logs/" not in path], [])


class Left(OpenCase, CommandCase):
    """Without bubblewrap no PID namespace ends the processes."""

    def running(self):
        job = self.start(plain_job("left", LEAVES))
        pid = int(job.await_(r"\] pid (\d+)")[1])
        self.addCleanup(self.muster, "stop", "--all")
        return job, pid

    def test_all_end_with_it(self):
        job, pid = self.running()
        job.process.kill()
        job.wait()
        self.assertTrue(wait_gone(pid))

    def test_what_is_left_is_said_and_stopped(self):
        job, pid = self.running()
        os.kill(guard_of(job.process.pid), signal.SIGKILL)
        job.process.kill()
        job.wait()
        self.assertIn("Lost", self.muster("ps"))
        said = re.search("these of its processes are left: (.*); `muster stop left` ends them", self.muster("ps"))
        self.assertIn(str(pid), said[1].split(", "))
        self.assertIn("none of its processes is left", self.muster("stop", "left"))
        self.assertTrue(wait_gone(pid))
        self.assertIn("none of its processes is left", self.muster("ps"))

    def test_the_next_start_ends_them(self):
        job, pid = self.running()
        os.kill(guard_of(job.process.pid), signal.SIGKILL)
        job.process.kill()
        job.wait()
        self.assertIn("the previous run was killed", self.run_job(plain_job("left", "true")))
        self.assertTrue(wait_gone(pid))


class Signals(CommandCase):
    def test_a_closed_terminal(self):
        """The pods have their grace, and the end is recorded."""
        bye = os.path.join(self.folder, "bye")
        path = self.file(
            "job.yaml",
            plain_job("closed", f"trap 'echo bye > {bye}; exit 0' TERM; echo up; while :; do sleep 0.05; done"),
        )
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(
                os.path.join(BIN, "muster-local"),
                ["muster-local", "-f", path],
                clean(XDG_STATE_HOME=os.path.join(self.folder, "state"), TERM="xterm"),
            )
        said = b""
        while b"] up" not in said:
            said += os.read(terminal, 4096)
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 128 + signal.SIGHUP)
        with open(bye) as file:
            self.assertEqual(file.read(), "bye\n")
        with open(self.path("closed", "run.json")) as file:
            record = json.load(file)
        self.assertEqual((record["state"], record["exit_code"]), ("Stopped", 128 + signal.SIGHUP))

    def test_a_run_under_nohup_goes_on_after_a_hangup(self):
        path = self.file(
            "job.yaml",
            plain_job("stays", f"echo > {self.folder}/up; while [ ! -e {self.folder}/go ]; do sleep 0.05; done"),
        )
        os.mkfifo(os.path.join(self.folder, "up"))
        run = subprocess.Popen(
            ["nohup", os.path.join(BIN, "muster-local"), "-f", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )
        self.addCleanup(run.kill)
        with open(os.path.join(self.folder, "up")) as up:
            up.read()  # all of it: the program would get SIGPIPE
        run.send_signal(signal.SIGHUP)
        self.file("go", "")
        said, _ = run.communicate(timeout=DEADLINE)
        self.assertEqual(run.returncode, 0, said)

    def test_a_stopped_run_says_so(self):
        job = self.start(plain_job("asked", "trap '' TERM; echo up; while :; do sleep 0.05; done"))
        job.await_("] up")
        job.process.send_signal(signal.SIGINT)
        job.await_("SIGINT: the pods are stopped, and have their grace period to end; a second Ctrl-C kills them")
        job.process.send_signal(signal.SIGHUP)  # does not shorten the grace
        job.process.send_signal(signal.SIGINT)
        job.await_("the pods are killed")
        self.assertEqual(job.wait(), 130)
        self.assertIn("TrainJob asked: Stopped: by SIGINT", job.said)


if __name__ == "__main__":
    class_runner.main()
