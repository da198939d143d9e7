# SPDX-License-Identifier: Apache-2.0
"""`muster rsh` and `muster exec --serve-rsh` with hostile peers, with many sessions, and without a shell."""

import os
import re
import resource
import socket
import subprocess
import threading
import time
import unittest

from muster_case import DEADLINE, MUSTER, main, sanitized

import containers
from class_runner import EMULATED
from containers import Container
from remote_shells import RshCase, clean
from rsh_test import open_text
from strangers_test import ON_THE_CONTROL_PORT

SESSIONS = os.path.join(os.path.dirname(MUSTER), "rsh_sessions")


def held(pod):
    """The numbers of the pod's agent: descriptors, threads, bytes of memory."""
    status = open_text(f"/proc/{pod.pid}/status")
    return (
        len(os.listdir(f"/proc/{pod.pid}/fd")),
        int(re.search(r"Threads:\s+(\d+)", status)[1]),
        int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10,
    )


def children(pod):
    return open_text(f"/proc/{pod.pid}/task/{pod.pid}/children").split()


class Hardship(RshCase):
    def test_hostile_bytes(self):
        pod = self.pod()
        caller = self.begin(pod, "cat")
        open_ends = []
        for at_once, slowly in ON_THE_CONTROL_PORT.values():
            link = socket.create_connection((pod.host, pod.port), DEADLINE)
            open_ends.append(link)
            try:
                link.sendall(
                    at_once.replace(b"/muster.rendezvous.v1.Rendezvous/Attend", b"/muster.rsh.v1.RemoteShell/Session")
                )
                link.sendall(slowly)
            except OSError:
                pass  # the connection was closed meanwhile
            self.assertEqual(self.rsh(pod, "exit 3").returncode, 3)
        for link in open_ends:
            link.close()
        caller.stdin.write(b"still here")
        caller.stdin.close()
        self.assertEqual((self.code(caller), caller.stdout.read()), (0, b"still here"))

    def test_ten_thousand_sessions_leave_nothing(self):
        if not os.path.exists(SESSIONS):
            self.fail(f"{SESSIONS} was not built")
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        pod = self.pod()

        def sessions(count):
            done = subprocess.run(
                [SESSIONS, f"{pod.host}:{pod.port}", str(count), "8"],
                capture_output=True,
                text=True,
                env=clean(),
                timeout=250,
            )
            self.assertEqual(done.returncode, 0, done.stderr)

        sessions(1000)
        descriptors, threads, memory = held(pod)
        sessions(500 if sanitized() == "thread" or EMULATED else 9000)  # they are too slow for more
        ticker, end = threading.Event(), time.monotonic() + DEADLINE
        while (
            held(pod)[0] > descriptors + 4 or held(pod)[1] > threads + 2 or children(pod)
        ) and time.monotonic() < end:
            ticker.wait(0.01)  # in the pod, the last sessions end after their callers
        self.assertLessEqual(held(pod)[0], descriptors + 4)
        self.assertLessEqual(held(pod)[1], threads + 2)
        if not sanitized():
            self.assertLess(held(pod)[2] - memory, 4 << 20)
        self.assertEqual(children(pod), [])


class NoShell(RshCase):
    def test_an_image_without_a_shell(self):
        if reason := containers.why_not():
            raise unittest.SkipTest(reason)
        box = Container(self.dir, "scratch", ["/muster", "exec", "--serve-rsh", "--rsh-listen", "127.0.0.1:29522"])
        self.addCleanup(box.remove)
        process = self.with_pipes(box.command(), stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, text=True)
        while "serving the remote shell" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        done = subprocess.run(
            ["runc", "--root", box.state, "exec", box.name, "/muster", "rsh", "127.0.0.1", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        self.assertEqual(done.returncode, 127, done.stderr)
        self.assertIn("/bin/sh", done.stderr)
        box.kill("TERM")
        self.assertEqual(process.wait(DEADLINE), 143)


if __name__ == "__main__":
    main()
