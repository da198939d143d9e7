# SPDX-License-Identifier: Apache-2.0
"""Standby workers and imports: what a module does at its import, and what a script does before it."""

import os
import re

from muster_case import main
from standby_case import READY, STANDBY, StandbyCase


class Imports(StandbyCase):
    # What a module does at its import, and an expression that shows it.
    SURVIVE = {
        "sets a variable": ("import os; os.environ['SET_BY_IMPORT'] = 'x'", "os.environ.get('SET_BY_IMPORT')"),
        "changes a variable": ("import os; os.environ['GIVEN'] = 'x'", "os.environ['GIVEN']"),
        "deletes a variable": ("import os; del os.environ['GIVEN']", "os.environ.get('GIVEN')"),
        "tells C a variable": (
            "import os; os.environ['SET_BY_IMPORT'] = 'x'",
            "subprocess.check_output(['printenv', 'SET_BY_IMPORT']).decode()",
        ),
        "appends to sys.path": ("import sys; sys.path.append('/appended')", "sys.path"),
        "umask": ("import os; os.umask(0o27)", "os.umask(0)"),
        "locale": ("import locale; locale.setlocale(locale.LC_ALL, 'C.UTF-8')", "__import__('locale').setlocale(0)"),
        "warnings": ("import warnings; warnings.simplefilter('error')", "repr(__import__('warnings').filters[0])"),
        "thread": (
            "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
            "__import__('threading').active_count()",
        ),
        "stdout in another encoding": ("import sys; sys.stdout.reconfigure(encoding='latin-1')", "sys.stdout.encoding"),
        "stdout that it has detached": (
            "import io, sys; sys.stdout = io.TextIOWrapper(sys.stdout.detach(), 'ascii', write_through=True)",
            "sys.stdout.encoding",
        ),
        "stdout of its own": (
            (
                "import sys\nclass Tee:\n    def write(self, text): return sys.__stdout__.write(text)\n"
                "    def flush(self): pass\nsys.stdout = Tee()"
            ),
            "type(sys.stdout).__name__",
        ),
        "keeps a function of os.environ": (
            "import os; get = os.environ.__getitem__; also = type(os.environ).__getitem__",
            "[sys.modules['module_m'].get('RANK'), sys.modules['module_m'].also(os.environ, 'WORLD_SIZE')]",
        ),
        "replaces a function of os.environ": (
            (
                "import os\nold = type(os.environ).__getitem__\n"
                "type(os.environ).__getitem__ = lambda self, name: 'x' if name == 'MAGIC' else old(self, name)"
            ),
            "[os.environ.get('MAGIC'), os.environ['RANK']]",
        ),
        "asks whether it is in a script": (
            "import os, sys; main = sys.modules['__main__']; path = os.path.basename(main.__file__)",
            "[sys.modules['module_m'].path, sys.modules['__main__'].__file__ == sys.argv[0]]",
        ),
        "prints a lot": ("import sys; print('x' * 10_000_000); sys.stderr.write('y' * 100_000)", "1"),
    }
    # What a standby cannot do for the worker: the module is left to it.
    LEFT_OUT = {
        "reads RANK": ("import os; rank = os.environ['RANK']", "sys.modules['module_m'].rank"),
        "reads WORLD_SIZE": (
            "import os; size = os.environ.get('WORLD_SIZE', '7')",
            "sys.modules['module_m'].size",
        ),
        "reads MASTER_ADDR": (
            "import os; there = 'MASTER_ADDR' in os.environ",
            "sys.modules['module_m'].there",
        ),
        "reads TORCHELASTIC_MAX_RESTARTS": (
            "import os; most = os.getenvb(b'TORCHELASTIC_MAX_RESTARTS').decode()",
            "sys.modules['module_m'].most",
        ),
        "changes the start method of multiprocessing": (
            "import multiprocessing; multiprocessing.set_start_method('spawn')",
            "__import__('multiprocessing').get_start_method()",
        ),
        "changes the root logger": (
            "import logging; logging.basicConfig(level=5)",
            "[__import__('logging').root.level, __import__('logging').root.handlers[0].stream is sys.stderr]",
        ),
        "changes the front of sys.path": ("import sys; sys.path.insert(0, '/inserted')", "sys.path"),
        "changes the working directory": ("import os; os.chdir('/')", "os.getcwd()"),
        "changes signals": (
            "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
            "str(signal.getsignal(signal.SIGUSR1))",
        ),
        "changes signals ": ("import faulthandler; faulthandler.enable()", "__import__('faulthandler').is_enabled()"),
        "changes limits": (
            "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
            "__import__('resource').getrlimit(4)",
        ),
        "starts a process": (
            "import subprocess; child = subprocess.Popen(['sleep', '1000'])",
            "sys.modules['module_m'].child.poll()",
        ),
        "opens socket:": ("import socket; s = socket.socket()", "1"),
        "copies the descriptor of an output": ("import os; os.write(os.dup(1), b'copy\\n')", "1"),
        "raises KeyError": (f"if {STANDBY}: {{}}['x']", "1"),
        "raises SystemExit": (f"import sys\nif {STANDBY}: sys.exit(3)", "1"),
    }

    def check(self, name, text, facts):
        self.install("module_m", text)
        self.write(os.path.join(self.dir, "runs"), "")
        self.write_script("import module_m", facts)
        return self.two_attempts(env={"GIVEN": "given"}, script_words=["script.py"])

    def test_what_they_do_is_what_the_script_finds(self):
        for name, (text, facts) in self.SURVIVE.items():
            with self.subTest(name):
                agent, (cold, warm) = self.check(name, text, facts)
                self.assertEqual(warm, cold)
                self.wait_for_output(agent, "1 of 1 worker began in a standby")
                self.assertNotIn("do not import", agent.output())

    def test_what_only_the_worker_may_do_is_left_to_it(self):
        for name, (text, facts) in self.LEFT_OUT.items():
            with self.subTest(name):
                agent, (cold, warm) = self.check(name, text, facts)
                self.assertEqual(warm, cold)
                said = re.findall("standby workers do not import (.*)$", agent.output(), re.MULTILINE)
                self.assertEqual(len(said), 1, agent.output())
                self.assertIn(f"module_m from now on: importing it {name.strip()}", said[0])
                self.wait_for_output(agent, "1 of 1 worker began in a standby")


class Script(StandbyCase):
    """What a script does before it imports is in force for the import. So it is in a standby, or the worker imports."""

    # Lines before `import module_m`; the module; whether standbys import it; what the log says.
    ROWS = {
        "a variable that the module reads": (
            "os.environ['X_HOME'] = str('/data')",
            "import os; VALUE = os.environ.get('X_HOME', 'default')",
            False,
            "neither module_m nor what comes after it: importing it reads X_HOME, after the script has changed it",
        ),
        "a variable that it removes": (
            "del os.environ['GIVEN']",
            "import os; VALUE = os.getenvb(b'GIVEN') is None",
            False,
            "neither module_m nor what comes after it: importing it reads GIVEN, after the script has changed it",
        ),
        "a variable that no module reads": ("os.environ['OTHER'] = '1'", "VALUE = 1", True, ""),
        "a variable of libraries": (
            "os.environ['OMP_NUM_THREADS'] = str(3)",
            "import ctypes; ctypes.CDLL('libgomp.so.1'); VALUE = 1",
            False,
            "neither module_m nor what comes after it: importing it loads a library, after the script has changed",
        ),
        "a variable of libraries, and none is loaded": (
            "os.environ['OMP_NUM_THREADS'] = str(3)",
            "VALUE = 1",
            True,
            "",
        ),
        "a variable, in a module of its own": (
            "import own_sets",
            "import os; VALUE = os.environ.get('X_HOME', 'default')",
            False,
            "neither module_m nor what comes after it: importing it reads X_HOME, after the script has changed it",
        ),
        "the path of another version": ("import sys; sys.path.insert(0, OTHER)", "VALUE = 'first'", True, ""),
        "the path of a module that hides another": (
            "import sys; sys.path.insert(0, HIDES)",
            "from queue import VALUE",
            True,
            "",
        ),
        "the end of the path": ("import sys; sys.path.append(HIDES)", "from only_there import VALUE", True, ""),
        "a path with a space": ("import sys; sys.path.append('/a b')", "VALUE = 1", True, ""),
        "a path with a tab": (
            "import sys; sys.path.append('/a\\tb')",
            "VALUE = 1",
            False,
            "leave out what the script imports after it has changed sys.path",
        ),
        "the working directory": (
            "import os; os.chdir('/')",
            "import os; VALUE = os.getcwd()",
            False,
            r"leave out what the script imports after it has changed os.getcwd\(\)",
        ),
        "the arguments": (
            "import sys; sys.argv.append('x')",
            "import sys; VALUE = sys.argv[1:]",
            False,
            "leave out what the script imports after it has changed sys.argv",
        ),
        "a module that it hides": (
            "import sys; sys.modules['wave'] = None",
            "try:\n    import wave\n    VALUE = 1\nexcept ImportError:\n    VALUE = 0",
            False,
            "leave out what the script imports after it has changed sys.modules",
        ),
        "the logging": (
            "import logging; logging.basicConfig(level=40)",
            "import logging; logging.basicConfig(level=10); VALUE = logging.root.level",
            False,
            "do not import module_m from now on: importing it changes the root logger",
        ),
        "the start method": (
            "import multiprocessing; multiprocessing.set_start_method('spawn')",
            "import multiprocessing; VALUE = multiprocessing.get_start_method()",
            False,
            "do not import module_m from now on: importing it changes the start method of multiprocessing",
        ),
        "the random numbers": (
            "import random; random.seed(7)",
            "import random; VALUE = random.random()",
            False,
            "do not import module_m from now on: importing it changes the state of random",
        ),
        "nothing": ("", "VALUE = 1", True, ""),
    }

    def test_changes_before_an_import(self):
        other, hides = os.path.join(self.dir, "other", "site-packages"), os.path.join(self.dir, "hides")
        self.write(os.path.join(other, "module_m.py"), "VALUE = 'other'")
        for name, value in (("queue", "own"), ("only_there", "there")):
            self.write(os.path.join(hides, name + ".py"), f"VALUE = {value!r}")
        self.write(os.path.join(self.dir, "own_sets.py"), "import os\nos.environ['X_HOME'] = str('/data')")
        for name, (before, module, early, said) in self.ROWS.items():
            with self.subTest(name):
                self.check_changes(f"OTHER, HIDES = {other!r}, {hides!r}\n{before}", module, early, said)

    def test_a_failure_while_a_standby_imports_more(self):
        """It begins with what it has, and the worker imports the rest."""
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        self.install("module_x", "")
        self.install(
            "module_l",
            f"""
            import os, select, sys
            if {STANDBY}:  # until the agent asks something
                watcher = next(finder for finder in sys.meta_path if hasattr(finder, "socket"))
                os.write(2, b"imports more.")
                select.select([watcher.socket], [], [])
            """,
        )
        self.write_script(
            "import sys\nbegan = [name in sys.modules for name in ('wave', 'module_l', 'module_x')]\nimport wave\n"
            f"if open({os.path.join(self.dir, 'runs')!r}).read() == 'run\\n': open({gate!r}).read()\n"
            "import module_l, module_x",
            "began",
        )
        agent = self.begin(imports=None)
        self.wait_for_output(agent, READY)
        open(gate, "w").close()
        (worker,) = self.workers(1)
        self.wait_for_output(agent, "a standby worker printed.*imports more")
        worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.wait_for_output(agent, "1 of 1 worker began in a standby")
        self.end(agent, [worker])
        self.assertEqual(self.facts(agent), [[False] * 3, [True, True, False]])

    def test_an_optional_import_that_fails(self):
        """A package that catches it has done so in the standby, too: it is not tried again."""
        self.install("needs_more", "import no_such_module\nVALUE = 2")
        self.install("module_m", "try:\n    import needs_more\nexcept ImportError:\n    needs_more = None\nimport wave")
        self.write_script("import sys\nearly = 'module_m' in sys.modules\nimport module_m", "early")
        agent, _ = self.two_attempts(imports=None)
        self.wait_for_output(agent, "1 of 1 worker began in a standby")
        self.assertNotIn("do not import", agent.output())


if __name__ == "__main__":
    main()
