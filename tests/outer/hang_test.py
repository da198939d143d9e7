# SPDX-License-Identifier: Apache-2.0
"""Hangs: found by heartbeats or by silence, evidence kept on every node, exit code 203, and a restart."""

import glob
import json
import os
import re
import signal
import subprocess

from muster_case import DEADLINE, MUSTER, PYTHON, MusterCase, clean, main, wait_gone

# Beats twice, then waits for ever in a function with a name; faulthandler is there for --hang-signal.
BEATS_THEN_WAITS = """
import faulthandler, os, signal, sys
faulthandler.register(signal.SIGUSR1, all_threads=True)
first_life = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
with open(os.environ["MUSTER_HEARTBEAT_FILE"], "w") as file: file.write("120\\n")
def stuck_in_a_collective():
    while True: signal.pause()
if first_life or "always" in sys.argv: stuck_in_a_collective()
"""
BEATS_THEN_STOPS = """
import os, signal
with open(os.environ["MUSTER_HEARTBEAT_FILE"], "w") as file: file.write("7\\n")
os.kill(os.getpid(), signal.SIGSTOP)
"""
# As PyTorch's NCCL backend: makes the pipe, waits for a byte, writes a dump.
FLIGHT_RECORDER = """
import os, select
rank = os.environ["RANK"]
pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + rank + ".pipe"
def setting(new, old):  # this Python's torch decides which of the two names is set
    return os.environ.get(new) or os.environ[old]
assert int(setting("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")) > 0
assert os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
os.mkfifo(pipe, 0o666)
reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
# The first step begins the time of all: it is reported when each worker has its pipe.
here = lambda rank: os.path.join(os.environ["TMPDIR"], f"has-a-pipe-{rank}")
open(here(rank), "w").close()
while not all(os.path.exists(here(other)) for other in range(int(os.environ["WORLD_SIZE"]))):
    select.select([], [], [], 0.01)
with open(os.environ["MUSTER_HEARTBEAT_FILE"], "w") as file: file.write("1\\n")
select.select([reader], [], [])
assert os.read(reader, 128)
with open(setting("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE") + rank, "wb") as file:
    file.write(b"the last collectives")
while True: select.select([], [], [])
"""


def open_text(path):
    with open(path, errors="replace") as file:
        return file.read()


class HangCase(MusterCase):
    def run_script(self, text, *arguments, script_args=(), logs="logs", **more):
        path = os.path.join(self.dir, f"train-{len(self.agents)}.py")
        with open(path, "w") as file:
            file.write(text)
        logs = os.path.join(self.dir, logs)
        return self.start("--log-dir", logs, *arguments, path, *script_args, worker=False, **more), logs

    def one(self, pattern):
        found = glob.glob(pattern, recursive=True)
        self.assertEqual(len(found), 1, f"{pattern}: {found}")
        with open(found[0], errors="replace") as file:
            return file.read()


class Heartbeats(HangCase):
    def test_a_worker_that_beats_and_then_waits(self):
        agent, logs = self.run_script(
            BEATS_THEN_WAITS,
            "--standalone",
            "--hang-timeout",
            "300ms",
            "--hang-signal",
            "USR1",
            "--tee",
            "3",
            script_args=["always"],
            env={"PATH": "/usr/bin:/bin"},
        )
        self.assertEqual(agent.wait(), 203)
        said = agent.output()
        self.assertRegex(said, r"worker rank 0 hangs: no step reported for [\d.]+ s \(last step 120\); stacks are in /")
        self.assertRegex(said, r"exitcode  : 203 \(pid: \d+\)")
        self.assertIn("stuck_in_a_collective", said, "faulthandler's words")
        self.assertIn("py-spy is not on PATH: the evidence has only kernel stacks", said)
        self.assertRegex(said, r"stacks of rank 0: process \d+ \(python3", "the folder is gone with its pod")
        kept = self.one(f"{logs}/**/hang.txt")
        self.assertRegex(kept, r"process \d+ \(python3[^)]*\): S \(sleeping\)")
        self.assertRegex(kept, r"thread \d+ \(python3[^)]*\): S \(sleeping\), wchan \w+, syscall \d+")
        self.assertIn("SIGUSR1 was sent", kept)
        (attempt,) = self.attempts(logs).values()
        self.assertIn("no step reported for", attempt["reason"])
        (worker,) = attempt["workers"]
        self.assertRegex(worker["hang"], r"^no step reported for [\d.]+ s \(last step 120\)$")
        self.assertTrue(worker["after_stop"])

    def test_a_worker_that_stops_itself(self):
        agent, logs = self.run_script(BEATS_THEN_STOPS, "--standalone", "--hang-timeout", "300ms")
        self.assertEqual(agent.wait(), 203)
        self.assertIn("(last step 7)", agent.output())
        self.assertIn("T (stopped by a signal)", self.one(f"{logs}/**/hang.txt"))

    def test_a_restart_after_it_succeeds(self):
        agent, logs = self.run_script(BEATS_THEN_WAITS, "--standalone", "--hang-timeout", "5s", "--max-restarts", "1")
        self.assertEqual(agent.wait(), 0)
        first, second = (attempt for _, attempt in sorted(self.attempts(logs).items()))
        self.assertIn("hang", first["workers"][0])
        self.assertIn("hangs: no step reported", second["start_reason"])
        self.assertNotIn("hang", second["workers"][0])

    def test_one_that_never_beats_is_left_alone(self):
        agent = self.start("--standalone", "--hang-timeout", "100ms")
        (worker,) = self.workers(1)
        self.wait_for_output(agent, "no worker has written to its MUSTER_HEARTBEAT_FILE yet.* give --hang-log-timeout")
        worker.ask("print still here")
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)
        self.assertEqual(agent.output().count("MUSTER_HEARTBEAT_FILE"), 1)

    def test_one_of_two_workers_is_named(self):
        agent = self.start(
            "--standalone",
            "--nproc-per-node",
            "2",
            "--hang-timeout",
            "400ms",
            "--log-dir",
            os.path.join(self.dir, "logs"),
        )
        first, second = self.workers(2)
        first.tell("exit 0")
        wait_gone(first.pid)
        second.ask("file $MUSTER_HEARTBEAT_FILE 41")
        self.assertEqual(agent.wait(), 203)
        self.assertIn("worker rank 1 hangs: no step reported", agent.output())
        self.assertEqual(len(glob.glob(f"{self.dir}/logs/**/hang.txt", recursive=True)), 1, "of the one that lived")

    def test_sigterm_while_evidence_is_gathered_ends_at_once(self):
        spy = os.path.join(self.dir, "bin", "py-spy")
        os.mkdir(os.path.dirname(spy))
        os.mkfifo(os.path.join(self.dir, "asked"))
        with open(spy, "w") as file:
            file.write(f"#!/bin/sh\necho asked > {self.dir}/asked\nexec cat {self.dir}/asked\n")
        os.chmod(spy, 0o755)
        agent, _ = self.run_script(
            BEATS_THEN_WAITS,
            "--standalone",
            "--hang-timeout",
            "300ms",
            script_args=["always"],
            env={"PATH": f"{os.path.dirname(spy)}:{os.environ['PATH']}"},
        )
        with open(os.path.join(self.dir, "asked")) as asked:
            self.assertEqual(asked.readline(), "asked\n")
            agent.send(signal.SIGTERM)
            self.assertEqual(agent.wait(), 143)


class PlainCommand(HangCase):
    """A command of `muster exec` that knows nothing of torch and writes the heartbeat file itself."""

    BEATS = 'echo 120 > "$MUSTER_HEARTBEAT_FILE"'

    def execute(self, script, *flags, **env):
        self.message = os.path.join(self.dir, "message")
        open(self.message, "w").close()
        return subprocess.run(
            [
                MUSTER,
                "exec",
                "--termination-log",
                self.message,
                "--hang-timeout",
                "300ms",
                *flags,
                "--",
                "sh",
                "-c",
                script,
            ],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            stdin=subprocess.DEVNULL,
            env=clean(**{"TMPDIR": self.dir, **env}),
        )

    def check_kept(self, done, logs):
        self.assertEqual(done.returncode, 203, done.stderr)
        said = r"hangs: no step reported for [\d.]+ s \(last step 120\)"
        self.assertRegex(done.stderr, said)
        kept = self.one(f"{logs}/**/hang.txt")
        self.assertRegex(kept, r"process \d+ \(sleep\): S \(sleeping\)")
        self.assertRegex(kept, r"thread \d+ \(sleep\): S \(sleeping\), wchan \w+, syscall \d+")
        with open(self.message) as file:
            message = json.load(file)
        self.assertEqual(
            (message["exit_code"], message["class"], message["cause"]["exit_code"]), (203, "retryable", 203)
        )
        self.assertRegex(message["reason"], said)
        return kept

    def test_evidence_in_the_log_folder(self):
        logs = os.path.join(self.dir, "logs")
        done = self.execute(f"{self.BEATS}; sleep 1000; exit 1", "--log-dir", logs)
        self.check_kept(done, logs)
        (attempt,) = self.attempts(logs).values()
        self.assertRegex(attempt["workers"][0]["hang"], r"^no step reported for [\d.]+ s \(last step 120\)$")
        self.assertEqual((attempt["job"]["exit_code"], attempt["job"]["class"]), (203, "retryable"))

    def test_evidence_without_a_log_folder(self):
        done = self.execute(f"{self.BEATS}; sleep 1000; exit 1")
        place = re.search(r"stacks are in (/\S+)", done.stderr)
        self.assertTrue(place, done.stderr)
        self.check_kept(done, place[1].rstrip(";,)"))

    def test_the_next_life_goes_on(self):
        mark = os.path.join(self.dir, "second")
        done = self.execute(
            f"{self.BEATS}; test -e {mark} || {{ touch {mark}; sleep 1000; }}; echo went on",
            "--max-restarts",
            "1",
            "--hang-timeout",
            "5s",
        )  # the second life ends within it
        self.assertEqual((done.returncode, done.stdout), (0, "went on\n"), done.stderr)
        self.assertIn("hangs: no step reported for", done.stderr)


class PySpy(HangCase):
    """py-spy from PATH is run for each Python process; here it is a script that prints its arguments."""

    def lay(self, script):
        folder = os.path.join(self.dir, "bin")
        os.mkdir(folder)
        with open(os.path.join(folder, "py-spy"), "w") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(os.path.join(folder, "py-spy"), 0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def test_its_output_is_kept(self):
        env = self.lay("echo \"asked: $*\"; echo '    stuck_in_a_collective (train.py:8)'; echo careful >&2\n")
        agent, logs = self.run_script(
            BEATS_THEN_WAITS,
            "--standalone",
            "--nproc-per-node",
            "2",
            "--hang-timeout",
            "300ms",
            script_args=["always"],
            env=env,
        )
        self.assertEqual(agent.wait(), 203)
        (attempt,) = self.attempts(logs).values()
        for worker in attempt["workers"]:
            kept = self.one(f"{logs}/**/{worker['local_rank']}/python_{worker['pid']}.txt")
            self.assertIn("stuck_in_a_collective (train.py:8)\n", kept)
            self.assertRegex(kept, rf"asked: dump .*--pid {worker['pid']}\b")

    def test_under_a_plain_command(self):
        """py-spy is run for the Python inside a shell, not for the shell."""
        env = self.lay('echo "asked: $*"\n')
        path = os.path.join(self.dir, "train.py")
        with open(path, "w") as file:
            file.write(BEATS_THEN_WAITS)
        logs = os.path.join(self.dir, "logs")
        agent = self.start(
            "--log-dir",
            logs,
            "--hang-timeout",
            "300ms",
            "--",
            "sh",
            "-c",
            f"{PYTHON} {path} always; exit 1",
            subcommand="exec",
            worker=False,
            env={"TORCHELASTIC_RESTART_COUNT": "0", **env},
        )
        self.assertEqual(agent.wait(), 203)
        self.assertRegex(self.one(f"{logs}/**/python_*.txt"), r"^asked: dump .*--pid \d+")

    def test_one_that_fails_is_told(self):
        env = self.lay("echo 'Permission Denied: Try running again with elevated permissions' >&2; exit 1\n")
        agent, logs = self.run_script(
            BEATS_THEN_WAITS, "--standalone", "--hang-timeout", "300ms", script_args=["always"], env=env
        )
        self.assertEqual(agent.wait(), 203)
        everything = "".join(open_text(path) for path in glob.glob(f"{logs}/**/0/*.txt", recursive=True))
        self.assertIn("Permission Denied", everything)


class Recorder(HangCase):
    def test_the_flight_recorder_is_dumped_beside_the_logs(self):
        agent, logs = self.run_script(
            FLIGHT_RECORDER, "--standalone", "--nproc-per-node", "2", "--hang-timeout", "300ms"
        )
        self.assertEqual(agent.wait(), 203)
        for rank in (0, 1):
            self.assertEqual(self.one(f"{logs}/**/flight_recorder/nccl_trace_rank_{rank}"), "the last collectives")
        self.assertIn("2 dumps of the flight recorder", agent.output())

    def test_of_every_rank_on_two_nodes(self):
        endpoint = f"127.0.0.1:{self.free_port()}"
        nodes = []
        for node in range(2):
            agent, _ = self.run_script(
                FLIGHT_RECORDER,
                "--nnodes",
                "2",
                "--nproc-per-node",
                "2",
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                endpoint,
                "--rdzv-id",
                "job",
                "--node-name",
                f"n{node}",
                "--hang-timeout",
                "700ms",
                logs=f"logs-{node}",
            )
            nodes.append(agent)
        for agent in nodes:
            self.assertEqual(agent.wait(), 203)
            self.assertIn("2 dumps of the flight recorder", agent.output())
        for node in range(2):
            (record,) = self.attempts(f"{self.dir}/logs-{node}").values()
            (folder,) = glob.glob(f"{self.dir}/logs-{node}/**/attempt_0/flight_recorder", recursive=True)
            ranks = sorted(worker["rank"] for worker in record["workers"])
            self.assertEqual(
                sorted(name for name in os.listdir(folder) if "trace" in name and "." not in name),
                [f"nccl_trace_rank_{rank}" for rank in ranks],
            )
            for rank in ranks:
                self.assertEqual(self.one(f"{folder}/nccl_trace_rank_{rank}"), "the last collectives")

    def test_without_hang_detection_nothing_of_it_is_set(self):
        agent = self.start("--standalone")
        (worker,) = self.workers(1)
        self.assertEqual([name for name in worker.env if name.startswith(("TORCH_FR_", "TORCH_NCCL_DEBUG"))], [])
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)


class Silence(HangCase):
    def test_nothing_is_written_any_more(self):
        agent = self.start(
            "--standalone", "--nproc-per-node", "2", "--hang-log-timeout", "400ms"
        )  # the hang may precede a hello
        self.assertEqual(agent.wait(), 203)
        self.assertRegex(
            agent.output(),
            r"node \S+ \(host \S+\): all workers of the job have been silent for [\d.]+ s; stacks are in /",
        )
        self.assertNotIn("worker rank 0", agent.output())
        self.assertIn("rank      : all\n", agent.output())

    def test_files_are_still_written(self):
        logs = os.path.join(self.dir, "logs")
        agent = self.start("--standalone", "--hang-log-timeout", "1h", "--redirects", "3", "--log-dir", logs)
        (worker,) = self.workers(1)
        worker.ask("print a line")
        worker.ask("error another")
        worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)
        self.assertEqual(self.one(f"{logs}/**/stdout.log"), "a line\n")
        self.assertEqual(self.one(f"{logs}/**/stderr.log"), "another\n")
        self.assertEqual(agent.output(), "")

    def test_a_plain_command(self):
        done = self.execute("--hang-log-timeout", "300ms", "--", "sh", "-c", "echo begun; exec sleep 1000")
        self.assertEqual(done.returncode, 203, done.stderr)
        self.assertEqual(done.stdout, "begun\n")
        self.assertIn("all workers of the job have been silent for", done.stderr)

    def test_of_a_plain_command_the_variables_are_for_a_torchrun_inside(self):
        done = self.execute("--", "sh", "-c", "echo $MUSTER_HANG_LOG_TIMEOUT", MUSTER_HANG_LOG_TIMEOUT="1ns")
        self.assertEqual((done.returncode, done.stdout), (0, "1ns\n"), done.stderr)

    def execute(self, *arguments, **more):
        return subprocess.run(
            [MUSTER, "exec", *arguments],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            stdin=subprocess.DEVNULL,
            env=clean(**{"TMPDIR": self.dir, **more}),
        )


class Nodes(HangCase):
    def two(self, *arguments, limits=("0", "0")):
        port = self.free_port()
        return [
            self.start(
                "--nnodes",
                "2",
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                f"127.0.0.1:{port}",
                "--rdzv-id",
                "job",
                "--node-name",
                f"n{node}",
                "--log-dir",
                os.path.join(self.dir, f"logs-{node}"),
                "--hang-log-timeout",
                limits[node],
                *arguments,
            )
            for node in range(2)
        ]

    def test_the_silence_of_one_node_is_no_hang(self):
        agents = self.two("--log-level", "debug", limits=("1h", "100ms"))
        workers = self.workers(2)
        self.wait_for_output(agents[1], "no worker of this node has written anything for --hang-log-timeout")
        for worker in workers:
            worker.ask("print a line")
        self.wait_for_output(agents[1], "workers of this node write again")
        for worker in workers:
            worker.tell("exit 0")
        for agent in agents:
            self.assertEqual(agent.wait(), 0)

    def test_the_silence_of_all_nodes_is_one(self):
        agents = self.two("--rdzv-conf", "heartbeat_timeout=5", limits=("300ms", "300ms"))
        for agent in agents:
            self.assertEqual(agent.wait(), 203)
            self.assertIn("all workers of the job have been silent for", agent.output())
        for node in range(2):
            self.one(f"{self.dir}/logs-{node}/**/hang.txt")

    def test_one_of_two_nodes_hangs_and_both_leave_evidence(self):
        agents = self.two("--hang-timeout", "700ms")
        workers = self.workers(2)
        hanging = next(worker for worker in workers if worker.node == "n1")
        hanging.ask("file $MUSTER_HEARTBEAT_FILE 9")
        for agent in agents:
            self.assertEqual(agent.wait(), 203)
            self.assertRegex(
                agent.output(),
                rf"node n1 .*worker rank {hanging.rank} hangs: no step reported for [\d.]+ s \(last step 9\)",
            )
        for node in range(2):
            self.assertIn("thread ", self.one(f"{self.dir}/logs-{node}/**/hang.txt"))


class Stacks(MusterCase):
    def test_any_process_by_hand(self):
        agent = self.start("--standalone")
        (worker,) = self.workers(1)
        done = subprocess.run([MUSTER, "stacks", str(agent.pid)], capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"process {agent.pid} (muster)", done.stdout)
        self.assertIn(f"process {worker.pid} (", done.stdout, "its descendants too")
        self.assertEqual(subprocess.run([MUSTER, "stacks", "x"], capture_output=True, timeout=DEADLINE).returncode, 64)
        worker.tell("exit 0")
        agent.wait()


if __name__ == "__main__":
    main()
