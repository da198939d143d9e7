# SPDX-License-Identifier: Apache-2.0
"""`muster exec` as the main process of a container: the real binary, as a child and as PID 1 of a namespace."""

import json
import os
import signal
import struct
import subprocess
import unittest

from exec_case import LISTENER, POLITE, REAL_TIME, ExecCase
from muster_case import DEADLINE, MUSTER, clean, main, sanitized, wait_gone

ORPHANS = """
import os, sys
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
left, end = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.close(left)
        os._exit(0)
    os._exit(0)
os.close(end)
os.wait()
os.read(left, 1)
os.write(1, b"done\\n")
sys.stdin.readline()
"""


def told_before_the_start():
    """Runs in the child before exec: a SIGTERM is pending, blocked by a mask that stays over exec."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    os.kill(os.getpid(), signal.SIGTERM)


class Early(ExecCase):
    """Signals that come before there is a handler."""

    def test_a_term_from_before_the_start_is_heard(self):
        path = os.path.join(self.dir, "message")
        open(path, "w").close()
        for flags in ([], ["--wire=torch", "--no-python"]):
            done = self.run_exec(
                "--termination-log", path, *flags, "--", "sleep", "1000", preexec_fn=told_before_the_start
            )
            self.assertEqual(done.returncode, 143, done.stderr)
            with open(path) as file:
                self.assertEqual(json.load(file)["reason"], "preempted: SIGTERM")

    def test_a_worker_of_the_remote_shell_hears_it_too(self):
        done = self.run_exec("--serve-rsh", "--rsh-listen", "127.0.0.1:0", preexec_fn=told_before_the_start)
        self.assertEqual(done.returncode, 143, done.stderr)

    def test_it_does_not_go_on_to_the_command(self):
        mask = "grep SigBlk /proc/self/status"
        self.assertEqual(int(self.run_exec("--", "sh", "-c", mask).stdout.split()[1], 16), 0)


class Unread(ExecCase):
    """A stderr without a reader, full from the start."""

    def full_pipe(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write, True)
        return write

    def begin_unread(self, *arguments, **more):
        stderr = self.full_pipe()
        process = self.with_pipes(
            [MUSTER, "exec", *arguments], stdin=subprocess.DEVNULL, stderr=stderr, env=clean(), text=True, **more
        )
        os.close(stderr)
        return process

    def test_the_end_is_told(self):
        for flags in ([], ["--wire=torch", "--no-python"]):
            self.assertEqual(self.begin_unread(*flags, "--", "sh", "-c", "exit 5").wait(DEADLINE), 5, flags)

    def test_a_term_is_passed_on(self):
        for flags, code in (([], 4), (["--wire=torch", "--no-python"], 143)):
            process = self.begin_unread(
                *flags, "--", "sh", "-c", "trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done"
            )
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(DEADLINE), code, flags)

    def test_a_worker_of_the_remote_shell_ends(self):
        process = self.begin_unread("--serve-rsh", "--rsh-listen", "127.0.0.1:0", preexec_fn=told_before_the_start)
        self.assertEqual(process.wait(DEADLINE), 143)


class Transparent(ExecCase):
    def test_exit_codes(self):
        for code in (0, 1, 7, 126, 128, 200, 255):
            self.assertEqual(self.run_exec("--", "sh", "-c", f"exit {code}").returncode, code)
        for name in ("KILL", "TERM", "SEGV", "ABRT", "BUS", "USR1"):
            number = signal.Signals["SIG" + name]
            self.assertEqual(self.run_exec("--", "sh", "-c", f"kill -{name} $$").returncode, 128 + number, name)

    def test_words_of_the_command_from_variables(self):
        """As the controller writes a command that a webhook may join into one line for a shell."""
        script = "echo $# \"$1\" $(NAME) '$$(date)'; printenv MUSTER_ARG_2 || exit 7"
        done = self.run_exec(
            "--args-from-env",
            "--",
            "sh",
            "-c",
            "MUSTER_ARG_2",
            "sh",
            "MUSTER_ARG_4",
            env=clean(MUSTER_ARG_2=script, MUSTER_ARG_4="two  words", NAME="name"),
        )
        self.assertEqual((done.returncode, done.stdout), (7, "1 two  words name $(date)\n"), done.stderr)

    def test_success_says_nothing_and_failure_one_line(self):
        self.assertEqual(self.run_exec("--", "true").stderr, "")
        said = self.run_exec("--", "sh", "-c", "exit 7").stderr.splitlines()
        self.assertEqual(len(said), 1, said)
        self.assertIn("exit code 7", said[0])

    def test_streams_directory_and_arguments(self):
        done = subprocess.run(
            [MUSTER, "exec", "--", "sh", "-c", 'cat; pwd; echo "$0|$1|$2"; echo err >&2', "a b", "--", "$x"],
            input="in\n",
            capture_output=True,
            text=True,
            cwd="/usr/lib",
            env=clean(),
            timeout=DEADLINE,
        )
        self.assertEqual((done.stdout, done.stderr), ("in\n/usr/lib\na b|--|$x\n", "err\n"))

    def test_environment_but_for_what_is_documented(self):
        ours = clean(PET_NNODES="nonsense", PET_NPROC_PER_NODE="-3", EMPTY="", LONG="x" * 100_000, **{"a.b": "c=d"})
        done = self.run_exec("--", "env", "-0", env=ours)
        theirs = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)
        self.assertEqual(theirs.pop("MUSTER_RESTART_POLICY"), "exit-code")
        self.assertEqual(theirs.pop("MUSTER_FROM_OUTSIDE"), "MUSTER_RESTART_POLICY=exit-code")
        self.assertEqual(theirs.pop("TORCH_ELASTIC_SHUTDOWN_TIMEOUT"), "23")
        self.assertEqual(theirs, ours)

    def test_an_environment_of_a_megabyte(self):
        ours = clean(**{f"V{i}": "y" * 100_000 for i in range(10)})
        done = self.run_exec("--", "sh", "-c", "echo ${#V0} ${#V9}", env=ours)
        self.assertEqual((done.returncode, done.stdout), (0, "100000 100000\n"))

    def test_an_environment_that_is_too_long_for_the_command(self):
        # After Muster's start: lowers the limit of the stack, of which arguments and environment may take a quarter.
        ours = clean(**{f"V{i}": "y" * 100_000 for i in range(15)})
        done = self.run_exec("--node-check", "prlimit --pid $PPID --stack=4194304:", "--", "true", env=ours)
        self.assertEqual(done.returncode, 126, done.stderr)
        self.assertRegex(
            done.stderr,
            r"'/\S+/true' cannot be executed: its arguments \(\d+ bytes\) and environment \(15\d+ bytes\) "
            r"are too long together \(at most 1048576\); pass long values in files",
        )

    def test_commands_that_cannot_run(self):
        def file(name, content, mode):
            path = os.path.join(self.dir, name)
            with open(path, "wb") as out:
                out.write(content)
            os.chmod(path, mode)
            return path

        with open("/bin/true", "rb") as binary:
            elf = bytearray(binary.read(4096))
        elf[18:20] = struct.pack("<H", 0xF3 if elf[18] != 0xF3 else 0x3E)  # the binary of another machine type
        rows = [
            (["no-such-command"], 127, "no-such-command"),
            (["/no/such/command"], 127, "/no/such/command"),
            ([file("plain", b"echo hello\n", 0o644)], 126, "plain"),
            ([self.dir], 126, self.dir),
            ([file("text", b"just a text\n", 0o755)], 126, "#!"),
            ([file("foreign", bytes(elf), 0o755)], 126, "built for this machine"),
            ([file("lost", b"#!/no/such/interpreter\n", 0o755)], 127, "interpreter"),
        ]
        for command, code, words in rows:
            done = self.run_exec("--max-restarts", "3", "--", *command)
            self.assertEqual(done.returncode, code, (command, done.stderr))
            self.assertIn(words, done.stderr)

    def test_wrong_usage(self):
        for arguments, words in (
            (["--"], "command is missing"),
            ([], "command is missing"),
            (["--", ""], "command is missing"),
            (["--no-such-flag", "--", "true"], "no-such-flag"),
            (["--nnodes", "2", "--", "true"], "--wire=torch"),
            (["--wire", "x", "--", "true"], "plain"),
            (["--max-restarts", "-1", "--", "true"], "max-restarts"),
            (["--retry-codes", "3", "--fatal-codes", "3", "--", "true"], "one class"),
        ):
            done = self.run_exec(*arguments)
            self.assertEqual(done.returncode, 64, arguments)
            self.assertIn(words, done.stderr)
        self.assertEqual(self.run_exec("--wire=plain", "--", "true", env=clean(MUSTER_WIRE="x")).returncode, 0)
        self.assertEqual(self.run_exec("--", "true", env=clean(MUSTER_WIRE="x")).returncode, 64)

    def test_closed_streams_do_no_harm(self):
        """No descriptor of the agent takes their place, into which a command would write."""
        for closed in (">&-", "<&-", "<&- >&-", "<&- >&- 2>&-"):
            for flags in ("", "--wire=torch --no-python"):
                line = (
                    f'"{MUSTER}" exec {flags} -- sh -c \'echo x; readlink /proc/$$/fd/1 /proc/$PPID/fd/[012] >told; '
                    f"exit 5' {closed}"
                )
                done = subprocess.run(
                    ["sh", "-c", line], capture_output=True, text=True, env=clean(), timeout=DEADLINE, cwd=self.dir
                )
                self.assertEqual(done.returncode, 5, done.stderr)
                if sanitized():  # linked dynamically: gRPC's library opens a descriptor before any code of Muster
                    continue
                with open(os.path.join(self.dir, "told")) as file:
                    told = file.read()
                self.assertNotIn("anon_inode", told, line)
                self.assertEqual("/dev/null" in told, True, line)

    def test_the_commands_own_descriptors(self):
        """The command gets inherited descriptors (a shell's <(...), a job server's pipe), but none of the agent's."""
        open_ones = "for fd in 3 4 5 6 7 8 9; do (: <&$fd) 2>&- && echo $fd; done"
        for flags in ([], ["--wire=torch", "--no-python"]):
            read, write = os.pipe()
            os.write(write, b"for it\n")
            os.close(write)
            done = self.run_exec(
                *flags, "--", "sh", "-c", f"{open_ones}; cat <&{read} 2>&- || echo none", pass_fds=[read]
            )
            os.close(read)
            self.assertEqual(
                (done.returncode, done.stdout), (0, "none\n" if flags else f"{read}\nfor it\n"), done.stderr
            )

    def test_signals_reach_a_worker_wired_as_torch(self):
        process = self.begin(
            "--wire=torch", "--no-python", "--signals-to-handle", "SIGTERM,SIGUSR2", "--", *self.script(LISTENER)
        )
        self.assertEqual(process.stdout.readline(), "ready\n")
        for number in (signal.SIGUSR1, signal.SIGWINCH, *REAL_TIME, signal.SIGHUP):
            process.send_signal(number)
            self.assertEqual(process.stdout.readline(), f"{int(number)}\n")

    def test_the_files_of_attempts_where_asked_for(self):
        logs = os.path.join(self.dir, "logs")
        done = self.run_exec("--log-dir", logs, "--tee", "3", "--", "sh", "-c", "echo out; echo err >&2; exit 4")
        self.assertEqual((done.returncode, done.stdout), (4, "[default0]:out\n"))
        (record,) = self.attempts(logs).values()
        self.assertEqual(record["workers"][0]["exit_code"], 4)
        self.assertEqual(record["workers"][0]["stderr_tail"], ["err"])
        self.assertEqual((record["job"]["exit_code"], record["job"]["class"]), (4, "fatal"))

    def test_the_record_of_a_preemption(self):
        logs = os.path.join(self.dir, "logs")
        process = self.begin("--log-dir", logs, "--", "sh", "-c", "echo ready; exec sleep 1000")
        process.stdout.readline()
        process.terminate()
        self.assertEqual(self.code(process), 143)
        (record,) = self.attempts(logs).values()
        self.assertEqual(record["job"], {"exit_code": 143, "class": "retryable", "reason": "preempted: SIGTERM"})


class Signals(ExecCase):
    def test_every_signal_reaches_the_command(self):
        process = self.begin("--", *self.script(LISTENER))
        self.assertEqual(process.stdout.readline(), "ready\n")
        for name in ("HUP", "QUIT", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "WINCH", "IO"):
            process.send_signal(signal.Signals["SIG" + name])
            self.assertEqual(process.stdout.readline(), f"{int(signal.Signals['SIG' + name])}\n", name)
        for number in REAL_TIME:
            process.send_signal(number)
            self.assertEqual(process.stdout.readline(), f"{int(number)}\n")

    def test_the_commands_own_answer_to_term_counts(self):
        for code in (0, 3):
            process = self.begin("--", *self.script(POLITE), str(code))
            process.stdout.readline()
            process.terminate()
            self.assertEqual(self.code(process), code)

    def test_term_by_default_and_int(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.begin("--", "sh", "-c", "echo ready; exec sleep 1000")
            process.stdout.readline()
            process.send_signal(number)
            self.assertEqual(self.code(process), 128 + number)

    def test_a_command_that_ignores_term_is_killed_after_the_grace(self):
        process = self.begin("--shutdown-timeout", "1", "--", *self.script(LISTENER))
        process.stdout.readline()
        process.terminate()
        self.assertEqual(process.stdout.readline(), "15\n")
        self.assertEqual(self.code(process), 143)

    def test_a_second_term_kills_at_once(self):
        process = self.begin("--shutdown-timeout", "100000", "--", *self.script(LISTENER))
        process.stdout.readline()
        process.terminate()
        self.assertEqual(process.stdout.readline(), "15\n")
        process.terminate()
        self.assertEqual(self.code(process), 143)

    def test_a_stopped_command_is_woken_to_end(self):
        process = self.begin("--", "sh", "-c", "echo $$; kill -STOP $$; sleep 1000")
        process.stdout.readline()
        process.terminate()
        self.assertEqual(self.code(process), 143)

    def test_what_the_command_leaves_behind_ends_with_it(self):
        process = self.begin("--", "sh", "-c", "sleep 1000 & echo $!; exit 6")
        left = int(process.stdout.readline())
        self.assertEqual(self.code(process), 6)
        self.assertTrue(wait_gone(left))

    def test_a_killed_exec_takes_its_command_along(self):
        process = self.begin("--", "sh", "-c", "echo $$; exec sleep 1000")
        command = int(process.stdout.readline())
        process.kill()
        self.assertTrue(wait_gone(command))

    def test_thousands_of_orphans_are_collected(self):
        process = self.begin("--", *self.script(ORPHANS), "5000")
        self.assertEqual(process.stdout.readline(), "done\n")
        process.stdin.write("\n")
        self.assertEqual(self.code(process), 0)


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: a PID namespace takes root")
class FirstProcess(ExecCase):
    """As PID 1: the kernel drops signals without a handler, and every orphan becomes a child of the agent."""

    PREFIX = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

    def inside(self, *arguments):
        process = self.begin(*arguments, prefix=self.PREFIX)
        return process

    def first(self, process):
        """The process id of PID 1 of the namespace, as this test sees it: unshare's only child."""
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            return int(file.read().split()[0])

    def test_exit_codes(self):
        for code in (0, 7, 255):
            self.assertEqual(self.code(self.inside("--", "sh", "-c", f"exit {code}")), code)
        for name, code in (("ABRT", 134), ("BUS", 135), ("SEGV", 139)):
            self.assertEqual(self.code(self.inside("--", "sh", "-c", f"kill -{name} $$")), code)
        self.assertEqual(self.code(self.inside("--", "no-such-command")), 127)

    def test_it_is_pid_1_and_signals_arrive(self):
        process = self.inside("--", *self.script(LISTENER))
        self.assertEqual(process.stdout.readline(), "ready\n")
        first = self.first(process)
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGWINCH):
            os.kill(first, number)
            self.assertEqual(process.stdout.readline(), f"{int(number)}\n")
        os.kill(first, signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "15\n")
        os.kill(first, signal.SIGTERM)
        self.assertEqual(self.code(process), 143)

    def test_a_session_that_escaped_dies_with_the_container(self):
        process = self.inside("--", "sh", "-c", "setsid sh -c 'echo started; exec sleep 1000' & read line")
        self.assertEqual(process.stdout.readline(), "started\n")
        process.stdin.write("\n")
        self.assertEqual(self.code(process), 0)

    def test_no_zombie_stays(self):
        script = self.script(
            ORPHANS
            + """
def zombies():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z": return True
        except OSError: pass
    return False
while zombies(): os.sched_yield()  # the last ones are being collected
os.write(1, b"none left\\n")
"""
        )
        process = self.inside("--", *script, "500")
        self.assertEqual(process.stdout.readline(), "done\n")
        process.stdin.write("\n")
        self.assertEqual(process.stdout.readline(), "none left\n")
        self.assertEqual(self.code(process), 0)


class Preemption(ExecCase):
    def test_a_notice_is_an_early_term(self):
        notice = os.path.join(self.dir, "notice")
        log = os.path.join(self.dir, "termination-log")
        for early in (False, True):  # the file appears while the command runs, or is there already
            with open(log, "w"):
                pass
            process = self.begin(
                "--preempt-file", notice, "--termination-log", log, "--", "sh", "-c", "echo ready; exec sleep 1000"
            )
            if not early:
                process.stdout.readline()
                with open(os.path.join(self.dir, "other"), "w"):
                    pass
                with open(notice, "w"):
                    pass
            self.assertEqual(self.code(process), 143)
            with open(log) as file:
                self.assertEqual(json.load(file)["reason"], f"preempted: {notice} appeared")

    def test_the_signal_that_follows_does_not_kill(self):
        notice = os.path.join(self.dir, "notice")
        process = self.begin("--preempt-file", notice, "--shutdown-timeout", "100000", "--", *self.script(LISTENER))
        process.stdout.readline()
        os.symlink("nowhere", notice + ".new")
        os.symlink("/", notice)
        self.assertEqual(process.stdout.readline(), "15\n")
        process.terminate()  # the pod's own SIGTERM: the command goes on with its checkpoint
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.stdout.readline(), f"{int(signal.SIGUSR1)}\n")
        process.terminate()
        self.assertEqual(self.code(process), 143)

    def test_a_folder_that_is_not_there(self):
        done = self.run_exec("--preempt-file", os.path.join(self.dir, "no", "notice"), "--", "true")
        self.assertEqual(done.returncode, 78)
        self.assertIn("must be there at the start", done.stderr)


if __name__ == "__main__":
    main()
