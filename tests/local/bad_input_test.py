# SPDX-License-Identifier: Apache-2.0
"""`muster local` with a wrong file, flag or machine: each message names the place and the remedy."""

import json
import os
import re
import socket
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import BIN, DEADLINE, LocalCase, clean, free_port, plain_job, pytorch_job, runtime, train_job

import class_runner  # local_case.py says where it is

JOB = plain_job("a", "echo it has run")


class Bad(LocalCase):
    def says(self, message, *files, code=78, **more):
        """Runs the job and checks its message. The files get the names 1-0.yaml, 1-1.yaml."""
        self.count = 0
        said = self.run_job(*files, code=code, **more)
        self.assertIn(message, said)
        return said


class BadFiles(Bad):
    def test_what_is_wrong_is_said(self):
        many = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{b}: &{b} [{','.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefg", "bcdefgh")
        )
        rows = [
            ("kind: [", "1-0.yaml:1:1: end of sequence flow not found"),
            ("a: b: c", "1-0.yaml:1:5: "),
            ("{}", "kind: it is missing"),
            ("a: 1\na: 2", "1-0.yaml:2:1: "),
            ("a: *b", "1-0.yaml:1:4: the referenced anchor is not defined"),
            (many, "1-0.yaml:"),
            ("[" * 200, "1-0.yaml:1:"),
            ("", "1-0.yaml: there is no TrainJob and no PyTorchJob"),
            ("---\n\n---\n# nothing\n", "1-0.yaml: there is no TrainJob and no PyTorchJob"),
            ("[1, 2]", "1-0.yaml:1"),
            (JOB.replace("kind: TrainJob", "kind: TrainJobs"), "1-0.yaml: there is no TrainJob"),
            (
                JOB.replace("name: plain,", "name: plane,"),
                "1-0.yaml:6: spec.runtimeRef: ClusterTrainingRuntime 'plane' is in none of the files; they have: ",
            ),
            (
                JOB.replace("name: plain,", "name: plane,"),
                "The nearest: ClusterTrainingRuntime 'plain'. Name that, or give its file with -f",
            ),
            (
                JOB.replace("kind: ClusterTrainingRuntime", "kind: TrainingRuntime"),
                "The nearest: ClusterTrainingRuntime 'plain'.",
            ),
            (JOB.replace("numNodes: 1", "numNodes: one"), "1-0.yaml:7: spec.trainer.numNodes: 'one' is no"),
            (JOB.replace("numNodes: 1", "numNodes: -1"), "spec.trainer.numNodes: -1 is less than 1"),
            (JOB.replace("numNodes: 1", "numNodes: 1.5"), "spec.trainer.numNodes: 1.5 is not a whole number"),
            (
                JOB.replace("numNodes: 1", "numNodes: 99999999999999999999"),
                "spec.trainer.numNodes: 1e+20 is not a whole number",
            ),
            (
                JOB.replace("numNodes: 1", "numNodes: 10000"),
                "the job has 10000 pods; one machine runs at most 1000; set fewer nodes with --nodes",
            ),
            (JOB.replace("[sh", "[true, sh"), "spec.trainer.command[0]: true is not a string; put it in quotes"),
            (JOB.replace("command: [", "command: {a: [").rstrip() + "}", "1-0.yaml:"),
            (JOB + "---" + plain_job("b", "x"), "give one at a time"),
            (
                JOB.replace("kind: TrainJob", "kind: TFJob"),
                "1-0.yaml:3: kind: TFJob is not read; write a TrainJob of the runtime plain",
            ),
            (JOB.replace("kind: TrainJob", "kind: MPIJob"), "`muster init mpi` writes one to begin with"),
            (pytorch_job("a", "[x]").replace("replicas: 1", "replicas: 2"), "must be 1"),
            (pytorch_job("a", "[x]").replace("name: pytorch,", "name: torch,"), "1-0.yaml:"),
        ]
        rows += [
            (JOB.replace("{name: a}", f"{{name: {json.dumps(name)}}}"), "1-0.yaml:4: metadata.name: ")
            for name in ("../../away", "a/b", ".", "..", "", "A", "x" * 64, "a\nb", "a\0b", "-a", "ä")
        ]
        for text, message in rows:
            with self.subTest(message, text=text[:200]):
                self.assertNotIn("it has run", self.says(message, text))
        self.assertFalse(
            os.path.exists(os.path.join(self.folder, "state", "muster", "jobs")), "nothing is made for them"
        )

    def test_what_is_odd_and_fine(self):
        spec = JOB[JOB.index("spec:") :]
        rows = [
            ("---\n---\n# a comment\n" + JOB + "\n---\n", ""),
            (
                "---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"
                "metadata: &m {name: a, labels: &l {x: z}, annotations: *l}\n" + spec,
                "",
            ),
            (
                JOB.replace("  trainer:", "  trainr: {}\n  trainer:"),
                "1-0.yaml:7: spec.trainr: is not a field of a TrainJob: it is ignored; the nearest is 'trainer'",
            ),
            ("\ufeff" + JOB, ""),
        ]
        for text, message in rows:
            with self.subTest(message, text=text[:80]):
                self.assertIn("it has run", self.says(message, text, code=0))

    def test_what_a_pod_lacks_is_said_before_any_starts(self):
        def pod(more):
            return runtime("keyed", "containers: [{name: node, image: i, " + more + "}]")

        config_map = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: words}, data: {hello: good morning}}\n"
        rows = [
            (
                pod("envFrom: [{secretRef: {name: key}}]"),
                (
                    "spec.containers[0].envFrom[0].secretRef.name: there is no Secret 'key': "
                    "give it by --secret key=DIR, or as a file by -f"
                ),
            ),
            (
                pod("envFrom: [{configMapRef: {name: w}}]"),
                "there is no ConfigMap 'w': give it by --config-map w=DIR, or as a file by -f",
            ),
            (
                pod("env: [{name: A, valueFrom: {configMapKeyRef: {name: words, key: hallo}}}]") + config_map,
                "ConfigMap 'words' has no key 'hallo'; it has 'hello'",
            ),
            (pod("workingDir: here"), "spec.containers[0].workingDir: 'here' is not an absolute path"),
            (
                runtime(
                    "keyed",
                    f"containers: [{{name: node, image: i}}], volumes: [{{name: v, hostPath: "
                    f"{{path: {self.folder}/none}}}}]",
                ),
                "spec.volumes[0].hostPath: '"
                + self.folder
                + "/none' does not exist on this machine; create it, or give it the type DirectoryOrCreate",
            ),
        ]
        job = plain_job("a", "echo it has run", runtime_name="keyed")
        for text, message in rows:
            with self.subTest(message):
                self.assertNotIn("it has run", self.says(message, job, text))
        without_command = re.sub(r", command: .*}", "}", JOB)
        self.says(
            "the entrypoint of image 'debian:12-slim' is unknown; give `command`, or the image with --oci FILE",
            without_command,
        )

    def test_a_secret_that_several_nodes_lack(self):
        """Their agents meet, for which the job creates a Secret of its own."""
        env = "env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: nosuch, key: token}}}]"
        for more in (env, "envFrom: [{secretRef: {name: nosuch}}]"):
            pytorch = pytorch_job("a", "[echo, it has run]", workers=2).replace("image: i,", f"image: i, {more},")
            torch = runtime("torch", f"containers: [{{name: node, image: i, {more}}}]", torch=True)
            for job, *files in ([pytorch], [plain_job("a", "echo it has run", nodes=2, runtime_name="torch"), torch]):
                with self.subTest(more, job=job[:60]):
                    self.assertNotIn(
                        "it has run",
                        self.says("there is no Secret 'nosuch': give it by --secret nosuch=DIR", job, *files),
                    )

    def test_a_job_that_waits_for_ever(self):
        for job, field in (
            (JOB.rstrip() + "\n  suspend: true\n", "spec.suspend"),
            (pytorch_job("a", "[echo, it has run]", run="{suspend: true}"), "spec.runPolicy.suspend"),
        ):
            with self.subTest(field):
                self.assertNotIn(
                    "it has run",
                    self.says(
                        f"{field}: true: the job would never begin, since nothing here resumes it; "
                        f"run it with --set {field}=false",
                        job,
                    ),
                )
                self.run_job(job, arguments=["--set", f"{field}=false"])

    def test_a_pod_that_cannot_start_ends_the_run(self):
        """What is found at its start alone is final, too."""
        folder = os.path.join(self.folder, "goes")
        os.mkdir(folder)
        pod = (
            f"containers: [{{name: node, image: i}}], volumes: [{{name: v, hostPath: {{path: {folder}, type: "
            f"Directory}}}}]"
        )
        job = plain_job("a", f"rmdir {folder}; kill -9 $PPID", runtime_name="goes")
        said = self.says(f"'{folder}' does not exist on this machine", job, runtime("goes", pod))
        self.assertEqual(said.count("does not exist on this machine"), 1, said)
        self.assertRegex(said, "TrainJob a: Failed.*does not exist on this machine")

    def test_a_working_folder_that_is_not_there_is_made_for_the_pod(self):
        pod = "containers: [{name: node, image: i, workingDir: /nowhere/at/all}]"
        said = self.run_job(plain_job("a", "pwd; touch x; ls", runtime_name="away"), runtime("away", pod))
        self.assertRegex(said, r"(?s)\[a-node-0-0\] /nowhere/at/all\n.*\[a-node-0-0\] x\n")
        self.assertFalse(os.path.exists("/nowhere"), "nothing is made among this machine's own")


class BadFlags(Bad):
    def test_what_is_wrong_is_said(self):
        self.file("plain-file", "")
        os.mkdir(os.path.join(self.folder, "secret"))
        rows = [
            (["--nodes", "0"], "--nodes: want at least 1"),
            (["--nodes", "-1"], "--nodes: want at least 1"),
            (["--procs", "0"], "--procs: want at least 1"),
            (["--nodes", "5000"], "the job has 5000 pods"),
            (["--env", "A"], "--env 'A': want NAME=VALUE"),
            (["--env", "=b"], "--env '=b': want NAME=VALUE"),
            (["--set", "spec"], "--set 'spec': it has no '='"),
            (["--set", "spec.trainer.command[x]=1"], "'command[x]' is not an entry of a list"),
            (["--set", "spec.trainer.command[-1]=1"], "'command[-1]' is not an entry of a list"),
            (["--set", "spec.trainer.command[100000]=1"], "is not an entry of a list"),
            (["--set", "spec.trainer.command.a=1"], "'a' has no fields"),
            (["--set", "spec.trainer.command={"], "--set 'spec.trainer.command={': "),
            (["--set", "metadata.name=../../away"], "1-0.yaml:4: metadata.name: '../../away'"),
            (["--set", "spec.trainer=1"], "spec.trainer: 1 is no"),
            (["--secret", "a"], "--secret 'a': want NAME=FOLDER"),
            (["--secret", "a=/nowhere"], "/nowhere: No such file"),
            (["--config-map", "a=plain-file"], "plain-file: Not a directory"),
            (["--secret", "a=secret", "--secret", "a=secret"], "Secret a exists already"),
            (["--workdir", "/nowhere"], "--workdir '/nowhere': No such file"),
            (["--workdir", "plain-file"], "--workdir 'plain-file': it is not a folder"),
            (["--kill", "node:1"], "--kill 'node:1': it does not say when"),
        ]
        for arguments, message in rows:
            with self.subTest(message):
                self.assertNotIn("it has run", self.says(message, JOB, arguments=arguments))
        for arguments in (["--nodes", "x"], ["--nodes", "99999999999"], ["--nosuch"]):
            with self.subTest(arguments):
                self.run_job(JOB, code=64, arguments=arguments)

    def test_what_is_odd_is_said(self):
        os.mkdir(os.path.join(self.folder, "secret"))
        self.file("secret/token", "x")
        rows = [
            (
                ["--set", "spec.trainer.numNode=2"],
                "spec.trainer.numNode: is not a field of a TrainJob: it is ignored; the nearest is 'numNodes'",
            ),
            (
                ["--secret", "kez=secret", "--secret", "key=secret"],
                "--secret 'kez': no pod uses a Secret of that name; they use 'key'",
            ),
            (
                ["--config-map", "a=secret", "--secret", "key=secret"],
                "--config-map 'a': no pod uses a ConfigMap of that name",
            ),
        ]
        pod = "containers: [{name: node, image: i, envFrom: [{secretRef: {name: key, optional: true}}]}]"
        for arguments, message in rows:
            with self.subTest(message):
                self.assertIn(
                    "it has run",
                    self.says(
                        message,
                        plain_job("a", "echo it has run", runtime_name="keyed"),
                        runtime("keyed", pod),
                        code=0,
                        arguments=arguments,
                    ),
                )

    def test_a_pytorch_job_is_judged_as_the_flags_make_it(self):
        job = pytorch_job("a", "[sh, -c, echo it has run]").replace("replicas: 1", "replicas: 2", 1)
        self.says("must be 1", job)
        self.assertIn(
            "it has run", self.says("", job, code=0, arguments=["--set", "spec.pytorchReplicaSpecs.Master.replicas=1"])
        )
        self.says(
            "must be 1", pytorch_job("a", "[x]"), arguments=["--set", "spec.pytorchReplicaSpecs.Master.replicas=3"]
        )


class BadMachines(Bad):
    def in_namespace(self, script, binary=f"{BIN}/muster-local"):
        """Runs `script` as root in a mount namespace of its own."""
        tried = subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True
        )
        if tried.returncode:
            raise unittest.SkipTest(f"SKIPPED: no mounts here: {tried.stderr.strip()}")
        job = self.file("job.yaml", JOB)
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script.replace("RUN", f"{binary} -f {job}")],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            timeout=DEADLINE,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )

    def test_state_folders_that_do_not_serve(self):
        rows = [
            (
                "noexec",
                (
                    "its file system is mounted noexec, and each pod's agent is a program there; "
                    "set XDG_STATE_HOME to a folder"
                ),
            ),
            ("size=1m", "it has room for 1 MiB, and a run needs 32 MiB at least; set XDG_STATE_HOME"),
            ("ro", "Read-only file system; set XDG_STATE_HOME to a writable folder"),
        ]
        for option, message in rows:
            with self.subTest(option):
                ran = self.in_namespace(f"mkdir -p state && mount -t tmpfs -o {option} none state && RUN")
                self.assertEqual(ran.returncode, 78, ran.stderr)
                self.assertIn(message, ran.stderr)

    def test_a_state_folder_that_containers_do_not_see(self):
        ran = self.in_namespace("mount -t tmpfs none /dev/shm && export XDG_STATE_HOME=/dev/shm && RUN")
        self.assertEqual(ran.returncode, 78, ran.stderr)
        self.assertIn(
            "each container has a /dev/shm of its own, and would not see this folder; set XDG_STATE_HOME", ran.stderr
        )

    def test_places_that_are_no_matter(self):
        rows = [
            (
                "mount -t tmpfs none /mnt && mount --bind /tmp /tmp && mount -o remount,bind,noexec /tmp && "
                "export XDG_STATE_HOME=/mnt && RUN"
            ),
            "export TMPDIR=/nowhere && RUN",
            "mkdir -p t && mount -t tmpfs -o noexec,ro none t && export TMPDIR=$PWD/t && RUN",
        ]
        for script in rows:
            with self.subTest(script):
                ran = self.in_namespace(script)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("it has run", ran.stdout)

    def test_state_folders_that_are_none(self):
        self.file("plain-file", "")
        for folder, message in (
            (
                f"{self.folder}/plain-file",
                "plain-file/muster/jobs/a: it cannot be made: Not a directory; set XDG_STATE_HOME",
            ),
            ("here", "XDG_STATE_HOME: 'here' is not an absolute path"),
        ):
            with self.subTest(message):
                self.says(message, JOB, env={"XDG_STATE_HOME": folder})
        self.says("neither XDG_STATE_HOME nor HOME is set: set one", JOB, env={"XDG_STATE_HOME": "", "HOME": ""})

    def test_folders_of_somebody_else(self):
        if os.getuid() != 0:
            self.skipTest("SKIPPED: it takes root to have another user's folders")
        binary = self.copy_for_all()
        for name in ("state", "work"):
            os.mkdir(os.path.join(self.folder, name), 0o700)
        ran = self.in_namespace("setpriv --reuid 65534 --regid 65534 --clear-groups RUN", binary)
        self.assertIn("it cannot be made: Permission denied; set XDG_STATE_HOME", ran.stderr)
        self.assertEqual(ran.returncode, 78)

    def test_a_port_that_is_taken(self):
        port, script = free_port(), self.file("nothing.py", "")
        job = re.sub(r'value: "\d+"', f'value: "{port}"', train_job("taken", f"[torchrun, {script}]"))
        with socket.create_server(("", port)):
            said = self.run_job(job, code=78, arguments=["--network", "shared"])
        self.assertIn(f"port {port} is taken by another process; free it, or choose another one", said)

    def test_a_low_limit_of_open_files(self):
        job = self.file("many.yaml", plain_job("many", "ulimit -Sn", nodes=20))
        ran = subprocess.run(
            ["sh", "-c", f"ulimit -Sn 64; exec {BIN}/muster-local -f {job}"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
            timeout=DEADLINE,
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertNotIn("] 64\n", ran.stdout)


if __name__ == "__main__":
    class_runner.main()
