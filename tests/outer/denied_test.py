# SPDX-License-Identifier: Apache-2.0
"""A kernel or seccomp profile lacks a system call (ENOSYS or EPERM): a fall-back, or an error that names the call."""

import errno
import fcntl
import os
import signal
import subprocess
import unittest

from exec_case import ExecCase
from muster_case import DEADLINE, MUSTER, PYTHON, clean, main, sanitized

from class_runner import not_emulated

DENY = os.environ.get("MUSTER_DENY", os.path.join(os.path.dirname(MUSTER), "muster_deny"))
BOTH = (errno.ENOSYS, errno.EPERM)
EXEC = ("exec", "--termination-log", "", "--", "sh", "-c", "echo ran")
RUN = ("run", "--standalone", "--nproc-per-node", "2", "--tee", "3", "--no-python", "sh", "-c", "echo ran")
NODES = ("run", "--nodes-on-this-machine", "2", "--no-python", "sh", "-c", "echo ran")


@not_emulated("qemu has no seccomp")
class SystemCalls(ExecCase):
    def denied(self, calls, number, *arguments):
        return subprocess.run(
            [DENY, calls, str(number), MUSTER, *arguments],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=clean(),
            stdin=subprocess.DEVNULL,
            cwd=self.dir,
        )

    def test_what_is_done_without(self):
        for calls, commands in (
            ("pidfd_open", (EXEC, RUN, NODES)),
            ("faccessat2", (EXEC, RUN)),
            ("close_range", (EXEC,)),
            ("getrandom,memfd_create,statx,renameat2,copy_file_range,openat2,io_uring_setup", (RUN,)),
            ("eventfd2,timerfd_create", (RUN, NODES)),
            # A sanitizer ends the process if it cannot make these calls itself.
            ("inotify_init1" if sanitized() else "sched_getaffinity,sched_setaffinity,prlimit64,inotify_init1", (RUN,)),
            ("waitid", (EXEC,)),
        ):
            for number in BOTH:
                for command in commands:
                    with self.subTest(calls=calls, error=errno.errorcode[number], command=command[0:2]):
                        done = self.denied(calls, number, *command)
                        self.assertEqual(
                            (done.returncode, done.stdout.count("ran")), (0, 1 if command is EXEC else 2), done.stderr
                        )
                        for word in (" W ", " E "):
                            self.assertNotIn(word, done.stderr)

    def test_all_that_linux_3_10_has_not(self):
        for command in (EXEC, RUN, NODES):
            with self.subTest(command=command[0:2]):
                done = self.denied("since-3.11", errno.ENOSYS, *command)
                self.assertEqual(
                    (done.returncode, done.stdout.count("ran")), (0, 1 if command is EXEC else 2), done.stderr
                )
                self.assertNotIn(" W ", done.stderr)

    def test_what_is_not_told_of_ended_processes_is_looked_for(self):
        for number in BOTH:
            done = self.denied("signalfd4,pidfd_open", number, *RUN)
            self.assertEqual((done.returncode, done.stdout.count("ran")), (0, 2), done.stderr)
            self.assertIn("watching for ended processes: signalfd: ", done.stderr)

    def test_no_thread(self):
        """glibc falls back to clone only on ENOSYS. A plain command runs without threads."""
        for command in (EXEC, RUN, NODES):
            self.assertEqual(self.denied("clone3", errno.ENOSYS, *command).returncode, 0)
        done = self.denied("clone3", errno.EPERM, *EXEC)
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        for command, code in (
            (RUN, 204),
            (NODES, 78),
            (("check",), 78),
            (("coordinator", "--listen", "127.0.0.1:0"), 78),
        ):
            with self.subTest(command=command[0:2]):
                done = self.denied("clone3", errno.EPERM, *command)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(
                    "clone3: Operation not permitted; a seccomp profile that does not know clone3", done.stderr
                )

    def test_an_error_names_the_call(self):
        for calls, says in (("prctl", "prctl(PR_SET_PDEATHSIG): "), ("setsid", "setsid: "), ("epoll_create1", "epoll")):
            for number in BOTH:
                with self.subTest(calls=calls, error=errno.errorcode[number]):
                    done = self.denied(calls, number, *RUN)
                    self.assertEqual(done.returncode, 78, done.stderr)
                    self.assertIn(says, done.stderr)

    def test_descriptors_are_closed_all_the_same(self):
        """torchrun's workers do not inherit a descriptor that the agent was given without close-on-exec."""
        leak = fcntl.fcntl(0, fcntl.F_DUPFD, 50)
        self.addCleanup(os.close, leak)
        code = f"import os; print('{leak}' in os.listdir('/proc/self/fd'))"
        for number in BOTH:
            done = subprocess.run(
                [DENY, "close_range", str(number), MUSTER, "run", "--standalone", "--no-python", PYTHON, "-c", code],
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                env=clean(),
                pass_fds=[leak],
            )
            self.assertEqual(done.stdout, "False\n", done.stderr)


class Permissions(ExecCase):
    @unittest.skipIf(os.geteuid() != 0, "needs root, to have a process of another user")
    def test_a_command_of_another_user_cannot_be_signalled(self):
        """Root without CAP_KILL may not signal the processes of other users."""
        agent = self.begin(
            "--shutdown-timeout",
            "0",
            "--",
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "sh",
            "-c",
            "echo $$; exec sleep 1000",
            prefix=("setpriv", "--bounding-set=-kill", "--inh-caps=-kill"),
        )
        pid = int(agent.stdout.readline())
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(self.code(agent), 143)
        said = agent.stderr.read()
        self.assertIn(
            f"SIGTERM cannot be sent to the worker with local rank 0: process {pid} belongs to user 65534, and muster "
            "runs as user 0 (EPERM)",
            said,
        )
        self.assertIn(f"are left running, SIGKILL cannot be sent to them: process {pid} belongs to user 65534", said)
        self.assertNotIn("stuck in the kernel", said)


if __name__ == "__main__":
    main()
