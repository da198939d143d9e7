# SPDX-License-Identifier: Apache-2.0
"""`muster exec` on a terminal: the foreground, job control under a real shell, hang-ups."""

import os
import pty
import re
import select
import signal
import subprocess
import threading
import time

from exec_case import LISTENER, POLITE, ExecCase
from muster_case import DEADLINE, MUSTER, clean, main


class Terminal(ExecCase):
    def setUp(self):
        super().setUp()
        self.open = []
        self.addCleanup(lambda: [os.close(terminal) for terminal in self.open])

    def begin_on_terminal(self, *arguments):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(MUSTER, [MUSTER, "exec", *arguments], clean())
        self.open.append(terminal)
        self.pid = pid
        return terminal

    def hang_up(self, terminal):
        self.open.remove(terminal)
        os.close(terminal)

    def read_until(self, terminal, word):
        text = b""
        while word not in text:
            if not select.select([terminal], [], [], DEADLINE)[0]:
                self.fail(f"{word!r} did not come in {text!r}")
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # the other side is closed
                piece = b""
            if not piece:
                self.fail(f"{word!r} did not come in {text!r}")
            text += piece
        return text

    def end(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def test_the_command_has_the_terminal_and_the_foreground(self):
        terminal = self.begin_on_terminal(
            "--",
            *self.script(
                "import os, sys\nprint(all(map(os.isatty, (0, 1, 2))), os.tcgetpgrp(0) == os.getpgrp(), input())"
            ),
        )
        os.write(terminal, b"typed\n")
        self.assertIn(b"True True typed", self.read_until(terminal, b"True typed"))
        self.assertEqual(self.end(), 0)

    def test_control_c_is_the_commands_own(self):
        terminal = self.begin_on_terminal(
            "--",
            *self.script("""
import os
try:
    print("ready", flush=True)
    while True: os.read(0, 1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(9)
"""),
        )
        self.read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        self.read_until(terminal, b"interrupted")
        self.assertEqual(self.end(), 9)

    def test_exit_codes(self):
        for script, code in (
            ("exit 0", 0),
            ("exit 7", 7),
            ("exit 255", 255),
            ("kill -TERM $$", 143),
            ("kill -ABRT $$", 134),
            ("kill -KILL $$", 137),
            ("no-such-command", 127),
        ):
            self.begin_on_terminal("--", "sh", "-c", script)
            self.assertEqual(self.end(), code, script)

    def test_term_and_a_second_term(self):
        terminal = self.begin_on_terminal("--", *self.script(POLITE), "3")
        self.read_until(terminal, b"ready")
        os.kill(self.pid, signal.SIGTERM)
        self.assertEqual(self.end(), 3)
        terminal = self.begin_on_terminal("--shutdown-timeout", "100000", "--", *self.script(LISTENER))
        self.read_until(terminal, b"ready")
        os.kill(self.pid, signal.SIGTERM)
        self.read_until(terminal, b"15")
        os.kill(self.pid, signal.SIGTERM)
        self.assertEqual(self.end(), 143)

    def test_a_terminal_that_hangs_up(self):
        """The command gets SIGHUP and may handle it; if it does not, SIGHUP ends it."""
        for script, code in (
            ("trap 'exit 5' HUP; echo ready; while :; do sleep 0.01; done", 5),
            ("echo ready; exec sleep 1000", 129),
        ):
            terminal = self.begin_on_terminal("--", "sh", "-c", script)
            self.read_until(terminal, b"ready")
            self.hang_up(terminal)
            self.assertEqual(self.end(), code)

    def begin_shell(self, *command):
        """A shell on a terminal of its own, which starts muster as a user's shell does."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(command[0], command, clean(PS1="", HISTFILE="", MUSTER=MUSTER))
        self.open.append(terminal)
        self.pid = pid
        self.addCleanup(subprocess.run, ["pkill", "-KILL", "-s", str(pid)])  # processes that are still stopped
        return terminal

    def test_a_script_reads_from_its_terminal_after_the_command(self):
        """The command had the foreground, and a script has no job control to take it back."""
        terminal = self.begin_shell(
            "/bin/sh", "-c", '"$MUSTER" exec -- sh -c "read one; echo first=$one"; read two; echo second=$two'
        )
        os.write(terminal, b"a\n")
        self.read_until(terminal, b"first=")
        os.write(terminal, b"b\n")
        self.read_until(terminal, b"second=b")
        self.assertEqual(self.end(), 0)

    def foreground_becomes(self, terminal, group):
        end, ticker = time.monotonic() + DEADLINE, threading.Event()
        while os.tcgetpgrp(terminal) != group:
            self.assertLess(time.monotonic(), end, "the command has not got the foreground back")
            ticker.wait(0.01)

    def test_control_z_gives_the_shell_its_terminal_and_fg_goes_on(self):
        terminal = self.begin_shell("/bin/bash", "--norc", "--noediting", "-i")
        os.write(terminal, b'"$MUSTER" exec -- sh -c "echo is=\\$\\$.; read line; echo got=\\$line"\n')
        group = int(re.search(rb"is=(\d+)\.", self.read_until(terminal, b".\r\n")).group(1))
        for way in (b"fg\n", b"bg\nfg\n"):
            self.foreground_becomes(terminal, group)
            os.write(terminal, b"\x1a")
            self.read_until(terminal, b"Stopped")
            os.write(terminal, b"echo shell''reads\n")
            self.read_until(terminal, b"shellreads")
            os.write(terminal, way)
        self.foreground_becomes(terminal, group)
        os.write(terminal, b"typed\n")
        self.read_until(terminal, b"got=typed")
        os.write(terminal, b"exit\n")
        self.assertEqual(self.end(), 0)

    def test_control_z_where_no_shell_could_go_on(self):
        """As in `docker run -it`: a stopped command would never go on."""
        terminal = self.begin_on_terminal("--", "sh", "-c", "echo ready; read line; echo got=$line")
        self.read_until(terminal, b"ready")
        os.write(terminal, b"\x1a")
        self.read_until(terminal, b"no shell can continue it here")
        os.write(terminal, b"typed\n")
        self.read_until(terminal, b"got=typed")
        self.assertEqual(self.end(), 0)

    def test_the_next_attempt_has_the_foreground_too(self):
        flag = os.path.join(self.dir, "second")
        terminal = self.begin_on_terminal(
            "--max-restarts",
            "1",
            "--restart-policy",
            "on-failure",
            "--",
            *self.script(f"""
import os, sys
if not os.path.exists({flag!r}):
    open({flag!r}, "w").close()
    sys.exit(1)
print("foreground", os.tcgetpgrp(0) == os.getpgrp())
"""),
        )
        self.assertIn(b"foreground True", self.read_until(terminal, b"foreground T"))
        self.assertEqual(self.end(), 0)


if __name__ == "__main__":
    main()
