# SPDX-License-Identifier: Apache-2.0
"""Standby workers of nodes that wait for a round: what they import, and that the first attempt begins in them."""

import glob
import os
import re
import signal
import subprocess
import sys
import textwrap
import unittest.mock

from muster_case import DEADLINE, HERE, MUSTER, main
from nodes_case import Nodes

READY = r"a standby worker is ready"
STANDBY = os.path.join(HERE, "..", "..", "agent", "standby")


class Waits(Nodes):
    def setUp(self):
        super().setUp()
        self.script = os.path.join(self.dir, "script.py")
        self.place = self.endpoint()

    def write_script(self, text):
        with open(self.script, "w") as file:
            file.write(
                "import sys\n"
                "had = 'xmlrpc.client' in sys.modules\n"
                f"{textwrap.dedent(text)}\n"
                f"open({os.path.join(self.dir, 'runs')!r}, 'a').write('run\\n')\n"
                "print('had imported:', had, flush=True)\n"
                f"exec(open({os.path.join(HERE, 'obedient_worker.py')!r}).read())\n"
            )

    def begin(self, nnodes="2", *arguments, standby="auto", **more):
        words = ("--standby-workers", standby, "--standby-delay", "0s", "--log-level", "debug", "--max-restarts", "3")
        more = {"worker": False, **more}
        return self.node(self.place, nnodes, *words, *arguments, self.script, **more)

    def kept(self):
        """The modules that the only file of the state folder names."""
        (path,) = glob.glob(os.path.join(self.dir, "state", "muster", "imports", "*"))
        with open(path) as file:
            first, versions, *names = file.read().splitlines()
        self.assertEqual((first, len(versions)), ("muster imports 2", 64))
        return names

    def end(self, agents, workers):
        for worker in workers:
            worker.tell("exit 0")
        for agent in agents:
            self.assertEqual(agent.wait(), 0, agent.output())

    def pair_with_a_standby(self, *arguments):
        """Two nodes. The first is ready before the second comes, which has none. Returns the agents, their workers, and
        that of the first."""
        first = self.begin("2", *arguments)
        self.wait_for_output(first, READY)
        second = self.begin("2", *arguments, standby="off")
        workers = self.workers(2)
        self.wait_for_output(first, "1 of 1 worker began in a standby")
        mine = next(worker for worker in workers if worker.hello["ppid"] == first.pid)
        self.assertEqual((mine.round, mine.restarts), (0, 0))
        return (first, second), workers, mine

    def test_the_first_attempt_begins_in_them(self):
        """The imports are those of the script's text."""
        self.write_script("import xmlrpc.client")
        agents, workers, mine = self.pair_with_a_standby()
        self.wait_for_output(agents[0], "had imported: True")
        (pid,) = [worker.pid for worker in workers if worker is mine]
        self.assertIn(f"pid={pid}", agents[0].output())
        self.end(agents, workers)

    def test_constants_of_the_text_are_in_force(self):
        site = os.path.join(self.dir, "site-packages")
        os.mkdir(site)
        with open(os.path.join(site, "module_m.py"), "w") as file:
            file.write("import os\nVALUE = [os.environ.get(name) for name in ('X_HOME', 'GIVEN')]")
        self.write_script(
            """
            import os
            early = "module_m" in sys.modules
            there = "X_HOME" in os.environ
            os.environ["X_HOME"] = "/data"
            os.environ.setdefault("GIVEN", "y")
            import module_m
            print("found:", early, there, module_m.VALUE)
            """
        )
        with unittest.mock.patch.dict(os.environ, PYTHONPATH=site, GIVEN="x"):
            agents, workers, _ = self.pair_with_a_standby()
        self.wait_for_output(agents[0], r"found: True False \['/data', 'x'\]")
        self.wait_for_output(agents[1], r"found: False False \['/data', 'x'\]")
        self.end(agents, workers)

    def test_what_a_worker_imports_is_kept_for_the_next_run(self):
        """Also if it begins in a standby itself: its text does not show everything."""
        self.write_script("def late():\n    import xmlrpc.client\nlate()")
        agents, workers, _ = self.pair_with_a_standby()
        self.wait_for_output(agents[0], "had imported: False")
        self.end(agents, workers)
        self.assertIn("xmlrpc.client", self.kept())
        self.place = self.endpoint()
        agents, workers, _ = self.pair_with_a_standby()
        self.wait_for_output(agents[0], "had imported: True")
        self.end(agents, workers)

    def test_what_its_standby_had_imported_is_kept_too(self):
        self.write_script("import xmlrpc.client\ndef late():\n    import wave\nlate()")
        agents, workers, _ = self.pair_with_a_standby()
        self.wait_for_output(agents[0], f"(?s)began in a standby.*{READY}")
        self.end(agents, workers)
        self.assertLess({"xmlrpc.client", "wave"}, set(self.kept()))

    def test_a_list_of_other_packages_is_not_used(self):
        self.write_script("def late():\n    import xmlrpc.client\nlate()")
        agents, workers, _ = self.pair_with_a_standby()
        self.end(agents, workers)
        (path,) = glob.glob(os.path.join(self.dir, "state", "muster", "imports", "*"))
        with open(path) as file:
            text = file.read()
        for other in (text.replace("\n", "\n0", 1), text[:-1], "", "x" * 3_000_000):
            with open(path, "w") as file:
                file.write(other)
            self.place = self.endpoint()
            agents, workers, _ = self.pair_with_a_standby()
            self.wait_for_output(agents[0], "had imported: False")
            self.end(agents, workers)
            self.assertIn("xmlrpc.client", self.kept())

    def test_a_spare_node_has_them(self):
        self.write_script("import xmlrpc.client")
        agents = [self.begin(), self.begin()]
        before = {worker.hello["ppid"]: worker for worker in self.workers(2)}
        spare = self.begin()
        self.wait_for_output(spare, READY)
        agents[1].send(signal.SIGKILL)
        workers = self.round_of(2, 1)
        self.assertNotIn(spare.pid, before)
        self.assertEqual({worker.hello["ppid"] for worker in workers}, {agents[0].pid, spare.pid})
        self.wait_for_output(spare, "1 of 1 worker began in a standby")
        self.end((agents[0], spare), workers)

    def test_a_spare_node_hears_what_workers_import(self):
        """It is on another machine: it shares no folder with them. Also if the coordinator is gone meanwhile."""
        self.write_script("def late():\n    import xmlrpc.client\nlate()")
        for end in (0, 1):
            with self.subTest(killed=end):
                self.place = self.endpoint()
                nodes = [self.begin(), self.begin()]
                self.workers(2)
                spare = self.begin(env={"XDG_STATE_HOME": os.path.join(self.dir, f"other-{end}")})
                self.wait_for_output(spare, READY + ".*modules=[2-9]")  # the text alone has one
                nodes[end].send(signal.SIGKILL)
                workers = self.round_of(2, 1)
                self.wait_for_output(spare, "1 of 1 worker began in a standby")
                self.wait_for_output(spare, "had imported: True")
                self.end((nodes[1 - end], spare), workers)

    def test_a_spare_node_hears_a_kept_list(self):
        """The worker of node 0 began in a standby that was made of it, and so looks for no module itself."""
        self.write_script("def late():\n    import xmlrpc.client\nlate()")
        agents, workers, _ = self.pair_with_a_standby()
        self.end(agents, workers)
        self.place = self.endpoint()
        agents = [self.begin("2", "--node-rank", "0")]
        self.wait_for_output(agents[0], READY)
        agents.append(self.begin("2", "--node-rank", "1", standby="off"))
        workers = self.workers(2)
        self.wait_for_output(agents[0], "had imported: True")
        agents.append(self.begin("2", env={"XDG_STATE_HOME": os.path.join(self.dir, "other")}))
        self.wait_for_output(agents[2], READY + ".*modules=[2-9]")  # the text alone has one
        self.end(agents, workers)

    def slow_import(self):
        """The name of a module whose import waits until somebody opens the file for writing; its folder, as variables;
        the file."""
        folder = os.path.join(self.dir, "modules", "site-packages")
        os.makedirs(folder)
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        with open(os.path.join(folder, "slow.py"), "w") as file:
            file.write(f"open({gate!r}).close()\n")
        return "slow", {"PYTHONPATH": folder}, gate

    def test_a_node_that_joins_is_taken_in_when_they_are_ready(self):
        """Until then the others go on."""
        self.write_script("import xmlrpc.client")
        elastic = ("1:2", "--rdzv-conf", "last_call_timeout=0")
        first = self.begin(*elastic)
        (old,) = self.workers(1)
        slow, env, gate = self.slow_import()
        joining = self.begin(*elastic, "--standby-imports", f"xmlrpc.client,{slow}", env=env)
        self.wait_for_output(joining, "round 0 takes it in once the standby workers are ready")
        status = subprocess.run([MUSTER, "status", self.place], capture_output=True, text=True, timeout=DEADLINE)
        self.assertIn("preparing", status.stdout)
        self.assertNotIn("scaling up", first.output())
        with open(gate, "w"):
            pass
        workers = self.round_of(2, 1)
        self.assertNotIn(old.pid, [worker.pid for worker in workers])
        self.wait_for_output(joining, "1 of 1 worker began in a standby")
        self.wait_for_output(joining, "had imported: True")
        self.end((first, joining), workers)

    def test_a_job_that_stands_still_does_not_wait_for_its_imports(self):
        self.write_script("import xmlrpc.client")
        agents = [self.begin(), self.begin()]
        self.workers(2)
        agents[1].send(signal.SIGKILL)
        slow, env, _ = self.slow_import()
        agents[1] = self.begin("2", "--standby-imports", slow, env=env)
        self.end(agents, self.round_of(2, 1))

    def test_a_node_that_waits_for_another_after_a_failure(self):
        self.write_script("import xmlrpc.client")
        agents = [self.begin("2", "--standby-delay", "1h"), self.begin("2", "--standby-delay", "1h")]
        self.workers(2)
        agents[1].send(signal.SIGKILL)
        self.wait_for_output(agents[0], READY)
        agents[1] = self.begin()
        workers = self.round_of(2, 1)
        self.wait_for_output(agents[0], "1 of 1 worker began in a standby")
        self.end(agents, workers)

    def test_a_python_that_does_not_read_the_path_runs_no_script_early(self):
        self.write_script("")
        wrapper = os.path.join(self.dir, "wrapper")
        for line in ('exec /usr/bin/python3 -E "$@"', '/usr/bin/python3 "$@"; exit $?'):
            with self.subTest(line):
                self.place = self.endpoint()
                open(os.path.join(self.dir, "runs"), "w").close()
                with open(wrapper, "w") as file:
                    file.write(f"#!/bin/sh\n{line}\n")
                os.chmod(wrapper, 0o755)
                first = self.begin(env={"PYTHON_EXEC": wrapper})
                self.wait_for_output(first, "no standby workers from now on: the workers' Python reads no PYTHONPATH")
                self.assertEqual(os.path.getsize(os.path.join(self.dir, "runs")), 0)
                agents = (first, self.begin(env={"PYTHON_EXEC": wrapper}))
                self.end(agents, self.workers(2))

    def test_a_script_that_cannot_be_parsed(self):
        for text in ("def", "\0", "(" * 100_000, "x" * 5_000_000):
            with self.subTest(text[:3]):
                self.place = self.endpoint()
                with open(self.script, "w") as file:
                    file.write(text)
                # The node is told to end while it waits: the probe has come to its end.
                agent = self.begin("2", "--standby-imports", "json")
                self.wait_for_output(agent, READY)
                agent.send(signal.SIGTERM)
                self.assertEqual(agent.wait(), 143, agent.output())


class Text(Nodes):
    """What the probe finds in a script, without importing anything."""

    FILES = {
        "own/__init__.py": "import json",
        "own/part.py": "from . import other, sub\nfrom .sub import deep\nfrom ... import no\nfrom .. import no",
        "own/other.py": "import email.message",
        "own/sub/__init__.py": "",
        "own/sub/deep.py": "from ..other import x\nimport wave",
        "own/__main__.py": "import html.parser",
        "cycle_a.py": "import cycle_b, csv",
        "cycle_b.py": "import cycle_a, bz2",
        "broken.py": "def",
        "own_sets.py": "import os\nos.environ['A'] = 'b'\nimport wave",
        "sitecustomize.py": "raise SystemExit('the user\\'s code has run')",
    }
    # The text of a script, and the names that are found in it.
    ROWS = {
        "import json, email.mime.text": "json email email.mime email.mime.text",
        "from email import message, no_such": "email email.message",
        "from email.message import Message as M": "email email.message",
        "import json as j\nimport json": "json",
        "import no_such_module\nfrom no_such import x\nimport json.no_such": "json",
        "try:\n import json\nexcept OSError:\n import csv\nelse:\n import re\nfinally:\n import bz2": "json re bz2",
        "with open('x') as x:\n import json": "",
        "if __name__ == '__main__':\n import json": "json",
        "if True:\n import json": "",
        "def f():\n import json\nclass C:\n import csv": "",
        "import own.part": "json email email.message wave",
        "from own import part": "json email email.message wave",
        "import cycle_a": "bz2 csv",
        "import csv, broken, json": "csv",
        '"""text"""\nX = [1, -2]\nY: int = 3\nZ: int\ndef f(): pass\nclass C: pass\npass\nimport json': "json",
        "if TYPE_CHECKING:\n import csv\nimport json": "json",
        "import os\nos.environ['A'] = 'b'\nimport json": "os =environ:A json",
        "import os\nos.environ.setdefault('A', 'b')\nimport json": "os =environ:A json",
        "import os\nos.environ.update({'A': 'b'}, B='c')\nimport json": "os =environ:A =environ:B json",
        "if __name__ == '__main__':\n os.environ['A'] = 'b'\n import json": "=environ:A json",
        "import os\nos.environ['A'] = 'b'\nos.environ['A'] = 'c'\nimport json": "os =environ:A =environ:A json",
        "import os\nos.environ['A\tB'] = 'b'\nimport json": "os =end:os.environ json",
        "import os\nos.environ['A'] = f()\nimport json": "os",
        "import os\nos.environ['A'] = b\nimport json": "os",
        "import os\nos.environ[a] = 'b'\nimport json": "os",
        "import os\nos.environ.update(A='b', B=c)\nimport json": "os",
        "import os\nos.environ.update(a)\nimport json": "os",
        "import os\nos.environ.pop('A')\nimport json": "os",
        "import os\nos.environ.clear()\nimport json": "os",
        "import csv\nx = f()\nimport json": "csv",
        "import csv, os\nos.environ = {}\nimport json": "csv os",
        "import csv, os\ndel os.environ['A']\nimport json": "csv os",
        "import csv, os\n@f\ndef g(): pass\nimport json": "csv os",
        "import csv\nassert (x := f)\nimport json": "csv",
        "import csv, own_sets, json": "csv os =environ:A wave json",
        "if __name__ != '__main__':\n import json": "",
        "from . import x\nimport json": "json",
        "import sys, _thread": "sys _thread",
        "é": "",
        "def": "",
        "": "",
    }

    def setUp(self):
        super().setUp()
        for name, text in self.FILES.items():
            path = os.path.join(self.dir, "code", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        self.script = os.path.join(self.dir, "code", "script.py")
        program = textwrap.dedent(f"""
            import importlib.util, os, sys, types
            sys.dont_write_bytecode = True
            def load(name):
                text = open(os.path.join({STANDBY!r}, name + ".py")).read()
                module = types.ModuleType(name)
                exec(text.replace("\\nfailed = begin()", "\\nfailed = None"), module.__dict__)
                return module
            tools, sys.modules["constants"] = load("sitecustomize"), load("constants")
            probe = load("probe")
            sys.path.insert(0, {os.path.join(self.dir, "code")!r})
            scan = probe.Scan(tools)
            kind, name = sys.argv[1:]
            scan.read(name, "") if kind == "script" else scan.read_main(name)
            print(*scan.entries)
            """)
        self.program = os.path.join(self.dir, "scan.py")
        with open(self.program, "w") as file:
            file.write(program)

    def found(self, kind, name):
        """The entries without the script's own files and without the marks of values."""
        entries = self.entries(kind, name)
        return " ".join(re.sub("(=environ:.*)=.*", r"\1", entry) for entry in entries if not entry.startswith("=file"))

    def entries(self, kind, name):
        command = [sys.executable, "-S", "-E", self.program, kind, name]
        run = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=os.path.join(self.dir, "code"))
        return run.stdout.decode().split()

    def test_scripts(self):
        for text, names in self.ROWS.items():
            with self.subTest(text):
                with open(self.script, "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertEqual(self.found("script", self.script), names)

    def test_files_and_values(self):
        code = os.path.dirname(self.script)
        with open(self.script, "w") as file:
            file.write("import os, own.part, own_sets")
        entries = self.entries("script", self.script)
        files = [entry for entry in entries if entry.startswith("=file")]
        names = [
            "own/__init__.py",
            "own/part.py",
            "own/other.py",
            "own/sub/__init__.py",
            "own/sub/deep.py",
            "own_sets.py",
        ]
        modules = ["own", "own.part", "own.other", "own.sub", "own.sub.deep", "own_sets"]
        self.assertEqual(files, [f"=file:{module}:{code}/{name}" for module, name in zip(modules, names)])
        self.assertEqual(entries[-2], files[-1])
        self.assertRegex(entries[-1], "^=environ:A=[0-9a-f]{16}$")

    def test_modules(self):
        """Python imports the parents of a module that it runs, not the module."""
        self.assertEqual(self.found("module", "own.part"), "json email email.message wave")
        self.assertEqual(self.found("module", "own"), "json html html.parser")
        self.assertEqual(self.found("module", "no_such"), "")
        self.assertTrue(self.found("module", "email.message").startswith("email "))
        self.assertNotIn("email.message", self.found("module", "email.message").split())


if __name__ == "__main__":
    main()
