# SPDX-License-Identifier: Apache-2.0
"""A program cannot tell a standby worker from a cold start: what standby_facts.py sees is the same in both.

Each case runs twice: with standbys, where attempt 0 tells what it imports and a later attempt begins in a standby, and
without. MUSTER_TEST_PYTHONS: more Pythons to try, separated by colons.
"""

import functools
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

from muster_case import HERE, PYTHON, MusterCase, main

MODULE = ("-m", "standby_facts")
READY = "a standby worker is ready"
VERSIONS = [f"3.{minor}" for minor in range(8, 15)]

# What differs, as in the table of docs/standby.md, and why.
IN_A_STANDBY = {
    "sys.modules": "that is what a standby is for",
    "sys.path_importer_cache": "the folders of the modules that it has imported",
    "/proc/self/environ": "the kernel fixes it when the process starts",
}
IN_THE_LEARNER = {
    "sys.meta_path": "one finder more reports the names of modules",
    "a child of fork: sys.meta_path": "a forked child has a copy, which reports nothing",
    "a child of os.fork: sys.meta_path": "a forked child has a copy, which reports nothing",
    "/proc/self/environ": "the kernel fixes it when the process starts",
}
# What an installed module and a sitecustomize may change.
A_MODULE = """
import os, sys, warnings
kept = os.open("/dev/urandom", os.O_RDONLY)
os.environ["NEW"] = "of a module"
os.environ["CHANGED"] += " and more"
os.environ.pop("GONE", None)
os.umask(0o27)
os.nice(1)
sys.setrecursionlimit(5000)
warnings.simplefilter("always")
sys.path.append("/added")
"""
A_SITECUSTOMIZE = """
import os, signal, sys, threading
RUNS = 1
sys.stdout.reconfigure(errors="backslashreplace", line_buffering=True)
class Wrapper:
    def __getattr__(self, name): return getattr(sys.__stderr__, name)
sys.stderr = Wrapper()
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
threading.Thread(target=threading.Event().wait, daemon=True, name="of sitecustomize").start()
"""
# Values that two runs of the same agent do not share.
OF_RUN = re.compile(
    r"(MASTER_PORT|TORCHELASTIC_(?:ERROR_FILE|RUN_ID|RESTART_COUNT)|MUSTER_(?:HEARTBEAT_FILE|NODE|ROUND))=[^\"\\]*"
)


@functools.cache
def find_pythons():
    """Version -> path."""
    candidates = [PYTHON, *os.environ.get("MUSTER_TEST_PYTHONS", "").split(":")]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    candidates += sorted(glob.glob("/usr/local/bin/python3.*") + glob.glob("/usr/bin/python3.*"))
    found = {}
    for path in filter(os.path.exists, candidates):
        code = "import sys, ctypes, multiprocessing; print('%d.%d' % sys.version_info[:2])"
        answer = subprocess.run([path, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        version = answer.stdout.strip()
        if answer.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 8):
            found.setdefault(version, path)
    return found


def flat(facts, above=""):
    """Facts of facts become "fact: fact of it"."""
    found = {}
    for name, value in facts.items():
        found.update(flat(value, f"{above}{name}: ") if isinstance(value, dict) else {above + name: value})
    return found


class Run:
    """One agent with its folder. `limit`: words of a shell before it. `through`: makes the subcommand and its words of
    those of `run`."""

    def __init__(
        self, case, name, flags, command=None, more=(), python=PYTHON, env=None, prepare=None, limit="", through=None
    ):
        self.name = name
        self.folder = os.path.join(tempfile.mkdtemp(prefix="run-", dir=case.dir), name)
        os.mkdir(self.folder)
        shutil.copy(os.path.join(HERE, "standby_facts.py"), self.folder)
        env = {name: value.replace("FOLDER", self.folder) for name, value in (env or {}).items()}
        if prepare:
            prepare(self.folder)
        with open(os.path.join(self.folder, "input"), "w") as file:
            file.write("what stdin brings")
        stdin = open(file.name)
        case.addCleanup(stdin.close)
        words = ["--max-restarts", "3", "--log-level", "debug", "--log-dir", os.path.join(self.folder, "logs")]
        words += [
            *flags,
            *more,
            *(command or (os.path.join(self.folder, "standby_facts.py"),)),
            "an argument",
            "--flag",
        ]
        subcommand, words = through(words) if through else ("run", words)
        self.agent = case.start(
            *words,
            subcommand=subcommand,
            worker=False,
            stdin=stdin,
            # The place in the output is never 0: there Python would write the mark of a Unicode text.
            prefix=("/bin/sh", "-c", f'{limit} echo; exec "$@"', "sh"),
            cwd=self.folder,
            env={"FACTS_FOLDER": self.folder, "PYTHON_EXEC": python, "TMPDIR": case.dir, **env},
        )

    def facts(self, attempt):
        with open(os.path.join(self.folder, f"{attempt}.json")) as file:
            text = file.read()
        text = text.replace(self.folder, "FOLDER").replace(self.agent.output_path, "OUTPUT")
        text = re.sub(r"attempt_\d+", "attempt_N", text)
        text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", OF_RUN.sub(r"\1=*", text))
        facts = flat(json.loads(text))
        facts["parent's pid"] = facts["parent's pid"] == self.agent.pid
        return facts


def differences(one, other):
    return {name for name in {*one, *other} if one.get(name, "absent") != other.get(name, "absent")}


class FactsCase(MusterCase):
    maxDiff = None

    def next_of(self, runs, waiting):
        """The next worker of each of the `runs`, by the name of the run."""
        while len(waiting) < len(runs):
            (worker,) = self.workers(1)
            waiting[os.path.basename(worker.env["FACTS_FOLDER"])] = worker
        return waiting

    def end(self, workers, code):
        for worker in workers.values():
            worker.tell(str(code))
        workers.clear()

    def compare(self, learner=True, but_for=(), code=1, **setting):
        """Runs standby_facts.py with and without standbys; each attempt but the last ends with `code`. The facts are
        equal, but for IN_A_STANDBY and `but_for`.

        Returns the facts of the learner, the standby, and their cold counterparts."""
        standby = Run(self, "warm", ("--standby-workers", "auto", "--standby-delay", "0s"), **setting)
        cold = Run(self, "cold", ("--standby-workers", "off"), **setting)
        runs = (standby, cold)
        workers = self.next_of(runs, {})
        # While the first attempt names its last modules, a standby is not ready for a moment. The second names none.
        for attempt in (1, 2):
            before = f"restart {attempt - 1} of 3.*" if attempt > 1 else ""
            output = self.wait_for_output(standby.agent, f"(?s){before}{READY}")
            pid = int(re.findall(READY + r".*pid=(\d+)", output)[-1])
            self.end(workers, code)
            self.next_of(runs, workers)
            if workers["warm"].pid == pid:
                break
        self.assertEqual(workers["warm"].pid, pid, standby.agent.output())
        self.wait_for_output(standby.agent, "1 of 1 worker began in a standby")
        self.end(workers, 0)
        for run in runs:
            self.assertEqual(run.agent.wait(), 0, run.agent.output())
        all_facts = [standby.facts(0), standby.facts(attempt), cold.facts(0), cold.facts(attempt)]
        drawn = [facts.pop("DRAWN") for facts in all_facts]
        for n in range(len(drawn[0])):
            values = {json.dumps(draws[n]) for draws in drawn}
            self.assertIn(len(values), (1, 4) if n == 2 else (4,), "a random number is drawn twice")
        if learner:
            self.check_learner(all_facts[0], all_facts[2])
        self.check_standby(all_facts[1], all_facts[3], but_for)
        return all_facts

    def check_same(self, facts, cold, but_for):
        """Shows what differs: of lists only the parts that the other lacks, unless it is the order."""
        lines = []
        for name in sorted(differences(facts, cold) - {*but_for}):
            one, other = facts.get(name, "absent"), cold.get(name, "absent")
            if isinstance(one, list) and isinstance(other, list):
                only_one, only_other = [x for x in one if x not in other], [x for x in other if x not in one]
                if only_one or only_other:
                    one, other = only_one, only_other
            lines.append(f"{name}\n  {one}\n  in a cold start:\n  {other}")
        if lines:
            self.fail("\n" + "\n".join(lines))

    def check_learner(self, facts, cold):
        mine = {name for name in facts if "descriptors: " in name and int(name.split()[-1]) > 199}
        self.assertIn(
            len(mine), (2, 3), mine
        )  # in the worker and in its forked child, whatever the agent has passed on
        for name in facts:
            if name.endswith("sys.meta_path") and facts[name] != cold[name]:
                self.assertEqual(facts[name], ["Learner", *cold[name]])
        self.check_same(facts, cold, {*IN_THE_LEARNER, *mine})

    def check_standby(self, facts, cold, but_for):
        self.check_same(facts, cold, {*IN_A_STANDBY, *but_for})
        self.assertLess({*cold["sys.modules"]}, {*facts["sys.modules"]})
        self.assertNotIn("MUSTER_STANDBY", str([*facts["os.environ"], *facts["C's environ"]]))


def write_customize(folder, python=PYTHON):
    """A user's own sitecustomize and usercustomize. They count how often they run."""
    base = os.path.join(folder, "base")
    user = subprocess.run(
        [python, "-c", "import site; print(site.getusersitepackages())"],
        env={**os.environ, "PYTHONUSERBASE": base},
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    for place, name in ((os.path.join(folder, "lib"), "sitecustomize"), (user, "usercustomize")):
        os.makedirs(place)
        with open(os.path.join(place, name + ".py"), "w") as file:
            file.write(
                "import os, sys, warnings\n"
                f"RUNS = sys.{name}_runs = getattr(sys, '{name}_runs', 0) + 1\n"
                f"PATH = list(sys.path)\nsys.path.append('/added/by/{name}')\n"
                f"warnings.filterwarnings('ignore', '{name}')\nos.environ['OF_{name.upper()}'] = str(RUNS)\n"
            )


class Facts(FactsCase):
    """One Python, many settings."""

    def test_script(self):
        learner, standby, cold_0, cold = self.compare()
        # An entry of the tables that is no longer true goes.
        self.assertEqual(differences(standby, cold), {*IN_A_STANDBY})
        of_learner = {name for name in differences(learner, cold_0) if "descriptors" not in name}
        self.assertEqual(of_learner, {*IN_THE_LEARNER})

    def test_module(self):
        self.compare(command=MODULE)

    def test_places_of_the_script(self):
        def in_package(folder):
            os.mkdir(os.path.join(folder, "package"))
            open(os.path.join(folder, "package", "__init__.py"), "w").close()
            shutil.copy(os.path.join(folder, "standby_facts.py"), os.path.join(folder, "package"))
            os.symlink(os.path.join("package", "standby_facts.py"), os.path.join(folder, "link.py"))

        for command in (("-m", "package.standby_facts"), ("link.py",)):
            with self.subTest(command=command):
                self.compare(command=command, prepare=in_package)

    def test_pythonpath(self):
        for path in ("", "FOLDER/lib", "FOLDER/lib::/nowhere/", ":", "lib"):
            with self.subTest(PYTHONPATH=path):
                self.compare(env={"PYTHONPATH": path}, prepare=lambda folder: os.mkdir(os.path.join(folder, "lib")))

    def test_redirects(self):
        for flags in (("--redirects", "3"), ("--tee", "3"), ("--redirects", "1", "--tee", "2")):
            with self.subTest(flags=flags):
                self.compare(more=flags)

    def test_customize(self):
        for command in (None, MODULE):
            env = {"PYTHONPATH": "FOLDER/lib", "PYTHONUSERBASE": "FOLDER/base"}
            facts = self.compare(command=command, env=env, prepare=write_customize)
            for name in ("sitecustomize", "usercustomize"):
                self.assertEqual([of_one[name][2] for of_one in facts], [1, 1, 1, 1])

    def test_what_modules_change(self):
        """Of an installed module and of sitecustomize."""

        def write(folder):
            for name, text in (("changes", A_MODULE), ("sitecustomize", A_SITECUSTOMIZE)):
                os.makedirs(os.path.join(folder, "site-packages"), exist_ok=True)
                with open(os.path.join(folder, "site-packages", name + ".py"), "w") as file:
                    file.write(text)

        env = {"PYTHONPATH": "FOLDER/site-packages", "FACTS_IMPORT": "changes", "CHANGED": "value", "GONE": "soon"}
        _, facts, _, _ = self.compare(env=env, prepare=write, but_for=("sys.path", "first environment"))
        self.assertIn("CHANGED=value and more", facts["os.environ"])
        self.assertIn("changes", facts["sys.modules"])  # at the first line

    def test_few_descriptors(self):
        """The limit is below the number that the learner's descriptor has: it then takes one of the script's."""
        self.compare(limit="ulimit -n 100;", learner=False)

    def test_variables(self):
        for name, value in (
            ("PYTHONWARNINGS", "error::ImportWarning,always::DeprecationWarning"),
            ("PYTHONFAULTHANDLER", "1"),
            ("PYTHONSAFEPATH", "1"),
            ("PYTHONDONTWRITEBYTECODE", ""),
            ("PYTHONPYCACHEPREFIX", "FOLDER/cache"),
            ("PYTHONHASHSEED", "0"),
            ("PYTHONIOENCODING", "latin-1:backslashreplace"),
            ("PYTHONIOENCODING", "utf-16"),
            ("PYTHONUTF8", "1"),
            ("PYTHONDEVMODE", "1"),
            ("PYTHONOPTIMIZE", "2"),
            ("PYTHONNOUSERSITE", "1"),
            ("PYTHONTRACEMALLOC", "3"),
            ("PYTHONINSPECT", ""),
            ("PYTHONMALLOC", "malloc"),
            ("LC_ALL", "C"),
            ("LC_ALL", "POSIX"),
            ("LANG", "C"),  # Python adds LC_CTYPE
            ("TZ", "Asia/Kathmandu"),
        ):
            with self.subTest(name=name, value=value):
                self.compare(env={name: value})

    def test_venv(self):
        venv = os.path.join(self.dir, "venv")
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
        (facts, *_) = self.compare(python=os.path.join(venv, "bin", "python3"))
        self.assertIn(venv, facts["sys.prefix"])


class FirstAttempts(FactsCase):
    """A node that waits for another begins its first attempt in a standby, which goes on to learn."""

    def facts_of_first(self, name, flags, until, **setting):
        """The facts of the node with rank 0. The other begins when the first has said `until`."""
        nodes = ("--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(self.free_port()))
        first = Run(self, name, flags, more=(*nodes, "--node-rank", "0"), **setting)
        self.wait_for_output(first.agent, until)
        other = Run(self, "other", ("--standby-workers", "off"), more=(*nodes, "--node-rank", "1"))
        workers = self.next_of((first, other), {})
        if until == READY:
            self.wait_for_output(first.agent, "1 of 1 worker began in a standby")
        self.end(workers, 0)
        for run in (first, other):
            self.assertEqual(run.agent.wait(), 0, run.agent.output())
        facts = first.facts(0)
        del facts["DRAWN"]
        return facts

    def compare_first(self, **setting):
        warm = self.facts_of_first("warm", ("--standby-workers", "auto"), READY, **setting)
        cold = self.facts_of_first("cold", ("--standby-workers", "off"), "waiting for", **setting)
        mine = {name for name in warm if "descriptors: " in name and int(name.split()[-1]) > 199}
        self.assertIn(len(mine), (2, 3), mine)
        self.check_same(warm, cold, {*IN_A_STANDBY, *IN_THE_LEARNER, *mine})
        self.assertLess({*cold["sys.modules"]}, {*warm["sys.modules"]})
        self.assertEqual(warm["sys.meta_path"], ["Learner", *cold["sys.meta_path"]])

    def test_script(self):
        self.compare_first()

    def test_module(self):
        self.compare_first(command=MODULE)

    def test_customize(self):
        env = {"PYTHONPATH": "FOLDER/lib", "PYTHONUSERBASE": "FOLDER/base"}
        self.compare_first(env=env, prepare=write_customize)


class Versions(FactsCase):
    """Each Python that is here."""

    def test_versions(self):
        pythons = find_pythons()
        missing = [version for version in VERSIONS if version not in pythons]
        print(f"tried: {', '.join(f'{v} ({path})' for v, path in sorted(pythons.items()))}")
        print(f"NOT FOUND, so not tried: {', '.join(missing) or 'none'}", flush=True)
        for version, python in sorted(pythons.items()):
            for command in (None, MODULE):
                with self.subTest(version=version, command=command):
                    self.compare(command=command, python=python)
            with self.subTest(version=version, settings="all"):
                self.compare(
                    python=python,
                    env={
                        "PYTHONPATH": "FOLDER/lib",
                        "PYTHONUSERBASE": "FOLDER/base",
                        "PYTHONWARNINGS": "always",
                        "PYTHONFAULTHANDLER": "1",
                        "PYTHONSAFEPATH": "1",
                        "PYTHONIOENCODING": "utf-16",
                        "PYTHONHASHSEED": "0",
                        "LC_ALL": "C",
                    },
                    more=("--redirects", "3"),
                    prepare=functools.partial(write_customize, python=python),
                )


if __name__ == "__main__":
    main()
