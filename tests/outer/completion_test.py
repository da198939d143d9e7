# SPDX-License-Identifier: Apache-2.0
"""`completion` and `man` of each program: real shells complete, and man shows the pages without a warning."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import unittest

from muster_case import DEADLINE, HERE, MUSTER, clean, main

BIN = os.path.dirname(os.path.abspath(MUSTER))
PROGRAMS = [
    name
    for name in ("muster", "muster-local", "muster-controller", "muster-initializer")
    if os.path.exists(os.path.join(BIN, name))
]
TABLE = os.path.join(HERE, "..", "..", "agent", "flags", "torchrun_flag_table.cc")
FILES = ("train one.py", "train-two.py", "folder/inner.txt")


def output_of(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def answer(program, *words):
    """(place, candidates) that the program tells the scripts."""
    first, *lines = output_of(os.path.join(BIN, program), "completion", "for", "--", *words).splitlines()
    return first.split()[0], dict(line.split("\t") for line in lines)


def flags_of_table():
    """Name of each flag of the table -> whether `muster run` has it."""
    with open(TABLE, encoding="utf-8") as file:
        rows = re.findall(r'(?m)^    \{"([a-z-]+)", [^,]+, \S+, ([\w:]+),', file.read())
    return {name: owner in ("kT", "kM") for name, owner in rows}


class ShellCase(unittest.TestCase):
    """A folder with FILES, in which the programs are on PATH."""

    def setUp(self):
        self.dir, settings = tempfile.mkdtemp(), tempfile.mkdtemp()
        for folder in (self.dir, settings):
            self.addCleanup(shutil.rmtree, folder)
        for name in FILES:
            os.makedirs(os.path.dirname(os.path.join(self.dir, name)), exist_ok=True)
            open(os.path.join(self.dir, name), "w").close()
        self.env = clean(
            HOME=self.dir, PATH=f"{BIN}:{os.environ['PATH']}", TERM="dumb", LC_ALL="C.UTF-8", XDG_CONFIG_HOME=settings
        )

    def shell(self, name):
        if shutil.which(name) is None:
            self.skipTest(f"SKIPPED: no {name}; make deps installs it")
        return name

    def begin(self, *command):
        """Starts a shell on a terminal, on which `read_until` and `type` act."""
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execvpe(command[0], command, self.env)

        def end():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(self.terminal)

        self.addCleanup(end)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, pattern):
        text = ""
        while not re.search(pattern, text):
            if not select.select([self.terminal], [], [], DEADLINE)[0]:
                self.fail(f"{pattern!r} did not come in {text!r}")
            text += os.read(self.terminal, 65536).decode(errors="replace")
        return text


class InteractiveCase(ShellCase):
    """A shell on a terminal, in which the key C-t completes."""

    SHOW = "show() { printf '<%s>' \"$@\"; echo end; }; echo be''gun\n"

    def completed(self, line):
        """The words of the line once the shell has completed its last word."""
        self.type(line + "\x14\x01show \n")
        shown = self.read_until(r">end\r*\n")
        return re.findall(r"<([^>]*)>", shown[shown.index("<") :])


class Bash(InteractiveCase):
    """Here C-t puts all completions in the place of the last word."""

    def setUp(self):
        super().setUp()
        self.begin(self.shell("bash"), "--norc", "--noprofile", "-i")
        self.type("bind 'set bell-style none' '\"\\C-t\": insert-completions'; PS1=\n")
        for program in PROGRAMS:
            self.type(f"source <({program} completion bash)\n")
        self.type(self.SHOW)
        self.read_until("begun")

    def test_subcommands_and_flags(self):
        self.assertEqual(self.completed("muster coo"), ["muster", "coordinator"])
        self.assertEqual(self.completed("muster run --nn"), ["muster", "run", "--nnodes"])
        self.assertEqual(
            self.completed("muster run --standby-"),
            ["muster", "run", "--standby-delay", "--standby-imports", "--standby-workers"],
        )
        self.assertEqual(self.completed("muster run --nproc_p"), ["muster", "run", "--nproc_per_node"])
        self.assertEqual(self.completed("muster wait h --rend"), ["muster", "wait", "h", "--rendezvous"])

    def test_values(self):
        for words, completed in (
            ("run --standby-workers a", "auto"),
            ("run --standby-workers=a", "--standby-workers=auto"),
            ("run --rdzv-endpoint=h:1 --rdzv-id x --tee=0:3,1:1 --nn", "--nnodes"),
            ("completion b", "bash"),
            ("man coor", "coordinator"),
        ):
            self.assertEqual(self.completed(f"muster {words}")[-1], completed)

    def test_paths(self):
        for words, completed in (
            ("run --log-dir=fo", ["--log-dir=folder"]),
            ("run --log-dir ", ["--log-dir", "folder"]),
            ("run --nodes-file train-", ["--nodes-file", "train-two.py"]),
            ("run tr", ["train one.py", "train-two.py"]),
            ('run "train o', ["train one.py"]),
            ("run train-two.py --x fo", ["train-two.py", "--x", "folder"]),
            ("exec -- muster-con", ["exec", "--", "muster-controller"]),
        ):
            self.assertEqual(self.completed(f"muster {words}")[-len(completed) :], completed)

    def test_the_other_programs(self):
        for line, completed in (
            ("muster local --dr", "--dry-run"),
            ("muster-local stop --al", "--all"),
            ("muster-controller plan -o j", "json"),
            ("muster-controller run --webhook-cert", "--webhook-cert-dir"),
            ("muster-initializer model --verify=s", "--verify=size"),
        ):
            self.assertEqual(self.completed(line)[-1], completed)

    def test_a_job_of_this_machine(self):
        os.makedirs(os.path.join(self.dir, ".local/state/muster/jobs/night-run"))
        self.assertEqual(self.completed("muster logs ni"), ["muster", "logs", "night-run"])

    def test_a_program_that_knows_nothing_leaves_the_files(self):
        other = os.path.join(self.dir, "muster")
        with open(other, "w") as file:
            file.write("#!/bin/sh\nexit 64\n")
        os.chmod(other, 0o755)
        self.assertEqual(self.completed("./muster folder/i"), ["./muster", "folder/inner.txt"])


class Zsh(InteractiveCase):
    def setUp(self):
        super().setUp()
        self.begin(self.shell("zsh"), "-f", "-i")
        self.type("PS1=; unsetopt zle_bracketed_paste list_beep; autoload -Uz compinit; compinit -u -D\n")
        for program in PROGRAMS:
            self.type(f"source <({program} completion zsh)\n")
        self.type("bindkey '^T' expand-or-complete; bindkey '^G' kill-whole-line; bindkey '^O' list-choices\n")
        self.type(self.SHOW)
        self.read_until("begun")

    def test_flags_have_their_help(self):
        for line, listed in (
            ("muster run --standby-", "--standby-workers +-- auto: keep a Python process for each worker"),
            ("muster c", "coordinator +-- serve the rendezvous alone"),
        ):
            self.type(f"{line}\x0f")
            self.read_until(listed)
            self.type("\x07")

    def test_words_and_paths(self):
        for line, completed in (
            ("muster coo", ["coordinator"]),
            ("muster run --nproc_p", ["--nproc_per_node"]),
            ("muster run --standby-workers a", ["--standby-workers", "auto"]),
            ("muster run --standby-workers=a", ["--standby-workers=auto"]),
            ("muster run --log-dir=fo", ["--log-dir=folder"]),
            ("muster run --log-dir ", ["--log-dir", "folder"]),
            ("muster run --nodes-file train-", ["train-two.py"]),
            ("muster run train\\ ", ["train one.py"]),
            ("muster run train-two.py --x fo", ["--x", "folder"]),
            ("muster exec -- muster-con", ["--", "muster-controller"]),
            ("muster local --dr", ["--dry-run"]),
            ("muster-controller plan -o j", ["-o", "json"]),
            ("muster-initializer model --verify=s", ["--verify=size"]),
        ):
            self.assertEqual(self.completed(line)[-len(completed) :], completed)


class Fish(ShellCase):
    def completed(self, line):
        """Word -> its help."""
        shown = output_of(
            self.shell("fish"),
            "--no-config",
            "-c",
            "".join(f"{program} completion fish | source;" for program in PROGRAMS) + "complete -C $argv[1]",
            line,
            env=self.env,
            cwd=self.dir,
        )
        return dict([*line.split("\t"), ""][:2] for line in shown.splitlines())

    def test_subcommands_and_flags(self):
        self.assertEqual(
            self.completed("muster coo"), {"coordinator": "serve the rendezvous alone, for any number of runs"}
        )
        self.assertEqual(self.completed("muster run --nn"), {"--nnodes": "number of nodes, or their range"})
        self.assertEqual(list(self.completed("muster run --nproc_p")), ["--nproc_per_node"])

    def test_values(self):
        self.assertEqual(list(self.completed("muster run --standby-workers ")), ["auto", "off"])
        self.assertEqual(list(self.completed("muster run --standby-workers=a")), ["--standby-workers=auto"])

    def test_paths(self):
        self.assertEqual(list(self.completed("muster run --log-dir=fo")), ["--log-dir=folder/"])
        self.assertEqual(list(self.completed("muster run --log-dir ")), ["folder/"])
        self.assertEqual(list(self.completed("muster run --nodes-file train-")), ["train-two.py"])
        self.assertEqual(list(self.completed("muster run tr")), ["train one.py", "train-two.py"])
        self.assertEqual(list(self.completed("muster run train-two.py --x fo")), ["folder/"])
        self.assertIn("muster-controller", self.completed("muster exec -- muster-con"))

    def test_the_other_programs(self):
        self.assertEqual(list(self.completed("muster local --dr")), ["--dry-run"])
        self.assertEqual(list(self.completed("muster-controller plan -o j")), ["json"])
        self.assertEqual(list(self.completed("muster-initializer model --verify=s")), ["--verify=size"])


class Answers(unittest.TestCase):
    def test_every_flag_of_the_table_is_offered(self):
        flags = flags_of_table()
        self.assertGreater(len(flags), 50)
        offered = {name: answer("muster", name, "--")[1] for name in ("run", "launch", "exec")}
        for flag, of_run in flags.items():
            self.assertIn(f"--{flag}", {**offered["launch"], **offered["exec"]})
            self.assertEqual(f"--{flag}" in offered["run"], of_run, flag)
        self.assertTrue(all(all(words.values()) for words in offered.values()), "a flag has no help")

    def test_every_flag_of_each_help_is_offered(self):
        for program in PROGRAMS:
            for name in answer(program, "")[1]:
                text = output_of(os.path.join(BIN, program), name, "--help")
                told = set(re.findall(r"(?m)^  (?:-\w, ?)*(--[\w-]+)", text))
                self.assertEqual(told - set(answer(program, name, "--")[1]), set(), f"{program} {name}")

    def test_wrong_usage(self):
        for program in PROGRAMS:
            for arguments in (("completion",), ("completion", "tcsh"), ("man", "no-such-subcommand")):
                done = subprocess.run([os.path.join(BIN, program), *arguments], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (64, ""), (program, arguments))
                self.assertNotEqual(done.stderr, "")


class Pages(unittest.TestCase):
    def pages(self):
        """(name, roff) of each program and subcommand."""
        for program in PROGRAMS:
            path = os.path.join(BIN, program)
            yield program, output_of(path, "man")
            for name in answer(program, "")[1]:
                yield f"{program} {name}", output_of(path, "man", name)

    def shown(self, page):
        if shutil.which("man") is None or shutil.which("groff") is None:
            self.skipTest("SKIPPED: no man or groff; make deps installs them")
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(page)
            file.flush()
            for command in (
                ["man", "--warnings", "-E", "UTF-8", "-l", file.name],
                ["groff", "-man", "-ww", "-Tutf8", file.name],
            ):
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    env=clean(MANWIDTH="80", MANPAGER="cat", MAN_KEEP_FORMATTING="", LC_ALL="C.UTF-8"),
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""), page)
        return re.sub(r"\x1b\[[\d;]*m|.\x08", "", done.stdout)

    def test_man_shows_each_page_without_a_warning(self):
        count = 0
        for name, page in self.pages():
            count += 1
            self.assertIn("NAME\n", self.shown(page), name)
        self.assertGreater(count, 20)

    def test_each_flag_is_in_the_page_as_in_the_help(self):
        for name in ("run", "launch", "exec"):
            page = " ".join(self.shown(output_of(MUSTER, "man", name)).split())
            for flag, help_text in answer("muster", name, "--")[1].items():
                self.assertRegex(page, rf"(?<![\w-]){re.escape(flag)}(?![\w-])", name)
                self.assertIn(help_text.replace("`", ""), page, f"{name} {flag}")

    def test_every_flag_of_the_table_is_in_a_page(self):
        page = "".join(self.shown(output_of(MUSTER, "man", name)) for name in ("launch", "exec"))
        for flag in flags_of_table():
            self.assertRegex(page, rf"--{flag}(?![\w-])")


if __name__ == "__main__":
    main()
