# SPDX-License-Identifier: Apache-2.0
"""Standby workers and what users have on their machines: the second attempt sees what a cold start would see."""

import os
import signal
import stat
import subprocess

from muster_case import main, sanitized
from standby_case import READY, STANDBY, StandbyCase


class Starts(StandbyCase):
    """Python's own start. The script never runs in a standby."""

    def wrap(self, text):
        path = os.path.join(self.dir, "wrapper")
        self.write(path, text)
        os.chmod(path, stat.S_IRWXU)
        return {"PYTHON_EXEC": path}

    def cold_attempts(self, agent, count):
        for number in range(count):
            (worker,) = self.workers(1)
            self.assertEqual(worker.restarts, number)
            worker.tell("exit 1" if number < count - 1 else "exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())
        self.assertEqual(self.runs(), count)
        self.assertNotIn("began in a standby", agent.output())

    def test_a_python_that_does_not_read_the_path(self):
        """Also if the script runs another Python, which inherits the environment and descriptors."""
        helper = "import os; os.system('/usr/bin/python3 -c pass')"
        for how, imports in (("-E", ""), ("-I", ""), ("-S", ""), ("-E", helper)):
            with self.subTest(how=how, imports=imports):
                self.write(os.path.join(self.dir, "runs"), "")
                self.write_script(imports)
                env = self.wrap(f'#!/bin/sh\nexec /usr/bin/python3 {how} "$@"\n')
                agent = self.begin("--max-restarts", "4", env=env)
                self.cold_attempts(agent, 5)
                self.assertIn("no standby workers from now on: the workers' Python reads no PYTHONPATH", agent.output())

    def test_a_python_that_is_not_the_workers_process(self):
        self.write_script("")
        for text in ('/usr/bin/python3 "$@"; exit $?', '/usr/bin/python3 -c pass; exec /usr/bin/python3 -E "$@"'):
            with self.subTest(text=text):
                self.write(os.path.join(self.dir, "runs"), "")
                agent = self.begin("--max-restarts", "4", env=self.wrap(f"#!/bin/sh\n{text}\n"))
                self.cold_attempts(agent, 5)

    def test_a_wrapper_that_becomes_python(self):
        self.write_script("")
        agent, _ = self.two_attempts(env=self.wrap('#!/bin/sh\nexport X=1\nexec /usr/bin/python3 "$@"\n'))
        self.wait_for_output(agent, "1 of 1 worker began in a standby")

    def test_a_sitecustomize_that_raises(self):
        """Python says so and goes on: in the worker, whose output has it. It is once more so in a standby."""
        self.write(os.path.join(self.dir, "runs"), "")
        for text in ("raise ValueError('of the user')", "import this_is_missing", "{}['x']"):
            with self.subTest(text=text):
                self.write(os.path.join(self.dir, "runs"), "")
                self.install("sitecustomize", text)
                self.write_script("")
                agent, _ = self.two_attempts()
                self.wait_for_output(agent, "1 of 1 worker began in a standby")
                self.assertEqual(agent.output().count("Error in sitecustomize"), 2, agent.output())

    def test_one_that_raises_only_in_a_standby(self):
        for name in ("sitecustomize", "usercustomize"):
            for text in (
                "raise ValueError(1)",
                "import sys; sys.exit(3)",
                "import os; os._exit(3)",
                "os.environ['RANK']",
            ):
                with self.subTest(name=name, text=text):
                    self.write(os.path.join(self.dir, "runs"), "")
                    self.install(name, f"import os\nif {STANDBY}: {text}")
                    self.write_script("")
                    agent = self.begin()
                    (worker,) = self.workers(1)
                    if "RANK" in text:
                        self.wait_for_output(agent, "no standby workers from now on: Python's start reads RANK")
                    elif "Value" in text:
                        self.await_ready(agent)
                    worker.tell("exit 1")
                    (worker,) = self.workers(1)
                    self.end(agent, [worker])
                    self.assertEqual(self.runs(), 2)
            os.unlink(os.path.join(self.site, name + ".py"))

    def test_odd_paths(self):
        folder = self.site
        for path in (
            "",
            ":",
            f":{folder}",
            "relative",
            f"{folder}:/missing:%s%n",
            f"{folder}:/caf\u00e9",
            b"/\xff\xfe",
        ):
            with self.subTest(path=path):
                self.write(os.path.join(self.dir, "runs"), "")
                self.write_script(
                    "",
                    "[sys.path, os.environ['PYTHONPATH'], list(subprocess.check_output(['printenv', 'PYTHONPATH']))]",
                )
                agent, (cold, warm) = self.two_attempts(env={"PYTHONPATH": path})
                self.assertEqual(warm, cold)
                self.wait_for_output(agent, "1 of 1 worker began in a standby")


class Disk(StandbyCase):
    """What a cold start would find on the disk."""

    def setUp(self):
        super().setUp()
        self.install("module_m", "VALUE = 'installed'")
        self.facts_of_m = "[sys.modules['module_m'].VALUE, getattr(sys.modules['module_m'], '__file__', None)]"

    def after_a_change(self, change, want, used, imports="import module_m", **more):
        self.write_script(imports, self.facts_of_m)
        agent = self.begin(**more)
        (worker,) = self.workers(1)
        self.await_ready(agent)
        change()
        worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.end(agent, [worker])
        self.assertEqual(self.facts(agent)[1][0], want, agent.output())
        self.assertEqual("began in a standby" in agent.output(), used, agent.output())
        return agent

    def test_a_package_that_is_changed(self):
        agent = self.after_a_change(lambda: self.install("module_m", "VALUE = 'a newer one'"), "a newer one", False)
        self.assertRegex(agent.output(), "a standby worker is not used: .*/module_m.py has changed")

    def test_a_package_that_is_hidden(self):
        """A folder beside the script gets a module of the same name."""
        hide = lambda: self.write(os.path.join(self.dir, "module_m", "__init__.py"), "VALUE = 'own'")
        self.after_a_change(hide, "own", False)

    def test_a_folder_without_modules_hides_nothing(self):
        os.makedirs(os.path.join(self.dir, "module_m"))
        self.after_a_change(lambda: None, "installed", True)

    def test_the_scripts_module_hides_one_that_packages_import(self):
        """So it does in a worker."""
        self.write(os.path.join(self.dir, "queue.py"), "VALUE = 'own'")
        self.install("module_m", "from queue import VALUE")
        self.after_a_change(lambda: None, "own", True)

    def test_a_script_that_is_changed(self):
        self.after_a_change(
            lambda: self.write_script("import module_m; module_m.VALUE = 'of the new script'", self.facts_of_m),
            "of the new script",
            True,
        )

    def test_an_editable_install(self):
        """Its finder is last in sys.meta_path, and knows no folders."""
        code = os.path.join(self.dir, "checkout")
        self.write(os.path.join(code, "module_m.py"), "VALUE = 'editable'")
        os.unlink(os.path.join(self.site, "module_m.py"))
        self.install(
            "sitecustomize",
            f"""
            import importlib.util, sys
            class Finder:
                @staticmethod
                def find_spec(name, path=None, target=None):
                    if name == "module_m":
                        return importlib.util.spec_from_file_location(name, {os.path.join(code, "module_m.py")!r})
            sys.meta_path.append(Finder)
            """,
        )
        self.after_a_change(lambda: None, "editable", True)

    def test_an_egg(self):
        egg = os.path.join(self.site, "x.egg")
        subprocess.run(["python3", "-m", "zipfile", "-c", egg, os.path.join(self.site, "module_m.py")], check=True)
        os.unlink(os.path.join(self.site, "module_m.py"))
        self.after_a_change(lambda: os.utime(egg), "installed", False, env={"PYTHONPATH": egg})

    def test_a_script_that_is_gone_or_cannot_be_read(self):
        for change, words in ((os.unlink, "can't open file"), (lambda path: self.write(path, "def"), "SyntaxError")):
            with self.subTest(words=words):
                self.write_script("import module_m")
                agent = self.begin("--max-restarts", "1")
                (worker,) = self.workers(1)
                self.await_ready(agent)
                change(self.script)
                worker.tell("exit 1")
                self.assertIn(agent.wait(), (1, 2), agent.output())
                self.assertIn(words, agent.output())


class Hostile(StandbyCase):
    def test_what_a_worker_writes_to_the_agent(self):
        """The script finds the descriptor of the finder."""
        name = lambda text: f"b'N' + ({text}).__len__().to_bytes(4, 'little') + ({text})"
        for what, bytes_ in {
            "a huge length": r"b'N' + b'\xff' * 4",
            "a wrong letter": "b'I' + bytes(4)",
            "no frame": "os.urandom(5_000_000)",
            "names": name(r"b'\0'.join(b'n%d' % n for n in range(100_000))"),
            "a name with newlines": name(r"b'a\nb\0\xff\xfe\0../../x\0%s\0{}'"),
            "long names": name(r"b'x' * 1_000_000 + b'\0' + b'y' * 40_000") + " ",
            "many frames": "(" + name(r"b'x' * 1_000_000") + ") * 300",
            "a hello, unfit": "b'H' + bytes(4) + b'U' + bytes(4) + b'R' + bytes(4)",
        }.items():
            with self.subTest(what):
                self.write(os.path.join(self.dir, "runs"), "")
                self.write_script(
                    f"""
import os, sys
for finder in sys.meta_path:
    if hasattr(finder, "channel"):
        message = {bytes_}
        try:
            while message:
                message = message[os.write(finder.channel, message):]
        except OSError:
            pass
"""
                )
                agent = self.begin(imports=None)
                (worker,) = self.workers(1)
                worker.tell("exit 1")
                (worker,) = self.workers(1)
                with open(f"/proc/{agent.pid}/status") as status:
                    (peak,) = [int(line.split()[1]) for line in status if line.startswith("VmHWM")]
                if not sanitized():  # a sanitizer keeps freed memory
                    self.assertLess(peak, 200_000)
                self.end(agent, [worker])
                self.assertEqual(self.runs(), 2)


class Many(StandbyCase):
    def test_restarts_in_a_row(self):
        """The agent's descriptors and memory stay flat."""
        self.install("module_m", "")
        self.write_script("import module_m")
        agent = self.begin("--max-restarts", "100")

        def load():
            with open(f"/proc/{agent.pid}/statm") as statm:
                return len(os.listdir(f"/proc/{agent.pid}/fd")), int(statm.read().split()[1]) * 4096

        for number in range(40):
            (worker,) = self.workers(1)
            self.wait_for_output(agent, rf"(?s)restart {number} of.*{READY}" if number else READY)
            if number == 10:
                descriptors, memory = load()
            worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.wait_for_output(agent, rf"(?s)restart 40 of.*{READY}")
        now = load()
        self.assertLessEqual(now[0], descriptors + 2)
        self.assertLess(now[1], memory + (16 << 20))
        self.end(agent, [worker])
        self.assertEqual(agent.output().count("1 of 1 worker began in a standby"), 40)

    def test_many_workers_and_few_descriptors(self):
        self.install("module_m", "")
        self.write_script("import module_m")
        prefix = ("sh", "-c", 'ulimit -n 256; exec "$@"', "sh")
        agent = self.begin("--nproc-per-node", "32", prefix=prefix)
        workers = self.workers(32)
        self.wait_for_output(agent, rf"(?s)({READY}.*){{2}}")
        workers[0].tell("exit 1")
        self.end(agent, self.workers(32))

    def test_nodes_that_come_and_go(self):
        self.install("module_m", "")
        self.write_script("import module_m")
        agent = self.begin("--nodes-on-this-machine", "3", "--nnodes", "2:3")
        workers = self.round_of(3, 0)
        self.await_ready(agent, 3)
        os.kill(workers[1].hello["ppid"], signal.SIGKILL)
        workers = self.round_of(2, 1)
        self.wait_for_output(agent, "began in a standby")
        for worker in workers:
            worker.tell("exit 0")
        agent.wait()


if __name__ == "__main__":
    main()
