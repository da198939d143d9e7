"""The other subcommands, credentials, and machine-readable output."""
import json
import os
import shutil
import socket
import subprocess
import threading

from muster_case import MUSTER, MusterCase, main
from several_nodes_test import Nodes


def muster(*arguments, **more):
    return subprocess.run([MUSTER, *arguments], capture_output=True, text=True, timeout=90, **more)


class Commands(Nodes):
    def serve(self, *arguments, **more):
        """Starts a serving subcommand; gives its port."""
        server = subprocess.Popen([MUSTER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        line = server.stdout.readline()
        self.assertIn("listening on", line)
        return int(line.rsplit(":", 1)[1])

    def test_usage(self):
        self.assertEqual(muster().returncode, 64)
        self.assertEqual(muster("--help").returncode, 0)
        for name in ("exec", "run", "launch", "coordinator", "status", "store", "install", "wait", "report", "version"):
            done = muster(name, "--help")
            self.assertEqual(done.returncode, 0, name)
            self.assertTrue(done.stdout.strip(), name)

    def test_wrong_usage_names_the_program(self):
        for arguments, said in ((("wait",), "TARGET is required"), (("wait", "--dns", "--tcp", "h"), "--dns excludes --tcp"),
                                (("report", "--bogus", "x"), "not expected: --bogus"), (("install",), "DIR is required"),
                                (("status",), "endpoint is required"), (("version", "x"), "not expected: x"),
                                (("store", "--port", "x"), "--port"), (("stacks", "0"), "PID: '0': want a number, more than 0"),
                                (("check", "--min-memory", "x"), "--min-memory: 'x': want a number, more than 0")):
            done = muster(*arguments)
            self.assertEqual((done.returncode, done.stdout), (64, ""), arguments)
            name = f"muster {arguments[0]}"
            self.assertRegex(done.stderr, rf"^{name}: .*; see {name} --help\n$")
            self.assertIn(said, done.stderr)

    def test_an_address_that_is_not_ours(self):
        for flag, arguments in (("--listen", ("coordinator", "--listen", "192.0.2.1:0")),
                                ("--rsh-listen", ("exec", "--serve-rsh", "--rsh-listen", "192.0.2.1:0")),
                                ("--http-port", ("exec", "--http-port", "192.0.2.1:0", "--", "true"))):
            done = muster(*arguments)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertRegex(done.stderr, rf" {flag}\b.* cannot listen on 192.0.2.1 port 0: .*; give an address of this machine")

    def test_version(self):
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
        with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
            link.sendall(bytes.fromhex("00CEF7853C") + b"\x0d\x01\x02\x03\x04")  # VALIDATE, PING
            self.assertEqual(link.recv(4, socket.MSG_WAITALL), b"\x01\x02\x03\x04")

    def test_status(self):
        port = self.serve("coordinator", "--listen", "127.0.0.1:0")
        endpoint = f"127.0.0.1:{port}"
        agents = [self.node(endpoint, "2", "--rdzv-conf", "is_host=0", "--node-name", name) for name in ("a", "b")]
        workers = self.workers(2)
        report = json.loads(muster("status", endpoint, "--json").stdout)
        self.assertEqual((report["run_id"], report["phase"], report["max_nodes"]), ("job", "running", 2))
        self.assertEqual(sorted(node["node"] for node in report["nodes"]), ["a", "b"])
        self.assertIn("running", muster("status", endpoint, "--run-id", "job").stdout)
        follower = subprocess.Popen([MUSTER, "status", endpoint, "--json", "--follow"], stdout=subprocess.PIPE, text=True)
        first = json.loads(follower.stdout.readline())
        self.assertEqual(first["phase"], "running")
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertEqual(json.loads(follower.stdout.read().splitlines()[-1])["phase"], "finished")
        follower.stdout.close()
        self.assertEqual(follower.wait(), 0)

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
        stranger = self.node(endpoint, "2", "--rdzv-conf", "is_host=0,join_timeout=2")
        agents = [self.node(endpoint, "2", "--rdzv-conf", f"is_host=0,token_file={token}") for _ in range(2)]
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertNotEqual(stranger.wait(), 0)
        self.assertIn("token", stranger.output())
        self.assertNotIn("s3cret", stranger.output())

    def test_json_log(self):
        agent = self.start("--standalone", "--log-format", "json", "--no-python", "/bin/sh", "-c", "exit 3", worker=False)
        self.assertEqual(agent.wait(), 3)
        lines = [line for line in agent.output().splitlines() if line.startswith("{")]
        self.assertTrue(lines)
        self.assertEqual(json.loads(lines[-1])["level"], "error")


class Output(MusterCase):
    def test_a_blocked_console_does_not_stop_the_workers(self):
        """Nobody reads the agent's output: workers finish, and what was dropped is said."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        script = "import sys\nfor i in range(400000): print('line', i, 'x' * 60)\n"
        path = os.path.join(self.dir, "chatter.py")
        with open(path, "w") as file:
            file.write(script)
        process = subprocess.Popen([MUSTER, "run", "--standalone", "--tee", "1", path], stdout=writer,
                                   stderr=subprocess.PIPE, env={**os.environ, "PYTHON_EXEC": "/usr/bin/python3"})
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
                self.assertRegex(agent.output(), r"cannot be written, its lines are dropped until it can.*No space left")
                self.assertRegex(agent.output(), r"a log file lacks 1\d{4} lines \(\d{7} bytes\).* file=\S+/stdout.log\n")
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
        agent = self.start("--standalone", "--nproc-per-node", "64", "--tee", "3", "--no-python", "/bin/true", worker=False,
                           preexec_fn=lambda: __import__("resource").setrlimit(7, (40, 40)))
        self.assertEqual(agent.wait(), 1)
        self.assertRegex(agent.output(), r"starting the worker with local rank \d+: .*no file descriptor left; raise the limit \(ulimit -n\)")


if __name__ == "__main__":
    main()
