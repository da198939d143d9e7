#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The real torchrun beside Muster: the hand-over to it, the same flags for both, a rendezvous on Muster's store.

real_torchrun_test.py {debian|newest} [unittest's arguments]
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch_test
from torch_test import DEADLINE, MUSTER

# Prints the facts that a worker sees and that do not depend on ports, folders and the time.
FACTS = """import json, os, sys
names = ["LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "LOCAL_WORLD_SIZE", "WORLD_SIZE",
         "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
         "TORCHELASTIC_SIGNALS_TO_HANDLE"]
facts = json.dumps([{name: os.environ.get(name) for name in names}, sys.argv[1:]])
os.write(1, f"{facts}\\nloss=1\\nnoise\\na,b\\n".encode())  # in one piece: two workers write into one pipe
"""


class RealCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-torch-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.python = torch_test.PYTHON
        self.newest = self.python != "/usr/bin/python3"

    def environment(self, **more):
        clean = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PET_", "MUSTER_", "TORCHELASTIC", "TORCH_"))
        }
        path = f"{os.path.dirname(self.python)}:/usr/bin:/bin"  # the real torchrun is beside its python
        return {**clean, "PATH": path, "TMPDIR": self.folder, "OMP_NUM_THREADS": "1", **more}

    def torchruns_flags(self):
        """Sends the console through a tee: torch 1.13 cannot start under python 3.11 with the streams' default."""
        return ["--monitor_interval=0.1", *([] if self.newest else ["--redirects=1", "--tee=1"])]

    def script(self, text):
        path = f"{self.folder}/script.py"
        with open(path, "w") as file:
            file.write(text)
        return path

    def run_to_end(self, *command, **more):
        return subprocess.run(
            command,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def begin(self, *command):
        process = subprocess.Popen(
            command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

        def end():
            process.kill()
            process.wait()
            process.stdout.close()

        self.addCleanup(end)
        return process


class RealHandOver(RealCase):
    def test_a_job_that_only_the_real_one_can_run(self):
        script = self.script(
            "import os, sys\nprint('ran', os.environ['TORCHELASTIC_RUN_ID'], sys.argv[1:], flush=True)\n"
            "sys.exit(int(sys.argv[1]))\n"
        )
        for code, ends in (("0", 0), ("3", 1)):  # torchrun ends with 1 after any failure
            done = self.run_to_end(
                MUSTER,
                "run",
                "--node-name=n",
                "--nnodes=1",
                "--rdzv_backend=c10d",
                f"--rdzv_endpoint={self.folder}/store-{code}",
                "--rdzv_conf=store_type=file",
                "--rdzv_id=job",
                *self.torchruns_flags(),
                script,
                code,
            )
            tee = "" if self.newest else "[default0]:"
            self.assertEqual((done.returncode, done.stdout), (ends, f"{tee}ran job ['{code}']\n"), done.stderr)
            said = [line for line in done.stderr.splitlines() if "in place of muster" in line]
            self.assertEqual(len(said), 1, done.stderr)
            self.assertIn("torchrun goes on in place of muster, without muster's own --node-name", said[0])

    def test_what_the_real_one_refuses(self):
        done = self.run_to_end(
            MUSTER, "run", "--rdzv_backend=no-such-backend", "--rdzv_endpoint=localhost:1", self.script("pass\n")
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "no-such-backend.* not registered")


class RealFlags(RealCase):
    """Both get the same flags: workers, consoles and files are the same. With the newest torch, which has all flags."""

    def both(self, *flags, env=None, module="run", files=()):
        script = self.script(FACTS)
        seen = []
        for launcher in ([self.python, "-m", f"torch.distributed.{module}"], [MUSTER, module]):
            logs = tempfile.mkdtemp(dir=self.folder)
            standalone = ["--standalone"] if module == "run" else ["--master_port", str(torch_test.free_port())]
            done = self.run_to_end(
                *launcher,
                *standalone,
                "--nproc_per_node",
                "2",
                "--log_dir",
                logs,
                *flags,
                script,
                "--x",
                "y",
                PYTHON_EXEC=self.python,
                **(env or {}),
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            held = {}
            for name in files:
                (path,) = glob.glob(f"{logs}/**/{name}", recursive=True)
                with open(path) as file:
                    held[name] = sorted(file.read().splitlines())
            seen.append((sorted(done.stdout.splitlines()), held))
        self.assertEqual(*seen)
        return seen[0]

    def facts(self, *flags, **options):
        return [json.loads(line) for line in self.both(*flags, **options)[0] if line.startswith("[{")]

    def test_launch_gives_the_arguments_of_torchrun(self):
        self.assertEqual([argv[0] for _, argv in self.facts(module="launch")], ["--local-rank=0", "--local-rank=1"])
        self.assertEqual([argv for _, argv in self.facts("--use_env", module="launch")], [["--x", "y"]] * 2)

    def test_tee_writes_what_torchrun_writes(self):
        lines, held = self.both("--tee", "3", files=["0/stdout.log", "1/stdout.log"])
        self.assertIn("[default1]:loss=1", lines)
        self.assertIn("loss=1", held["0/stdout.log"])

    def test_redirects_write_what_torchrun_writes(self):
        lines, held = self.both("--redirects", "0:1", files=["0/stdout.log"])
        self.assertEqual(lines.count("noise"), 1)
        self.assertIn("noise", held["0/stdout.log"])

    def test_virtual_local_rank(self):
        for env, devices in (({}, ["0", "1"]), ({"CUDA_VISIBLE_DEVICES": "5, GPU-7"}, ["5", "GPU-7"])):
            facts = self.facts("--virtual-local-rank", env=env)
            self.assertEqual(
                [(worker["LOCAL_RANK"], worker["CUDA_VISIBLE_DEVICES"]) for worker, _ in facts],
                [("0", device) for device in devices],
            )

    def test_filters_of_the_console(self):
        lines, held = self.both(
            "--tee",
            "3",
            "--local-ranks-filter",
            "1",
            "--duplicate-stdout-filters",
            "loss,a,,b",
            "--log-line-prefix-template",
            "<${role_name} ${local_rank} ${rank} $x> ",
            files=["filtered_stdout.log", "0/stdout.log"],
        )
        self.assertEqual([line for line in lines if "noise" in line], ["<default 1 1 $x> noise"])
        self.assertEqual([line.split("> ")[1] for line in held["filtered_stdout.log"]], ["a,b", "loss=1"])

    def test_signals_to_handle(self):
        for worker, _ in self.facts("--signals-to-handle", "SIGTERM,SIGUSR1"):
            self.assertEqual(worker["TORCHELASTIC_SIGNALS_TO_HANDLE"], "SIGTERM,SIGUSR1")


class RealStore(RealCase):
    def test_two_torchruns_meet_on_a_muster_store(self):
        store = self.begin(MUSTER, "store", "--port", "0")
        endpoint = store.stdout.readline().split("listening on ")[1].strip()
        agents = [
            self.begin(
                self.python,
                "-m",
                "torch.distributed.run",
                "--nnodes",
                "2",
                "--nproc_per_node",
                "2",
                "--rdzv_backend",
                "c10d",
                "--rdzv_endpoint",
                endpoint,
                "--rdzv_conf",
                "is_host=0",
                "--rdzv_id",
                "job",
                *self.torchruns_flags(),
                "--log_dir",
                f"{self.folder}/logs-{node}",
                os.path.join(HERE, "collectives.py"),
            )
            for node in range(2)
        ]
        said = [agent.communicate(timeout=DEADLINE)[0] for agent in agents]
        self.assertEqual([agent.returncode for agent in agents], [0, 0], said)
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4: collectives agree", "".join(said))
        self.assertIsNone(store.poll())


if __name__ == "__main__":
    torch_test.main()
