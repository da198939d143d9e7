# SPDX-License-Identifier: Apache-2.0
"""Standby workers: the next attempt begins in processes that have imported, and a program cannot tell."""

import os
import re
import signal

from muster_case import MUSTER, PYTHON, MusterCase, alive, main, wait_gone

READY = r"a standby worker is ready"
# What a start, and so each attempt, has for itself.
OF_ROUND = {
    "MASTER_PORT",
    "MUSTER_HEARTBEAT_FILE",
    "MUSTER_ROUND",
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_RESTART_COUNT",
}

# Starts a command as a subreaper (36 is PR_SET_CHILD_SUBREAPER). Fails if another child is left when it has ended.
SUBREAPER = """
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)
code = subprocess.call(sys.argv[1:])
try:
    os.waitpid(-1, os.WNOHANG)
    sys.exit("a process is left")
except ChildProcessError:
    sys.exit(code)
"""


class Standbys(MusterCase):
    def begin(self, *arguments, imports="json,signal,socket,subprocess", **more):
        """`imports`: the first standby that is ready has them all. None: they are learned, and come bit by bit."""
        words = ("--standby-workers", "auto", "--standby-delay", "0s", "--log-level", "debug")
        return self.start(*words, *(("--standby-imports", imports) if imports else ()), *arguments, **more)

    def await_ready(self, agent, count):
        """The pids of the first `count` standbys that are ready. One may say so again, when it has imported more."""
        pids, lines = {}, 0
        while len(pids) < count:
            output = self.wait_for_output(agent, rf"(?s)({READY}.*){{{lines + 1}}}")
            found = re.findall(READY + r".*pid=(\d+)", output)
            pids, lines = dict.fromkeys(found), len(found)
        return [int(pid) for pid in pids]

    def gate(self, name):
        """A FIFO at which a process waits for a line, and a function that lets one go."""
        path = os.path.join(self.dir, name)
        os.mkfifo(path)
        writing = os.open(path, os.O_RDWR)
        self.addCleanup(os.close, writing)
        return path, lambda: os.write(writing, b"\n")

    def end(self, agent, workers):
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())

    def test_the_next_attempt_begins_in_them(self):
        logs = os.path.join(self.dir, "logs")
        agent = self.begin("--nproc-per-node", "2", "--max-restarts", "2", "--log-dir", logs, script_args=("a", "--b"))
        cold = self.workers(2)
        pids = self.await_ready(agent, 2)
        cold[0].tell("exit 1")
        warm = self.workers(2)
        self.assertEqual(sorted(worker.pid for worker in warm), sorted(pids))
        self.wait_for_output(agent, "2 of 2 workers began in a standby")
        for before, now in zip(cold, warm):
            for fact in ("argv", "cwd", "ppid"):
                self.assertEqual(now.hello[fact], before.hello[fact])
            self.assertEqual(now.hello["pgid"], now.pid)
            self.assertEqual(list(now.env), list(before.env))  # the order, too
            changed = {name for name in now.env if now.env[name] != before.env[name]}
            self.assertLessEqual(changed, OF_ROUND)
        self.assertEqual([worker.restarts for worker in warm], [1, 1])
        recorded = [attempt["standby_workers"] for _, attempt in sorted(self.attempts(logs).items())]
        self.assertEqual(recorded, [0, 2])
        self.await_ready(agent, 4)  # for the attempt after that
        self.end(agent, warm)

    def test_off_is_the_default(self):
        agent = self.start("--max-restarts", "1", "--log-level", "debug")
        (worker,) = self.workers(1)
        self.assertNotIn("MUSTER_STANDBY", worker.env)
        worker.tell("exit 1")
        self.end(agent, self.workers(1))
        self.assertNotIn("standby", agent.output())

    def test_one_that_is_killed_or_stopped_is_a_cold_start(self):
        for number in (signal.SIGKILL, signal.SIGSTOP):
            with self.subTest(number=number):
                agent = self.begin("--max-restarts", "1")
                (worker,) = self.workers(1)
                (pid,) = self.await_ready(agent, 1)
                os.kill(pid, number)
                worker.tell("exit 1")
                (next_worker,) = self.workers(1)
                self.assertNotEqual(next_worker.pid, pid)
                self.assertNotIn("began in a standby", agent.output())
                self.assertTrue(wait_gone(pid))
                self.end(agent, [next_worker])

    def test_they_end_with_their_agent(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(number=number):
                agent = self.begin("--max-restarts", "1")
                self.workers(1)
                (pid,) = self.await_ready(agent, 1)
                self.assertTrue(alive(pid))
                agent.send(number)
                agent.wait()
                self.assertTrue(wait_gone(pid))

    def test_their_agent_waits_for_their_ends(self):
        """What it left would be an orphan, which an outer `muster exec` stops as one that has left its group."""
        for prefix in ((PYTHON, "-c", SUBREAPER), (MUSTER, "exec", "--")):
            with self.subTest(prefix[0]):
                agent = self.begin("--nproc-per-node", "2", "--max-restarts", "1", prefix=prefix)
                workers = self.workers(2)
                self.await_ready(agent, 2)
                self.end(agent, workers)
                self.assertNotIn("has left its worker's process group", agent.output())

    def test_the_scripts_own_modules_are_left_to_it(self):
        """They are imported by the worker, and a changed one takes effect."""
        own = os.path.join(self.dir, "own_module.py")
        script = os.path.join(self.dir, "script.py")
        with open(script, "w") as file:
            file.write(
                "import json, own_module, sys\n"
                "print('own module:', own_module.VALUE, own_module.__file__)\n"
                "print('standbys had imported:', 'xmlrpc.client' in sys.modules)\n"
                "import xmlrpc.client\n"
                f"exec(open({os.path.join(os.path.dirname(__file__), 'obedient_worker.py')!r}).read())\n"
            )
        agent = worker = None
        for value in ("first", "second", "third"):
            with open(own, "w") as file:
                file.write(f"VALUE = {value!r}\n")
            if worker is None:
                agent = self.begin("--max-restarts", "2", script, worker=False, imports=None)
            else:
                worker.tell("exit 1")
            (worker,) = self.workers(1)
            self.wait_for_output(agent, f"own module: {value} {re.escape(own)}")
            if value == "second":  # the names are known: each standby is told them all
                self.wait_for_output(agent, rf"(?s)round 1:.*{READY}")
        self.assertIn("standbys had imported: True", agent.output())
        self.end(agent, [worker])

    def test_one_that_is_ready_while_the_round_stops(self):
        """Standbys have been made of what the worker has shown: the next one does not tell it again."""
        package = os.path.join(self.dir, "lib", "site-packages")
        os.makedirs(package)
        go, let_go = self.gate("go")
        gate, open_gate = self.gate("gate")
        with open(os.path.join(package, "late.py"), "w") as file:
            file.write("import os\nif open('/proc/self/oom_score_adj').read() == '1000\\n':  # in a standby\n")
            file.write(f"    os.write(2, b'at the gate')\n    open({gate!r}).readline()\n")
        script = os.path.join(self.dir, "script.py")
        with open(script, "w") as file:
            file.write(
                "import json, os, signal, socket, subprocess, sys\n"
                "print('finders:', [type(finder).__name__ for finder in sys.meta_path])\n"
                "if (os.environ['RANK'], os.environ['TORCHELASTIC_RESTART_COUNT']) == ('0', '0'):\n"
                f"    open({go!r}).readline()\n"
                "    import late, wave\n"
                f"exec(open({os.path.join(os.path.dirname(__file__), 'obedient_worker.py')!r}).read())\n"
            )
        words = ("--nproc-per-node", "2", "--max-restarts", "1", script)
        agent = self.begin(*words, worker=False, imports=None, env={"PYTHONPATH": package})
        (failing,) = self.workers(1)
        self.await_ready(agent, 2)
        let_go()
        (staying,) = self.workers(1)
        staying.ask("ignore SIGTERM")
        self.wait_for_output(agent, "at the gate")
        failing.tell("exit 1")
        staying.ask("asked SIGTERM")
        ready = agent.output().count(READY)
        open_gate()
        self.wait_for_output(agent, rf"(?s)({READY}.*){{{ready + 1}}}")
        staying.tell("exit 0")
        self.end(agent, self.workers(2))
        self.assertIn("2 of 2 workers began in a standby", agent.output())
        self.assertEqual(len(re.findall("finders: .*Learner", agent.output())), 1)

    def test_an_import_that_a_standby_may_not_do(self):
        """One that opens a file for writing: the worker does it, and one sentence names the module."""
        package = os.path.join(self.dir, "lib", "site-packages")
        os.makedirs(package)
        with open(os.path.join(package, "writes_a_file.py"), "w") as file:
            file.write(f"log = open({os.path.join(self.dir, 'opened')!r}, 'a')\n")
        script = os.path.join(self.dir, "script.py")
        with open(script, "w") as file:
            file.write("import writes_a_file\nimport json\n")
            file.write(f"exec(open({os.path.join(os.path.dirname(__file__), 'obedient_worker.py')!r}).read())\n")
        agent = self.begin(
            "--max-restarts", "1", script, worker=False, imports="writes_a_file,json", env={"PYTHONPATH": package}
        )
        (worker,) = self.workers(1)
        self.wait_for_output(agent, "do not import writes_a_file from now on: importing it opens .*/opened for writing")
        self.await_ready(agent, 1)
        worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.assertEqual(worker.env["PYTHONPATH"], package)
        self.end(agent, [worker])
        self.wait_for_output(agent, "1 of 1 worker began in a standby")

    def test_wrong_values_are_named(self):
        for arguments, words in (
            (("--standby-workers", "always"), "choose one of auto, off"),
            (("--standby-delay", "soon"), "standby-delay"),
            (("--standby-imports", "torch,/x"), "'/x' is not the name of a module"),
        ):
            agent = self.start(*arguments)
            self.assertEqual(agent.wait(), 64, agent.output())
            self.assertIn(words, agent.output())


if __name__ == "__main__":
    main()
