# SPDX-License-Identifier: Apache-2.0
"""`muster run` on one node: exit codes, environment, logs, restarts, signals, no process left behind."""

import json
import os
import re
import signal
import subprocess

from muster_case import DEADLINE, MUSTER, MusterCase, alive, clean, main, wait_gone


class ExitCodes(MusterCase):
    def run_command(self, *arguments):
        agent = self.start(*arguments, worker=False)
        return agent.wait(), agent.output()

    def test_success_is_silent(self):
        code, output = self.run_command("--standalone", "--no-python", "/bin/true")
        self.assertEqual((code, output), (0, ""))

    def test_omp_warning_is_said(self):
        arguments = ("--standalone", "--nproc-per-node", "2", "--tee", "1", "--no-python", "/bin/echo", "hi")
        code, output = self.run_command(*arguments)
        self.assertEqual(code, 0)
        stars, said, end = output.splitlines()[:3]
        self.assertEqual((stars, end), ("*" * 41, "*" * 41))
        self.assertIn("OMP_NUM_THREADS", said)
        code, output = self.run_command("--log-format", "json", *arguments)
        self.assertEqual(code, 0)
        lines = [json.loads(line) for line in output.splitlines() if not line.startswith("[default")]
        self.assertIn("OMP_NUM_THREADS", lines[0]["message"])
        self.assertEqual(lines[0]["level"], "warning")

    def test_code_of_the_worker_is_kept(self):
        for code in (1, 3, 93, 255):
            got, output = self.run_command("--standalone", "--no-python", "/bin/sh", "-c", f"exit {code}")
            self.assertEqual(got, code)
            self.assertIn("FAILED", output)

    def test_death_by_signal_is_128_plus_n(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
            got, output = self.run_command(
                "--standalone", "--no-python", "/bin/sh", "-c", f"kill -{int(number)} $$$$"
            )  # the launcher makes $$ a $
            self.assertEqual(got, 128 + number)
            self.assertIn(number.name, output)

    def test_script_not_found_is_127(self):
        for arguments in (
            ["no-such-script.py"],
            ["--no-python", "/no/such/command"],
            ["--no-python", "no-such-command"],
        ):
            code, output = self.run_command("--standalone", *arguments)
            self.assertEqual(code, 127, output)
            self.assertIn(arguments[-1], output)

    def test_a_start_that_cannot_succeed_is_not_tried_again(self):
        """One line before other nodes are waited for; an error of the start itself costs no restart either."""
        loader = os.path.join(self.dir, "program")
        with open(loader, "w") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(loader, 0o755)
        for arguments, env, code, said in (
            (["--no-python", "no-such-command"], {}, 127, "'no-such-command' was not found in PATH"),
            (["--numa-binding", "node", "x.py"], {"PATH": "/nowhere"}, 127, "numactl is not on PATH"),
            (
                ["--virtual-local-rank", "--nproc-per-node", "2", "x.py"],
                {"CUDA_VISIBLE_DEVICES": "4"},
                78,
                "CUDA_VISIBLE_DEVICES=4 names 1 device, none for local rank 1",
            ),
            (["--no-python", loader], {}, 127, "the interpreter it names"),
        ):
            with self.subTest(arguments=arguments):
                open(os.path.join(self.dir, "x.py"), "w").close()
                agent = self.start("--standalone", "--max-restarts", "3", *arguments, worker=False, env=env)
                self.assertEqual(agent.wait(), code, agent.output())
                self.assertIn(said, agent.output())
                self.assertNotRegex(agent.output(), r"restart 1|pid: 0")
                if arguments[-1] != loader:
                    self.assertEqual(len(agent.output().splitlines()), 1, agent.output())

    def test_a_reason_is_said_once(self):
        code, output = self.run_command("--standalone", "--no-python", "/bin/sh", "-c", "exit 5")
        self.assertEqual(code, 5)
        self.assertEqual(output.count("no restarts are allowed"), 1, output)

    def test_not_executable_is_126(self):
        path = os.path.join(self.dir, "plain.txt")
        with open(path, "w") as file:
            file.write("text\n")
        code, output = self.run_command("--standalone", "--no-python", path)
        self.assertEqual(code, 126, output)
        self.assertIn(path, output)

    def test_wrong_usage_is_64_and_names_the_value(self):
        for arguments, name in (
            (["--nnodes", "x", "s.py"], "--nnodes=x:"),
            (["--nproc-per-node", "0", "s.py"], "--nproc-per-node=0:"),
            (["--nproc-per-node", "-2", "s.py"], "--nproc-per-node=-2:"),
            (["--max-restarts", "many", "s.py"], "--max-restarts=many:"),
            (["--no-such-flag", "s.py"], "--no-such-flag"),
            ([], "training_script"),
        ):
            code, output = self.run_command(*arguments)
            self.assertEqual(code, 64, (arguments, output))
            self.assertIn(name, output)

    def test_bad_pet_value_names_the_variable(self):
        agent = self.start("--no-python", "/bin/true", worker=False, env={"PET_MAX_RESTARTS": "lots"})
        self.assertEqual(agent.wait(), 64)
        self.assertIn("lots", agent.output())


class Environment(MusterCase):
    def test_flags_that_contradict_variables_are_said_once(self):
        pet = {"PET_NPROC_PER_NODE": "3", "PET_MASTER_PORT": "abc", "PET_ROLE": "same"}
        flags = ("--nproc-per-node", "1", "--master-port", str(self.free_port()), "--role", "same")
        for simulated in ((), ("--nodes-on-this-machine", "2")):
            with self.subTest(simulated=simulated):
                agent = self.start(*flags, *simulated, env={**pet, "MUSTER_NODE": "here"} if simulated else pet)
                for worker in self.workers(2 if simulated else 1):
                    worker.tell("exit 0")
                self.assertEqual(agent.wait(), 0)
                (line,) = [line for line in agent.output().splitlines() if "flags win" in line]
                self.assertIn("--nproc-per-node=1 over PET_NPROC_PER_NODE=3", line)
                self.assertRegex(line, r"--master-port=\d+ over PET_MASTER_PORT=abc")
                self.assertNotIn("same", line)

    def test_worker_environment(self):
        agent = self.start(
            "--standalone",
            "--nproc-per-node",
            "2",
            "--max-restarts",
            "4",
            "--role",
            "trainer",
            script_args=["--epochs", "3"],
        )
        workers = self.workers(2)
        for rank, worker in enumerate(workers):
            env = worker.env
            self.assertEqual(worker.hello["argv"][1:], ["--epochs", "3"])
            expected = dict(
                LOCAL_RANK=rank,
                RANK=rank,
                GROUP_RANK=0,
                ROLE_RANK=rank,
                ROLE_NAME="trainer",
                LOCAL_WORLD_SIZE=2,
                WORLD_SIZE=2,
                GROUP_WORLD_SIZE=1,
                ROLE_WORLD_SIZE=2,
                TORCHELASTIC_RESTART_COUNT=0,
                TORCHELASTIC_MAX_RESTARTS=4,
                TORCHELASTIC_USE_AGENT_STORE="True",
                OMP_NUM_THREADS=1,
                MUSTER_ROUND=0,
            )
            self.assertEqual({key: env.get(key) for key in expected}, {k: str(v) for k, v in expected.items()})
            self.assertTrue(env["TORCHELASTIC_ERROR_FILE"].endswith(f"/{rank}/error.json"))
            self.assertEqual(env["MASTER_ADDR"], "127.0.0.1")
            self.assertEqual(worker.hello["pgid"], worker.pid)
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_pet_variables(self):
        agent = self.start(env={"PET_NPROC_PER_NODE": "2", "PET_STANDALONE": "1"})
        for worker in self.workers(2):
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_static_keeps_the_master_port(self):
        port = self.free_port()
        agent = self.start("--master-port", str(port))
        (worker,) = self.workers(1)
        self.assertEqual(worker.env["MASTER_PORT"], str(port))
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_called_as_torchrun(self):
        link = os.path.join(self.dir, "torchrun")
        os.symlink(os.path.abspath(MUSTER), link)
        done = subprocess.run(
            [link, "--standalone", "--no-python", "/bin/sh", "-c", "exit 7"],
            capture_output=True,
            env=clean(),
            timeout=DEADLINE,
        )
        self.assertEqual(done.returncode, 7)


class Logs(MusterCase):
    def test_redirect_tee_and_prefix(self):
        logs = os.path.join(self.dir, "logs")
        agent = self.start("--standalone", "--nproc-per-node", "2", "--log-dir", logs, "-t", "3", "--rdzv-id", "x")
        for worker in self.workers(2):
            worker.ask(f"print out of {worker.rank}")
            worker.ask(f"error err of {worker.rank}")
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)
        attempts = self.attempts(logs)
        self.assertEqual(len(attempts), 1)
        (folder,) = attempts
        for rank in range(2):
            with open(os.path.join(logs, folder, str(rank), "stdout.log")) as file:
                self.assertEqual(file.read(), f"out of {rank}\n")
            with open(os.path.join(logs, folder, str(rank), "stderr.log")) as file:
                self.assertEqual(file.read(), f"err of {rank}\n")
            self.assertIn(f"[default{rank}]:out of {rank}\n", agent.output())
            self.assertIn(f"[default{rank}]:err of {rank}\n", agent.output())

    def test_attempts_are_never_overwritten(self):
        logs = os.path.join(self.dir, "logs")
        arguments = ("--rdzv-id", "job", "--log-dir", logs, "-r", "3", "--no-python", "/bin/echo", "hi")
        for _ in range(2):
            agent = self.start(*arguments, worker=False, env={"PET_MASTER_PORT": str(self.free_port())})
            self.assertEqual(agent.wait(), 0, agent.output())
        self.assertEqual(sorted(self.attempts(logs)), ["job/attempt_0", "job/attempt_1"])

    def test_output_without_a_log_dir_is_kept(self):
        """The log says where it goes before the workers start; without output a success leaves nothing."""
        for flags, script, kept in (
            ((), "true", False),
            (("-r", "3"), "echo hi", True),
            (("-t", "0:1"), "echo hi", True),
            ((), "exit 3", True),
        ):
            with self.subTest(flags=flags, script=script):
                before = set(os.listdir(self.dir))
                agent = self.start("--standalone", *flags, "--no-python", "sh", "-c", script, worker=False)
                code = agent.wait()
                self.assertEqual(code, 3 if "exit" in script else 0)
                made = [name for name in set(os.listdir(self.dir)) - before if name.startswith("muster_")]
                self.assertEqual(len(made), 1 if kept else 0)
                if not kept:
                    self.assertEqual(agent.output(), "")
                    continue
                said = re.search(r"exit code 3\) logs=(\S+)\n$" if code else r"output goes to (\S+);", agent.output())[
                    1
                ]
                self.assertTrue(said.startswith(os.path.join(self.dir, made[0]) + "/"))
                self.assertIn("attempt.json", os.listdir(os.path.join(said, "attempt_0")))
                if code == 0:
                    with open(os.path.join(said, "attempt_0", "0", "stdout.log")) as file:
                        self.assertEqual(file.read(), "hi\n")

    def test_a_tmpdir_that_is_not_there(self):
        missing = os.path.join(self.dir, "missing")
        before = os.listdir(self.dir)
        agent = self.start(
            "--standalone",
            "--no-python",
            "sh",
            "-c",
            'echo "$MUSTER_HEARTBEAT_FILE and $TORCHELASTIC_ERROR_FILE"',
            worker=False,
            env={"TMPDIR": missing},
        )
        self.assertEqual(agent.wait(), 0, agent.output())
        self.assertRegex(agent.output(), r"(?m)^(/tmp/muster_\w{6}/\S+)/heartbeat and \1/error.json$")
        said = (
            f"cannot make a folder in TMPDIR ({missing}: No such file or directory): the files of this run go to /tmp\n"
        )
        self.assertEqual(agent.output().count(said), 1, agent.output())
        self.assertEqual(sorted(os.listdir(self.dir)), sorted([*before, "agent-0.txt"]))  # the current directory

    def test_a_refusal_leaves_no_folder(self):
        agent = self.start("--http-port", "192.0.2.1:0", "--no-python", "/bin/true", worker=False)
        self.assertEqual(agent.wait(), 78, agent.output())
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("muster_")], [])

    def test_no_run_id_leaves_the_log_dir(self):
        logs = os.path.join(self.dir, "deep", "logs")
        for run_id, folder in (("..", "__"), (".", "_"), ("a/../b", "a_.._b")):
            agent = self.start(
                "--rdzv-id",
                run_id,
                "--log-dir",
                logs,
                "--master-port",
                str(self.free_port()),
                "--no-python",
                "/bin/true",
                worker=False,
            )
            self.assertEqual(agent.wait(), 0, agent.output())
            self.assertIn("attempt_0", os.listdir(os.path.join(logs, folder)))
        self.assertEqual(os.listdir(os.path.dirname(logs)), ["logs"])

    def test_last_lines_of_stderr_reach_the_summary(self):
        agent = self.start("--standalone")
        (worker,) = self.workers(1)
        worker.ask("error the disk is on fire")
        worker.tell("exit 5")
        self.assertEqual(agent.wait(), 5)
        summary = agent.output()[agent.output().index("FAILED") :]
        self.assertIn("the disk is on fire", summary)

    def test_who_fails_while_the_others_are_stopped_is_named(self):
        ready = os.path.join(self.dir, "ready")
        script = f"""test $RANK = 1 || {{ until test -e '{ready}'; do sleep 0.05; done; exit 3; }}
                     trap 'exit 7' TERM; : > '{ready}'; sleep 1000 & wait"""
        agent = self.start("--standalone", "--nproc-per-node", "2", "--no-python", "sh", "-c", script, worker=False)
        self.assertEqual(agent.wait(), 3)
        summary = agent.output()[agent.output().index("FAILED") :]
        self.assertNotIn("NO_OTHER_FAILURES", summary)
        self.assertRegex(
            summary,
            r"rank +: 1 \(local_rank: 1\)\n +exitcode +: 7 (.*\n)+ +note +: "
            r"it failed when the workers were being stopped",
        )

    def test_error_file_reaches_the_summary(self):
        agent = self.start("--standalone")
        (worker,) = self.workers(1)
        worker.ask(
            'file $TORCHELASTIC_ERROR_FILE {"message": {"message": "ValueError: boom", "extraInfo": '
            '{"py_callstack": "Traceback of boom", "timestamp": "1700000000"}}}'
        )
        worker.tell("exit 1")
        self.assertEqual(agent.wait(), 1)
        self.assertIn("Traceback of boom", agent.output())


class Restarts(MusterCase):
    def test_a_job_ends_once_its_restarts_are_used_up(self):
        logs = os.path.join(self.dir, "logs")
        agent = self.start("--standalone", "--nproc-per-node", "2", "--max-restarts", "2", "--log-dir", logs)
        for attempt in range(3):
            workers = self.workers(2)
            self.assertEqual([w.restarts for w in workers], [attempt, attempt])
            self.assertEqual([w.round for w in workers], [attempt, attempt])
            workers[0].tell("print still here")
            workers[1].tell("exit 9")
        self.assertEqual(agent.wait(), 9)
        attempts = self.attempts(logs)
        self.assertEqual(len(attempts), 3)
        for record in attempts.values():
            self.assertEqual([w["exit_code"] for w in record["workers"]][1], 9)
            self.assertIsNotNone(record["ended_unix_ms"])
        jobs = [record["job"] for _, record in sorted(attempts.items())]
        self.assertEqual(jobs[:2], [None, None])
        self.assertEqual((jobs[2]["exit_code"], jobs[2]["class"]), (9, "fatal"))
        self.assertIn("all 2 restarts are used up", jobs[2]["reason"])

    def test_old_restarts_do_not_count_in_a_window(self):
        for window, lives in (("1ms", 4), ("1h", 2)):
            agent = self.start("--standalone", "--max-restarts", "1", "--restart-window", window)
            for life in range(lives):
                (worker,) = self.workers(1)
                worker.tell("exit 0" if life == 3 else "exit 9")
            self.assertEqual(agent.wait(), 0 if lives == 4 else 9, agent.output())

    def test_success_after_a_restart(self):
        agent = self.start("--standalone", "--max-restarts", "1")
        self.workers(1)[0].tell("signal 9")
        self.workers(1)[0].tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_each_round_has_a_new_store(self):
        agent = self.start("--standalone", "--max-restarts", "1")
        (first,) = self.workers(1)
        first.tell("exit 1")
        (second,) = self.workers(1)
        self.assertNotEqual(first.env["MASTER_PORT"], second.env["MASTER_PORT"])
        second.tell("exit 0")
        self.assertEqual(agent.wait(), 0)

    def test_grandchildren_die_with_their_round(self):
        agent = self.start("--standalone", "--max-restarts", "1")
        (worker,) = self.workers(1)
        child = worker.ask("fork")["child"]
        worker.tell("exit 1")
        (second,) = self.workers(1)
        self.assertFalse(alive(child))
        second.tell("exit 0")
        self.assertEqual(agent.wait(), 0)


class Signals(MusterCase):
    def test_sigterm_is_forwarded_and_ends_with_143(self):
        agent = self.start("--standalone", "--nproc-per-node", "2")
        workers = self.workers(2)
        agent.send(signal.SIGTERM)
        for worker in workers:
            self.assertEqual(worker.next_message()["signal"], signal.SIGTERM)
        self.assertEqual(agent.wait(), 143)
        for worker in workers:
            self.assertFalse(alive(worker.pid))

    def test_second_interrupt_kills_at_once(self):
        agent = self.start("--standalone")
        (worker,) = self.workers(1)
        worker.ask("ignore SIGINT")
        agent.send(signal.SIGINT)
        self.wait_for_output(agent, "leaving, workers get SIGINT .*; a second signal kills them")
        agent.send(signal.SIGINT)
        self.assertEqual(agent.wait(), 130)
        self.assertIn("SIGINT again: workers that are left get SIGKILL", agent.output())
        self.assertEqual(agent.output().count("stopped by SIGINT (exit code 130)"), 1)
        self.assertFalse(alive(worker.pid))

    def test_shutdown_timeout_kills(self):
        agent = self.start("--standalone", "--shutdown-timeout", "1")
        (worker,) = self.workers(1)
        worker.ask("ignore SIGTERM")
        agent.send(signal.SIGTERM)
        self.assertEqual(agent.wait(), 143)
        self.assertFalse(alive(worker.pid))

    def test_workers_die_with_a_killed_agent(self):
        agent = self.start("--standalone", "--nproc-per-node", "2")
        workers = self.workers(2)
        agent.send(signal.SIGKILL)
        for worker in workers:
            self.assertTrue(wait_gone(worker.pid))


if __name__ == "__main__":
    main()
