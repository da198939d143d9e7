# SPDX-License-Identifier: Apache-2.0
"""torchrun's command line from outside: the effect of each flag on workers and console, wrong values, the hand-over to
the real torchrun."""

import json
import os
import re
import signal
import subprocess

from muster_case import DEADLINE, HERE, MUSTER, MusterCase, main

from class_runner import not_emulated

NONE = {"OMP_NUM_THREADS": "1"}  # another test checks its warning


class TorchrunCase(MusterCase):
    def started(self, *arguments, **options):
        """(exit code, output) of a run whose workers end by themselves."""
        agent = self.start(*arguments, worker=False, **options)
        return agent.wait(), agent.output()

    def termination_log(self):
        path = os.path.join(self.dir, "termination-log")
        open(path, "w").close()
        return path

    def program(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def read(self, *path):
        with open(os.path.join(self.dir, *path)) as file:
            return file.read()


class Flags(TorchrunCase):
    def pair(self, *arguments, **options):
        """Two workers of one agent, and that agent."""
        agent = self.start("--standalone", "--nproc-per-node", "2", *arguments, **{"env": NONE, **options})
        return agent, self.workers(2)

    def finish(self, agent, workers, code=0):
        for worker in workers:
            worker.tell(f"exit {code}")
        self.assertEqual(agent.wait(), code, agent.output())

    def test_virtual_local_rank(self):
        for devices, seen in ((None, ["0", "1"]), ("5, GPU-7", ["5", "GPU-7"])):
            env = {**NONE, **({"CUDA_VISIBLE_DEVICES": devices} if devices else {})}
            agent, workers = self.pair("--virtual-local-rank", env=env)
            self.assertEqual([w.env["LOCAL_RANK"] for w in workers], ["0", "0"])
            self.assertEqual([w.env["RANK"] for w in workers], ["0", "1"])
            self.assertEqual([w.env["CUDA_VISIBLE_DEVICES"] for w in workers], seen)
            self.finish(agent, workers)

    def test_virtual_local_rank_beyond_the_devices(self):
        code, output = self.started(
            "--standalone",
            "--nproc-per-node",
            "2",
            "--virtual-local-rank",
            "--no-python",
            "/bin/true",
            env={**NONE, "CUDA_VISIBLE_DEVICES": "3"},
        )
        self.assertEqual(code, 78)
        self.assertIn("CUDA_VISIBLE_DEVICES=3 names 1 device, none for local rank 1", output)

    def test_numa_binding(self):
        """numactl is called with CPUs that exist; a stand-in prints its arguments."""
        self.program("bin/numactl", '#!/bin/sh\necho "numactl $1"\nshift\nexec "$@"\n')
        env = {**NONE, "PATH": f"{self.dir}/bin:{os.environ['PATH']}"}
        for mode in ("node", "socket", "exclusive", "core-complex"):
            code, output = self.started(
                "--standalone", "--numa-binding", mode, "--no-python", "/bin/echo", "bound", env=env
            )
            self.assertEqual(code, 0, output)
            said, ran = output.splitlines()
            cpus = re.fullmatch(r"numactl --physcpubind=([0-9,-]+)", said)
            self.assertTrue(cpus and ran == "bound", output)
            numbers = {int(number) for part in cpus[1].split(",") for number in part.split("-")}
            self.assertLessEqual(numbers, os.sched_getaffinity(0))
        code, output = self.started(
            "--standalone",
            "--numa-binding",
            "node",
            "--no-python",
            "/bin/true",
            env={**NONE, "PATH": os.path.join(self.dir, "nowhere")},
        )
        self.assertEqual(code, 127, output)
        self.assertIn("numactl is not on PATH", output)

    def test_signals_to_handle(self):
        agent, workers = self.pair("--signals-to-handle", "SIGUSR1,SIGTERM")
        for worker in workers:
            self.assertEqual(worker.env["TORCHELASTIC_SIGNALS_TO_HANDLE"], "SIGUSR1,SIGTERM")
            worker.ask("ignore SIGUSR1")
        agent.send(signal.SIGUSR1)
        for worker in workers:
            self.assertEqual(worker.ask("asked SIGUSR1")["what"], "asked")
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 128 + signal.SIGUSR1)
        agent, workers = self.pair("--signals-to-handle", "SIGUSR1")
        agent.send(signal.SIGTERM)  # not handled now: it ends the agent like any process
        self.assertEqual(agent.wait(), 128 + signal.SIGTERM)

    def chatter(self, *arguments, **options):
        logs = os.path.join(self.dir, "logs")
        agent, workers = self.pair("--log-dir", logs, *arguments, **options)
        for worker in workers:
            for line in (f"loss={worker.rank}", f"noise {worker.rank}", "a,b"):
                worker.ask(f"print {line}")
                worker.ask(f"error {line}")
        self.finish(agent, workers)
        (attempt,) = self.attempts(logs)
        return agent.output(), os.path.join(logs, attempt)

    def test_local_ranks_filter(self):
        output, attempt = self.chatter("--local-ranks-filter", "1", "--tee", "3")
        self.assertEqual(
            sorted(output.splitlines()), sorted(2 * ["[default1]:loss=1", "[default1]:noise 1", "[default1]:a,b"])
        )
        for rank in (0, 1):
            self.assertEqual(self.read(attempt, str(rank), "stdout.log"), f"loss={rank}\nnoise {rank}\na,b\n")

    def test_duplicate_filters(self):
        _, attempt = self.chatter(
            "--tee", "3", "--duplicate-stdout-filters", "loss,a,,b", "--duplicate-stderr-filters", "noise"
        )
        self.assertEqual(
            sorted(self.read(attempt, "filtered_stdout.log").splitlines()),
            sorted(f"[default{rank}]:{line}" for rank in (0, 1) for line in (f"loss={rank}", "a,b")),
        )
        self.assertEqual(
            sorted(self.read(attempt, "filtered_stderr.log").splitlines()), ["[default0]:noise 0", "[default1]:noise 1"]
        )

    def test_log_line_prefix_template(self):
        host = os.uname().nodename.split(".")[0]
        expected = sorted(
            f"<t {rank} {rank} {host}> {line}" for rank in (0, 1) for line in (f"loss={rank}", f"noise {rank}", "a,b")
        )
        template = "<${role_name} ${local_rank} ${rank} ${hostname}> "
        for arguments, env in (
            (["--log-line-prefix-template", template], {}),
            ([], {"PET_LOG_LINE_PREFIX_TEMPLATE": template}),
            ([], {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": template}),
        ):
            agent, workers = self.pair("--tee", "1", "--role", "t", *arguments, env={**NONE, **env})
            for worker in workers:
                for line in (f"loss={worker.rank}", f"noise {worker.rank}", "a,b"):
                    worker.ask(f"print {line}")
            self.finish(agent, workers)
            said = [line for line in agent.output().splitlines() if " muster " not in line]
        self.assertEqual(sorted(said), expected)

    def test_redirects_of_single_ranks(self):
        output, attempt = self.chatter("--redirects", "0:3,1:1")
        self.assertEqual(output, "loss=1\nnoise 1\na,b\n")
        self.assertEqual(self.read(attempt, "0", "stderr.log"), "loss=0\nnoise 0\na,b\n")
        self.assertEqual(self.read(attempt, "1", "stdout.log"), "loss=1\nnoise 1\na,b\n")

    def test_module_and_run_path(self):
        self.program("package/work.py", "import sys; print(__name__, sys.argv[1:], flush=True)\n")
        for flags in (["-m", "package.work"], ["--module", "package.work"], ["--run-path", "package/work.py"]):
            code, output = self.started("--standalone", *flags, "--module", env=NONE, cwd=self.dir)
            self.assertEqual((code, output), (0, "__main__ ['--module']\n"))

    def test_local_addr(self):
        agent = self.start(
            "--nnodes",
            "1:2",
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            "localhost:0",
            "--local-addr",
            "localhost",
            "--rdzv-conf",
            "is_host=1,last_call_timeout=0",
            env=NONE,
        )
        (worker,) = self.workers(1)
        self.assertEqual(worker.env["MASTER_ADDR"], "localhost")
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())

    def test_words_for_the_number_of_workers(self):
        cpus = len(os.sched_getaffinity(0))
        code, output = self.started(
            "--standalone", "--nproc-per-node", "cpu", "--no-python", "/bin/echo", "x", env=NONE
        )
        self.assertEqual((code, output), (0, "x\n" * cpus))

    def test_accepted_without_effect(self):
        code, output = self.started(
            "--standalone",
            "--monitor-interval",
            "5",
            "--start-method",
            "fork",
            "--event-log-handler",
            "null",
            "--no-python",
            "/bin/true",
            env=NONE,
        )
        self.assertEqual((code, output), (0, ""))

    def test_events_on_the_console_are_answered_with_one_warning(self):
        for flags, env, origin in (
            (["--event-log-handler", "console"], {}, "--event-log-handler"),
            ([], {"PET_EVENT_LOG_HANDLER": "console"}, "PET_EVENT_LOG_HANDLER"),
        ):
            code, output = self.started("--standalone", *flags, "--no-python", "/bin/true", env={**NONE, **env})
            self.assertEqual(code, 0, output)
            (line,) = output.splitlines()
            self.assertRegex(line, f" W .*{origin}=console: .*attempt.json.*termination message")

    def test_launch_tells_the_local_rank(self):
        for flags, first in (([], True), (["--use-env"], False), (["--use_env"], False)):
            agent, workers = self.pair(*flags, subcommand="launch", script_args=["--epochs", "3"])
            for worker in workers:
                told = [f"--local-rank={worker.local_rank}"] if first else []
                self.assertEqual(worker.hello["argv"][1:], [*told, "--epochs", "3"])
            self.finish(agent, workers)
            self.assertEqual(agent.output().count("torch.distributed.launch is deprecated"), 1)
        code, output = self.started("--no-python", "/bin/true", subcommand="launch")
        self.assertEqual(code, 64)
        self.assertIn("--no-python needs --use-env", output)

    def test_every_flag_is_given_in_an_outer_test(self):
        tests = ""
        for folder in (HERE, os.path.join(HERE, "..", "torch"), os.path.join(HERE, "..", "..", "e2e", "digits")):
            for name in os.listdir(folder):
                if name.endswith(".py"):
                    tests += self.read(folder, name)
        for subcommand in ("run", "launch", "exec"):
            said = subprocess.run(
                [MUSTER, subcommand, "--help"], capture_output=True, text=True, timeout=DEADLINE
            ).stdout
            flags = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", said, re.MULTILINE)
            self.assertGreater(len(flags), 30)
            self.assertEqual(
                [flag for flag in flags if not re.search(rf'["\']{flag}(=[^"\']*)?["\']', tests)], [], subcommand
            )


class Values(TorchrunCase):
    def refused(self, code, said, *arguments, **env):
        """Ends with `code` before a worker starts; console and termination message say why."""
        path = self.termination_log()
        got, output = self.started(
            *arguments, "--no-python", "/bin/true", env={**NONE, "MUSTER_TERMINATION_LOG": path, **env}
        )
        self.assertEqual(got, code, output)
        self.assertIn(said, output)
        message = json.loads(self.read(path))
        self.assertEqual(message["exit_code"], code)
        self.assertIn(said, message["reason"])

    def test_a_log_folder_that_cannot_be(self):
        file = self.program("file", "")
        self.refused(64, f"PET_LOG_DIR={file}: not a folder", PET_LOG_DIR=file)
        self.refused(64, f"PET_LOG_DIR={file}/below: not a folder", PET_LOG_DIR=f"{file}/below")
        self.refused(64, f"--log-dir={file}: not a folder", "--log-dir", file, PET_LOG_DIR="/elsewhere")
        self.refused(64, f"PET_LOG_DIR={file}: not a folder", "--nodes-on-this-machine", "2", PET_LOG_DIR=file)

    def test_an_empty_log_folder_is_none(self):
        for flags, env in (([], {"PET_LOG_DIR": ""}), (["--log-dir="], {})):
            code, output = self.started("--standalone", *flags, "--no-python", "/bin/echo", "ran", env={**NONE, **env})
            self.assertEqual((code, output), (0, "ran\n"))

    def test_gpus_that_are_not_there(self):
        if os.path.exists("/dev/nvidia0") or os.path.exists("/dev/kfd"):
            self.skipTest("this machine has a GPU")
        self.refused(64, "PET_NPROC_PER_NODE=gpu: no GPU was found", PET_NPROC_PER_NODE="gpu")
        self.refused(64, "--nproc-per-node=gpu: no GPU was found", "--nproc-per-node", "gpu")
        self.refused(64, "TRAINER_NPROC_PER_NODE=gpu: no GPU was found", TRAINER_NPROC_PER_NODE="gpu")

    def test_empty_names_of_what_torchrun_looks_up(self):
        self.refused(64, "PET_RDZV_BACKEND=: want static or c10d", PET_RDZV_BACKEND="")
        self.refused(64, "PET_EVENT_LOG_HANDLER=: want null", PET_EVENT_LOG_HANDLER="")

    def test_an_address_that_can_be_none(self):
        self.refused(64, "--local-addr=bad host: want a host name", "--local-addr", "bad host")
        self.refused(64, "PET_LOCAL_ADDR=host:29400: want a host name", PET_LOCAL_ADDR="host:29400")


class HandOver(TorchrunCase):
    """A stand-in for the real torchrun prints how it was called."""

    SAYS = '#!/bin/sh\nfor word; do echo "word: $word"; done\necho "handed over: $MUSTER_HANDED_OVER"\nexit 7\n'

    def setUp(self):
        super().setUp()
        self.program("bin/torchrun", self.SAYS)
        self.path = f"{self.dir}/bin:/usr/bin:/bin"

    def handed_over(self, *arguments, said, words, env=None, torchrun="torchrun", **options):
        code, output = self.started(*arguments, env={**NONE, "PATH": self.path, **(env or {})}, **options)
        self.assertEqual(code, 7, output)
        warning, *rest = output.splitlines()
        self.assertRegex(warning, said)
        self.assertIn(
            f"which only the real torchrun has; {self.dir}/bin/{torchrun} goes on in place of muster", warning
        )
        self.assertEqual(rest, [*(f"word: {word}" for word in words), "handed over: 1"])
        return warning

    def test_each_reason(self):
        for flags, said in (
            (["--rdzv-backend", "etcd"], "--rdzv-backend=etcd meets through etcd"),
            (["--rdzv_backend=etcd-v2"], "--rdzv-backend=etcd-v2 meets through etcd"),
            (["--rdzv-backend=mine"], "--rdzv-backend=mine is an out-of-tree rendezvous handler"),
            (
                ["--rdzv-backend=c10d", "--rdzv-conf", "store_type=file"],
                "--rdzv-conf=store_type=file meets through a file",
            ),
            (["--logs-specs", "mine"], "--logs-specs=mine names a Python entry point"),
            (["--event-log-handler=mine"], "--event-log-handler=mine names a Python event handler"),
            (["--nproc-per-node=npu"], "--nproc-per-node=npu asks a PyTorch extension"),
            (["--print-completion", "bash"], "--print-completion=bash prints a completion script"),
        ):
            with self.subTest(flags=flags):
                arguments = [*flags, "--nnodes", "1", "x.py", "--node-name=script's", "a b"]
                self.handed_over(*arguments, said=f" W muster {re.escape(said)}", words=arguments)
        self.handed_over("x.py", env={"PET_RDZV_BACKEND": "etcd"}, said="PET_RDZV_BACKEND=etcd meets", words=["x.py"])

    def test_musters_own_flags_stay_here(self):
        warning = self.handed_over(
            "--node-name",
            "n",
            "--rdzv-backend=etcd",
            "--hang-timeout=5m",
            "--log-format",
            "json",
            "--",
            "x.py",
            said=r'^\{.*"level":"warning"',
            words=["--rdzv-backend=etcd", "--", "x.py"],
        )
        self.assertIn(
            "in place of muster, without muster's own --node-name, --hang-timeout, --log-format",
            json.loads(warning)["message"],
        )
        code, output = self.started(
            "--rdzv-backend=etcd", "--nodes-on-this-machine", "2", "x.py", env={"PATH": self.path}
        )
        self.assertEqual(code, 64, output)
        self.assertIn("--nodes-on-this-machine=2: --rdzv-backend=etcd", output)

    @not_emulated("muster knows a link to itself by /proc/self/exe, which is qemu")
    def test_called_by_a_link_that_comes_first_on_path(self):
        os.mkdir(f"{self.dir}/links")
        os.symlink(os.path.abspath(MUSTER), f"{self.dir}/links/torchrun")
        done = subprocess.run(
            ["torchrun", "--rdzv-backend=etcd", "x.py"],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env={**os.environ, "PATH": f"{self.dir}/links:{self.path}"},
        )
        self.assertEqual((done.returncode, done.stdout), (7, "word: --rdzv-backend=etcd\nword: x.py\nhanded over: 1\n"))
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_launch_is_handed_to_its_module(self):
        python = self.program("bin/a-python", self.SAYS)
        self.handed_over(
            "--rdzv-backend=etcd",
            "x.py",
            subcommand="launch",
            env={"PYTHON_EXEC": python},
            torchrun="a-python",
            said="meets through etcd",
            words=["-m", "torch.distributed.launch", "--rdzv-backend=etcd", "x.py"],
        )

    def refused(self, code, said, **env):
        path = self.termination_log()
        got, output = self.started(
            "--rdzv-backend=etcd",
            "--log-format=json",
            "--termination-log",
            path,
            "x.py",
            env={"PATH": self.path, **env},
        )
        self.assertEqual(got, code, output)
        last = json.loads(output.splitlines()[-1])
        self.assertEqual(last["level"], "error")
        self.assertIn(said, last["message"])
        message = json.loads(self.read(path))
        self.assertEqual((message["exit_code"], message["reason"]), (code, last["message"]))

    def test_without_a_real_torchrun(self):
        self.refused(127, "there is no other torchrun on PATH; install PyTorch", PATH=f"{self.dir}/empty")

    def test_a_torchrun_that_cannot_be_executed(self):
        self.program("bin/torchrun", "#!/no/such/interpreter\n")
        self.refused(127, f"cannot execute {self.dir}/bin/torchrun")
        self.program("bin/torchrun", "")
        self.refused(126, f"cannot execute {self.dir}/bin/torchrun")

    def test_a_torchrun_that_leads_back(self):
        self.refused(78, "leads back to muster", MUSTER_HANDED_OVER="1")

    def test_the_last_starts_words_do_not_outlive_it(self):
        path = self.termination_log()
        self.started("--standalone", "--no-python", "/bin/false", env={**NONE, "MUSTER_TERMINATION_LOG": path})
        self.assertTrue(self.read(path))
        self.started("--rdzv-backend=etcd", "x.py", env={"PATH": self.path, "MUSTER_TERMINATION_LOG": path})
        self.assertEqual(self.read(path), "")


class ErrorFile(TorchrunCase):
    """TORCHELASTIC_ERROR_FILE of the agent itself: what an outer launcher or a scheduler reads."""

    TOLD = {
        "message": {
            "message": "ValueError: boom",
            "extraInfo": {"py_callstack": "Traceback of boom", "timestamp": "1700000000"},
        }
    }

    def left(self, *arguments, then=(), exit_with="exit 3", **options):
        """(exit code, content of the agent's error file) after rank 0 has done what `then` and `exit_with` say."""
        path = os.path.join(self.dir, "error.json")
        if os.path.exists(path):
            os.remove(path)
        agent = self.start(*arguments, env={**NONE, "TORCHELASTIC_ERROR_FILE": path}, **options)
        (worker,) = [w for w in self.workers(2) if w.rank == 0]
        self.assertNotEqual(worker.env["TORCHELASTIC_ERROR_FILE"], path)
        for command in then:
            worker.ask(command)
        worker.tell(exit_with)
        return agent.wait(), json.loads(self.read(path)) if os.path.exists(path) else None

    def test_the_root_causes_error_file_is_copied(self):
        tell = f"file $TORCHELASTIC_ERROR_FILE {json.dumps(self.TOLD)}"
        copied = {"message": {**self.TOLD["message"], "errorCode": 3}}
        for shape in (["--standalone", "--nproc-per-node", "2"], ["--nodes-on-this-machine", "2"]):
            self.assertEqual(self.left(*shape, then=[tell]), (3, copied))
        killed = {"message": {**self.TOLD["message"], "errorCode": -9}}
        self.assertEqual(
            self.left("--standalone", "--nproc-per-node", "2", then=[tell], exit_with="signal 9"), (137, killed)
        )

    def test_a_short_message_is_copied_as_it_is(self):
        short = {"message": "no such data", "timestamp": 1700000000}
        self.assertEqual(
            self.left(
                "--standalone", "--nproc-per-node", "2", then=[f"file $TORCHELASTIC_ERROR_FILE {json.dumps(short)}"]
            ),
            (3, short),
        )

    def test_a_worker_that_left_none(self):
        code, left = self.left("--standalone", "--nproc-per-node", "2", then=["error the disk is on fire"])
        self.assertEqual((code, left["message"]["errorCode"]), (3, 3))
        self.assertIn("rank 0 ended with exit code 3", left["message"]["message"])
        self.assertEqual(left["message"]["extraInfo"]["py_callstack"], "the disk is on fire")
        self.assertGreater(int(left["message"]["extraInfo"]["timestamp"]), 1700000000)

    def test_a_failure_before_the_workers(self):
        path = os.path.join(self.dir, "error.json")
        code, _ = self.started("--standalone", "no-such-script.py", env={"TORCHELASTIC_ERROR_FILE": path})
        self.assertEqual(code, 127)
        self.assertIn("no-such-script.py", json.loads(self.read(path))["message"]["message"])

    def test_nothing_after_a_success_or_around_a_plain_command(self):
        path = os.path.join(self.dir, "error.json")
        for subcommand, flags, code in (
            ("run", ["--standalone", "--no-python", "/bin/true"], 0),
            ("exec", ["--", "/bin/false"], 1),
        ):
            agent = self.start(*flags, worker=False, subcommand=subcommand, env={"TORCHELASTIC_ERROR_FILE": path})
            self.assertEqual(agent.wait(), code, agent.output())
            self.assertFalse(os.path.exists(path))

    def test_a_file_that_cannot_be_written_is_a_warning(self):
        code, output = self.started(
            "--standalone",
            "--no-python",
            "/bin/sh",
            "-c",
            "exit 4",
            env={"TORCHELASTIC_ERROR_FILE": "/no/such/folder/error.json"},
        )
        self.assertEqual(code, 4)
        self.assertIn("TORCHELASTIC_ERROR_FILE=/no/such/folder/error.json: cannot write", output)


if __name__ == "__main__":
    main()
