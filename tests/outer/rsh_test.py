# SPDX-License-Identifier: Apache-2.0
"""`muster rsh` and `muster exec --serve-rsh` over loopback: streams, codes, signals, and every way to end."""

import concurrent.futures
import os
import select
import shlex
import signal
import socket
import subprocess
import threading
import time

from muster_case import DEADLINE, MUSTER, alive, main, wait_gone

from class_runner import EMULATED
from credentials_test import Authority
from remote_shells import RshCase, clean

BAD_CONFIGURATION = 78
NOT_REACHED = 200
PEER_LOST = 202

# A process group with a child, and a process that has left for a session of its own; prints their ids, then waits.
FAMILY = "sleep 1000 & child=$!; setsid sh -c 'echo $$; exec sleep 1001' & read go; echo $child; echo $$; wait"


class Streams(RshCase):
    def test_exit_codes(self):
        pod = self.pod()
        with concurrent.futures.ThreadPoolExecutor(4) as callers:
            codes = list(callers.map(lambda code: self.rsh(pod, f"exit {code}").returncode, range(256)))
        self.assertEqual(codes, list(range(256)))

    def test_signals_are_codes(self):
        pod = self.pod()
        for name in ("HUP", "KILL", "TERM", "SEGV", "USR1"):
            done = self.rsh(pod, f"kill -{name} $$")
            self.assertEqual(done.returncode, 128 + signal.Signals["SIG" + name], name)

    def test_arguments_are_joined_as_ssh_does(self):
        pod = self.pod()
        self.assertEqual(self.rsh(pod, " echo", "'a  b'", "'c  d'", ";", "echo", "$0").stdout, b"a  b c  d\n/bin/sh\n")
        self.assertEqual(self.rsh(pod, "printf", "'\\377'").stdout, b"\xff")

    def test_a_command_that_is_none(self):
        done = self.rsh(self.pod(), "no-such-command")
        self.assertEqual(done.returncode, 127)
        self.assertIn(b"no-such-command", done.stderr)

    def test_bytes_go_both_ways_at_once(self):
        pod = self.pod()
        data = os.urandom(20_000_000)
        done = self.rsh(pod, "cat", input=data)
        self.assertEqual((done.returncode, done.stdout == data, done.stderr), (0, True, b""))

    def test_stderr_is_apart(self):
        pod = self.pod()
        data = os.urandom(3_000_000)
        done = self.rsh(pod, "tee /dev/stderr", input=data)
        self.assertEqual((done.returncode, done.stdout == data, done.stderr == data), (0, True, True))
        done = self.rsh(pod, "echo out; echo err >&2; exit 3")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, b"out\n", b"err\n"))

    def test_a_command_that_closes_its_stdin_early(self):
        pod = self.pod()
        self.assertEqual(self.rsh(pod, "exec <&-; echo closed; exit 4", input=os.urandom(20_000_000)).returncode, 4)
        caller = self.begin(pod, "head -c 3; exit 5")  # our end of stdin stays open
        caller.stdin.write(b"abcdef")
        caller.stdin.flush()
        self.assertEqual((self.code(caller), caller.stdout.read()), (5, b"abc"))

    def test_streams_that_are_closed_or_null(self):
        pod = self.pod()
        command = shlex.join(self.call(pod, "cat; echo end; exit 3"))
        for redirection, said in (
            ("<&-", "end\n3\n"),
            ("</dev/null", "end\n3\n"),
            ("<&- >&-", "3\n"),
            ("<&- >&- 2>&-", "3\n"),
        ):
            done = subprocess.run(
                ["sh", "-c", f"{command} {redirection}; echo $?"],
                env=clean(),
                capture_output=True,
                text=True,
                timeout=DEADLINE,
            )
            self.assertEqual(done.stdout, said, (redirection, done.stderr))

    def test_without_stdin_nothing_is_read(self):
        pod = self.pod()
        for flag in ("-n", "-f"):
            ours, theirs = os.pipe()
            os.write(theirs, b"kept")
            done = self.rsh(pod, "cat", flags=[flag], stdin=ours)
            self.assertEqual((done.returncode, done.stdout, os.read(ours, 10)), (0, b"", b"kept"))
            os.close(ours)
            os.close(theirs)

    def test_what_stays_in_the_background_is_not_waited_for(self):
        pod = self.pod()
        done = self.rsh(pod, "sleep 1000 & echo $!; exit 6")
        self.assertEqual(done.returncode, 6)
        daemon = int(done.stdout)
        self.assertTrue(alive(daemon))  # MPI runtimes have daemons
        pod.send(signal.SIGTERM)
        self.assertEqual(pod.wait(), 143)
        self.assertTrue(wait_gone(daemon))

    def test_the_environment_is_the_pods(self):
        pod = self.pod(env={"POD_ONLY": "there"})
        done = self.rsh(pod, "echo $POD_ONLY$CALLER_ONLY", env={"CALLER_ONLY": "here"})
        self.assertEqual(done.stdout, b"there\n")

    def test_the_list_of_hosts_stays_with_the_launcher(self):
        pod = self.pod(env={"MUSTER_MPI_HOSTS": "pod-1,pod-2"})
        self.assertEqual(
            self.rsh(pod, "muster exec -- echo ${MUSTER_MPI_HOSTS-unset}".replace("muster", MUSTER)).stdout, b"unset\n"
        )

    def test_a_port_that_is_taken(self):
        pod = self.pod()
        second = self.spawn(["exec", "--serve-rsh", "--rsh-listen", f"127.0.0.1:{pod.port}"])
        self.assertEqual(second.wait(), BAD_CONFIGURATION)
        self.assertIn(str(pod.port), second.output())


class Reaching(RshCase):
    def listener(self):
        """A port of another program, which accepts each connection and closes it."""
        stranger = socket.create_server(("127.0.0.1", 0))
        stranger.settimeout(DEADLINE)
        self.addCleanup(stranger.close)
        return stranger

    class Place:
        def __init__(self, host, port):
            self.host, self.port = host, port

    def caller(self, port, *command):
        return self.spawn(["rsh", "-p", str(port), "127.0.0.1", *command])

    def test_an_unknown_host(self):
        done = self.rsh(self.Place("no-such-pod.invalid", 1), "true", flags=["--rsh-timeout", "0.5"])
        self.assertEqual(done.returncode, NOT_REACHED)
        self.assertRegex(
            done.stderr.decode(),
            r"(?m)^muster rsh: no-such-pod.invalid:1: [^:]*; not reached within 0.5 s. .*--serve-rsh.*--rsh-timeout",
        )

    def test_its_own_host(self):
        """As in the launcher: no agent serves its port, and the command runs there."""
        port = self.free_port()
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # its address towards others
        self.addCleanup(own.close)
        own.connect(("198.51.100.1", 9))
        for host in ("localhost", socket.gethostname(), own.getsockname()[0]):
            with self.subTest(host):
                done = self.rsh(
                    self.Place(host, port),
                    "cat; echo $0 $HERE >&2; exit 3",
                    flags=["--rsh-timeout=0.2"],
                    input=b"bytes",
                    env={"HERE": "caller"},
                )
                self.assertEqual((done.returncode, done.stdout, done.stderr), (3, b"bytes", b"sh caller\n"))
        done = self.rsh(self.Place("localhost", port), "cat", flags=["-n"], input=b"bytes")
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_its_own_host_where_an_agent_serves(self):
        pod = self.pod()
        done = self.rsh(self.Place("localhost", pod.port), "echo $MUSTER_RSH_SESSION")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.strip())

    def test_a_port_nobody_listens_on(self):
        done = self.rsh(self.Place("127.0.0.1", self.free_port()), "true", flags=["--rsh-timeout=5"])
        self.assertEqual(done.returncode, NOT_REACHED)
        self.assertIn(b"refused", done.stderr.lower())

    def test_a_host_that_comes_up_later(self):
        port = self.free_port()
        caller = self.caller(port, "echo reached")
        self.wait_for_output(caller, f"waiting for 127.0.0.1:{port}")
        self.pod(port=port)
        self.assertEqual(caller.wait(), 0)
        self.assertIn("reached", caller.output())

    def test_a_stranger_first(self):
        stranger = self.listener()
        port = stranger.getsockname()[1]
        caller = self.caller(port, "echo reached")
        for _ in range(3):
            stranger.accept()[0].close()
        stranger.close()
        self.pod(port=port)
        self.assertEqual(caller.wait(), 0, caller.output())
        self.assertIn("waiting for", caller.output())

    def test_the_pod_restarts_while_it_is_waited_for(self):
        pod = self.pod()
        pod.send(signal.SIGSTOP)  # the kernel still accepts connections for it
        caller = self.caller(pod.port, "echo reached")
        ticker = threading.Event()
        end = time.monotonic() + DEADLINE
        while f":{pod.port:04X} 01" not in open_text("/proc/net/tcp"):  # until the caller is connected
            self.assertLess(time.monotonic(), end, "nobody connects")
            ticker.wait(0.01)
        pod.process.kill()
        pod.process.wait()
        self.pod(port=pod.port)
        self.assertEqual(caller.wait(), 0, caller.output())
        self.assertIn("reached", caller.output())

    def test_waiting_ends_by_a_signal(self):
        caller = self.caller(self.free_port(), "true")
        self.wait_for_output(caller, "waiting for")
        caller.send(signal.SIGTERM)
        self.assertEqual(caller.wait(), 143)

    def test_the_token(self):
        def token(name, text):
            path = os.path.join(self.dir, name)
            with open(path, "w") as file:
                file.write(text)
            return {"MUSTER_TOKEN_FILE": path}

        ours, other = token("ours", "s3cret"), token("other", "guess")
        pod = self.pod(env=ours)
        self.assertEqual(self.rsh(pod, "true", env=ours).returncode, 0)
        for env in ({}, other):
            done = self.rsh(pod, "touch " + os.path.join(self.dir, "done"), env=env)
            self.assertEqual(done.returncode, BAD_CONFIGURATION, done.stderr)
            self.assertIn(b"token", done.stderr)
            self.assertNotIn(b"s3cret", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "done")))
        done = self.rsh(pod, "true", env={"MUSTER_TOKEN_FILE": "/no/such/file"})
        self.assertEqual(done.returncode, BAD_CONFIGURATION)
        self.assertIn(b"/no/such/file", done.stderr)

    def test_mutual_tls(self):
        def files(authority, who):
            cert, key = authority.issue(who)
            return {"MUSTER_TLS_CERT": cert, "MUSTER_TLS_KEY": key, "MUSTER_TLS_CA": authority.ca}

        ours, theirs = Authority(self.dir, "ours"), Authority(self.dir, "theirs")
        pod = self.pod(env=files(ours, "pod"))
        data = os.urandom(2_000_000)
        done = self.rsh(pod, "cat", env=files(ours, "caller"), input=data)
        self.assertEqual((done.returncode, done.stdout == data), (0, True), done.stderr)
        patience = ["--rsh-timeout", "20" if EMULATED else "2"]
        for env in ({}, files(theirs, "stranger")):
            done = self.rsh(pod, "true", env=env, flags=patience)
            self.assertIn(done.returncode, (BAD_CONFIGURATION, NOT_REACHED), done.stderr)
            self.assertRegex(done.stderr.decode(), r"(?i)tls|certificate|handshake|ssl")
        bare = self.pod()
        done = self.rsh(bare, "true", env=files(ours, "careful"), flags=patience)
        self.assertIn(done.returncode, (BAD_CONFIGURATION, NOT_REACHED), done.stderr)
        self.assertRegex(done.stderr.decode(), r"(?i)tls|certificate|handshake|ssl")

    def test_nobody_serves_everybody_by_accident(self):
        pod = self.spawn(["exec", "--serve-rsh"])
        self.assertEqual(pod.wait(), BAD_CONFIGURATION)
        self.assertIn("MUSTER_TOKEN_FILE", pod.output())

    def test_wrong_usage(self):
        for arguments, words in (
            ([], "no host"),
            (["h"], "no command"),
            (["-L", "1:a:2", "h", "true"], "-L"),
            (["--rsh-timeout", "x", "h", "true"], "rsh-timeout"),
        ):
            done = subprocess.run(
                [MUSTER, "rsh", *arguments], capture_output=True, text=True, env=clean(), timeout=DEADLINE
            )
            self.assertEqual(done.returncode, 64, arguments)
            self.assertIn(words, done.stderr)
            self.assertRegex(done.stderr, r"^muster rsh: (?!.*muster rsh:).*; see muster rsh --help\n$")
        done = subprocess.run(
            [MUSTER, "rsh", "h", "true"],
            capture_output=True,
            text=True,
            env=clean(MUSTER_RSH_PORT="x"),
            timeout=DEADLINE,
        )
        self.assertEqual(done.returncode, 64)
        self.assertIn("MUSTER_RSH_PORT", done.stderr)


def open_text(path):
    with open(path) as file:
        return file.read()


def flood(process):
    """Writes to its stdin until it ends."""
    ended = os.pidfd_open(process.pid)
    while True:
        gone, room, _ = select.select([ended], [process.stdin], [], DEADLINE)
        if gone or not room:
            break
        try:
            os.write(process.stdin.fileno(), b"x" * 65536)
        except (BrokenPipeError, BlockingIOError):
            continue
    os.close(ended)


class Ends(RshCase):
    def family(self, pod, **more):
        """A caller, and the ids of the processes that run for it in the pod."""
        caller = self.begin(pod, FAMILY, **more)
        pids = [int(caller.stdout.readline())]
        caller.stdin.write(b"go\n")
        caller.stdin.flush()
        return caller, pids + [int(caller.stdout.readline()) for _ in range(2)]

    def all_gone(self, pids):
        self.assertEqual([pid for pid in pids if not wait_gone(pid)], [])

    def test_the_pod_is_killed(self):
        pod = self.pod()
        caller, pids = self.family(pod)
        pod.send(signal.SIGKILL)
        self.assertEqual(self.code(caller), PEER_LOST)
        self.assertIn(f"127.0.0.1:{pod.port}".encode(), caller.stderr.read())
        self.assertTrue(wait_gone(pids[2]))  # the command; no agent is left to end the others
        for pid in pids[:2]:
            os.kill(pid, signal.SIGKILL)

    def test_the_caller_is_killed(self):
        pod = self.pod()
        caller, pids = self.family(pod)
        caller.kill()
        self.all_gone(pids)
        self.assertEqual(self.rsh(pod, "exit 3").returncode, 3)

    def test_the_caller_is_killed_and_the_command_does_not_want_to_go(self):
        pod = self.pod("--shutdown-timeout", "1")
        caller = self.begin(pod, "trap '' TERM; sh -c 'echo $$; while :; do sleep 1000; done' & echo $$; wait")
        pids = [int(caller.stdout.readline()) for _ in range(2)]
        caller.kill()
        self.all_gone(pids)

    def test_a_notice_that_comes_after_the_signal_swallows_no_second_one(self):
        notice = os.path.join(self.dir, "notice")
        pod = self.pod("--shutdown-timeout", "100000", "--preempt-file", notice)
        caller = self.begin(pod, "trap 'echo got' TERM; echo $$; while :; do sleep 1000 & wait $!; done")
        pid = int(caller.stdout.readline())
        pod.send(signal.SIGTERM)
        self.assertEqual(caller.stdout.readline(), b"got\n")
        with open(notice, "w"):
            pass
        pod.send(signal.SIGTERM)
        self.assertEqual(pod.wait(), 143)
        self.assertTrue(wait_gone(pid))

    def test_signals_reach_the_group(self):
        pod = self.pod()
        for name in ("TERM", "INT", "HUP", "USR1", "USR2", "QUIT"):
            caller = self.begin(pod, f"trap 'echo got; exit 9' {name}; sleep 1000 & echo ready; wait")
            self.assertEqual(caller.stdout.readline(), b"ready\n")
            caller.send_signal(signal.Signals["SIG" + name])
            self.assertEqual((caller.stdout.readline(), self.code(caller)), (b"got\n", 9), name)

    def test_a_second_term_ends_the_caller(self):
        pod = self.pod("--shutdown-timeout", "1")
        caller = self.begin(pod, "trap 'echo got' TERM; echo $$; while :; do sleep 1000 & wait $!; done")
        pid = int(caller.stdout.readline())
        caller.send_signal(signal.SIGTERM)
        self.assertEqual(caller.stdout.readline(), b"got\n")
        caller.send_signal(signal.SIGTERM)
        self.assertEqual(self.code(caller), 143)
        self.assertTrue(wait_gone(pid))

    def test_a_stdout_that_nobody_reads(self):
        pod = self.pod()
        stuck = self.begin(pod, "echo $$ >&2; exec yes")
        pid = int(stuck.stderr.readline())
        for _ in range(3):
            self.assertEqual(self.rsh(pod, "cat", input=b"x" * 1_000_000).stdout, b"x" * 1_000_000)
        self.assertTrue(alive(pid))
        stuck.send_signal(signal.SIGTERM)
        self.assertTrue(wait_gone(pid))
        stuck.send_signal(signal.SIGTERM)
        self.assertEqual(self.code(stuck), 143)

    def test_a_command_that_reads_nothing(self):
        pod = self.pod()
        stuck = self.begin(pod, "echo ready; exec sleep 1000")
        self.assertEqual(stuck.stdout.readline(), b"ready\n")
        os.set_blocking(stuck.stdin.fileno(), False)
        writer = threading.Thread(target=flood, args=(stuck,))
        writer.start()
        self.assertEqual(self.rsh(pod, "cat", input=b"x" * 1_000_000).stdout, b"x" * 1_000_000)
        stuck.send_signal(signal.SIGTERM)  # the signal overtakes all that input
        self.assertEqual(self.code(stuck), 143)
        writer.join()

    def test_the_pod_is_told_to_go(self):
        pod = self.pod()
        caller = self.begin(pod, "trap 'echo got; exit 9' TERM; sleep 1000 & echo ready; wait")
        self.assertEqual(caller.stdout.readline(), b"ready\n")
        pod.send(signal.SIGTERM)
        self.assertEqual((caller.stdout.readline(), self.code(caller)), (b"got\n", 9))
        self.assertIn(b"the pod is being stopped", caller.stderr.read())
        self.assertEqual(pod.wait(), 143)

    def test_the_pod_is_told_twice(self):
        pod = self.pod()
        caller = self.begin(pod, "trap 'echo got' TERM; echo ready; while :; do sleep 1000 & wait $!; done")
        self.assertEqual(caller.stdout.readline(), b"ready\n")
        pod.send(signal.SIGTERM)
        self.assertEqual(caller.stdout.readline(), b"got\n")
        pod.send(signal.SIGTERM)
        self.assertEqual((self.code(caller), pod.wait()), (137, 143))


if __name__ == "__main__":
    main()
