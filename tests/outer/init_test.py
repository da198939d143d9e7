# SPDX-License-Identifier: Apache-2.0
"""The duties of an init, in each place where `muster exec` may run: as a child (a subreaper), as PID 1 of a namespace,
and both on a terminal. A place leaves out the rows that exec_test.py has for it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest

from exec_case import REAL_TIME
from muster_case import DEADLINE, MUSTER, PYTHON, MusterCase, clean, main, wait_gone

NAMED = [
    getattr(signal, "SIG" + name)
    for name in ("HUP", "QUIT", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "CONT", "WINCH", "IO")
]
FORWARDED = [*map(int, NAMED), *REAL_TIME]
DEADLY = (
    "HUP",
    "INT",
    "QUIT",
    "ILL",
    "TRAP",
    "ABRT",
    "BUS",
    "FPE",
    "KILL",
    "USR1",
    "SEGV",
    "USR2",
    "PIPE",
    "ALRM",
    "TERM",
    "XCPU",
    "VTALRM",
    "SYS",
)
# A command and a grandchild in its process group print what signals they get, and end by none of them.
FAMILY = """
import os, signal
who = "command"
signals = SIGNALS
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
ready, told = os.pipe()
if os.fork() == 0:
    who = "grandchild"
    os.write(told, b".")
else:
    os.read(ready, 1)
    os.write(1, b"ready;")
while number := signal.sigwait(signals): os.write(1, f"{who} {int(number)};".encode())
""".replace("SIGNALS", str([*FORWARDED, int(signal.SIGCHLD), int(signal.SIGTERM), int(signal.SIGINT)]))
# Makes `total` orphans in batches; after each batch waits until the agent has no child but this process.
ORPHANS = """
import os, sys, threading
total, batch = int(sys.argv[1]), 500
reaper, me = os.getppid(), os.getpid()
def adopted():
    ids = []
    for task in os.listdir(f"/proc/{reaper}/task"):
        with open(f"/proc/{reaper}/task/{task}/children") as file: ids += file.read().split()
    return set(map(int, ids)) - {me}
pause = threading.Event()
for _ in range(total // batch):
    gate, opened = os.pipe()
    if os.fork() == 0:
        os.close(opened)
        for _ in range(batch):
            if os.fork() == 0:
                os.read(gate, 1)
                os._exit(0)
        os._exit(0)
    os.close(gate)
    os.wait()
    if len(adopted()) != batch: os.write(1, f"{len(adopted())} of {batch} came to {reaper};".encode())
    os.close(opened)
    while adopted(): pause.wait(0.001)
os.write(1, b"none left;")
sys.stdin.readline()
os._exit(9)
"""


def state(pid):
    """The process's state: the letter in /proc."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


class Begun:
    """One `muster exec`: what its command prints, what it is sent, how it ends."""

    def __init__(self, case, process, output, given, inside):
        self.case, self.process, self.output, self.given, self.inside = case, process, output, given, inside
        self.text = self.all = ""

    @property
    def pid(self):
        """Muster's process id, as this test sees it. In a PID namespace Muster is the only child of `unshare`."""
        return children(self.process.pid)[0] if self.inside else self.process.pid

    @property
    def command(self):
        """The command's process id, as this test sees it; known once the command has printed something."""
        return children(self.pid)[0]

    def send(self, number):
        os.kill(self.pid, number)

    def tell(self, text):
        os.write(self.given, text.encode())

    def _more(self):
        if not select.select([self.output], [], [], DEADLINE)[0]:
            self.case.fail(f"nothing more came after {self.all!r}")
        try:
            piece = os.read(self.output, 65536).decode(errors="replace")
        except OSError:  # EIO: no process has the terminal open
            piece = ""
        self.text += piece
        self.all += piece
        return piece

    def expect(self, *patterns):
        """Waits until each pattern has come, in any order."""
        for pattern in patterns:
            while not (found := re.search(pattern, self.text)):
                if not self._more():
                    self.case.fail(f"{pattern!r} did not come in {self.all!r}")
            self.text = self.text[: found.start()] + self.text[found.end() :]

    def code(self):
        """Its exit code as a shell shows it."""
        code = self.process.wait(DEADLINE)
        return code if code >= 0 else 128 - code

    def ends(self, code):
        """Checks that it ends with this code and that no process holding its output is left."""
        while self._more():
            pass
        self.case.assertEqual(self.code(), code, self.all + self.case.said_of_itself())


class Place(MusterCase):
    inside = False  # a PID namespace
    prefix = ()

    def begun(self, process, output, given):
        def end():
            process.kill()
            process.wait()
            for descriptor in {output, given}:
                os.close(descriptor)

        self.addCleanup(end)
        return Begun(self, process, output, given, self.inside)

    def begin(self, *arguments, env=None, **popen):
        return self.open([*self.prefix, MUSTER, "exec", *arguments], env=clean(**(env or {})), cwd=self.dir, **popen)

    def said_of_itself(self):
        """What Muster and the command wrote to stderr, if that is not a terminal."""
        path = os.path.join(self.dir, "stderr")
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()

    def script(self, text):
        path = os.path.join(self.dir, f"script-{len(os.listdir(self.dir))}.py")
        with open(path, "w") as file:
            file.write(text)
        return [PYTHON, path]

    def until(self, true, what):
        end, ticker = time.monotonic() + DEADLINE, threading.Event()
        while not true():
            if time.monotonic() > end:
                self.fail(f"in {DEADLINE} s not: {what}")
            ticker.wait(0.005)


class Pipes:
    def open(self, command, **popen):
        given, told = os.pipe()
        output, said = os.pipe()
        with open(os.path.join(self.dir, "stderr"), "ab") as stderr:
            process = subprocess.Popen(command, stdin=given, stdout=said, stderr=stderr, **popen)
        os.close(given)
        os.close(said)
        return self.begun(process, output, told)


class OnTerminal:
    def open(self, command, **popen):
        terminal, slave = pty.openpty()
        flags = termios.tcgetattr(slave)
        flags[1] &= ~termios.OPOST
        flags[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, flags)
        earlier = popen.pop("preexec_fn", None)

        def begin():
            if not self.inside:  # else `setsid --ctty` has it
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if earlier:
                earlier()

        process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=begin, **popen
        )
        os.close(slave)
        self.terminal = terminal
        return self.begun(process, terminal, terminal)


def left_by_a_careless_parent():
    """Runs in the child before exec: ignores and blocks signals, as a shell's `trap ''` or a launcher leaves them."""
    for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD, signal.SIGTTOU, signal.SIGRTMIN):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMAX])


class Rows:
    """The duties of a container's first process: exit codes, signals for the command, reaping of orphans."""

    def test_every_end_is_told(self):
        rows = [(["sh", "-c", f"exit {code}"], code) for code in (0, 1, 2, 64, 125, 126, 127, 128, 143, 200, 255)]
        rows += [(["sh", "-c", f"kill -{name} $$"], 128 + signal.Signals["SIG" + name]) for name in DEADLY]
        rows += [(["no-such-command"], 127), ([self.dir], 126), (["/proc/version"], 126)]
        for command, code in rows:
            with self.subTest(command):
                self.begin("--", *command).ends(code)

    def test_signals_reach_the_whole_group_and_the_childs_none(self):
        begun = self.begin("--", *self.script(FAMILY))
        begun.expect("ready;")
        for number in FORWARDED:
            begun.send(signal.SIGCHLD)
            begun.send(number)
            begun.expect(f"command {number};", f"grandchild {number};")
        self.assertNotIn(f"command {int(signal.SIGCHLD)};", begun.all)
        begun.send(signal.SIGKILL)

    def test_the_first_signal_asks_and_the_second_kills(self):
        for first, second in (
            (signal.SIGTERM, signal.SIGTERM),
            (signal.SIGINT, signal.SIGINT),
            (signal.SIGTERM, signal.SIGINT),
        ):
            with self.subTest(first=first, second=second):
                begun = self.begin("--shutdown-timeout", "100000", "--", *self.script(FAMILY))
                begun.expect("ready;")
                begun.send(first)
                begun.expect(f"command {int(first)};", f"grandchild {int(first)};")
                begun.send(signal.SIGUSR1)  # while the command handles it, the others still arrive
                begun.expect(f"command {int(signal.SIGUSR1)};")
                begun.send(second)
                begun.ends(128 + first)

    def test_who_does_not_go_is_killed_after_the_grace(self):
        begun = self.begin("--shutdown-timeout", "1", "--", *self.script(FAMILY))
        begun.expect("ready;")
        begun.send(signal.SIGTERM)
        begun.ends(143)

    def test_a_stopped_group_is_ended(self):
        """It gets SIGCONT with the signal. If it ignores that or stops again, the grace or a second signal ends it."""
        for script, after, flags in (
            ("echo 'ready;'; exec sleep 1000", (), ()),
            (None, (), ("--shutdown-timeout", "1")),
            (None, (signal.SIGSTOP, signal.SIGTERM), ("--shutdown-timeout", "100000")),
        ):
            with self.subTest(script=script, after=after):
                command = ["sh", "-c", script] if script else self.script(FAMILY)
                begun = self.begin(*flags, "--", *command)
                begun.expect("ready;")
                group = begun.command
                os.killpg(group, signal.SIGSTOP)
                self.until(lambda: state(group) == "T", "the command is stopped")
                begun.send(signal.SIGTERM)
                if after:
                    begun.expect("command 15;", "grandchild 15;")
                    os.killpg(group, signal.SIGSTOP)
                    self.until(lambda: state(group) == "T", "the command is stopped again")
                    begun.send(signal.SIGTERM)
                begun.ends(143)

    def test_its_own_answer_to_the_signal_counts(self):
        for number, code in ((signal.SIGTERM, 0), (signal.SIGTERM, 3), (signal.SIGINT, 4)):
            script = f"trap 'exit {code}' {number.name[3:]}; echo 'ready;'; while :; do sleep 0.01; done"
            begun = self.begin("--", "sh", "-c", script)
            begun.expect("ready;")
            begun.send(number)
            begun.ends(code)

    def test_the_command_starts_with_a_clean_slate(self):
        """No signal ignored or blocked, whatever the parent left; its own process group; no descriptor of Muster's."""
        show = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls -1 /proc/self/fd; cut -d' ' -f1,5 /proc/self/stat"
        begun = self.begin("--", "sh", "-c", show, preexec_fn=left_by_a_careless_parent, restore_signals=False)
        begun.ends(0)
        blocked, ignored, *descriptors, place = begun.all.splitlines()
        self.assertEqual([int(line.split()[1], 16) for line in (blocked, ignored)], [0, 0])
        self.assertEqual(descriptors, ["0", "1", "2", "3"])  # the last is the one that `ls` reads
        _, group = map(int, place.split())
        self.assertNotEqual(group, 1 if self.inside else os.getpgrp())

    def test_an_end_is_told_to_a_parent_that_ignores_them(self):
        self.begin("--", "sh", "-c", "exit 3", preexec_fn=left_by_a_careless_parent, restore_signals=False).ends(3)

    def test_five_thousand_orphans_come_to_it_and_leave_no_zombie(self):
        begun = self.begin("--", *self.script(ORPHANS), "5000")
        begun.expect("none left;")
        self.assertNotIn(" came to ", begun.all)
        self.assertEqual(children(begun.pid), [begun.command])
        begun.tell("\n")
        begun.ends(9)

    def test_what_stays_in_the_group_goes_with_the_command(self):
        """A process that ignores SIGTERM is killed after --shutdown-timeout, before it would have printed something."""
        for deaf, flags in (("HUP", ()), ("HUP TERM", ("--shutdown-timeout", "1"))):
            for ends, code in (("exit 6", 6), ("exit 0", 0), ("kill -KILL $$", 137)):
                with self.subTest(deaf=deaf, ends=ends):
                    stays = f'trap "" {deaf}; echo "ready;"; sleep 20; echo late'
                    begun = self.begin(*flags, "--", "sh", "-c", f"sh -c '{stays}' & read line; {ends}")
                    begun.expect("ready;")
                    begun.tell("\n")
                    begun.ends(code)
                    self.assertNotIn("late", begun.all)

    def test_a_killed_exec_takes_the_command_along(self):
        begun = self.begin("--", "sh", "-c", "trap '' HUP; echo 'ready;'; exec sleep 1000")
        begun.expect("ready;")
        command = begun.command
        begun.send(signal.SIGKILL)
        self.assertIn(begun.code(), (137, 1))  # 1: unshare's own code, if it holds the namespace
        self.assertTrue(wait_gone(command))

    def test_an_environment_of_a_megabyte(self):
        begun = self.begin("--", "sh", "-c", 'echo "${#V0} ${#V9};"', env={f"V{i}": "y" * 100_000 for i in range(10)})
        begun.expect("100000 100000;")
        begun.ends(0)

    def test_every_workers_group_is_told(self):
        begun = self.begin(
            "--wire=torch",
            "--nproc-per-node",
            "2",
            "--no-python",
            "--shutdown-timeout",
            "100000",
            "--",
            *self.script(FAMILY),
        )
        begun.expect("ready;", "ready;")
        workers = children(begun.pid)
        self.assertEqual(len(workers), 2)
        os.killpg(workers[1], signal.SIGSTOP)
        self.until(lambda: state(workers[1]) == "T", "a worker is stopped")
        begun.send(signal.SIGTERM)
        begun.expect(*["command 15;", "grandchild 15;"] * 2)
        begun.send(signal.SIGTERM)
        begun.ends(143)

    def test_a_stdout_that_nobody_reads_holds_up_no_end(self):
        """Neither if the command writes into it directly, nor if its output goes through Muster."""
        for flags in ((), ("--tee", "3"), ("--hang-log-timeout", "1h"), ("--wire=torch", "--no-python")):
            for trap in ("", "trap '' TERM;"):  # until the grace is over
                with self.subTest(flags=flags, trap=trap):
                    begun = self.begin(
                        *flags, "--shutdown-timeout", "1", "--", "sh", "-c", f"{trap} echo 'ready;'; exec yes"
                    )
                    begun.expect("ready;")
                    command = begun.command
                    if not flags:
                        self.until(lambda: state(command) == "S", "`yes` is blocked")
                    begun.send(signal.SIGTERM)
                    self.assertEqual(begun.code(), 143)
                    self.assertTrue(wait_gone(command))


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: a PID namespace takes root")
class FirstProcess(Rows, Pipes, Place):
    inside = True
    prefix = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


class Child(Rows, Pipes, Place):
    test_its_own_answer_to_the_signal_counts = None  # exec_test.py has these
    test_who_does_not_go_is_killed_after_the_grace = None
    test_a_killed_exec_takes_the_command_along = None
    test_an_environment_of_a_megabyte = None


class Terminal(Rows, OnTerminal, Place):
    def test_another_size_is_told_once(self):
        begun = self.begin("--", *self.script(FAMILY))
        begun.expect("ready;")
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
        begun.expect(f"command {int(signal.SIGWINCH)};", f"grandchild {int(signal.SIGWINCH)};")
        begun.send(signal.SIGUSR1)
        begun.expect(f"command {int(signal.SIGUSR1)};")
        self.assertEqual(begun.all.count(f"command {int(signal.SIGWINCH)};"), 1)
        begun.send(signal.SIGKILL)

    def test_a_terminal_that_stops_who_writes_from_the_background(self):
        """`stty tostop`: Muster's last line is written although the command had the foreground."""
        begun = self.begin("--", "sh", "-c", "stty tostop; exit 7")
        begun.ends(7)
        self.assertIn("exit code 7", begun.all)


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: a PID namespace takes root")
class FirstProcessOnTerminal(Terminal):
    """As `docker run -t` and a pod with `tty: true` start it."""

    inside = True
    prefix = (*FirstProcess.prefix, "setsid", "--ctty")

    def test_control_z_where_no_shell_could_continue_it(self):
        begun = self.begin("--", *self.script(FAMILY))
        begun.expect("ready;")
        begun.tell("\x1a")
        begun.expect(
            "SIGTSTP would stop the command for ever, because no shell can continue it here: it goes on",
            f"command {int(signal.SIGCONT)};",
            f"grandchild {int(signal.SIGCONT)};",
        )
        begun.send(signal.SIGUSR1)
        begun.expect(f"command {int(signal.SIGUSR1)};", f"grandchild {int(signal.SIGUSR1)};")
        begun.send(signal.SIGKILL)


class Streams(Pipes, Place):
    """Whether output goes through Muster or not, a closed stdout affects only the process that writes into it."""

    WAYS = ((), ("--tee", "3"), ("--hang-log-timeout", "1h"), ("--wire=torch", "--no-python"))

    def code_of(self, command, stdout, *redirect):
        process = subprocess.run(
            [*redirect, *command],
            env=clean(),
            cwd=self.dir,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=DEADLINE,
        )
        return process.returncode, process.stderr

    def test_a_closed_output_leaves_the_code(self):
        for flags in self.WAYS:
            for script, code in (("exit 5", 5), ("echo out 2>&-; exit 6", 6)):
                ended, said = self.code_of(
                    [MUSTER, "exec", *flags, "--", "sh", "-c", script], None, "sh", "-c", 'exec "$@" >&-', "sh"
                )
                self.assertEqual(ended, code, (flags, said))

    def test_its_reader_is_gone(self):
        for flags in self.WAYS:
            read, write = os.pipe()
            os.close(read)
            script = "(trap '' PIPE; yes | head -c 100000) 2>&-; exit 5"
            ended, said = self.code_of([MUSTER, "exec", *flags, "--", "sh", "-c", script], write)
            os.close(write)
            self.assertEqual(ended, 5, (flags, said))

    def test_what_writes_into_it_gets_sigpipe(self):
        read, write = os.pipe()
        os.close(read)
        ended, said = self.code_of([MUSTER, "exec", "--", "yes"], write)
        os.close(write)
        self.assertEqual(ended, 128 + signal.SIGPIPE, said)

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            for flags in self.WAYS:
                ended, said = self.code_of([MUSTER, "exec", *flags, "--", "sh", "-c", "echo out 2>&-; exit 5"], full)
                self.assertEqual(ended, 5, (flags, said))


if __name__ == "__main__":
    main()
