# SPDX-License-Identifier: Apache-2.0
"""Variables that a script sets to constants: standbys have them for the imports that come after."""

import json
import os
import py_compile
import re
import subprocess

from muster_case import HERE, MusterCase, main
from standby_case import READY, StandbyCase

from standby_facts_test import find_pythons

CONSTANTS = os.path.join(HERE, "..", "..", "agent", "standby", "constants.py")
# Reads rows from stdin, [[module, package, text], ...] each. Prints what find() says of all names, for each row.
FIND = """
import json, os, sys, tempfile
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import constants
found = []
for row in json.load(sys.stdin):
    known = constants.Constants()
    for module, package, text in row:
        with tempfile.NamedTemporaryFile(suffix=".py") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()
            known.add(module, package, constants.read(file.name))
    found.append({name: known.find(name) for name in known.values if known.find(name)})
print(json.dumps(found))
"""


class Table(MusterCase):
    """What the texts say. A value with "?" is that of a setdefault()."""

    # The text of a script after `import os` and `os.environ["A"] = "x"`; whether A is constant.
    BESIDE = {
        "": True,
        "B = os.environ['A'], os.environ.get('A'), 'A' in os.environ": True,
        "os.environ['B'] = f()": True,
        "os.environ['B'] += 'x'": True,
        "os.environ.pop('B', None)\ndel os.environ['C']\nos.unsetenv('D')\nos.putenv('E', 'x')": True,
        "b = {**os.environ, 'A': 'y'}\nc = dict(os.environ)\nd = os.environ.copy()": True,
        "print(os.environ)\nf(**os.environ)": True,
        "for k, v in os.environ.items():\n print(k, v)": True,
        "import subprocess\nsubprocess.run(['x'], env=os.environ)": True,
        "def f(env):\n env['A'] = 'y'": True,
        "other.update(x)\nother[k] = 'y'\nother.pop(k)\nother |= x": True,
        # Another store.
        "os.environ['A'] = 'x'": False,
        "def f():\n os.environ['A'] = 'y'": False,
        "class C:\n def f(self):\n  os.environ.setdefault('A', 'y')": False,
        "os.environ['A'] += 'y'": False,
        "os.environ['A']: str = 'y'": False,
        "b = os.environ['A'] = 'y'": False,
        "os.environ['A'], b = 'y', 'z'": False,
        "for os.environ['A'] in 'yz':\n pass": False,
        "with f() as os.environ['A']:\n pass": False,
        "del os.environ['A']": False,
        "os.environ.pop('A')": False,
        "os.environ.update(B=f(), A='z')": False,
        "os.environ.update({'A': f()})": False,
        "os.environ.__setitem__('A', 'y')": False,
        "os.environb[b'A'] = b'y'": False,
        "os.putenv('A', 'y')": False,
        "os.unsetenv('A')": False,
        "from os import environ\nenviron['A'] = 'y'": False,
        "import os as o\no.environ['A'] = 'y'": False,
        "if __name__ == '__main__':\n os.environ['A'] = 'y'": False,
        # A store whose name is not shown.
        "os.environ[b] = 'y'": False,
        "def f():\n for k in 'AB':\n  os.environ[k] = 'y'": False,
        "os.environ['A' + '']  = 'y'": False,
        "os.environ[f'{b}'] = 'y'": False,
        "del os.environ[b]": False,
        "os.environ.update(b)": False,
        "os.environ.update(**b)": False,
        "os.environ.update({**b})": False,
        "os.environ.update({b: 'y'})": False,
        "os.environ.update([('A', 'y')])": False,
        "os.environ.setdefault(*b)": False,
        "os.environ.setdefault(key='A', value='y')": False,
        "os.environ.pop(b)": False,
        "os.environ.popitem()": False,
        "os.environ.clear()": False,
        "os.environ |= b": False,
        "os.putenv(b, 'y')": False,
        "os.environ = {}": False,
        # It goes where it may be changed.
        "b = os.environ": False,
        "f(os.environ)": False,
        "f(env=os.environ)": False,
        "put = os.environ.__setitem__": False,
        "put = os.putenv": False,
        "from os import environ as e\ne['A'] = 'y'": False,
        "from os import putenv as p\np('A', 'y')": False,
        "def f():\n return os.environ": False,
        "import unittest.mock as m\nwith m.patch.dict(os.environ, {'A': 'y'}):\n pass": False,
    }
    # A script; what is constant.
    SCRIPTS = {
        "import os\nos.environ['A'] = 'x'\nos.environ['B'] = ''\nimport re\nos.environ['C'] = 'a b'": "A=x B= C=a b",
        "from os import environ\nenviron['A'] = 'x'\nenviron.setdefault('B', 'y')": "A=x B?=y",
        "import os\nos.environ.setdefault('A', 'x')": "A?=x",
        "import os\nos.environ.update(A='x', B='y')": "A=x B=y",
        "import os\nos.environ.update({'A': 'x', 'B': 'y'}, C='z')": "A=x B=y C=z",
        "import os\nos.environ.update({'A': 'x', 'B': f()}, C=1)": "A=x",
        "import os\nif __name__ == '__main__':\n os.environ['A'] = 'x'": "A=x",
        "import os\nos.environ['A'] = 'x' 'y'": "A=xy",
        "import os\nos.environ['A'] = r'\\d'": "A=\\d",
        "import os\nos.environ['A'] = '\\d'": "A=\\d",  # the compiler warns
        "import os\nos.environ['\u00e9'] = '\u20ac'": "\u00e9=\u20ac",
        # Not in any case.
        "import os\nif f():\n os.environ['A'] = 'x'": "",
        "import os\nif f():\n pass\nelse:\n os.environ['A'] = 'x'": "",
        "import os\nif __name__ != '__main__':\n os.environ['A'] = 'x'": "",
        "import os\nif __name__ == '__main__':\n if f():\n  os.environ['A'] = 'x'": "",
        "import os\nif __name__ == '__main__':\n pass\nelse:\n os.environ['A'] = 'x'": "",
        "import os\ndef f():\n os.environ['A'] = 'x'\nf()": "",
        "import os\nfor a in b:\n os.environ['A'] = 'x'": "",
        "import os\ntry:\n os.environ['A'] = 'x'\nfinally:\n pass": "",
        "import os\nwith f():\n os.environ['A'] = 'x'": "",
        "import os\nf() and os.environ.update(A='x')": "",
        # No constant.
        "import os\nos.environ['A'] = os.environ['RANK']": "",
        "import os\nos.environ['A'] = f'{b}'": "",
        "import os\nos.environ['A'] = 'x' + 'y'": "",
        "import os\nos.environ['A'] = 'x' if f() else 'y'": "",
        "import os\nos.environ['A'] = 1": "",
        "import os\nos.environ.setdefault('A', f())": "",
        "import os\nos.environ.setdefault('A')": "",
        "import os\nb = os.environ['A'] = 'x'": "",
        "import os\nother.environ['A'] = 'x'": "",
        "import os\nos.environb[b'A'] = b'x'": "",
        # No Python.
        "import os\nos.environ['A'] = 'x'\n(": "",
        "\0": "",
        "(" * 100_000: "",
        "import os\nos.environ['A'] = 'x'\n" + "#" * (4 << 20): "",
        "": "",
        # Much of it.
        "import os\nos.environ['A'] = 'x'\n" + "os.environ['B'] = f(1)\n" * 30_000: "A=x",
    }
    SETS = "import os\nos.environ['A'] = 'x'"
    # Modules with their texts, in the order in which they are known; "package.name" is not a package itself.
    FILES = [
        ({"__main__": "import own", "own": SETS}, "A=x"),
        ({"__main__": "import own", "own": "import os\nif __name__ == '__main__':\n os.environ['A'] = 'x'"}, ""),
        ({"__main__": "from own import b", "own": SETS}, "A=x"),
        ({"__main__": "if __name__ == '__main__':\n import own", "own": SETS}, "A=x"),
        ({"__main__": "import first", "first": "import own", "own": SETS}, "A=x"),
        ({"__main__": "import first", "own": SETS, "first": "import own"}, "A=x"),
        ({"__main__": "import p.q.r", "p/": SETS, "p.q/": "", "p.q.r": ""}, "A=x"),
        ({"__main__": "from p.q import r", "p/": "", "p.q/": "", "p.q.r": SETS}, "A=x"),
        ({"__main__": "import p.q", "p/": "", "p.q": "from . import r", "p.r": SETS}, "A=x"),
        ({"__main__": "import p.q", "p/": "", "p.q": "from .r import b", "p.r": SETS}, "A=x"),
        ({"__main__": "import p", "p/": "from .r import b", "p.r": SETS}, "A=x"),
        ({"__main__": "import p.q", "p/": "", "p.q": "from ... import own", "own": SETS}, ""),
        ({"__main__": "import a", "a": "import b", "b": "import a\n" + SETS}, "A=x"),
        # The module is not imported in any case.
        ({"__main__": "", "own": SETS}, ""),
        ({"__main__": "if f():\n import own", "own": SETS}, ""),
        ({"__main__": "def f():\n import own\nf()", "own": SETS}, ""),
        ({"__main__": "try:\n import own\nexcept ImportError:\n pass", "own": SETS}, ""),
        ({"__main__": "import first", "first": "def f():\n import own", "own": SETS}, ""),
        ({"__main__": "import importlib\nimportlib.import_module('own')", "own": SETS}, ""),
        # Another file stores it.
        ({"__main__": SETS, "own": SETS}, ""),
        ({"__main__": SETS, "own": "import os\ndef f():\n os.environ.pop('A')"}, ""),
        ({"__main__": SETS, "own": "import os\ndef f(k):\n os.environ[k] = 'y'"}, ""),
        ({"__main__": SETS, "own": "("}, ""),
        ({"__main__": "(", "own": SETS}, ""),
        ({"__main__": SETS, "own": "import os\nos.environ['B'] = f()"}, "A=x"),
    ]

    def rows(self):
        rows = [
            ([["__main__", "", f"{self.SETS}\n{text}"]], "A=x" if constant else "")
            for text, constant in self.BESIDE.items()
        ]
        rows += [([["__main__", "", text]], found) for text, found in self.SCRIPTS.items()]
        for files, found in self.FILES:
            names = [(name.rstrip("/"), name.endswith("/"), text) for name, text in files.items()]
            rows.append(([[n, n if folder else n.rpartition(".")[0], text] for n, folder, text in names], found))
        # `python -m p.q` imports p, and not p.q by its name.
        rows.append(([["__main__", "p", "from . import r"], ["p", "p", self.SETS], ["p.r", "p", "import os"]], "A=x"))
        rows.append(([["__main__", "p", "from .r import b"], ["p", "p", ""], ["p.r", "p", self.SETS]], "A=x"))
        return rows

    def test_all_rows(self):
        rows = self.rows()
        for version, python in sorted(find_pythons().items()):
            run = subprocess.run(
                [python, "-c", FIND, CONSTANTS],
                input=json.dumps([files for files, _ in rows]).encode(),
                capture_output=True,
                check=True,
            )
            self.assertNotIn(b"Warning", run.stderr)  # of the compiler
            for (files, want), found in zip(rows, json.loads(run.stdout)):
                with self.subTest(version=version, files=str(files)[:500]):
                    words = [f"{name}{'?' if keeps else ''}={value}" for name, (value, keeps) in sorted(found.items())]
                    self.assertEqual(" ".join(words), want)

    def test_it_imports_nothing_of_the_library(self):
        """The script may have a module of the same name, which would be imported, or hidden."""
        program = (
            "import sys; before = set(sys.modules); sys.path[:] = [sys.argv[1]]; import constants; "
            "constants.read(constants.__file__); print(*sorted(set(sys.modules) - before))"
        )
        for version, python in sorted(find_pythons().items()):
            with self.subTest(version=version):
                command = [python, "-B", "-c", program, os.path.dirname(CONSTANTS)]
                run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
                self.assertLessEqual({*run.stdout.decode().split()}, {"_ast", "constants"})


class Scripts(StandbyCase):
    """Real ones: module_m sees in a standby what it sees in a cold start, and the first line of the script, too."""

    HOME = "import os; VALUE = [os.environ.get('X_HOME'), os.environ.get('GIVEN')]"
    LIBRARY = "import ctypes; ctypes.CDLL('libgomp.so.1'); VALUE = __import__('os').environ['OMP_NUM_THREADS']"
    X_HOME = "neither module_m nor what comes after it: importing it reads X_HOME, after the script has changed it"
    LONG = "a b\n=" * 300
    FAR = ".".join(letter * 200 for letter in "xyz")
    # Lines before `import module_m`; the module; its VALUE; what the log says, "" if standbys import it.
    ROWS = {
        "a constant": ("os.environ['X_HOME'] = '/data'", HOME, ["/data", "x"], ""),
        "one in place of another value": ("os.environ['GIVEN'] = 'y'", HOME, [None, "y"], ""),
        "the value that it has": ("os.environ['GIVEN'] = 'x'", HOME, [None, "x"], ""),
        "setdefault": ("os.environ.setdefault('X_HOME', '/data')", HOME, ["/data", "x"], ""),
        "setdefault of one that is there": ("os.environ.setdefault('GIVEN', 'y')", HOME, [None, "x"], ""),
        "update": ("os.environ.update({'X_HOME': '/data'}, GIVEN='y')", HOME, ["/data", "y"], ""),
        "odd values": (
            f"os.environ['X_HOME'] = {LONG!r}\nos.environ['GIVEN'] = '\\u20ac'",
            HOME,
            [LONG, "\u20ac"],
            "",
        ),
        "none": ("os.environ['GIVEN'] = ''", HOME, [None, ""], ""),
        "a library": ("os.environ['OMP_NUM_THREADS'] = '3'", LIBRARY, "3", ""),
        "in a module of its own": ("import own_sets", HOME, ["/own", "x"], ""),
        "in a module of a package": ("from own import sets", HOME, ["/own", "x"], ""),
        "after another import": (
            "import reads_x\nos.environ['X_HOME'] = '/data'",
            "import reads_x; VALUE = reads_x.X_HOME",
            None,
            "",
        ),
        "the rank": ("os.environ['X_HOME'] = os.environ['RANK']", HOME, ["0", "x"], X_HOME),
        "a condition": ("if len(sys.argv) < 9: os.environ['X_HOME'] = '/data'", HOME, ["/data", "x"], X_HOME),
        "two stores": (
            "os.environ['X_HOME'] = '/data'\nif 'NO' in os.environ: os.environ['X_HOME'] = '/other'",
            HOME,
            ["/data", "x"],
            X_HOME,
        ),
        "a name that is no literal": (
            "os.environ['X_HOME'] = '/data'\nfor name in (): os.environ[name] = ''",
            HOME,
            ["/data", "x"],
            X_HOME,
        ),
        "in a module that a function imports": ("def f():\n import own_sets\nf()", HOME, ["/own", "x"], X_HOME),
        "and perhaps in a module of its own": (
            "os.environ['X_HOME'] = '/data'\nimport reads_x, own_may_set",
            HOME,
            ["/data", "x"],
            X_HOME,
        ),
        "and a package makes a module without a file": (
            "os.environ['X_HOME'] = '/data'\nimport makes, made",
            HOME,
            ["/data", "x"],
            "",
        ),
        "and in one whose path is too long": (
            f"os.environ['X_HOME'] = '/data'\nimport {FAR}",
            HOME,
            ["/data", "x"],
            X_HOME,
        ),
        "and in one that is no text": (
            "os.environ['X_HOME'] = '/data'\nimport own_bytes",
            HOME,
            ["/data", "x"],
            X_HOME,
        ),
        "and in a function of a package": (
            "import installed\nos.environ['X_HOME'] = '/data'\ninstalled.put('X_HOME', '/other')",
            HOME,
            ["/other", "x"],
            X_HOME,
        ),
        "and it is removed": (
            "os.environ['X_HOME'] = '/data'\nimport installed\ninstalled.put('X_HOME', None)",
            HOME,
            [None, "x"],
            X_HOME,
        ),
        "a variable of the round": (
            "os.environ['MASTER_ADDR'] = 'localhost'",
            "import os; VALUE = os.environ['MASTER_ADDR']",
            "localhost",
            "do not import module_m from now on: importing it reads MASTER_ADDR",
        ),
        "and the module changes it": (
            "os.environ['X_HOME'] = '/data'",
            "import os; os.environ['X_HOME'] += '/more'; VALUE = os.environ['X_HOME']",
            "/data/more",
            "neither module_m nor what comes after it: importing it changes X_HOME, which the script has set",
        ),
        "and the module removes it": (
            "os.environ['GIVEN'] = 'y'",
            "import os; VALUE = os.environ.pop('GIVEN')",
            "y",
            "neither module_m nor what comes after it: importing it changes GIVEN, which the script has set",
        ),
    }

    def setUp(self):
        super().setUp()
        sets = "import os\nos.environ['X_HOME'] = '/own'"
        for path, text in {
            "own_sets.py": sets,
            "own/__init__.py": "",
            "own/sets.py": sets,
            self.FAR.replace(".", "/") + ".py": "",
            "own_may_set.py": "import os\ndef f():\n os.environ.pop('X_HOME')",
        }.items():
            self.write(os.path.join(self.dir, path), text)
        self.install(
            "makes",
            """
            import importlib.machinery, sys, types
            class Maker:
                def find_spec(self, name, path=None, target=None):
                    return importlib.machinery.ModuleSpec(name, self) if name == "made" else None
                def create_module(self, spec):
                    return types.ModuleType(spec.name)
                def exec_module(self, module):
                    pass
            sys.meta_path.append(Maker())
            """,
        )
        self.install("reads_x", "import os; X_HOME = os.environ.get('X_HOME')")
        self.install(
            "installed",
            "import os\ndef put(name, value):\n"
            " os.environ.pop(name, None)\n if value is not None: os.environ[name] = value",
        )
        py_compile.compile(os.path.join(self.dir, "own_may_set.py"), os.path.join(self.dir, "own_bytes.pyc"))

    def test_changes_before_an_import(self):
        for name, (before, module, value, said) in self.ROWS.items():
            with self.subTest(name):
                warm = self.check_changes(before, module, not said, said)
                self.assertEqual(warm[1], value)
                self.assertEqual((warm[3].get("X_HOME"), warm[3]["GIVEN"]), (None, "x"))
                self.assertNotIn("OMP_NUM_THREADS", warm[3])

    def test_a_script_in_which_the_constant_changes(self):
        """A standby that has the old value is not used. The next one is made of the new text."""

        def write(value, more=""):
            self.write_script(
                "import os, sys\nearly = 'module_m' in sys.modules\n"
                f"os.environ['X_HOME'] = {value!r}\nimport module_m{more}",
                "[early, module_m.VALUE[0]]",
            )

        self.install("module_m", self.HOME)
        write("/data")
        agent = self.begin("--max-restarts", "4", imports=None)
        (worker,) = self.workers(1)
        self.await_list("subprocess")
        for number, text, ready in (
            (1, ("/data", " # the same"), READY),
            (2, None, READY),
            (3, ("/other",), f"{self.X_HOME}.*{READY}"),
            (4, None, READY),
        ):
            if text:
                write(*text)
            worker.tell("exit 1")
            (worker,) = self.workers(1)
            self.wait_for_output(agent, f"(?s)round {number}:.*{ready}")
        self.end(agent, [worker])
        same, other = [["/data"], ["/other"]]
        self.assertEqual(
            self.facts(agent), [[False, *same], [False, *same], [True, *same], [False, *other], [False, *other]]
        )
        used = re.findall(r"script.py has changed|began in a standby", agent.output())
        self.assertEqual(used, ["script.py has changed", "began in a standby"] * 2)

    def test_a_module_that_python_runs(self):
        self.install("module_m", self.HOME)
        text = (
            "import os, sys\nearly, first = 'module_m' in sys.modules, os.environ.get('X_HOME')\n"
            "os.environ['GIVEN'] = 'y'\nfrom . import sets\nimport module_m"
        )
        for name, path in (("own.script", "own/script.py"), ("own", "own/__main__.py")):
            with self.subTest(name):
                self.forget()
                self.script = os.path.join(self.dir, path)
                self.write_script(text, "[early, first, module_m.VALUE]")
                agent = self.begin(imports=None, env={"GIVEN": "x"}, script_words=["-m", name])
                (worker,) = self.workers(1)
                self.await_list("subprocess")
                worker.tell("exit 1")
                (worker,) = self.workers(1)
                self.end(agent, [worker])
                self.assertEqual(self.facts(agent), [[False, None, ["/own", "y"]], [True, None, ["/own", "y"]]])


if __name__ == "__main__":
    main()
