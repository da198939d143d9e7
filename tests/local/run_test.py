# SPDX-License-Identifier: Apache-2.0
"""`muster local` as a user runs it: real processes, in bubblewrap, with the real agent and initializer."""

import os
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import LocalCase, plain_job, pytorch_job, runtime, shell, train_job

import class_runner  # local_case.py says where it is

PLACE = """import os, socket
master = socket.gethostbyname(os.environ["MASTER_ADDR"])
os.write(1, f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} on {socket.gethostname()} {master}\\n".encode())
"""


class Runs(LocalCase):
    def test_a_train_job(self):
        script = self.file("place.py", PLACE)
        said = self.run_job(train_job("here", f"[torchrun, {script}]", processes=2))
        places = sorted(re.findall(r"rank (\d) of 4 on (\S+) (\S+)", said))
        self.assertEqual(
            [(rank, host) for rank, host, _ in places],
            [("0", "here-node-0-0"), ("1", "here-node-0-0"), ("2", "here-node-0-1"), ("3", "here-node-0-1")],
            said,
        )
        self.assertEqual(len({address for *_, address in places}), 1, said)
        self.assertIn("[here-node-0-1] [rank3]:rank 3 of 4", said)
        self.assertIn("TrainJob here: Complete", said)

    def test_a_pytorch_job(self):
        script = self.file("place.py", PLACE)
        said = self.run_job(pytorch_job("pt", f"[torchrun, {script}]", workers=2))
        self.assertEqual(
            sorted(set(re.findall(r"on (pt-\S+)", said))), ["pt-master-0", "pt-worker-0", "pt-worker-1"], said
        )
        self.assertIn("PyTorchJob pt: Succeeded", said)

    def test_a_killed_worker_restarts_all_in_place(self):
        script = self.file(
            "once.py",
            f"""import os, signal
marker = {self.folder!r} + "/killed"
if os.environ["RANK"] == "1" and not os.path.exists(marker):
    open(marker, "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    signal.pause()
print("rank", os.environ["RANK"], "goes on", flush=True)
""",
        )
        said = self.run_job(train_job("killed", f"[torchrun, {script}]"))
        self.assertEqual(sorted(re.findall(r"rank (\d) goes on", said)), ["0", "1"], said)
        self.assertIn("restart 1 of", said)

    def test_a_fatal_code_is_the_jobs(self):
        said = self.run_job(plain_job("fatal", "echo no such data >&2; exit 3", nodes=2), code=3)
        self.assertRegex(said, r"TrainJob fatal: Failed: .*exit code 3")
        self.assertIn("no such data", said)

    def test_a_killed_node_comes_back(self):
        back = f"{self.folder}/back"
        script = f"if [ -e {back} ]; then echo again; exit; fi; touch {back}; kill -9 $PPID; sleep 1000"
        self.assertIn("[node-node-0-0] again", self.run_job(plain_job("node", script)))

    def test_a_whole_pytorch_job_is_made_anew(self):
        """Its command is not torchrun: the other pods learn of the failure from the controller alone."""
        script = (
            f"if [ $RANK = 0 ]; then touch {self.folder}/first; while [ ! -e {self.folder}/second ]; "
            f"do sleep 0.05; done; exit; fi; "
            f"if [ -e {self.folder}/first-worker ]; then touch {self.folder}/second; echo both; exit; fi; "
            f"while [ ! -e {self.folder}/first ]; do sleep 0.05; done; touch {self.folder}/first-worker; kill -9 $$"
        )
        job = pytorch_job("whole", shell(script), run="{backoffLimit: 2}").replace(
            "metadata: {name: whole}", "metadata: {name: whole, annotations: {muster.dev/restart: job}}"
        )
        said = self.run_job(job)
        self.assertIn("all pods are recreated, restart 1 of 2", said)


class Pods(LocalCase):
    def test_volumes_are_where_they_are_mounted_and_each_pods_own(self):
        pod = """
    containers: [{name: node, image: i, volumeMounts: [{name: own, mountPath: /workspace},
      {name: all, mountPath: /everybody/data}, {name: words, mountPath: /etc/words},
      {name: key, mountPath: /srv/key}]}],
    volumes: [{name: own, emptyDir: {}}, {name: all, persistentVolumeClaim: {claimName: shared}},
      {name: words, configMap: {name: words}}, {name: key, secret: {secretName: key}}]"""
        objects = """---
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
        script = (
            "touch /workspace/$(hostname) /dev/shm/$(hostname); echo $(hostname) > "
            "/everybody/data/$JOB_COMPLETION_INDEX; "
            "while [ $(ls /everybody/data | wc -l) -lt 2 ]; do sleep 0.05; done; "
            "echo own $(ls /workspace) $(ls /dev/shm) all $(cat /everybody/data/*) words $(cat "
            "/etc/words/hello) key $(cat /srv/key/token)"
        )
        said = self.run_job(
            plain_job("vol", script, nodes=2, runtime_name="with-volumes"), runtime("with-volumes", pod), objects
        )
        for node in ("vol-node-0-0", "vol-node-0-1"):
            self.assertIn(
                f"[{node}] own {node} {node} all vol-node-0-0 vol-node-0-1 words good morning key secret\n", said
            )
        for path in ("/everybody", "/etc/words", "/srv/key"):
            self.assertFalse(os.path.exists(path), "nothing is made in this machine's own folders")

    def test_data_comes_first(self):
        data = os.path.join(self.folder, "digits")
        os.mkdir(data)
        self.file("digits/a.txt", "one two three")
        with_data = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: with-data}
spec:
  mlPolicy: {numNodes: 2}
  template: {spec: {replicatedJobs: [
    {name: dataset-initializer,
     template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}},
     spec: {template: {spec: {
      containers: [{name: dataset-initializer, image: muster-initializer,
        volumeMounts: [{name: w, mountPath: /workspace}]}],
      volumes: [{name: w, persistentVolumeClaim: {claimName: w}}]}}}}},
    {name: node, dependsOn: [{name: dataset-initializer, status: Complete}],
     template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {
      containers: [{name: node, image: i, volumeMounts: [{name: w, mountPath: /workspace}]}],
      volumes: [{name: w, persistentVolumeClaim: {claimName: w}}]}}}}}]}}
"""
        job = plain_job(
            "data",
            "cat /workspace/dataset/a.txt",
            nodes=2,
            runtime_name="with-data",
            more=f"  initializer: {{dataset: {{storageUri: 'file://{data}'}}}}\n",
        )
        for image in ("muster-initializer", "ghcr.io/kubeflow/trainer/dataset-initializer:v2.1.0"):
            with self.subTest(image):
                said = self.run_job(job, with_data.replace("image: muster-initializer", f"image: {image}"))
                for node in ("data-node-0-0", "data-node-0-1"):
                    self.assertIn(f"[{node}] one two three", said)

    def test_sidecars_probes_and_a_deadline(self):
        """A sidecar ends after the other containers. A pod is stopped at its deadline."""
        pod = """
    volumes: [{name: v, emptyDir: {}}],
    initContainers: [{name: side, image: i, restartPolicy: Always, volumeMounts: [{name: v, mountPath: /srv/v}],
      startupProbe: {exec: {command: [test, -e, /srv/v/trapped]}, periodSeconds: 1},
      command: [sh, -c, "trap 'echo side ends; exit 0' TERM; touch /srv/v/trapped; while :; do sleep 0.05; done"]}],
    containers: [{name: node, image: i, volumeMounts: [{name: v, mountPath: /srv/v}],
      readinessProbe: {exec: {command: [nothing]}}}]"""
        once = "failurePolicy: {maxRestarts: 0},"
        job = plain_job(
            "beside", "while [ ! -e /srv/v/trapped ]; do sleep 0.05; done; echo trained", runtime_name="beside"
        )
        said = self.run_job(job, runtime("beside", pod, spec=once))
        self.assertRegex(said, r"(?s)trained.*side ends")
        job = plain_job("late", "sleep 1000", runtime_name="beside")
        said = self.run_job(job, runtime("beside", "activeDeadlineSeconds: 20," + pod, spec=once), code=143)
        self.assertIn("TrainJob late: Failed", said)

    def test_a_pause_before_the_next_start_is_said(self):
        job = self.start(
            pytorch_job("pauses", shell("exit 3"))
            .replace("restartPolicy: ExitCode", "restartPolicy: OnFailure")
            .replace("metadata: {name: pauses}", 'metadata: {name: pauses, annotations: {muster.dev/agent: "off"}}')
        )
        job.await_("BackOff: pauses-master-0: container pytorch has ended: exit code 3; it starts again in 10 s")

    def test_a_volume_in_memory(self):
        """/dev/shm of a fixed size, as jobs with data loaders have it."""
        pod = (
            "containers: [{name: node, image: i, volumeMounts: [{name: shm, mountPath: /dev/shm}]}], "
            "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 3Mi}}]"
        )
        script = (
            "echo $(stat -f -c %T /dev/shm) $(($(stat -f -c '%b * %S' /dev/shm))) bytes; : > /dev/shm/file; "
            "head -c 4M /dev/zero > /dev/shm/file || echo full; df /dev/shm | tail -1"
        )
        said = self.run_job(plain_job("shm", script, runtime_name="shm"), runtime("shm", pod))
        self.assertIn("[shm-node-0-0] tmpfs 3145728 bytes", said)
        self.assertIn("[shm-node-0-0] full", said)
        self.assertNotIn("not honoured here: spec.volumes", said)


class Words(LocalCase):
    def test_few_lines_come_before_the_programs_first(self):
        script = self.file("first.py", "print('first', flush=True)")
        said = self.run_job(train_job("few", f"[torchrun, {script}]", nodes=1, processes=2))
        before = said[: said.index("first")]
        self.assertLessEqual(len([line for line in before.splitlines() if line.startswith("[few-node-0-0]")]), 4, said)
        self.assertNotIn("nothing written", said)
        self.assertNotIn("OMP_NUM_THREADS", said)

    def test_a_failure_is_said_once(self):
        said = self.run_job(plain_job("once", "exit 3"), code=3)
        lines = [line for line in said.splitlines() if line.startswith("muster local: ") and "exit code 3" in line]
        self.assertEqual(len(lines), 1, said)
        self.assertIn("muster local: TrainJob once: Failed: ", lines[0])

    def test_a_sidecars_end_is_not_the_pods(self):
        side = (
            "initContainers: [{name: side, image: i, restartPolicy: Always, command: [sleep, infinity]}], "
            "containers: [{name: node, image: i}]"
        )
        said = self.run_job(plain_job("beside", "echo trained", runtime_name="beside"), runtime("beside", side))
        self.assertRegex(said, r"beside-node-0-0  success after ")


class Flags(LocalCase):
    def test_what_they_change(self):
        script = "echo $1 $A $(pwd) $(cat /srv/key/token) of $PET_NNODES"
        pod = (
            "containers: [{name: node, image: i, volumeMounts: [{name: key, mountPath: /srv/key}]}], "
            "volumes: [{name: key, secret: {secretName: key}}]"
        )
        os.mkdir(os.path.join(self.folder, "key"))
        self.file("key/token", "secret")
        os.mkdir(os.path.join(self.folder, "work"))
        job = plain_job("flags", script, runtime_name="keyed")
        said = self.run_job(
            job,
            runtime("keyed", pod, torch=True),
            arguments=[
                "--nodes",
                "2",
                "--env",
                "A=value",
                "--workdir",
                "work",
                "--secret",
                f"key={self.folder}/key",
                "--set",
                "spec.trainer.args=[sh, given]",
            ],
        )
        for node in (0, 1):
            self.assertIn(f"[flags-node-0-{node}] given value {self.folder}/work secret of 2\n", said)

    def test_a_folder_of_files(self):
        os.mkdir(os.path.join(self.folder, "files"))
        self.file(
            "files/b.yaml",
            runtime("mine", "containers: [{name: node, image: i, env: [{name: A, value: of-the-runtime}]}]"),
        )
        self.file("files/a.yml", plain_job("folder", "echo $A", runtime_name="mine"))
        self.file("files/notes.txt", "no: [yaml")
        self.assertIn(
            "[folder-node-0-0] of-the-runtime", self.run_job(arguments=["-f", os.path.join(self.folder, "files")])
        )
        os.mkdir(os.path.join(self.folder, "none"))
        self.assertIn(
            "the folder has no .yaml, .yml or .json file",
            self.run_job(arguments=["-f", os.path.join(self.folder, "none")], code=78),
        )

    def test_a_generated_name(self):
        names = set()
        for _ in range(2):
            said = self.run_job(plain_job("gen", "echo $TRAINER_JOB_ID").replace("{name: gen}", "{generateName: gen-}"))
            names.add(re.search(r"TrainJob (gen-[a-z0-9]{5}): Complete", said)[1])
        self.assertEqual(len(names), 2)

    def test_each_run_has_an_id_of_its_own(self):
        ids = {
            re.search(r"] id (\S+)", self.run_job(train_job("ids", '[sh, -c, "echo id $(TRAINER_JOB_ID)"]', nodes=1)))[
                1
            ]
            for _ in range(2)
        }
        self.assertEqual(len(ids), 2)

    def test_a_dry_run_prints_the_plan(self):
        said = self.run_job(plain_job("dry", "exit 3"), arguments=["--dry-run", "--nodes", "3"])
        self.assertIn("kind: Job", said)
        self.assertIn("completions: 3", said)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "state")))

    def test_wrong_ones(self):
        rows = [
            (["--nodes", "0"], "--nodes: want at least 1"),
            (["--env", "A"], "want NAME=VALUE"),
            (["--secret", "a"], "want NAME=FOLDER"),
            (["--secret", "a=/nowhere"], "/nowhere: No such file"),
            (["--workdir", "/nowhere"], "--workdir '/nowhere': No such file"),
            (["--set", "spec"], "it has no '='"),
        ]
        for arguments, message in rows:
            with self.subTest(message):
                self.assertIn(message, self.run_job(plain_job("wrong", "true"), code=78, arguments=arguments))


# Stays in its first attempts, as many as are named.
WAITS = """import os, signal, sys
if int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < int(sys.argv[1]):
    signal.pause()
print("rank", os.environ["RANK"], "goes on", flush=True)
"""


class Standbys(LocalCase):
    """An annotation asks for them. A drill kills rank 0 once a standby is ready."""

    def run_with(self, job, *drills, more=""):
        name = "metadata: {name: warm"
        job = job.replace(name, f"{name}, annotations: {{muster.dev/standby-workers: auto{more}}}")
        arguments = ["--procs", "1", "--kill", "rank:0@a standby worker is ready", *drills]
        for setting in ("MUSTER_STANDBY_DELAY=0s", "MUSTER_STANDBY_IMPORTS=json", "MUSTER_LOG_LEVEL=debug"):
            arguments += ["--env", setting]
        said = self.run_job(job, arguments=arguments)
        self.assertIn("1 of 1 worker began in a standby", said)
        return sorted(re.findall(r"rank (\d) goes on", said))

    def test_of_a_train_job(self):
        """A second drill finds the worker that began in a standby, whose process was started without a rank."""
        job = train_job("warm", f"[torchrun, {self.file('waits.py', WAITS)}, '2']", nodes=1)
        self.assertEqual(self.run_with(job, "--kill", "rank:0@1 of 1 worker began in a standby"), ["0"])

    def test_of_a_pytorch_job(self):
        """Of one pod: with more, a standby may be ready before there is a rank."""
        job = pytorch_job("warm", f"[torchrun, {self.file('waits.py', WAITS)}, '1']").partition("    Worker: ")[0]
        self.assertEqual(self.run_with(job, more=", muster.dev/restart: job"), ["0"])


# Rank 0 stays in each epoch that is named until a drill ends its life; rank 1 ends after it. So both are there for a
# drill.
EPOCHS = """import os, signal, sys
folder, *stays = sys.argv[1:]
rank, path = os.environ["RANK"], folder + "/epoch"
def reached():
    return int(open(path).read()) if os.path.exists(path) else 0
for epoch in range(reached(), 7):
    mark = f"{folder}/stayed-{epoch}"
    stay = rank == "0" and str(epoch) in stays and not os.path.exists(mark)
    if stay:
        open(mark, "w").close()
    os.write(1, f"rank {rank} epoch {epoch}\\n".encode())
    if stay:
        signal.pause()
    if rank == "0":
        with open(path + ".new", "w") as file:
            file.write(str(epoch))
        os.rename(path + ".new", path)
    os.popen("sleep 0.2").read()
while reached() < 6:
    os.popen("sleep 0.05").read()
"""


class Drills(LocalCase):
    def run_with(self, *drills, code=0):
        script = self.file("epochs.py", EPOCHS)
        arguments = [word for drill in drills for word in ("--kill", drill)]
        stays = "".join(f", '{epoch}'" for drill in drills for epoch in re.findall(r"@rank 0 epoch (\d)$", drill))
        return self.run_job(
            train_job("drill", f"[torchrun, {script}, {self.folder}{stays}]"), arguments=arguments, code=code
        )

    def survives(self, *drills):
        said = self.run_with(*drills)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} epoch 6", said)
        return said

    def test_a_rank_and_a_node_are_killed(self):
        said = self.survives("rank:1@rank 0 epoch 2", "node:1@rank 0 epoch 4")
        self.assertIn("drill rank:1@rank 0 epoch 2: SIGKILL to rank 1 on drill-node-0-1", said)
        self.assertIn("drill node:1@rank 0 epoch 4: SIGKILL to node 1 on drill-node-0-1", said)
        self.assertIn("worker rank 1 was killed by SIGKILL", said)
        self.assertIn("PodFailed", said)
        self.assertRegex(said, r"drill-node-0-1  exit code 137 .* after .* s, then success after ")

    def test_by_time(self):
        script = self.file("epochs.py", EPOCHS)
        job = self.start(
            train_job("drill", f"[torchrun, {script}, {self.folder}]"), arguments=["--kill", "node:0@300ms"]
        )
        code = job.wait()
        self.assertIn("drill node:0@300ms: ", job.said)
        # On a busy machine node 0 may not run yet by then.
        self.assertEqual(code, 0 if "SIGKILL to node 0" in job.said else 92, job.said)

    def test_what_cannot_happen_is_refused(self):
        for drill, why in (
            ("rank:2@epoch 1", "there is no rank 2: the job's ranks are 0 to 1"),
            ("node:2@1s", "there is no node 2: the job's nodes are 0 to 1"),
        ):
            with self.subTest(drill):
                said = self.run_with(drill, code=78)
                self.assertIn(f"--kill '{drill}': {why}", said)
                self.assertNotIn("rank 0 epoch", said)

    def test_what_did_not_happen_fails_a_run_that_succeeded(self):
        said = self.run_with("rank:1@epoch 77", "node:0@1000m", code=92)
        self.assertIn("the drill did not happen: rank:1@epoch 77: no line of output has its text", said)
        self.assertIn("TrainJob drill: Complete\n", said)

    def test_the_code_of_a_failed_job_stays(self):
        script = f"echo here; while [ ! -e {self.folder}/go ]; do sleep 0.05; done; exit 3"
        job = self.start(plain_job("none", script), arguments=["--kill", "rank:0@here"])
        job.await_("drill rank:0@here: no rank 0 runs")
        self.file("go", "")
        self.assertEqual(job.wait(), 3)
        self.assertIn("the drill did not happen: rank:0@here: no rank 0 runs", job.said)

    def test_a_wrong_one(self):
        self.assertIn(
            "--kill 'node:1': it does not say when",
            self.run_job(plain_job("wrong", "true"), code=78, arguments=["--kill", "node:1"]),
        )


class Ends(LocalCase):
    def hanging(self, name):
        job = self.start(
            plain_job(name, "trap 'echo bye; exit 0' TERM; echo here; while :; do sleep 0.05; done", nodes=2)
        )
        job.await_(r"(?s)] here.*] here")
        return job, self.processes()

    def test_told_to_end(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                job, processes = self.hanging(f"told-{int(number)}")
                job.process.send_signal(number)
                self.assertEqual(job.wait(), 128 + number, job.said)
                self.assertEqual(job.said.count("bye"), 2, job.said)
                self.assert_gone(processes)

    def test_told_twice(self):
        job = self.start(plain_job("twice", "trap '' TERM; echo here; while :; do sleep 0.05; done"))
        job.await_("] here")
        processes = self.processes()
        job.process.send_signal(signal.SIGINT)
        job.process.send_signal(signal.SIGTERM)
        self.assertIn(job.wait(), (130, 143), job.said)
        self.assert_gone(processes)

    def test_nothing_stays_after_a_killed_run(self):
        job, processes = self.hanging("killed")
        job.process.kill()
        job.wait()
        self.assert_gone(processes)
        self.assertIn("fine", self.run_job(plain_job("killed", "echo fine")))

    def test_killed_with_processes_that_the_container_has_started(self):
        job = self.start(plain_job("deep", "sh -c 'sleep 1000; true' & echo here; wait"))
        job.await_("] here")
        processes = self.processes()
        job.process.kill()
        job.wait()
        self.assert_gone(processes)

    def test_two_of_one_name(self):
        self.hanging("name")
        said = self.run_job(plain_job("name", "true"), code=78)
        self.assertIn("a job 'name' runs here already", said)


if __name__ == "__main__":
    class_runner.main()
