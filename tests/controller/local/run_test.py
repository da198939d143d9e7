"""`muster local` as a user runs it: real processes, in bubblewrap, with the real agent and initializer."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..", "..", "outer")]

import class_runner  # noqa: E402
from muster_case import DEADLINE, clean, wait_gone  # noqa: E402

BIN = os.environ.get("MUSTER_BIN", os.path.join(HERE, "..", "..", "..", "build", "bin"))
PLACE = """import os, socket
master = socket.gethostbyname(os.environ["MASTER_ADDR"])
os.write(1, f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} on {socket.gethostname()} {master}\\n".encode())
"""


def train_job(name, command, nodes=2, processes=1, runtime="torch-distributed", more=""):
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}}}
spec:
  runtimeRef: {{name: {runtime}}}
  trainer: {{numNodes: {nodes}, numProcPerNode: {processes}, command: {command}}}
{more}"""


def shell(script):
    """A command for YAML. In a pod's command $$ is one $."""
    return f"[sh, -c, {json.dumps(script.replace('$$', '$$$$'))}]"


def plain_job(name, script, nodes=1, more=""):
    """Of a command without a framework."""
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}}}
spec:
  runtimeRef: {{name: plain}}
  trainer: {{numNodes: {nodes}, command: {shell(script)}}}
{more}"""


def pytorch_job(name, command, workers=1, run="{}"):
    template = f"restartPolicy: ExitCode, template: {{spec: {{containers: [{{name: pytorch, image: i, command: {command}}}]}}}}"
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


class LocalCase(unittest.TestCase):
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

    def start(self, *files, env=None, arguments=()):
        """The process; its output, both streams, goes to the file `self.log`."""
        self.count += 1
        names = [self.file(f"{self.count}-{i}.yaml", text) for i, text in enumerate(files)]
        self.log = os.path.join(self.folder, f"{self.count}.log")
        command = [os.path.join(BIN, "muster-local"), *arguments]
        for name in names:
            command += ["-f", name]
        with open(self.log, "w") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
                                       env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state"), **(env or {})))
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
            process.wait()

    def output(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def run_job(self, *files, code=0, **more):
        """Runs it to its end; what it has said."""
        process = self.start(*files, **more)
        self.assertEqual(process.wait(DEADLINE), code, self.output())
        return self.output()

    def wait_for(self, pattern, log=None):
        log = log or self.log
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            with open(log, errors="replace") as file:
                if found := re.search(pattern, file.read()):
                    return found
            time.sleep(0.02)
        return self.fail(f"{pattern} is not in {self.output()}")


class Runs(LocalCase):
    def test_a_train_job(self):
        script = self.file("place.py", PLACE)
        said = self.run_job(train_job("here", f"[torchrun, {script}]", processes=2))
        places = sorted(re.findall(r"rank (\d) of 4 on (\S+) (\S+)", said))
        self.assertEqual([(rank, host) for rank, host, _ in places],
                         [("0", "here-node-0-0"), ("1", "here-node-0-0"), ("2", "here-node-0-1"), ("3", "here-node-0-1")], said)
        self.assertEqual(len({address for *_, address in places}), 1, said)
        self.assertIn("[here-node-0-1] rank 3 of 4", said)
        self.assertIn("TrainJob here: Complete", said)

    def test_a_pytorch_job(self):
        script = self.file("place.py", PLACE)
        said = self.run_job(pytorch_job("pt", f"[torchrun, {script}]", workers=2))
        self.assertEqual(sorted(set(re.findall(r"on (pt-\S+)", said))), ["pt-master-0", "pt-worker-0", "pt-worker-1"], said)
        self.assertIn("PyTorchJob pt: Succeeded", said)

    def test_a_killed_worker_restarts_all_in_place(self):
        script = self.file("once.py", f"""import os, signal, sys, time
marker = {self.folder!r} + "/killed"
if os.environ["RANK"] == "1" and not os.path.exists(marker):
    open(marker, "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    time.sleep(1000)
print("rank", os.environ["RANK"], "goes on", flush=True)
""")
        said = self.run_job(train_job("killed", f"[torchrun, {script}]"))
        self.assertEqual(sorted(re.findall(r"rank (\d) goes on", said)), ["0", "1"], said)
        self.assertIn("restart 1 of", said)

    def test_a_fatal_code_is_the_jobs(self):
        said = self.run_job(plain_job("fatal", "echo no such data >&2; exit 3", nodes=2), code=3)
        self.assertRegex(said, r"TrainJob fatal: Failed: .*exit code 3")
        self.assertIn("no such data", said)

    def test_a_killed_node_comes_back(self):
        script = f"""if [ -e {self.folder}/back ]; then echo again; exit; fi; touch {self.folder}/back; echo first $PPID; sleep 1000"""
        process = self.start(plain_job("node", script))
        agent = int(self.wait_for(r"first (\d+)")[1])
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(process.wait(DEADLINE), 0, self.output())
        self.assertIn("[node-node-0-0] again", self.output())

    def test_a_whole_pytorch_job_is_made_anew(self):
        """Its command is no torchrun: peers hear of the failure by the controller alone."""
        script = (f'if [ $RANK = 0 ]; then touch {self.folder}/first; while [ ! -e {self.folder}/second ]; do sleep 0.05; done; exit; fi; '
                  f'if [ -e {self.folder}/first-worker ]; then touch {self.folder}/second; echo both; exit; fi; '
                  f'while [ ! -e {self.folder}/first ]; do sleep 0.05; done; touch {self.folder}/first-worker; kill -9 $$')
        job = pytorch_job("whole", shell(script), run="{backoffLimit: 2}").replace(
            "metadata: {name: whole}", 'metadata: {name: whole, annotations: {muster.dev/restart: job}}')
        said = self.run_job(job)
        self.assertIn("all pods are made anew, restart 1 of 2", said)


class Pods(LocalCase):
    def test_volumes_are_where_they_are_mounted_and_each_pods_own(self):
        runtime = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: with-volumes}
spec:
  mlPolicy: {numNodes: 2}
  template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {
    containers: [{name: node, image: i, volumeMounts: [{name: own, mountPath: /workspace}, {name: all, mountPath: /everybody/data},
      {name: words, mountPath: /etc/words}, {name: key, mountPath: /srv/key}]}],
    volumes: [{name: own, emptyDir: {}}, {name: all, persistentVolumeClaim: {claimName: shared}}, {name: words, configMap: {name: words}},
      {name: key, secret: {secretName: key}}]}}}}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {hello: good morning}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
data: {token: c2VjcmV0}
"""
        script = ('touch /workspace/$(hostname) /dev/shm/$(hostname); echo $(hostname) > /everybody/data/$JOB_COMPLETION_INDEX; '
                  'while [ $(ls /everybody/data | wc -l) -lt 2 ]; do sleep 0.05; done; '
                  'echo own $(ls /workspace) $(ls /dev/shm) all $(cat /everybody/data/*) words $(cat /etc/words/hello) key $(cat /srv/key/token)')
        job = plain_job("vol", script, nodes=2).replace("{name: plain}", "{name: with-volumes, kind: TrainingRuntime}")
        said = self.run_job(job, runtime)
        for node in ("vol-node-0-0", "vol-node-0-1"):
            self.assertIn(f"[{node}] own {node} {node} all vol-node-0-0 vol-node-0-1 words good morning key secret\n", said)
        for path in ("/everybody", "/etc/words", "/srv/key"):
            self.assertFalse(os.path.exists(path), "nothing is made in this machine's own folders")

    def test_data_comes_first(self):
        data = os.path.join(self.folder, "digits")
        os.mkdir(data)
        self.file("digits/a.txt", "one two three")
        runtime = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: with-data}
spec:
  mlPolicy: {numNodes: 2}
  template: {spec: {replicatedJobs: [
    {name: dataset-initializer, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}, spec: {template: {spec: {
      containers: [{name: dataset-initializer, image: muster-initializer, volumeMounts: [{name: w, mountPath: /workspace}]}],
      volumes: [{name: w, persistentVolumeClaim: {claimName: w}}]}}}}},
    {name: node, dependsOn: [{name: dataset-initializer, status: Complete}],
     template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {
      containers: [{name: node, image: i, volumeMounts: [{name: w, mountPath: /workspace}]}],
      volumes: [{name: w, persistentVolumeClaim: {claimName: w}}]}}}}}]}}
"""
        job = plain_job("data", "cat /workspace/dataset/a.txt", nodes=2, more=f"  initializer: {{dataset: {{storageUri: 'file://{data}'}}}}\n")
        said = self.run_job(job.replace("{name: plain}", "{name: with-data, kind: TrainingRuntime}"), runtime)
        for node in ("data-node-0-0", "data-node-0-1"):
            self.assertIn(f"[{node}] one two three", said)


class Ends(LocalCase):
    def hanging(self, name):
        process = self.start(plain_job(name, "echo pid $$; trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done", nodes=2))
        self.wait_for(r"(?s)pid \d+.*pid \d+")
        return process, [int(pid) for pid in re.findall(r"pid (\d+)", self.output())]

    def test_told_to_end(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                process, pids = self.hanging(f"told-{int(number)}")
                process.send_signal(number)
                self.assertEqual(process.wait(DEADLINE), 128 + number, self.output())
                self.assertEqual(self.output().count("bye"), 2)
                for pid in pids:
                    self.assertTrue(wait_gone(pid))

    def test_told_twice(self):
        process = self.start(plain_job("twice", "trap '' TERM; echo pid $$; while :; do sleep 0.05; done"))
        pid = int(self.wait_for(r"pid (\d+)")[1])
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        self.assertIn(process.wait(DEADLINE), (130, 143), self.output())
        self.assertTrue(wait_gone(pid))

    def test_killed(self):
        process, pids = self.hanging("killed")
        process.kill()
        process.wait()
        for pid in pids:
            self.assertTrue(wait_gone(pid))
        self.assertIn("fine", self.run_job(plain_job("killed", "echo fine")))

    def test_two_of_one_name(self):
        first, _ = self.hanging("name")
        said = self.run_job(plain_job("name", "true"), code=78)
        self.assertIn("a job 'name' runs here already", said)
        first.kill()


class BadInput(LocalCase):
    def test_what_is_wrong_is_said(self):
        rows = [("kind: [", "1-0.yaml:1"), ("{}", "kind: it is missing"),
                (plain_job("a", "x").replace("{name: plain}", "{name: plane}"), "ClusterTrainingRuntime 'plane' is in none of the files"),
                (plain_job("a", "x").replace("numNodes: 1", "numNodes: one"), "spec.trainer.numNodes: 'one'"),
                (plain_job("a", "x") + "---" + plain_job("b", "x"), "give one at a time"),
                (pytorch_job("a", "[x]").replace("replicas: 1", "replicas: 2"), "must be 1")]
        for text, message in rows:
            with self.subTest(message):
                self.count = 0
                self.assertIn(message, self.run_job(text, code=78))

    def test_what_a_pod_lacks(self):
        runtime = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: keyed}
spec:
  mlPolicy: {numNodes: 1}
  template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {
    containers: [{name: node, image: i, envFrom: [{secretRef: {name: key}}]}]}}}}}]}}
"""
        job = plain_job("lacks", "true").replace("{name: plain}", "{name: keyed, kind: TrainingRuntime}")
        process = self.start(job, runtime)
        self.wait_for("there is no Secret 'key'")
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE)

    def test_no_bubblewrap(self):
        said = self.run_job(plain_job("none", "true"), code=78, env={"PATH": self.folder})
        self.assertIn("install bubblewrap", said)


if __name__ == "__main__":
    class_runner.main()
