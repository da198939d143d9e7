# SPDX-License-Identifier: Apache-2.0
"""`muster top` as a person and a program use it: on a terminal, through a pipe, to a coordinator, an agent and pods."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from muster_case import DEADLINE, MUSTER, clean, main, wait_gone
from nodes_case import Nodes

from class_runner import not_emulated

SAID = r"/healthz, /metrics, .* on (?:127\.0\.0\.1 )?port (\d+)"
CLEARED = b"\x1b[2J"
ENTERED = b"\x1b[?1049h"
LEFT = b"\x1b[?1049l"
KEYS = {
    "down": b"\x1b[B",
    "end": b"\x1b[F",
    "enter": b"\r",
    "escape": b"\x1b",
    "interrupt": b"\x03",
    "suspend": b"\x1a",
}


class Picture:
    """What a terminal shows, of the few sequences that `muster top` sends. Others fail the test."""

    SEQUENCE = re.compile(rb"\x1b\[(\?\d+[hl]|\d*(?:;\d*)*[A-Za-z])")

    def __init__(self):
        self.rows = {}
        self.row, self.bytes, self.all = 1, b"", b""

    def feed(self, piece):
        self.all += piece
        self.bytes += piece
        while self.bytes:
            if self.bytes[:1] != b"\x1b":
                end = self.bytes.find(b"\x1b")
                text, self.bytes = (self.bytes, b"") if end < 0 else (self.bytes[:end], self.bytes[end:])
                self.rows[self.row] = self.rows.get(self.row, b"") + text
                continue
            found = self.SEQUENCE.match(self.bytes)
            if not found:
                assert len(self.bytes) < 16, self.bytes[:64]
                return
            self.bytes = self.bytes[found.end() :]
            self.obey(found[1].decode())

    def obey(self, sequence):
        if sequence.endswith("H"):
            self.row = int(sequence[:-1].split(";")[0])
            self.rows[self.row] = b""
        elif sequence == "2J":
            self.rows = {}
        else:
            assert sequence == "K" or sequence[0] == "?" or sequence.endswith("m"), sequence

    def text(self):
        return "\n".join(self.rows[row].decode(errors="replace").rstrip() for row in sorted(self.rows))


class TopCase(Nodes):
    def run_of_two(self, *arguments, **more):
        """Two nodes with one worker each: (endpoint, agents, workers)."""
        endpoint = self.endpoint()
        agents = [
            self.node(
                endpoint, "2", "--rdzv-conf", f"is_host={int(name == 'a')}", "--node-name", name, *arguments, **more
            )
            for name in ("a", "b")
        ]
        workers = self.workers(2)
        return endpoint, agents, workers

    def top(self, *arguments, code=0, **more):
        done = subprocess.run(
            [MUSTER, "top", *arguments], capture_output=True, text=True, timeout=DEADLINE, env=clean(**more)
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done


class Screen(TopCase):
    def begin(self, *arguments, rows=30, columns=120, **environment):
        """`muster top` on a terminal of its own."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.terminal, self.theirs, self.picture = ours, theirs, Picture()
        self.process = subprocess.Popen(
            [MUSTER, "top", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=clean(**{"TERM": "xterm", "LANG": "C.UTF-8", **environment}),
            start_new_session=True,
        )
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        for end in (ours, theirs):
            self.addCleanup(os.close, end)

    def see(self, pattern, gone=False):
        """Reads until the picture has the pattern, or has it no more."""
        failure = f"{pattern!r} did not {'go' if gone else 'come'}"
        self.until(lambda: bool(re.search(pattern, self.picture.text())) != gone, failure)
        return self.picture.text()

    def until(self, done, failure):
        """Reads until done()."""
        end = time.monotonic() + DEADLINE
        while not done():
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.terminal], [], [], left)[0]:
                self.fail(f"{failure} in\n{self.picture.text()}")
            self.picture.feed(os.read(self.terminal, 65536))

    def press(self, *keys):
        for key in keys:
            os.write(self.terminal, KEYS.get(key, key.encode()))

    def rest(self):
        """What comes until the process has ended, after the picture."""
        said, deadline = b"", time.monotonic() + DEADLINE
        while True:
            self.assertLess(time.monotonic(), deadline, said)
            ended = self.process.poll() is not None
            while select.select([self.terminal], [], [], 0.05)[0]:
                said += os.read(self.terminal, 65536)
            if ended:
                return said

    def end(self, code):
        said = self.rest()
        self.assertEqual(self.process.returncode, code, said)
        self.assert_restored(said)
        return said

    def assert_restored(self, said):
        self.assertIn(LEFT, said)
        self.assertIn(b"\x1b[?25h", said)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_it_shows_the_run_and_obeys_the_keys(self):
        endpoint, agents, workers = self.run_of_two()
        workers[0].ask("print step 5/10 loss 0.25")
        self.begin(endpoint)
        text = self.see(r"50%  step 5 of 10 .*loss 0\.25")
        self.assertIn(ENTERED, self.picture.all)
        self.assertNotEqual(termios.tcgetattr(self.theirs), self.before)
        self.assertRegex(text, r"muster top  run job")
        self.assertRegex(text, r"2 of 2 nodes")
        self.assertRegex(text, r"(?m)^ *0 +[ab] +running +0 ")
        self.assertRegex(text, r"(?m)^ *1 +[ab] +running +0 ")
        self.press("/", "zzz")
        self.see(r"(?m)^ *0 +[ab] +running", gone=True)
        self.press("escape")
        self.see(r"(?m)^ *0 +[ab] +running")
        self.press("down", "enter")
        self.see(r"rank 1 on [ab]")
        self.see(rf"process +{workers[1].pid}")
        self.press("escape", "?")
        self.see("one row for each node")
        self.press("q")
        self.see(r"(?m)^ *0 +[ab] +running")
        self.press("p")
        self.see("paused")
        self.press("q")
        self.end(0)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])

    def test_the_stacks_and_the_log_of_a_rank_of_this_machine(self):
        logs = os.path.join(self.dir, "logs")
        endpoint, _, workers = self.run_of_two("--log-dir", logs, "--redirects", "3")
        workers[0].ask("print a line of the log")
        self.begin(endpoint, rows=60)
        self.see(r"(?m)^ *0 +[ab] +running")
        self.press("enter")
        self.see(r"stdout\.log")
        self.see(r"(?m)^a line of the log")
        self.press("k")
        self.see(rf"muster stacks {workers[0].pid}")
        self.see("thread")
        self.press("interrupt")
        self.end(0)

    def test_signals_give_the_terminal_back(self):
        endpoint, _, _ = self.run_of_two()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.begin(endpoint)
            self.see("running")
            self.process.send_signal(number)
            self.end(128 + number)

    @not_emulated("SIGABRT ends qemu itself")
    def test_abort_gives_the_terminal_back(self):
        endpoint, _, _ = self.run_of_two()
        self.begin(endpoint)
        self.see("running")
        self.process.send_signal(signal.SIGABRT)
        self.end(-signal.SIGABRT)

    def test_it_stops_and_goes_on(self):
        endpoint, _, _ = self.run_of_two()
        self.begin(endpoint)
        self.see("running")
        self.press("suspend")
        self.assertTrue(os.WIFSTOPPED(os.waitpid(self.process.pid, os.WUNTRACED)[1]))
        said = b""
        while LEFT not in said:
            said += os.read(self.terminal, 65536)
        self.assert_restored(said)
        self.picture = Picture()
        self.process.send_signal(signal.SIGCONT)
        self.see(r"(?m)^ *0 +[ab] +running")
        self.assertIn(ENTERED, self.picture.all)
        self.press("q")
        self.end(0)

    def test_the_size_of_the_terminal_changes(self):
        endpoint, _, _ = self.run_of_two()
        self.begin(endpoint)
        self.see("(?m)quit$")
        for rows, columns in ((10, 40), (1, 1), (3, 10), (50, 200)):
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            self.process.send_signal(signal.SIGWINCH)
            self.picture = Picture()
            self.until(lambda: CLEARED in self.picture.all, "nothing was cleared")  # before it is the size before
            self.see(".")
            self.assertLessEqual(max(self.picture.rows), rows)
        self.see("(?m)quit$")
        self.press("q")
        self.end(0)

    def test_a_restart_and_the_end_of_the_run(self):
        endpoint, agents, workers = self.run_of_two("--max-restarts", "3")
        self.begin(endpoint)
        self.see(r"restarts 0 of 3")
        workers[1].tell("exit 5")
        again = self.round_of(2, 1)
        self.see(r"restarts 1 of 3")
        self.see(r"(?m)^rounds .*2 rounds")
        for worker in again:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertIn(b"restarts 1 of 3", self.end(0))  # the last state stays on the screen

    def test_output_of_workers_is_no_command_for_the_terminal(self):
        endpoint, _, workers = self.run_of_two()
        workers[0].ask("print \x1b]0;owned\x07\x1b[2J\x1b[31mhello\x1b[0m \x9bthere \u202eabc")
        self.begin(endpoint)
        self.see("hello .*there")
        self.press("q")
        said = self.picture.all + self.end(0)
        for bad in (b"\x1b]", b"\x07", b"\x9b", "\u202e".encode()):
            self.assertNotIn(bad, said.replace("\u202f".encode(), b""))

    def test_no_color(self):
        endpoint, _, _ = self.run_of_two()
        self.begin(endpoint, NO_COLOR="1")
        self.see("running")
        self.press("q")
        self.end(0)
        self.assertNotRegex(self.picture.all, rb"\x1b\[(3|9)\dm")


class Tables(TopCase):
    def test_wrong_use(self):
        for arguments, said in (
            (("job/x",), "want HOST"),
            (("https://x",), "has no TLS"),
            (("x", "--interval", "0"), "want more than 0"),
            (("x", "--timeout", "no"), "--timeout 'no'"),
            (("x:1", "-n", "a"), "--namespace 'a'"),
            (("pod/x", "-n", "-A"), "--namespace '-A'"),
        ):
            done = self.top(*arguments, code=64)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_nobody_there(self):
        endpoint = self.endpoint()
        for target in (endpoint, f"http://{endpoint}"):
            done = self.top(target, "--timeout", "0.5", "--once", code=200)
            self.assertIn("refused", done.stderr)

    def test_a_table_and_json(self):
        endpoint, agents, workers = self.run_of_two("--http-port", "127.0.0.1:0")
        port = re.search(SAID, self.wait_for_output(agents[0], SAID)).group(1)
        for target in (endpoint, f"http://127.0.0.1:{port}"):
            text = self.top(target, "--once").stdout
            self.assertRegex(text, r"^muster top  run job")
            self.assertRegex(text, r"(?m)^ *0 +[ab] +running")
            self.assertNotIn("\x1b", text)
            view = json.loads(self.top(target, "--json", "--once").stdout)
            self.assertEqual((view["run_id"], view["phase"]), ("job", "running"))
            self.assertEqual(len(view["nodes"]), 2)
        # A line for each state, until the run ends.
        follower = self.with_pipes([MUSTER, "top", endpoint, "--json", "--interval", "0.5"], text=True)
        json.loads(follower.stdout.readline())
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertEqual(json.loads(follower.stdout.read().splitlines()[-1])["phase"], "finished")
        self.assertEqual(self.code(follower), 0)

    def follow_agent(self, *arguments, nodes=2, **more):
        """`muster top` of the first agent of a run, after its first answer: (follower, agents, workers)."""
        if nodes == 1:
            agents = [self.start("--standalone", "--http-port", "127.0.0.1:0")]
            workers = self.workers(1)
        else:
            _, agents, workers = self.run_of_two("--http-port", "127.0.0.1:0")
        target = "http://127.0.0.1:" + re.search(SAID, self.wait_for_output(agents[0], SAID)).group(1)
        follower = self.with_pipes([MUSTER, "top", target, "--json"], text=True)
        json.loads(follower.stdout.readline())
        return follower, agents, workers

    def test_an_agent_whose_run_ends(self):
        for nodes, code, said in (
            (1, 0, "all workers succeeded"),
            (2, 0, "all workers succeeded"),
            (2, 3, "exit code 3"),
        ):
            follower, agents, workers = self.follow_agent(nodes=nodes)
            for worker in workers:
                worker.tell(f"exit {code}")
            self.assertEqual([agent.wait() for agent in agents], [code] * nodes)
            view = json.loads(follower.stdout.read().splitlines()[-1])
            self.assertEqual((view["phase"], len(view["nodes"])), ("finished", nodes))
            self.assertIn(said, view["reason"])
            self.assertEqual(self.code(follower), 0)

    def test_an_agent_that_is_killed(self):
        """Nobody can say what became of the run."""
        follower, (agent,), _ = self.follow_agent(nodes=1)
        agent.process.kill()
        self.assertEqual(self.code(follower), 201)
        self.assertIn("has not told how the run ended", follower.stderr.read())

    def test_an_agent_that_is_killed_at_the_end(self):
        """The last answer says that a worker has failed, and no answer comes any more."""
        follower, agents, workers = self.follow_agent()
        os.kill(agents[1].process.pid, signal.SIGSTOP)  # so the round cannot stop
        next(worker for worker in workers if worker.node == "a").tell("exit 3")
        while "exit_code" not in (line := follower.stdout.readline()):
            json.loads(line)
        agents[0].process.kill()
        self.assertEqual(self.code(follower), 0)
        self.assertRegex(follower.stderr.read(), "the run has ended: rank [01] on [ab] ended: exit code 3")
        os.kill(agents[1].process.pid, signal.SIGKILL)

    def test_an_agent_that_wants_a_token(self):
        path = os.path.join(self.dir, "token")
        with open(path, "w") as file:
            file.write("secret")
        agent = self.start("--standalone", "--http-port", "127.0.0.1:0", "--http-token-file", path)
        self.workers(1)
        target = "http://127.0.0.1:" + re.search(SAID, self.wait_for_output(agent, SAID)).group(1)
        self.assertIn("wants a token", self.top(target, "--once", code=78).stderr)
        self.assertRegex(self.top(target, "--once", "--http-token-file", path).stdout, r"(?m)^ *0 +\S+ +running")
        self.assertIn("running", self.top(target, "--once", MUSTER_HTTP_TOKEN_FILE=path).stdout)
        other = os.path.join(self.dir, "other")
        with open(other, "w") as file:
            file.write("guess")
        self.assertIn("another token", self.top(target, "--once", "--http-token-file", other, code=78).stderr)
        self.assertIn(self.dir, self.top(target, "--http-token-file", self.dir + "/no", code=78).stderr)

    def test_a_dumb_terminal_gets_tables(self):
        endpoint, _, _ = self.run_of_two()
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(MUSTER, [MUSTER, "top", endpoint, "--interval", "0.2"], clean(TERM="dumb"))
        text = b""
        while text.count(b"run job") < 2:
            self.assertTrue(select.select([terminal], [], [], DEADLINE)[0], text)
            text += os.read(terminal, 4096)
        self.assertNotIn(b"\x1b", text)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGTERM)
        os.close(terminal)

    def test_the_coordinator_is_lost(self):
        """Its successor is found, as `muster status --follow` finds it."""
        endpoint, host, guest, _, theirs = self.running(conf=",keep_alive_interval=1,keep_alive_max_attempt=3")
        follower = self.with_pipes([MUSTER, "top", endpoint, "--json"], text=True)
        json.loads(follower.stdout.readline())
        host.process.kill()
        self.assertIn("looking for its successor", follower.stderr.readline())
        (alone,) = self.round_of(1, theirs.round + 1)
        while json.loads(follower.stdout.readline())["round"] <= theirs.round:
            pass
        alone.tell("exit 0")
        self.assertEqual(guest.wait(), 0)
        self.assertEqual(json.loads(follower.stdout.read().splitlines()[-1])["phase"], "finished")
        self.assertEqual(self.code(follower), 0)


KUBECTL = """#!/bin/sh
printf '%s\\n' "$*" >> "$0.calls"
case "$1" in
get) cat "$0.pods" ;;
port-forward)
  echo $$ >> "$0.pids"
  echo "Forwarding from 127.0.0.1:$(cat "$0.port") -> 29480"
  exec sleep 1000 ;;
esac
"""


class Cluster(TopCase):
    """kubectl is a script here."""

    def setUp(self):
        super().setUp()
        self.kubectl = os.path.join(self.dir, "bin", "kubectl")
        os.mkdir(os.path.dirname(self.kubectl))
        self.write("", KUBECTL)
        os.chmod(self.kubectl, 0o755)
        self.path = os.path.dirname(self.kubectl) + ":/usr/bin:/bin"

    def write(self, suffix, text):
        with open(self.kubectl + suffix, "w") as file:
            file.write(text)

    def read(self, suffix):
        with open(self.kubectl + suffix) as file:
            return file.read().splitlines()

    def test_a_job(self):
        _, agents, _ = self.run_of_two("--http-port", "127.0.0.1:0")
        self.write(".port", re.search(SAID, self.wait_for_output(agents[0], SAID)).group(1))
        self.write(".pods", "digits-node-0-0-x7k2p Running digits-node-0-0\ndigits-data-0 Succeeded\n")
        done = self.top("trainjob/digits", "-n", "team", "--once", PATH=self.path)
        self.assertIn("run job", done.stdout)
        listed, forwarded = self.read(".calls")
        self.assertIn("--namespace=team --selector=jobset.sigs.k8s.io/jobset-name=digits", listed)
        self.assertEqual(
            forwarded, "port-forward --address=127.0.0.1 --namespace=team pod/digits-node-0-0-x7k2p :29480"
        )
        self.assertTrue(wait_gone(int(self.read(".pids")[0])))
        # When the agent does not answer any more, a port of another pod is forwarded.
        follower = self.with_pipes([MUSTER, "top", "pod/x", "--json"], text=True, env=clean(PATH=self.path))
        json.loads(follower.stdout.readline())
        self.write(".port", re.search(SAID, self.wait_for_output(agents[1], SAID)).group(1))
        agents[0].process.kill()
        while len(self.read(".pids")) < 3:
            json.loads(follower.stdout.readline())
        follower.terminate()
        self.code(follower)
        for pid in self.read(".pids"):
            self.assertTrue(wait_gone(int(pid)))

    def test_what_is_wrong_is_said(self):
        self.write(".port", "1")
        for pods, code, said in (
            ("", 200, "there is no pod of pytorchjob/x"),
            ("x-0 Pending x-0\n", 200, "no pod of pytorchjob/x runs now"),
            ("x-0 Succeeded x-0\n", 0, "all pods of pytorchjob/x have ended"),
            ("x-0 Running x-0\n", 200, "refused"),
        ):
            self.write(".pods", pods)
            done = self.top("pytorchjob/x", "--once", "--timeout", "0.5", code=code, PATH=self.path)
            self.assertIn(said, done.stderr)
        self.write("", "#!/bin/sh\necho 'error: forbidden' >&2\nexit 1\n")
        done = self.top("pod/x", "--once", "--timeout", "0.5", code=200, PATH=self.path)
        self.assertIn("kubectl get pods ended with 1: 'error: forbidden'", done.stderr)
        done = self.top("pod/x", "--once", "--timeout", "0.5", code=200, PATH=self.dir)
        self.assertIn("kubectl", done.stderr)


if __name__ == "__main__":
    main()
