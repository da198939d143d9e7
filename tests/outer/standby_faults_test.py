"""Standby workers and what users have on their machines: the second attempt sees what a cold start would see."""

import glob
import json
import os
import re
import signal
import stat
import subprocess
import textwrap
import threading
import time

from muster_case import DEADLINE, HERE, MusterCase, main, sanitized, wait_gone

from standby_test import OF_ROUND

READY = r"a standby worker is ready"
# A module's way to tell where it is imported.
STANDBY = "open('/proc/self/oom_score_adj').read().strip() == '1000'"


class StandbyCase(MusterCase):
    def setUp(self):
        super().setUp()
        self.site = os.path.join(self.dir, "lib", "site-packages")  # the modules in it count as installed
        os.makedirs(self.site)
        self.script = os.path.join(self.dir, "script.py")

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))

    def install(self, module, text):
        self.write(os.path.join(self.site, module + ".py"), text)

    def write_script(self, imports, facts="None"):
        """A script that notes each run, imports, prints the value of `facts` as JSON, and obeys."""
        self.write(
            self.script,
            f"open({os.path.join(self.dir, 'runs')!r}, 'a').write('run\\n')\n"
            f"{imports}\n"
            "import json, os, signal, socket, subprocess, sys\n"
            f"os.write(1, ('\\nfacts ' + json.dumps({facts}) + '\\n').encode())\n"  # at once: stderr has another writer
            f"exec(open({os.path.join(HERE, 'obedient_worker.py')!r}).read())\n",
        )

    def begin(self, *arguments, imports="module_m,json,socket,subprocess", env=None, script_words=None, **more):
        """`imports`: the first standby that is ready has them all. None: they are learned, and come bit by bit."""
        words = ["--standby-workers", "auto", "--standby-delay", "0s", "--log-level", "debug", "--max-restarts", "3"]
        words += ["--standby-imports", imports] if imports else []
        env = {"PYTHONPATH": self.site, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        return self.start(*words, *arguments, *(script_words or [self.script]), worker=False, env=env, **more)

    def facts(self, agent):
        return [json.loads(line) for line in re.findall(r"^facts (.*)$", agent.output(), re.MULTILINE)]

    def runs(self):
        with open(os.path.join(self.dir, "runs")) as file:
            return len(file.read().split())

    def end(self, agent, workers):
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())

    def await_ready(self, agent, count=1):
        """The pids of the first `count` standbys that are ready."""
        output = self.wait_for_output(agent, rf"(?s)({READY}.*){{{count}}}")
        return [int(pid) for pid in re.findall(READY + r".*pid=(\d+)", output)]

    def two_attempts(self, *arguments, **more):
        """Runs the script twice. Returns the agent and the facts of both attempts."""
        agent = self.begin(*arguments, **more)
        (worker,) = self.workers(1)
        self.await_ready(agent)
        worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.end(agent, [worker])
        self.assertEqual(self.runs(), 2)
        facts = self.facts(agent)
        self.assertEqual(len(facts), 2, agent.output())
        return agent, facts


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
            "import os; os.environ['X_HOME'] = '/data'",
            "import os; VALUE = os.environ.get('X_HOME', 'default')",
            False,
            "neither module_m nor what comes after it: importing it reads X_HOME, after the script has changed it",
        ),
        "a variable that it removes": (
            "import os; del os.environ['GIVEN']",
            "import os; VALUE = os.getenvb(b'GIVEN') is None",
            False,
            "neither module_m nor what comes after it: importing it reads GIVEN, after the script has changed it",
        ),
        "a variable that no module reads": ("import os; os.environ['OTHER'] = '1'", "VALUE = 1", True, ""),
        "a variable of libraries": (
            "import os; os.environ['OMP_NUM_THREADS'] = '3'",
            "import ctypes; ctypes.CDLL('libgomp.so.1'); VALUE = 1",
            False,
            "neither module_m nor what comes after it: importing it loads a library, after the script has changed",
        ),
        "a variable of libraries, and none is loaded": (
            "import os; os.environ['OMP_NUM_THREADS'] = '3'",
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
        "a path with a space": (
            "import sys; sys.path.append('/a b')",
            "VALUE = 1",
            False,
            "leave out what the script imports after it has changed path",
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
        self.write(os.path.join(self.dir, "own_sets.py"), "import os\nos.environ['X_HOME'] = '/data'")
        for name, (before, module, early, said) in self.ROWS.items():
            with self.subTest(name):
                self.write(os.path.join(self.dir, "runs"), "")
                self.install("module_m", module)
                self.write_script(
                    f"import sys\nOTHER, HIDES = {other!r}, {hides!r}\n"
                    f"early = 'module_m' in sys.modules\n{before}\nimport module_m",
                    "[early, module_m.VALUE, sys.path, dict(os.environ, **dict.fromkeys(OF_ROUND))]".replace(
                        "OF_ROUND", repr(sorted(OF_ROUND))
                    ),
                )
                agent = self.begin(imports=None, env={"GIVEN": "x"})
                (worker,) = self.workers(1)
                if "neither" in said:
                    self.wait_for_output(agent, f"(?s){said}.*{READY}")
                else:
                    self.wait_for_output(agent, said or READY)
                    self.await_list("=end:" if "leave out" in said else "subprocess")
                worker.tell("exit 1")
                (worker,) = self.workers(1)
                self.wait_for_output(agent, "1 of 1 worker began in a standby")
                self.end(agent, [worker])
                cold, warm = self.facts(agent)
                self.assertEqual(cold[1:], warm[1:])
                self.assertEqual((cold[0], warm[0]), (False, early))
                if not said:
                    self.assertNotRegex(agent.output(), "do not import|leave out|import neither")

    def await_list(self, last):
        """Waits until a standby has imported what the worker has named, up to `last`. Then the list is kept."""
        end, ticker = time.monotonic() + DEADLINE, threading.Event()
        while time.monotonic() < end:
            for path in glob.glob(os.path.join(self.dir, "state", "muster", "imports", "*")):
                with open(path) as file:
                    if last in file.read():
                        return os.unlink(path)
            ticker.wait(0.01)
        self.fail(f"no list with {last}")

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


class Signals(StandbyCase):
    def test_at_each_point(self):
        """A standby that is killed or stopped while it imports or waits: a cold start, and no failure of the job."""
        gate = os.path.join(self.dir, "gate")
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM):
            for at in ("import", "ready"):
                with self.subTest(number=number, at=at):
                    self.write(os.path.join(self.dir, "runs"), "")
                    if at == "import" and not os.path.exists(gate):
                        os.mkfifo(gate)
                    wait = f"if {STANDBY}: open({gate!r}).read()" if at == "import" else ""
                    self.install("module_m", f"import os\nos.write(2, b'pid %d.' % os.getpid())\n{wait}")
                    self.write_script("import module_m")
                    agent = self.begin("--max-restarts", "1")
                    (worker,) = self.workers(1)
                    if at == "ready":
                        (pid,) = self.await_ready(agent)
                    else:
                        output = self.wait_for_output(agent, r"a standby worker printed.*pid \d+\.")
                        pid = int(re.search(r"a standby worker printed.*pid (\d+)\.", output)[1])
                    os.kill(pid, number)
                    worker.tell("exit 1")
                    (worker,) = self.workers(1)
                    self.assertTrue(wait_gone(pid))
                    self.end(agent, [worker])
                    self.assertEqual(self.runs(), 2)
                    self.assertNotIn("began in a standby", agent.output())


if __name__ == "__main__":
    main()
