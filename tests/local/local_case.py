# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of `muster local`: jobs in YAML, a run of the command, and its output."""

import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, ".."), os.path.join(HERE, "..", "outer")]

from muster_case import DEADLINE, clean, open_to_all, wait_gone  # noqa: F401  # wait_gone is for the tests

from free_port import free_port

BIN = os.environ.get("MUSTER_BIN", os.path.join(HERE, "..", "..", "build", "bin"))
HANGS = "trap 'echo bye; exit 0' TERM; echo here; while :; do sleep 0.05; done"


def runtime(name, pod, torch=False, spec=""):
    """A runtime with one step, whose pods have the spec `pod`. `spec`: more fields for the JobSet's spec."""
    labels, policy = ("{trainer.kubeflow.org/framework: torch}", "{torch: {}}") if torch else ("{}", "{numNodes: 1}")
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {{name: {name}, labels: {labels}}}
spec:
  mlPolicy: {policy}
  template: {{spec: {{{spec} replicatedJobs: [
    {{name: node, template: {{metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}},
      spec: {{template: {{spec: {{{pod}}}}}}}}}}}]}}}}
"""


def train_job(name, command, nodes=2, processes=1, port=None):
    """A TrainJob with a runtime of its own for torchrun. `port`: of the rendezvous; a free one unless given."""
    pod = f'containers: [{{name: node, image: i, env: [{{name: PET_MASTER_PORT, value: "{port or free_port()}"}}]}}]'
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}}}
spec:
  runtimeRef: {{name: torch, kind: TrainingRuntime}}
  trainer: {{numNodes: {nodes}, numProcPerNode: {processes}, command: {command}}}
---{runtime("torch", pod, torch=True)}"""


def shell(script):
    """A command for YAML. Doubles each $$, since $$ in a pod's command means one $."""
    return f"[sh, -c, {json.dumps(script.replace('$$', '$$$$'))}]"


def plain_job(name, script, nodes=1, more="", runtime_name="plain"):
    """A TrainJob of a command without a framework."""
    kind = "ClusterTrainingRuntime" if runtime_name == "plain" else "TrainingRuntime"
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}}}
spec:
  runtimeRef: {{name: {runtime_name}, kind: {kind}}}
  trainer: {{numNodes: {nodes}, command: {shell(script)}}}
{more}"""


def pytorch_job(name, command, workers=1, run="{}"):
    template = (
        f"restartPolicy: ExitCode, template: {{spec: {{containers: [{{name: pytorch, image: i, command: {command}, "
        f"ports: [{{name: pytorchjob-port, containerPort: {free_port()}}}]}}]}}}}"
    )
    return f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: {name}}}
spec:
  runPolicy: {run}
  pytorchReplicaSpecs:
    Master: {{replicas: 1, {template}}}
    Worker: {{replicas: {workers}, {template}}}
"""


class Job:
    """A running `muster local`, and its output of both streams."""

    def __init__(self, command, **how):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            **how,
        )
        self.said, self.changed = "", threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.said += line
                self.changed.notify_all()

    def await_(self, pattern):
        with self.changed:
            if not self.changed.wait_for(lambda: re.search(pattern, self.said), DEADLINE):
                raise AssertionError(f"{pattern} is not in {self.said}")
            return re.search(pattern, self.said)

    def wait(self):
        code = self.process.wait(DEADLINE)
        self.reader.join(DEADLINE)
        return code

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        self.process.stdout.close()


class LocalCase(unittest.TestCase):
    bin = BIN  # the folder of the programs

    @classmethod
    def setUpClass(cls):
        if shutil.which("bwrap") is None:
            raise unittest.SkipTest("SKIPPED: bubblewrap is not installed")
        tried = subprocess.run(["bwrap", "--bind", "/", "/", "true"], capture_output=True, text=True)
        if tried.returncode:
            raise unittest.SkipTest(f"SKIPPED: bubblewrap does not run here: {tried.stderr.strip()}")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="muster-local-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.count = 0

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def copy_for_all(self):
        """A muster-local in this test's folder that every user can run; a `muster` is beside it, as always."""
        return open_to_all(self.folder, f"{BIN}/muster-local", f"{BIN}/muster")[0]

    def start(self, *files, env=None, arguments=()):
        self.count += 1
        names = [self.file(f"{self.count}-{i}.yaml", text) for i, text in enumerate(files)]
        command = [os.path.join(self.bin, "muster-local"), *arguments]
        for name in names:
            command += ["-f", name]
        job = Job(
            command, cwd=self.folder, env=clean(**{"XDG_STATE_HOME": os.path.join(self.folder, "state"), **(env or {})})
        )
        self.addCleanup(job.end)
        return job

    def processes(self):
        """pidfds of all processes in this test's containers, which have the test's folder mounted."""
        found, own = [], os.readlink("/proc/self/ns/mnt")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                descriptor = os.pidfd_open(int(pid))
                with open(f"/proc/{pid}/mountinfo") as file:
                    inside = os.readlink(f"/proc/{pid}/ns/mnt") != own and f"{self.folder}/" in file.read()
            except OSError:  # it has ended
                continue
            if inside:
                found.append(descriptor)
                self.addCleanup(os.close, descriptor)
            else:
                os.close(descriptor)
        return found

    def assert_gone(self, processes):
        self.assertTrue(processes)
        for process in processes:
            self.assertTrue(select.select([process], [], [], DEADLINE)[0])

    def run_job(self, *files, code=0, **more):
        """Runs the job to its end, and returns its output."""
        job = self.start(*files, **more)
        self.assertEqual(job.wait(), code, job.said)
        return job.said


class CommandCase(LocalCase):
    """With the commands that see and stop jobs."""

    def muster(self, *words, code=0):
        """The output of the command, stdout and stderr."""
        done = subprocess.run(
            [os.path.join(self.bin, "muster"), *words],
            cwd=self.folder,
            timeout=DEADLINE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def row(self, name):
        """The columns of the job's line of `muster ps`."""
        return next(re.split(r"  +", line) for line in self.muster("ps").splitlines() if line.startswith(name + " "))

    def hanging(self, name, **more):
        job = self.start(plain_job(name, HANGS, **more))
        job.await_("] here")
        return job, self.processes()

    def path(self, *parts):
        return os.path.join(self.folder, "state", "muster", "jobs", *parts)


class OpenCase(LocalCase):
    """Without bubblewrap."""

    def start(self, *files, env=None, **more):
        """Starts the job with a PATH that has all programs but bwrap."""
        programs = os.path.join(self.folder, "programs")
        if not os.path.isdir(programs):
            os.mkdir(programs)
            for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
                for name in os.listdir(folder):
                    path = os.path.join(programs, name)
                    if name != "bwrap" and not os.path.lexists(path):
                        os.symlink(os.path.join(folder, name), path)
        return super().start(*files, env={"PATH": programs, **(env or {})}, **more)
