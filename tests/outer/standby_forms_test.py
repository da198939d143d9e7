# SPDX-License-Identifier: Apache-2.0
"""The forms in which users start Python: in each, a standby sees what a cold start sees (standby_facts_test.py)."""

import os
import shlex
import shutil
import stat
import subprocess
import sys
import unittest

from muster_case import MUSTER, PYTHON, main, open_to_all, sanitized

from container_test import ContainerCase
from containers import bind
from standby_facts_test import READY, FactsCase

OTHER_USER = 2000
RETRYABLE = 222  # a torchrun under `exec` restarts after no other code


def executable(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    return path


def of_pytorch(folder):
    """The torchrun that PyTorch's package puts beside the Python of its environment."""
    executable(os.path.join(folder, "torchrun"), f"#!{folder}/python3\nraise SystemExit('this is PyTorch')\n")


class FormsCase(FactsCase):
    def torchrun(self):
        """A folder with a torchrun that is Muster."""
        folder = os.path.join(self.dir, "bin")
        if not os.path.exists(folder):
            os.mkdir(folder)
            os.symlink(os.path.abspath(MUSTER), os.path.join(folder, "torchrun"))
        return folder

    def on_path(self, *folders):
        return {"PATH": os.pathsep.join([*folders, self.torchrun(), os.environ["PATH"]])}

    def wrapper(self, flags):
        return executable(os.path.join(self.dir, "python"), f'#!/bin/sh\nexec {PYTHON} {flags} "$@"\n')


class Shells(FormsCase):
    def test_a_torchrun_in_a_shell_under_exec(self):
        for script in ("{}", "cd .; {}; exit $?"):
            with self.subTest(script=script):
                through = lambda words, script=script: (
                    "exec",
                    ["--", "bash", "-c", script.format(shlex.join(["torchrun", *words]))],
                )
                self.compare(env=self.on_path(), through=through, code=RETRYABLE)

    def test_limits(self):
        for limit, learner in (("ulimit -n 64;", False), ("ulimit -v 4000000;", True), ("ulimit -c 0;", True)):
            if "-v" in limit and sanitized():
                continue  # it reserves terabytes
            with self.subTest(limit=limit):
                self.compare(limit=limit, learner=learner)

    def test_a_closed_stdin(self):
        self.compare(limit="exec 0<&-;")

    def test_no_folder_for_temporary_files(self):
        self.compare(env={"TMPDIR": "/nowhere"})

    def test_another_user_whose_home_cannot_be_written(self):
        if os.geteuid() != 0:
            self.skipTest("SKIPPED: another user takes root")
        (muster,) = open_to_all(self.dir, MUSTER)
        os.chmod(self.dir, 0o1777)
        os.chmod(os.path.join(self.dir, "socket"), 0o777)
        words = f"setpriv --reuid={OTHER_USER} --regid={OTHER_USER} --clear-groups {muster}"

        def give_away(folder):
            for place in (os.path.dirname(folder), folder):
                os.chmod(place, 0o777)

        self.compare(
            limit=f'unset XDG_STATE_HOME; shift; set -- {words} "$@";', env={"HOME": "/root"}, prepare=give_away
        )
        self.assertIn("what the script imports is not kept for its next run", self.agents[0].output())


def unordered(facts):
    """With the variables of each environment in one order."""
    return {
        name: sorted(value, key=str) if isinstance(value, list) and "environ" in name else value
        for name, value in facts.items()
        if name != "another Python"  # its environment again
    }


class Flags(FormsCase):
    def check_same(self, facts, cold, but_for):
        """But for the order of variables: the shell of a wrapper has its own."""
        super().check_same(unordered(facts), unordered(cold), but_for)

    def test_flags_of_python(self):
        """A wrapper gives them."""
        for flags in ("-X utf8", "-X dev", "-W error", "-X importtime", "-X tracemalloc=3", "-O", "-B", "-s", "-P"):
            with self.subTest(flags=flags):
                self.compare(python=self.wrapper(flags))

    def test_variables(self):
        for name, value in (
            ("PYTHONSTARTUP", "FOLDER/startup.py"),
            ("PYTHONWARNINGS", "error"),
            ("PYTHONHOME", "/usr"),
            ("PYTHONPROFILEIMPORTTIME", "1"),
            ("PYTHONNODEBUGRANGES", "1"),
        ):
            with self.subTest(name=name, value=value):
                startup = lambda folder: executable(os.path.join(folder, "startup.py"), "raise SystemExit(5)\n")
                self.compare(env={name: value}, prepare=startup)


class Prefixes(FormsCase):
    def test_a_prefix_of_its_own(self):
        """As conda has it: a Python that is no venv's and no system's finds its library beside itself. Its folder is
        first in PATH."""
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        prefix = os.path.join(self.dir, "envs", "train")
        library = os.path.join(prefix, "lib", version)
        os.makedirs(library)
        os.makedirs(os.path.join(prefix, "bin"))
        own = os.path.dirname(os.__file__)
        for name in os.listdir(own):
            if name not in ("site-packages", "dist-packages"):
                os.symlink(os.path.join(own, name), os.path.join(library, name))
        for name in ("python", "python3", version):
            shutil.copy(os.path.realpath(sys.executable), os.path.join(prefix, "bin", name))
        of_pytorch(os.path.join(prefix, "bin"))
        ask = [os.path.join(prefix, "bin", "python3"), "-c", "import site; print(site.getsitepackages()[-1])"]
        packages = subprocess.run(ask, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        self.assertIn(prefix, packages)
        os.makedirs(packages)
        with open(os.path.join(packages, "installed_here.py"), "w") as file:
            file.write("VALUE = 1\n")
        facts = self.compare(
            limit="unset PYTHON_EXEC;",
            env={
                **self.on_path(os.path.join(prefix, "bin")),
                "CONDA_PREFIX": prefix,
                "CONDA_DEFAULT_ENV": "train",
                "FACTS_IMPORT": "installed_here",
            },
        )
        self.assertEqual({of_one["sys.prefix"] for of_one in facts}, {repr(prefix)})
        self.assertIn("installed_here", facts[1]["sys.modules"])

    def test_uv(self):
        """`uv run muster run train.py`."""
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        uv = shutil.which("uv", path=os.pathsep.join([os.path.join(cache, "muster", "uv", "bin"), os.environ["PATH"]]))
        if not uv:
            raise unittest.SkipTest("SKIPPED: there is no uv; `build-support/setup-venv uv` installs it (63 MB)")
        venv = os.path.join(self.dir, ".venv")
        quiet = {"UV_CACHE_DIR": os.path.join(self.dir, "uv"), "UV_OFFLINE": "1", "UV_PYTHON_DOWNLOADS": "never"}
        subprocess.run([uv, "venv", "-q", "--python", PYTHON, venv], check=True, env={**os.environ, **quiet})
        of_pytorch(os.path.join(venv, "bin"))
        run = lambda words: ("exec", ["--", uv, "run", "-q", "--no-project", "--active", MUSTER, "run", *words])
        env = {**self.on_path(), **quiet, "VIRTUAL_ENV": venv}
        facts = self.compare(limit="unset PYTHON_EXEC;", through=run, env=env, code=RETRYABLE)
        self.assertEqual({of_one["sys.prefix"] for of_one in facts}, {repr(venv)})


class Pods(ContainerCase):
    def test_a_torchrun_in_a_shell_on_a_read_only_root(self):
        """Not as root, and with no home."""
        folder = os.path.join(self.dir, "code")
        os.mkdir(folder)
        gate = os.path.join(folder, "gate")
        os.mkfifo(gate)
        with open(os.path.join(folder, "train.py"), "w") as file:
            file.write(
                "import os, sys\nearly = 'xmlrpc.client' in sys.modules\nimport xmlrpc.client\n"
                "attempt = os.environ['TORCHELASTIC_RESTART_COUNT']\nprint(attempt, early, os.getuid(), flush=True)\n"
                f"if attempt == '0': open('/code/gate').read()\nsys.exit({RETRYABLE} if attempt == '0' else 0)\n"
            )
        box = self.box(
            "debian",
            *("/muster/bin/muster", "exec", "--", "bash", "-c", "torchrun --max-restarts 1 /code/train.py"),
            user=OTHER_USER,
            env=("MUSTER_STANDBY_WORKERS=auto", "MUSTER_STANDBY_DELAY=0s", "MUSTER_LOG_LEVEL=debug"),
            mounts=[self.installed(), bind(folder, "/code")],
            memory=1 << 30,
        )
        process = self.begin(box)
        said = ""
        while READY not in said:
            line = process.stderr.readline()
            self.assertTrue(line, said)
            said += line
        open(gate, "w").close()
        out, rest = process.communicate()
        self.assertEqual((process.returncode, out), (0, f"0 False {OTHER_USER}\n1 True {OTHER_USER}\n"), said + rest)
        self.assertIn("1 of 1 worker began in a standby", rest)


if __name__ == "__main__":
    main()
