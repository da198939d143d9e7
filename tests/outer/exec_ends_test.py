# SPDX-License-Identifier: Apache-2.0
"""How `muster exec` ends: the termination message, and the policies that decide on a restart."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest

from exec_case import ExecCase
from muster_case import DEADLINE, MUSTER, PYTHON, clean, main, open_to_all


class TerminationMessages(ExecCase):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.dir, "termination-log")
        with open(self.path, "w"):
            pass

    def left(self):
        with open(self.path) as file:
            text = file.read()
        self.assertLessEqual(len(text.encode()), 4096)
        return json.loads(text)

    def ended(self, *command, flags=(), **more):
        return self.run_exec("--termination-log", self.path, *flags, "--", *command, **more).returncode

    def test_one_message_per_class(self):
        number = os.stat(self.path).st_ino
        for script, code, name in (
            ("exit 0", 0, "success"),
            ("exit 3", 3, "fatal"),
            ("kill -KILL $$", 137, "retryable"),
        ):
            self.assertEqual(self.ended("sh", "-c", script), code)
            message = self.left()
            self.assertEqual((message["exit_code"], message["class"]), (code, name))
            self.assertEqual("cause" in message, code != 0)
        self.assertEqual(message["cause"]["signal"], "SIGKILL")
        self.assertEqual(os.stat(self.path).st_ino, number, "written in place")

    def test_what_a_worker_says_whatever_the_bytes(self):
        script = r"""printf 'quote " backslash \\ tab\t bell\a null\0 bad\377\376 end\n' >&2; exit 3"""
        self.assertEqual(self.ended("sh", "-c", script), 3)
        (line,) = self.left()["cause"]["stderr_tail"]
        self.assertTrue(line.startswith('quote " backslash \\ tab\t bell\x07 null\0 bad'), line)
        self.assertTrue(line.endswith(" end"), line)
        long = "import sys; sys.stderr.write((chr(0x1F525) * 400 + chr(10)) * 20); sys.exit(3)"
        self.assertEqual(self.ended(PYTHON, "-c", long), 3)
        self.assertTrue(self.left()["truncated"])

    def test_work_after_the_last_checkpoint_is_not_kept(self):
        saved = os.path.join(self.dir, "saved", "here")
        again = os.path.join(self.dir, "again")
        script = f"echo works; echo 1 > {saved}/model; sleep 0.3; [ -e {again} ] || {{ echo > {again}; exit 3; }}"
        flags = ("--max-restarts", "1", "--restart-policy", "on-failure", "--checkpoint-dir", saved)
        self.assertEqual(self.ended("sh", "-c", script, flags=flags), 0)
        seconds = self.left()["seconds"]
        self.assertGreater(seconds["redone"], 0.1, seconds)
        self.assertGreater(seconds["training"], 0.1, seconds)
        os.remove(again)
        self.assertEqual(self.ended("sh", "-c", script, flags=flags[:4]), 0)
        self.assertEqual(self.left()["seconds"]["redone"], 0)
        done = self.run_exec("--checkpoint-dir", "/proc/self/none", "--", "true")
        self.assertEqual(done.returncode, 78)
        self.assertIn("--checkpoint-dir /proc/self/none: cannot watch the folder", done.stderr)

    def test_a_code_is_not_a_signal(self):
        for script, how, signal_name in (
            ("exit 137", "ended with exit code 137 (128 + SIGKILL);", None),
            ("kill -KILL $$", "was killed by SIGKILL;", "SIGKILL"),
        ):
            self.assertEqual(self.ended("sh", "-c", script), 137)
            message = self.left()
            self.assertIn(how, message["reason"])
            self.assertEqual(message["cause"].get("signal"), signal_name)

    def test_the_reason_is_the_line_that_explains_the_end(self):
        aborts = (
            "import faulthandler, os, sys, _json; faulthandler.enable(); print('loss is nan', file=sys.stderr, "
            "flush=True); os.abort()"
        )
        hydra = (
            r"""printf 'Traceback (most recent call last):\n  File "t.py", line 3, in main\nValueError: bad batch\n\n"""
            r"""Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n' >&2; exit 1"""
        )
        warns = "import os, sys, warnings; warnings.warn('the cache is cold'); sys.stderr.flush(); os._exit(3)"
        killed = "echo step 100 >&2; kill -KILL $$"
        for command, code, why in (
            ((PYTHON, "-c", aborts), 134, "(stderr: Fatal Python error: Aborted)"),
            (("sh", "-c", hydra), 1, "(stderr: ValueError: bad batch)"),
            (("sh", "-c", killed), 137, None),
            ((PYTHON, "-c", warns), 3, None),
        ):
            self.assertEqual(self.ended(*command), code)
            reason = self.left()["reason"]
            if why:
                self.assertIn(why, reason)
            else:
                self.assertNotIn("stderr", reason)

    def test_the_agent_inside_knows_more(self):
        script = (
            f"'{MUSTER}' run --standalone --nproc-per-node 2 --no-python sh -c 'test $RANK = 0 || exit 5; sleep 1000'"
        )
        environment = clean(MUSTER_TERMINATION_LOG=self.path)
        self.assertEqual(self.run_exec("--", "sh", "-c", script, env=environment).returncode, 5)
        self.assertEqual(self.left()["cause"]["rank"], 1)

    def inside(self, worker, *flags):
        """The words of a shell command that runs Muster's torchrun, whose worker is the script `worker`."""
        return shlex.join(
            [MUSTER, "run", "--standalone", "--restart-policy", "on-failure", "--no-python", *flags, "sh", "-c", worker]
        )

    def test_a_success_of_the_run_inside_is_told_whole(self):
        """The message has its rank, the restarts that it used and the last failure, which a controller counts."""
        run = self.inside(
            "test $TORCHELASTIC_RESTART_COUNT = 2 || exit $((3 + TORCHELASTIC_RESTART_COUNT))", "--max-restarts", "5"
        )
        for command, flags in (
            (run, ()),
            (run + "; true", ()),
            (shlex.join([MUSTER, "exec", "--", "sh", "-c", run]), ()),
        ):
            with self.subTest(command=command):
                self.assertEqual(self.ended("sh", "-c", command, flags=flags), 0)
                left = self.left()
                self.assertEqual(
                    [
                        left[key]
                        for key in (
                            "exit_code",
                            "class",
                            "reason",
                            "node_rank",
                            "round",
                            "restart_count",
                            "max_restarts",
                        )
                    ],
                    [0, "success", "all workers succeeded", 0, 2, 2, 5],
                )
                self.assertEqual((left["cause"]["exit_code"], left["cause"]["rank"]), (4, 0))

    def test_a_failure_inside_that_the_command_hides(self):
        fails, succeeds = self.inside("exit 5"), self.inside("true")
        once = os.path.join(self.dir, "once")
        second = self.inside(f"test -e {once} || {{ touch {once}; exit 5; }}")
        for command, code, inner, caused, warned in (
            (f"{fails} | cat", 0, 5, 5, True),
            (f"{fails}; true", 0, 5, 5, True),
            (shlex.join([MUSTER, "exec", "--", "sh", "-c", f"{fails} | cat"]), 0, 5, 5, True),
            (f"{fails} || exit 9", 9, 5, 5, False),
            (f"{succeeds} && exit 9", 9, 0, 9, False),
            (f"{succeeds}; {fails}; true", 0, 5, 5, True),
            (f"{fails}; {succeeds}", 0, None, None, False),  # the last run decides
            (f"until {second}; do :; done", 0, None, None, False),
            (fails, 5, None, 5, False),
        ):
            with self.subTest(command=command):
                done = self.run_exec("--termination-log", self.path, "--", "sh", "-c", command)
                self.assertEqual(done.returncode, code, done.stderr)
                left = self.left()
                self.assertEqual(
                    (left["exit_code"], left.get("inner_exit_code"), left.get("cause", {}).get("exit_code")),
                    (code, inner, caused),
                )
                self.assertEqual(
                    done.stderr.count("the command ended with 0, but the run inside it with exit code 5"),
                    warned,
                    done.stderr,
                )
                self.assertEqual("exit code 5" in left["reason"], caused == 5)
                self.assertEqual((left["node_rank"], left["round"]), (0, 0))

    def test_the_command_has_no_rank(self):
        done = self.run_exec("--termination-log", self.path, "--", "sh", "-c", "exit 3")
        self.assertIn("the command ended with exit code 3", done.stderr)
        self.assertNotIn("rank", done.stderr)
        self.assertNotIn("rank", self.left()["cause"])
        done = self.run_exec("--termination-log", self.path, "--", "sh", "-c", self.inside("exit 3"))
        self.assertEqual(len(re.findall(r" E muster ", done.stderr)), 1, "the run inside has said it: " + done.stderr)

    def test_an_earlier_round_of_the_command_is_forgotten(self):
        once = os.path.join(self.dir, "once")
        command = f"test -e {once} && exit 0; touch {once}; " + self.inside("exit 5")
        self.assertEqual(
            self.ended("sh", "-c", command, flags=("--max-restarts", "1", "--restart-policy", "on-failure")), 0
        )
        left = self.left()
        self.assertEqual(
            (left["reason"], left["restart_count"], left.get("inner_exit_code")), ("all workers succeeded", 1, None)
        )
        self.assertEqual(left["cause"]["exit_code"], 5)

    def test_a_real_torchrun_inside_says_nothing(self):
        """After a hand-over the failure is the command's; an earlier run's message is not taken for the torchrun's."""
        folder = os.path.join(self.dir, "bin")
        os.mkdir(folder)
        real = os.path.join(folder, "torchrun")
        with open(real, "w") as file:
            file.write("#!/bin/sh\nexit 6\n")
        os.chmod(real, 0o755)
        command = f"{self.inside('exit 5')}; '{MUSTER}' run --rdzv-backend=etcd x.py"
        self.assertEqual(self.ended("sh", "-c", command, env=clean(PATH=f"{folder}:{os.environ['PATH']}")), 6)
        left = self.left()
        self.assertEqual((left["exit_code"], left["cause"]["exit_code"], left.get("inner_exit_code")), (6, 6, None))

    def test_the_commands_own_text(self):
        script = f"printf 'the result' > {self.path}"
        self.assertEqual(self.ended("sh", "-c", script), 0)
        with open(self.path) as file:
            self.assertEqual(file.read(), "the result")
        self.assertEqual(self.ended("sh", "-c", script + "; exit 9"), 9)
        self.assertEqual(self.left()["cause"]["error_message"], "the result")

    def test_told_to_go(self):
        process = self.begin("--termination-log", self.path, "--", "sh", "-c", "echo ready; exec sleep 1000")
        process.stdout.readline()
        process.terminate()
        self.assertEqual(self.code(process), 143)
        self.assertEqual((self.left()["class"], self.left()["reason"]), ("retryable", "preempted: SIGTERM"))

    def test_ends_before_there_is_a_command(self):
        self.assertEqual(self.ended("no-such-command"), 127)
        self.assertIn("no-such-command", self.left()["cause"]["error_message"])
        done = self.run_exec("--max-restarts", "x", "--", "true", env=clean(MUSTER_TERMINATION_LOG=self.path))
        self.assertEqual(done.returncode, 64)
        self.assertIn("--max-restarts=x", self.left()["reason"])

    def test_a_wrong_flag_is_told_where_another_flag_says(self):
        log = ("--termination-log", self.path)
        for flags, words in (
            ((*log, "--max-restarts", "x"), "--max-restarts=x"),
            ((*log, "--no-such-flag"), "--no-such-flag"),
            (("--no-such-flag", *log), "--no-such-flag"),
            (("--no-such-flag", "x", *log), "--no-such-flag"),
            (("-Z", "--nnodes", *log), "unknown flag -Z"),
            (("--wire=x", "--termination_log=" + self.path), "--wire=x"),
            (log, "command is missing"),
        ):
            open(self.path, "w").close()
            command = [] if flags == log else ["--", "true", "--termination-log", "/nowhere"]
            self.assertEqual(
                self.run_exec(*flags, *command, env=clean(MUSTER_TERMINATION_LOG="/dev/full")).returncode, 64
            )
            self.assertIn(words, self.left()["reason"])

    def test_a_stderr_that_takes_nothing_changes_no_end(self):
        for closed in (False, True):
            for flags, code in ((("--no-such-flag", "--", "true"), 64), (("--", "no-such-command"), 127)):
                open(self.path, "w").close()
                script = 'exec "$@" 2>&-' if closed else 'exec "$@" 2>/dev/full'
                command = ["sh", "-c", script, "sh", MUSTER, "exec", "--termination-log", self.path, *flags]
                self.assertEqual(subprocess.run(command, env=clean(), timeout=DEADLINE).returncode, code, script)
                self.assertEqual(self.left()["exit_code"], code)

    def test_places_that_cannot_be_written(self):
        missing = os.path.join(self.dir, "missing")
        done = self.run_exec("--termination-log", missing, "--", "sh", "-c", "exit 3")
        self.assertEqual((done.returncode, os.path.exists(missing), done.stderr.count("\n")), (3, False, 1))
        for path in (self.dir, "/dev/full"):
            done = self.run_exec("--termination-log", path, "--", "sh", "-c", "exit 3")
            self.assertEqual(done.returncode, 3)
            self.assertIn(path, done.stderr)
        done = self.run_exec("--termination-log", "", "--", "sh", "-c", "exit 3")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1))

    def unwritable(self, why, code, **more):
        done = self.run_exec("--", "sh", "-c", f"exit {code}", env=clean(MUSTER_TERMINATION_LOG=self.path), **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(
            done.stderr, rf"cannot write the termination message \(the exit code still holds\): {self.path}: {why}"
        )

    @unittest.skipUnless(os.geteuid() == 0, "SKIPPED: to be somebody else takes root")
    def test_a_file_that_this_user_may_not_write(self):
        (muster,) = open_to_all(self.dir, MUSTER)
        os.chmod(self.path, 0o444)
        for code in (0, 3, 137):
            self.unwritable(
                "Permission denied", code, muster=muster, user=65534, group=65534, extra_groups=[], cwd=self.dir
            )
        self.assertEqual(os.path.getsize(self.path), 0)

    def test_a_file_that_is_mounted_read_only(self):
        mounted = subprocess.run(["mount", "--bind", "-o", "ro", self.path, self.path], capture_output=True)
        if mounted.returncode:
            self.skipTest("SKIPPED: nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", self.path], check=True)
        for code in (0, 3, 137):
            self.unwritable("Read-only file system", code)


class Policies(ExecCase):
    def counted(self, *flags, code):
        """(how often a command that ends with `code` is started, the code that exec ends with)."""
        with tempfile.NamedTemporaryFile("r", dir=self.dir) as starts:
            done = self.run_exec(*flags, "--", "sh", "-c", f"echo >> {starts.name}; exit {code}")
            return len(starts.read()), done.returncode

    def test_policy_and_code_decide_on_a_restart(self):
        for flags, code, expected in (
            ([], 130, (1, 130)),
            (["--max-restarts", "2"], 3, (1, 3)),  # fatal
            (["--max-restarts", "2"], 130, (3, 130)),
            (["--max-restarts", "2", "--retry-codes", "3"], 3, (3, 3)),
            (["--max-restarts", "2", "--fatal-codes", "130-139"], 130, (1, 130)),
            (["--max-restarts", "2", "--restart-policy", "on-failure"], 3, (3, 3)),
            (["--max-restarts", "2", "--restart-policy", "never"], 130, (1, 130)),
            (["--max-restarts", "2", "--restart-policy", "always"], 0, (3, 0)),
            (["--max-restarts", "9", "--no-progress-limit", "2", "--restart-policy", "on-failure"], 3, (4, 93)),
        ):
            starts, ended = self.counted(*flags, code=code)
            if "--no-progress-limit" in flags:  # a run may live longer by chance
                self.assertEqual(ended, 93)
                continue
            self.assertEqual((starts, ended), expected, flags)

    def test_a_torchrun_inside_is_muster(self):
        folder = os.path.join(self.dir, "bin")
        os.mkdir(folder)
        binary = os.path.join(folder, "muster")
        os.link(MUSTER, binary) if os.stat(MUSTER).st_dev == os.stat(folder).st_dev else os.symlink(MUSTER, binary)
        os.symlink("muster", os.path.join(folder, "torchrun"))
        if os.path.islink(binary):
            self.skipTest("SKIPPED: the build and the temporary folder are on different file systems")
        done = subprocess.run(
            [binary, "exec", "--", "sh", "-c", "torchrun --max-restarts 2 --no-python sh -c 'exit 3'"],
            capture_output=True,
            text=True,
            env=clean(),
            timeout=DEADLINE,
        )
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("which is fatal", done.stderr)  # exec's default policy is exit-code

    def test_a_flag_inside_overrules_nobody(self):
        inner = f"'{MUSTER}' run --restart-policy on-failure --http-port 127.0.0.1:0 --no-python true"
        done = self.run_exec("--http-port", "127.0.0.1:0", "--", "sh", "-c", inner)
        self.assertEqual((done.returncode, "win over" in done.stderr), (0, False), done.stderr)
        done = self.run_exec("--", "sh", "-c", inner, env=clean(MUSTER_RESTART_POLICY="never"))
        self.assertIn("--restart-policy=on-failure over MUSTER_RESTART_POLICY=never", done.stderr)

    def test_wired_as_torch(self):
        flags = ("--wire=torch", "--nproc-per-node", "2", "--", "sh", "-c")
        self.assertEqual(sorted(self.run_exec(*flags, "echo $RANK/$WORLD_SIZE").stdout.split()), ["0/2", "1/2"])
        done = self.run_exec(*flags, "exit 3")
        self.assertEqual(done.returncode, 3)
        self.assertIn("which is fatal", done.stderr)

    def test_wired_as_torch_by_environment(self):
        done = self.run_exec(
            "--",
            "sh",
            "-c",
            "echo $RANK/$WORLD_SIZE",
            env=clean(MUSTER_WIRE="torch", PET_NPROC_PER_NODE="3", PET_NNODES="1", PET_NODE_RANK="0"),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split()), ["0/3", "1/3", "2/3"])

    def test_a_torchrun_wired_as_torch_is_not_started_many_times(self):
        _, script = self.script("import os; os.write(1, '{RANK} of {WORLD_SIZE}\\n'.format(**os.environ).encode())")
        for torchrun in (
            ["torchrun"],
            ["/no/bin/torchrun"],
            [PYTHON, "-m", "torch.distributed.run"],
            ["python3", "-m", "torch.distributed.launch"],
        ):
            with self.subTest(torchrun=torchrun):
                done = self.run_exec("--", *torchrun, "--nproc-per-node", "2", script, env=clean(MUSTER_WIRE="torch"))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(sorted(done.stdout.splitlines()), ["0 of 2", "1 of 2"])
        done = self.run_exec("--wire=torch", "--nodes-on-this-machine", "2", "--", "torchrun", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(line.split("] ")[1] for line in done.stdout.splitlines()), ["0 of 2", "1 of 2"])

    def test_pods_find_each_other_by_trainers_variables(self):
        pod = clean(
            TRAINER_NNODES="2", TRAINER_NPROC_PER_NODE="2", TRAINER_NODE_0_HOSTNAME="localhost", TRAINER_JOB_ID="uid"
        )
        port = str(self.free_port())  # another process of this machine may have 29500
        pods = [
            self.begin(
                "--wire=torch",
                "--master-port",
                port,
                "--",
                "sh",
                "-c",
                "echo $RANK/$WORLD_SIZE $TORCHELASTIC_RUN_ID",
                env={**pod, "JOB_COMPLETION_INDEX": str(index)},
            )
            for index in (1, 0)
        ]
        said = [process.communicate(timeout=DEADLINE) for process in pods]
        self.assertEqual([process.returncode for process in pods], [0, 0], said)
        self.assertEqual(
            [sorted(out.splitlines()) for out, _ in said], [["2/4 uid", "3/4 uid"], ["0/4 uid", "1/4 uid"]]
        )

    def test_what_a_failure_said_of_itself(self):
        told = (
            'printf \'{"message": "ValueError: batch size 0"}\' > "$TORCHELASTIC_ERROR_FILE"; '
            "echo elsewhere >&2; exit 9"
        )
        where = os.path.join(self.dir, "error.json")
        for command, env, words in (
            ("echo first >&2; echo no such table >&2; exit 9", {}, "(stderr: no such table)"),
            (told, {"TORCHELASTIC_ERROR_FILE": where}, "(ValueError: batch size 0)"),
        ):
            path = os.path.join(self.dir, "message")
            open(path, "w").close()
            done = self.run_exec("--termination-log", path, "--", "sh", "-c", command, env=clean(**env))
            self.assertEqual(done.returncode, 9, done.stderr)
            self.assertIn(f"ended with exit code 9 {words}, which is fatal", done.stderr)
            with open(path) as file:
                self.assertIn(f"ended with exit code 9 {words}", json.load(file)["reason"])

    def test_heartbeats_where_progress_counts(self):
        for flags, there in ((["--no-progress-limit", "2"], True), ([], False)):
            done = self.run_exec("--log-dir", self.dir, *flags, "--", "sh", "-c", "echo at=$MUSTER_HEARTBEAT_FILE")
            self.assertEqual(done.stdout.startswith("at=/"), there, done.stdout)

    def test_wired_as_jax_and_xgboost(self):
        alone = clean(PET_NNODES="1", PET_MASTER_ADDR="n0")
        done = self.run_exec("--wire=jax", "--", "sh", "-c", "echo $JAX_NUM_PROCESSES", env=alone)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "\n", ""))
        done = self.run_exec(
            "--wire=xgboost",
            "--nproc-per-node",
            "2",
            "--",
            "sh",
            "-c",
            "echo $DMLC_TASK_ID/$DMLC_NUM_WORKER",
            env=alone,
        )
        self.assertEqual((done.returncode, sorted(done.stdout.split()), done.stderr), (0, ["0/2", "1/2"], ""))
        self.assertEqual(self.run_exec("--wire=jax", "--", "true", env=clean(PET_NNODES="2")).returncode, 64)


if __name__ == "__main__":
    main()
