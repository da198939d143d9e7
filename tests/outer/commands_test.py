# SPDX-License-Identifier: Apache-2.0
"""The other subcommands, credentials, and machine-readable output."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from muster_case import DEADLINE, MUSTER, MusterCase, clean, main
from nodes_case import Nodes


def muster(*arguments, **more):
    more.setdefault("env", clean())
    return subprocess.run([MUSTER, *arguments], capture_output=True, text=True, timeout=DEADLINE, **more)


class Commands(Nodes):
    def serve(self, *arguments, **more):
        """Starts a subcommand that serves; returns its port."""
        more.setdefault("env", clean())
        server = self.with_pipes([MUSTER, *arguments], stderr=subprocess.DEVNULL, text=True, **more)
        line = server.stdout.readline()
        self.assertIn("listening on", line)
        return int(line.rsplit(":", 1)[1])

    def test_each_subcommand_has_help(self):
        self.assertEqual(muster().returncode, 64)
        self.assertEqual(muster("--help").returncode, 0)
        names = re.findall(r"^  ([a-z]+) ", muster("--help").stdout, re.MULTILINE)
        self.assertIn("exec", names)
        for name in names:  # muster-local has some of them
            done = muster(name, "--help")
            self.assertEqual(done.returncode, 0, name)
            self.assertIn(f"muster {name}", done.stdout)

    def test_wrong_usage_names_the_program(self):
        for arguments, said in (
            (("wait",), "TARGET is required"),
            (("wait", "--dns", "--tcp", "h"), "--dns excludes --tcp"),
            (("report", "--bogus", "x"), "not expected: --bogus"),
            (("install",), "DIR is required"),
            (("completion",), "SHELL is required"),
            (("man", "--bogus"), "not expected: --bogus"),
            (("status",), "endpoint is required"),
            (("top",), "TARGET is required"),
            (("version", "x"), "not expected: x"),
            (("store", "--port", "x"), "--port"),
            (("stacks", "0"), "PID: '0': want a number, more than 0"),
            (("check", "--min-memory", "x"), "--min-memory: 'x': want a number, more than 0"),
        ):
            done = muster(*arguments)
            self.assertEqual((done.returncode, done.stdout), (64, ""), arguments)
            name = f"muster {arguments[0]}"
            self.assertRegex(done.stderr, rf"^{name}: .*; see {name} --help\n$")
            self.assertIn(said, done.stderr)

    def test_a_stderr_that_takes_nothing_changes_no_code(self):
        for arguments, code in (
            ((), 64),
            (("no-such-subcommand",), 64),
            (("run", "--no-such-flag"), 64),
            (("wait",), 64),
            (("check", "--peers", "x"), 64),
            (("report", "--json", "-o", "x", self.dir), 64),
            (("rsh",), 64),
            (("wait", "--timeout=0", "127.0.0.1:1"), 200),
        ):
            for place in ("2>&-", "2>/dev/full"):
                done = subprocess.run(["sh", "-c", f'exec "$@" {place}', "sh", MUSTER, *arguments], timeout=90)
                self.assertEqual(done.returncode, code, (arguments, place))

    def test_an_address_that_is_not_ours(self):
        for flag, arguments in (
            ("--listen", ("coordinator", "--listen", "192.0.2.1:0")),
            ("--rsh-listen", ("exec", "--serve-rsh", "--rsh-listen", "192.0.2.1:0")),
            ("--http-port", ("exec", "--http-port", "192.0.2.1:0", "--", "true")),
        ):
            done = muster(*arguments)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertRegex(
                done.stderr, rf" {flag}\b.* cannot listen on 192.0.2.1 port 0: .*; give an address of this machine"
            )
        for variable, arguments in (
            ("MUSTER_RSH_LISTEN", ("exec", "--serve-rsh")),
            ("MUSTER_HTTP_PORT", ("exec", "--", "true")),
        ):
            done = muster(*arguments, env={**os.environ, variable: "192.0.2.1:0"})
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertRegex(done.stderr, rf" {variable}: cannot listen on 192.0.2.1 port 0: ")

    def test_version_names_the_protocols(self):
        facts = json.loads(muster("version", "--json").stdout)
        self.assertEqual(set(facts), {"version", "commit", "rendezvous_protocol", "rsh_protocol", "store_protocol"})
        self.assertIn(facts["version"], muster("version").stdout)

    def test_an_unknown_subcommand_is_looked_for_as_a_program(self):
        program = os.path.join(self.dir, "muster-hello")
        with open(program, "w") as file:
            file.write('#!/bin/sh\necho "hello $*"\n')
        os.chmod(program, 0o755)
        done = muster("hello", "a", "b", env={"PATH": self.dir + ":/bin:/usr/bin"})
        self.assertEqual((done.returncode, done.stdout), (0, "hello a b\n"))
        self.assertEqual(muster("no-such-thing").returncode, 64)

    def test_store_speaks_c10d(self):
        port = self.serve("store", "--port", "0")
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as link:
            link.sendall(bytes.fromhex("00CEF7853C") + b"\x0d\x01\x02\x03\x04")  # VALIDATE, PING
            self.assertEqual(link.recv(4, socket.MSG_WAITALL), b"\x01\x02\x03\x04")

    def test_status_shows_nodes_and_round(self):
        port = self.serve("coordinator", "--listen", "127.0.0.1:0")
        endpoint = f"127.0.0.1:{port}"
        agents = [self.node(endpoint, "2", "--rdzv-conf", "is_host=0", "--node-name", name) for name in ("a", "b")]
        workers = self.workers(2)
        report = json.loads(muster("status", endpoint, "--json").stdout)
        self.assertEqual((report["run_id"], report["phase"], report["max_nodes"]), ("job", "running", 2))
        self.assertEqual(sorted(node["node"] for node in report["nodes"]), ["a", "b"])
        self.assertIn("running", muster("status", endpoint, "--run-id", "job").stdout)
        follower = self.with_pipes([MUSTER, "status", endpoint, "--json", "--follow"], text=True)
        first = json.loads(follower.stdout.readline())
        self.assertEqual(first["phase"], "running")
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertEqual(json.loads(follower.stdout.read().splitlines()[-1])["phase"], "finished")
        self.assertEqual(self.code(follower), 0)

    def test_status_of_a_run_that_is_not_there(self):
        endpoint = f"127.0.0.1:{self.serve('coordinator', '--listen', '127.0.0.1:0')}"
        done = muster("status", endpoint)
        self.assertEqual((done.returncode, done.stdout), (200, ""))
        self.assertIn("no run is coordinated here yet", done.stderr)
        follower = self.with_pipes([MUSTER, "status", endpoint, "--run-id", "job", "--json", "--follow"], text=True)
        self.assertIn("waiting for it", follower.stderr.readline())
        agents = [self.node(endpoint, "2", "--rdzv-conf", "is_host=0") for _ in range(2)]
        self.assertEqual(json.loads(follower.stdout.readline())["run_id"], "job")
        done = muster("status", endpoint, "--run-id", "other")
        self.assertEqual((done.returncode, done.stdout), (200, ""))
        self.assertIn('no run "other" is coordinated here; there is: job', done.stderr)
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertEqual(json.loads(follower.stdout.read().splitlines()[-1])["phase"], "finished")
        self.assertEqual(self.code(follower), 0)

    def test_status_follows_the_succession(self):
        """The host dies: `status --follow` goes on at the stand-in; a question to the endpoint is redirected there."""
        endpoint = f"127.0.0.1:{self.free_port()}"
        host, other = (
            self.node(endpoint, "1:2", "--rdzv-conf", f"last_call_timeout=600,is_host={is_host}") for is_host in (1, 0)
        )
        self.workers(2)
        follower = self.with_pipes([MUSTER, "status", endpoint, "--json", "--follow"], text=True)
        first = json.loads(follower.stdout.readline())
        self.assertEqual(first["phase"], "running")
        host.send(signal.SIGKILL)
        self.assertIn("was lost", follower.stderr.readline())
        (alone,) = self.round_of(1, at_least=1)
        for line in follower.stdout:
            report = json.loads(line)
            if (report["phase"], len(report["nodes"])) == ("running", 1):
                break
        self.assertGreater(report["term"], first["term"])
        self.serve("coordinator", "--listen", endpoint)
        asked, end = None, time.monotonic() + DEADLINE
        while asked is None or (
            asked.returncode == 200 and time.monotonic() < end
        ):  # until the stand-in has told the newcomer
            asked = muster("status", endpoint, "--run-id", "job", "--json")
        self.assertEqual((asked.returncode, asked.stderr), (0, ""))
        self.assertEqual(json.loads(asked.stdout)["term"], report["term"])
        alone.tell("exit 0")
        self.assertEqual(other.wait(), 0)
        self.assertEqual(json.loads(follower.stdout.read().splitlines()[-1])["phase"], "finished")
        self.assertEqual(self.code(follower), 0)

    def test_wrong_values(self):
        for code, said, arguments in (
            (64, "''", ("status", "")),
            (64, "port is a number", ("status", "h:99999")),
            (64, "not a host name", ("status", "a b:1")),
            (64, "--timeout '0': want more than 0", ("status", "h", "--timeout", "0")),
            (64, "--timeout '1e300'", ("status", "h", "--timeout", "1e300")),
            (64, "--listen ':99999': the port must be", ("coordinator", "--listen", ":99999")),
            (64, "--listen 'nohost:1': 'nohost' is not a numeric", ("coordinator", "--listen", "nohost:1")),
            (64, "--host: 'nosuch' is not a numeric address", ("store", "--host", "nosuch")),
            (64, "--log-level", ("coordinator", "--log-level", "loud")),
            (64, "--log-format", ("store", "--log-format", "x")),
        ):
            done = muster(*arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertLess(len(done.stderr), 300)

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as owner:
            port = str(owner.getsockname()[1])
            for arguments in (("store", "--port", port), ("coordinator", "--listen", f"127.0.0.1:{port}")):
                done = muster(*arguments)
                self.assertEqual(done.returncode, 78)
                self.assertIn(f"127.0.0.1 port {port} is taken by another process; free it, or choose", done.stderr)
            for value, code, said in (
                (f"127.0.0.1:{port}", 78, f": 127.0.0.1 port {port} is taken"),
                ("http", 64, " 'http': want PORT"),
            ):
                by_flag = muster("coordinator", "--listen", "127.0.0.1:0", "--http-port", value)
                by_name = muster(
                    "coordinator", "--listen", "127.0.0.1:0", env={**os.environ, "MUSTER_HTTP_PORT": value}
                )
                self.assertEqual((by_flag.returncode, by_name.returncode), (code, code))
                self.assertIn("--http-port" + said, by_flag.stderr)
                self.assertIn("MUSTER_HTTP_PORT" + said, by_name.stderr)

    def serving(self, *arguments, **more):
        """Starts a subcommand that serves; returns what it prints until it listens: (stdout's line, stderr's)."""
        server = self.with_pipes([MUSTER, *arguments], text=True, **more)
        return server, server.stdout.readline()

    def test_what_serves_says_where_and_whether_it_is_open(self):
        server, line = self.serving("coordinator", "--listen", ":0", "--log-format", "json")
        self.assertRegex(line, r"^listening on \[::\]:\d+$")
        told = json.loads(server.stderr.readline())
        self.assertIn("without token or TLS", told["message"])
        server, line = self.serving("coordinator", "--listen", ":0", env={**os.environ, "MUSTER_LOG_FORMAT": "json"})
        self.assertIn("without token or TLS", json.loads(server.stderr.readline())["message"])
        server, line = self.serving("coordinator", "--listen", "127.0.0.1:0")
        self.assertRegex(line, r"^listening on 127\.0\.0\.1:\d+$")
        server.terminate()
        self.assertEqual(server.stderr.read(), "")

    def test_status_of_nobody(self):
        done = muster("status", f"127.0.0.1:{self.free_port()}")
        self.assertEqual(done.returncode, 200)
        self.assertIn("refused", done.stderr)

    def test_a_token_keeps_strangers_out(self):
        token = os.path.join(self.dir, "token")
        with open(token, "w") as file:
            file.write("s3cret-of-this-test\n")
        port = self.serve("coordinator", "--listen", "127.0.0.1:0", "--token-file", token)
        endpoint = f"127.0.0.1:{port}"
        stranger = self.node(endpoint, "2", "--rdzv-conf", "is_host=0,join_timeout=600")
        agents = [self.node(endpoint, "2", "--rdzv-conf", f"is_host=0,token_file={token}") for _ in range(2)]
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertNotEqual(stranger.wait(), 0)
        self.assertIn("token", stranger.output())
        self.assertNotIn("s3cret", stranger.output())

    def test_json_log(self):
        agent = self.start(
            "--standalone", "--log-format", "json", "--no-python", "/bin/sh", "-c", "exit 3", worker=False
        )
        self.assertEqual(agent.wait(), 3)
        lines = [line for line in agent.output().splitlines() if line.startswith("{")]
        self.assertTrue(lines)
        self.assertEqual(json.loads(lines[-1])["level"], "error")


class Output(MusterCase):
    def test_a_blocked_console_does_not_stop_the_workers(self):
        """If nothing reads the agent's output, the workers finish, and the agent says how much was dropped."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        script = "import sys\nfor i in range(400000): print('line', i, 'x' * 60)\n"
        path = os.path.join(self.dir, "chatter.py")
        with open(path, "w") as file:
            file.write(script)
        process = subprocess.Popen(
            [MUSTER, "run", "--standalone", "--tee", "1", path],
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHON_EXEC": "/usr/bin/python3"},
        )
        os.close(writer)
        said = process.stderr.read().decode()
        self.assertEqual(process.wait(90), 0)
        process.stderr.close()
        self.assertRegex(said, r"(?i)dropped")

    def test_a_full_log_disk_does_not_stop_the_workers(self):
        logs = os.path.join(self.dir, "full")
        os.mkdir(logs)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", logs], capture_output=True).returncode:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", logs], check=True)
        path = os.path.join(self.dir, "chatter.py")
        with open(path, "w") as file:
            file.write("for i in range(20000): print('line', i, 'x' * 60)\n")
        for flag in ("--tee", "--redirects"):
            with self.subTest(flag):
                agent = self.start("--standalone", flag, "1", "--log-dir", logs, path, worker=False)
                self.assertEqual(agent.wait(), 0, agent.output())
                self.assertEqual("line 19999" in agent.output(), flag == "--tee")
                self.assertRegex(
                    agent.output(), r"cannot be written, its lines are dropped until it can.*No space left"
                )
                self.assertRegex(
                    agent.output(), r"a log file lacks 1\d{4} lines \(\d{7} bytes\).* file=\S+/stdout.log\n"
                )
                for name in os.listdir(logs):
                    shutil.rmtree(os.path.join(logs, name))

    def test_the_last_line_before_exit_is_there(self):
        path = os.path.join(self.dir, "abrupt.py")
        with open(path, "w") as file:
            file.write("import os\nos.write(1, b'last words')\nos._exit(0)\n")
        agent = self.start("--standalone", "--tee", "3", path, worker=False)
        self.assertEqual(agent.wait(), 0)
        self.assertIn("[default0]:last words", agent.output())
        logs = os.path.join(self.dir, "logs")
        agent = self.start("--standalone", "--redirects", "3", "--log-dir", logs, path, worker=False)
        self.assertEqual(agent.wait(), 0)
        (folder,) = self.attempts(logs)
        with open(os.path.join(logs, folder, "0", "stdout.log")) as file:
            self.assertEqual(file.read(), "last words")

    def test_descriptor_limit(self):
        agent = self.start(
            "--standalone",
            "--nproc-per-node",
            "64",
            "--tee",
            "3",
            "--no-python",
            "/bin/true",
            worker=False,
            preexec_fn=lambda: __import__("resource").setrlimit(7, (40, 40)),
        )
        self.assertEqual(agent.wait(), 204)
        self.assertRegex(
            agent.output(), r"starting the worker with local rank \d+: .*(Too many open files|descriptor).*ulimit -n"
        )

    def test_no_descriptor_for_the_agent_itself(self):
        message = os.path.join(self.dir, "message")
        told = f"--termination-log={message}"
        for command in (
            ["run", told, "--standalone", "--no-python", "/bin/true"],
            ["exec", told, "--", "/bin/true"],
            ["store", "--port=0"],
        ):
            with self.subTest(command[0]):
                with open(message, "w"):
                    pass
                ended = subprocess.run(
                    [MUSTER, *command],
                    capture_output=True,
                    text=True,
                    timeout=DEADLINE,
                    preexec_fn=lambda: __import__("resource").setrlimit(7, (8, 8)),
                )
                self.assertEqual(ended.returncode, 204, ended.stderr)
                self.assertIn("Too many open files; raise the limit of open files (ulimit -n)", ended.stderr)
                if command[0] != "store":  # `store` writes no message
                    with open(message) as file:
                        left = json.load(file)
                    self.assertEqual((left["exit_code"], left["class"]), (204, "retryable"))
                    self.assertIn("Too many open files", left["reason"])

    def test_a_log_disk_that_is_full_is_no_wrong_flag(self):
        disk = os.path.join(self.dir, "full")
        os.mkdir(disk)
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=2", "tmpfs", disk], capture_output=True
        ).returncode:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        with open(os.path.join(disk, "last"), "w"):
            pass
        for logs in (os.path.join(disk, "logs"), disk):  # no room for the log folder, or for the attempt's in it
            agent = self.start(
                "--standalone", "--redirects", "3", "--log-dir", logs, "--no-python", "true", worker=False
            )
            self.assertEqual(agent.wait(), 204, agent.output())
            self.assertIn("No space left", agent.output())


if __name__ == "__main__":
    main()
