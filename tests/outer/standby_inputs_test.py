# SPDX-License-Identifier: Apache-2.0
"""Standby workers and scripts, modules and Pythons that are odd or broken: each ends as a cold start would."""

import os
import re
import shutil
import subprocess
import sys

from muster_case import PYTHON, main, wait_gone
from standby_case import STANDBY, StandbyCase

PYPY = "/usr/bin/pypy3"


class Broken(StandbyCase):
    """What cannot be imported, or not in time."""

    def outcome(self, standby, change, imports="import module_m"):
        """(exit code, lines of a traceback) of a second attempt after `change`."""
        self.write(os.path.join(self.site, "package", "__init__.py"), "VALUE = 1")
        self.install("module_m", "VALUE = 1")
        self.write_script(imports)
        agent = self.begin("--max-restarts", "1", "--standby-workers", standby)
        (worker,) = self.workers(1)
        if standby == "auto":
            self.await_ready(agent)
        change()
        worker.tell("exit 1")
        code = agent.wait()
        self.assertEqual(self.runs(), 2 if os.path.exists(self.script) else 1, agent.output())
        os.unlink(os.path.join(self.dir, "runs"))
        return code, re.findall(
            r"^(?:\w+Error: .*|/usr/bin/python\S*: can't open file.*)$", agent.output(), re.MULTILINE
        )

    def test_what_is_missing_in_the_next_attempt(self):
        again = "open(__file__).close()\n"
        folder = os.path.join(self.dir, "lib", "site-packages", "package")
        for what, change, imports, said in (
            (
                "a module",
                lambda: None,
                "import module_m, os\nif os.environ['RANK'] and not FIRST: import no_such",
                "no_such",
            ),
            ("a package that is removed", lambda: shutil.rmtree(folder), "import package", "package"),
            ("a module that no longer parses", lambda: self.install("module_m", "def"), "import module_m", "invalid"),
            ("the script", lambda: os.unlink(self.script), again, "can't open file"),
        ):
            with self.subTest(what):
                first = f"FIRST = open({os.path.join(self.dir, 'runs')!r}).read().count('run') == 1\n"
                warm, cold = (self.outcome(mode, change, first + imports) for mode in ("auto", "off"))
                self.assertEqual(warm, cold)
                self.assertNotEqual(cold[0], 0)
                self.assertIn(said, str(cold[1]))

    def test_names_that_cannot_be_imported(self):
        """Of --standby-imports: the others are imported."""
        self.install("module_m", "VALUE = 1")
        self.write_script("import sys\nearly = 'module_m' in sys.modules\nimport module_m", "early")
        agent, facts = self.two_attempts(imports="no_such_module,json.no_such,module_m,json,socket,subprocess")
        self.assertEqual(facts, [False, True], agent.output())

    def test_an_import_that_hangs(self):
        """The next attempt is a cold start, and the end of the job does not wait."""
        os.mkfifo(os.path.join(self.dir, "gate"))
        block = "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))"
        self.install(
            "module_m",
            f"import os, signal\nif {STANDBY}:\n    os.write(2, b'pid %d.' % os.getpid())\n    {block}\n"
            f"    open({os.path.join(self.dir, 'gate')!r}).read()",
        )
        self.write_script("import module_m")
        for code in (1, 0):
            with self.subTest(code=code):
                self.write(os.path.join(self.dir, "runs"), "")
                agent = self.begin()
                (worker,) = self.workers(1)
                output = self.wait_for_output(agent, r"a standby worker printed.*pid \d+\.")
                pid = int(re.search(r"pid (\d+)\.", output)[1])
                worker.tell(f"exit {code}")
                if code:
                    (worker,) = self.workers(1)
                    self.assertTrue(wait_gone(pid))
                    worker.tell("exit 0")
                self.assertEqual(agent.wait(), 0, agent.output())
                self.assertTrue(wait_gone(pid))
                self.assertEqual(self.runs(), 1 + code)
                self.assertNotIn("began in a standby", agent.output())

    def test_an_import_that_has_no_memory(self):
        self.install("module_m", f"if {STANDBY}: raise MemoryError()")
        self.write_script("import module_m")
        agent, _ = self.two_attempts()
        self.assertIn("do not import module_m from now on: importing it raises MemoryError", agent.output())
        self.wait_for_output(agent, "1 of 1 worker began in a standby")


class Noisy(StandbyCase):
    def test_an_import_that_prints(self):
        """Its text is in the debug log alone."""
        self.install("module_m", "import sys\nprint('of module_m', file=sys.stderr)\nprint('of module_m')")
        self.write_script("import module_m")
        logs = os.path.join(self.dir, "logs")
        agent = self.begin("--log-dir", logs, "--redirects", "3")
        (worker,) = self.workers(1)
        self.await_ready(agent)
        worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.end(agent, [worker])
        self.wait_for_output(agent, "1 of 1 worker began in a standby")
        # The last standby may have printed, too, before the agent ended.
        others = re.sub(r"a standby worker printed local_rank=0 text=of module_m\n", "", agent.output())
        self.assertNotRegex(others, "(?<!stderr: )of module_m")
        self.assertEqual({*re.findall(r"(\w) muster a standby worker printed", agent.output())}, {"D"})
        printed = {}
        for folder, _, files in os.walk(logs):
            for name in {"stdout.log", "stderr.log"} & {*files}:
                with open(os.path.join(folder, name)) as file:
                    attempt = re.search(r"attempt_(\d+)", folder)[1]
                    printed[attempt] = printed.get(attempt, 0) + file.read().count("of module_m")
        self.assertEqual(printed, {"0": 2, "1": 0})


class Forks(StandbyCase):
    CHILD = "os.write(2, b'child %d.' % os.getpid()); signal.pause()"
    # What a module does, and whether standbys import it.
    ROWS = {
        "the child ends": (
            f"import os\nif {STANDBY}:\n    child = os.fork()\n    if not child: os._exit(0)\n    os.waitpid(child, 0)",
            True,
        ),
        "the child stays": (f"import os, signal\nif {STANDBY} and not os.fork(): {CHILD}", False),
        "both go on": (
            f"import os\nif {STANDBY} and not os.fork(): os.write(2, b'child %d.' % os.getpid())",
            False,
        ),
    }

    def test_a_fork_while_it_imports(self):
        """The script runs once in each attempt, and no child is left over."""
        for name, (text, early) in self.ROWS.items():
            with self.subTest(name):
                self.write(os.path.join(self.dir, "runs"), "")
                self.install("module_m", text)
                self.write_script("import sys\nearly = 'module_m' in sys.modules\nimport module_m", "early")
                agent, facts = self.two_attempts(imports="json,socket,subprocess,module_m")
                self.assertEqual(facts, [False, early], agent.output())
                self.assertEqual("importing it starts a process" in agent.output(), not early, agent.output())
                self.assertTrue(self.no_worker_waits())
                for child in map(int, re.findall(r"child (\d+)\.", agent.output())):
                    self.assertTrue(wait_gone(child))


class Commands(StandbyCase):
    """Scripts that are no files, and Pythons that are not CPython."""

    FACTS = (
        "[sys.path, sys.argv, sys.flags.safe_path, __name__, __package__, globals().get('__file__'), "
        "getattr(__spec__, 'name', None), type(__loader__).__name__, module_m.VALUE]"
    )

    def pack(self):
        """The script as `app.pyz`, as a folder `app` and as a package `package`."""
        self.install("module_m", "VALUE = 1")
        self.write_script("import module_m", self.FACTS)
        for name in ("app", "package"):
            os.mkdir(os.path.join(self.dir, name))
            shutil.copy(self.script, os.path.join(self.dir, name, "__main__.py"))
        self.write(os.path.join(self.dir, "package", "__init__.py"), "")
        command = [sys.executable, "-m", "zipapp", "app", "-o", "app.pyz", "-p", "/usr/bin/env python3"]
        subprocess.run(command, cwd=self.dir, check=True)

    def test_a_zipapp_a_folder_and_a_package(self):
        self.pack()
        for words in (["app.pyz"], ["app"], ["-m", "package"]):
            for imports in ("module_m,json,socket,subprocess", None):
                with self.subTest(words=words, imports=imports):
                    self.write(os.path.join(self.dir, "runs"), "")
                    agent, (cold, warm) = self.two_attempts(script_words=[*words, "x"], imports=imports)
                    self.assertEqual(warm, cold)
                    self.wait_for_output(agent, "1 of 1 worker began in a standby")

    def test_a_script_from_stdin(self):
        """It is no file, and refused, with and without standbys."""
        self.write_script("")
        for mode in ("auto", "off"):
            with open(self.script) as script:
                agent = self.begin("--standby-workers", mode, script_words=["-"], stdin=script)
            self.assertEqual(agent.wait(), 127)
            self.assertIn("-: cannot run it: No such file or directory", agent.output())

    def test_commands_that_are_no_script(self):
        """The log says why there is no standby."""
        self.write_script("")
        text = f"exec(open({self.script!r}).read())"
        for words, why in (
            (["--no-python", PYTHON, "-c", text], "the command is not a Python script or module"),
            (["--no-python", PYTHON, self.script], "the command is not a Python script or module"),
            (["--run-path", self.script], "the command is not a Python script or module"),
        ):
            with self.subTest(words=words[:3]):
                self.write(os.path.join(self.dir, "runs"), "")
                agent = self.begin(script_words=words)
                (worker,) = self.workers(1)
                worker.tell("exit 1")
                (worker,) = self.workers(1)
                self.end(agent, [worker])
                self.assertEqual(self.runs(), 2)
                self.assertIn(f"no standby workers: {why}", agent.output())

    def test_no_restarts(self):
        self.write_script("")
        agent = self.begin("--max-restarts", "0")
        self.end(agent, self.workers(1))
        self.assertIn("no standby workers: restarts are not allowed", agent.output())

    def test_pypy(self):
        if not os.path.exists(PYPY):
            self.skipTest(f"SKIPPED: there is no {PYPY}; `apt-get install pypy3` installs it (75 MB)")
        self.install("module_m", "VALUE = 1")
        facts = "[sys.implementation.name, sys.argv, sys.path, module_m.VALUE, getattr(sys, 'customized', None)]"
        self.write_script("import module_m", facts)
        for customized in (None, 1):
            with self.subTest(customized=customized):
                self.write(os.path.join(self.dir, "runs"), "")
                if customized:
                    self.install("sitecustomize", "import sys\nsys.customized = getattr(sys, 'customized', 0) + 1")
                agent, (first, warm) = self.two_attempts(env={"PYTHON_EXEC": PYPY})
                self.assertEqual(warm, first)
                self.assertEqual((warm[0], warm[-1]), ("pypy", customized))
                self.assertNotIn("Error in sitecustomize", agent.output())
                self.wait_for_output(agent, "1 of 1 worker began in a standby")


class Folders(StandbyCase):
    def test_a_working_directory_that_is_removed(self):
        """The next attempt begins in it, as a cold start does."""
        self.install("module_m", "VALUE = 1")
        self.write_script(
            "import module_m, os, sys\nif os.environ['TORCHELASTIC_RESTART_COUNT'] != '0':\n"
            "    print('now:', sys.path[1:], module_m.VALUE)\n    sys.exit()"
        )
        here = os.path.join(self.dir, "here")
        said = []
        for mode in ("auto", "off"):
            os.mkdir(here)
            agent = self.begin("--standby-workers", mode, cwd=here)
            (worker,) = self.workers(1)
            if mode == "auto":
                self.await_ready(agent)
            os.rmdir(here)
            worker.tell("exit 1")
            self.assertEqual(agent.wait(), 0, agent.output())
            said.append(re.search("^now: .* 1$", agent.output(), re.MULTILINE)[0])
        self.assertEqual(said[0], said[1])
        self.assertIn("1 of 1 worker began in a standby", self.agents[0].output())


if __name__ == "__main__":
    main()
