# SPDX-License-Identifier: Apache-2.0
"""How `muster local` runs the probes of containers, and what follows."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import LocalCase, OpenCase, free_port, plain_job, runtime, shell, train_job

import class_runner  # local_case.py says where it is

ONCE = "failurePolicy: {maxRestarts: 0},"

# Answers 503 until the file exists, then 200; 404 for a path other than /up. Records its requests.
SERVER = """import http.server, os, sys
folder, port = sys.argv[1], int(sys.argv[2])
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(folder + "/asked", "a") as asked:
            asked.write(f"{self.path} {self.headers['User-Agent']} {self.headers['X-Who']}\\n")
        code = 404 if self.path != "/up" else 200 if os.path.exists(folder + "/up") else 503
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *what): pass
http.server.HTTPServer(("", port), Answers).serve_forever()
"""


def until(path):
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


class Probes(LocalCase):
    def probed(self, name, script, probes, more="", grace=""):
        pod = f"{grace} containers: [{{name: node, image: i, {probes}}}]{more}"
        return plain_job(name, script, runtime_name=name), runtime(name, pod, spec=ONCE)

    def test_an_exec_probe_sees_what_the_container_sees(self):
        """Files, /dev/shm, host name, processes, environment and working folder. The node is ready once the probe has
        succeeded."""
        probe = shell(
            "test -e /dev/shm/up && echo asked $(hostname) $(pwd) $COLOR $(ls /dev/shm) "
            "$(cat /proc/self/comm) $(pgrep -x -c idle) >> asked"
        )
        pod = (
            f"containers: [{{name: node, image: i, env: [{{name: COLOR, value: red}}], readinessProbe: "
            f"{{exec: {{command: {probe}}}, periodSeconds: 1}}}}]"
        )
        job = self.start(
            plain_job(
                "seen",
                f"cp $(command -v sleep) idle; ./idle 1000 & touch /dev/shm/up; {until(self.folder + '/go')}; kill $!",
                runtime_name="seen",
            ),
            runtime("seen", pod),
        )
        job.await_("all 1 node are ready")
        self.file("go", "")
        self.assertEqual(job.wait(), 0, job.said)
        with open(os.path.join(self.folder, "asked")) as asked:
            self.assertIn(
                f"asked seen-node-0-0 {self.folder} red up cat 1", asked.read().splitlines()
            )  # others may come before or after `idle`

    def test_probes_ask_over_http(self):
        port = free_port()
        server = self.file("server.py", SERVER)
        probes = (
            f"startupProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 1, failureThreshold: 1000}}, "
            f"readinessProbe: {{httpGet: {{path: /up, port: {port}, httpHeaders: [{{name: X-Who, value: me}}]}}, "
            f"periodSeconds: 1, failureThreshold: 1}}"
        )
        job = self.start(*self.probed("http", f"exec {sys.executable} {server} {self.folder} {port}", probes))
        job.await_(
            "http-node-0-0.*: container node: its readiness probe has failed, it is not ready: GET /up on .* gives 503"
        )
        self.assertNotIn("are ready", job.said)
        self.file("up", "")
        job.await_("all 1 node are ready")
        with open(os.path.join(self.folder, "asked")) as asked:
            self.assertEqual(set(asked), {"/up kube-probe/1.36 me\n"})

    def test_a_port_that_opens(self):
        port = free_port()
        server = self.file("server.py", SERVER)
        job = self.start(
            *self.probed(
                "tcp",
                f"echo has begun; {until(self.folder + '/open')}; exec {sys.executable} {server} {self.folder} {port}",
                f"startupProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 1, failureThreshold: 1000}}",
            )
        )
        job.await_("has begun")
        self.assertNotIn("are ready", job.said)
        self.file("open", "")
        job.await_("all 1 node are ready")

    def test_one_that_does_not_live_is_started_again_by_its_policy(self):
        """A container whose liveness probe fails gets SIGTERM and the probe's own grace."""
        script = (
            f"if [ -e {self.folder}/again ]; then echo lives; exit; fi; touch {self.folder}/again; "
            f"trap 'echo asked to end' TERM; touch {self.folder}/ill; while :; do sleep 0.05; done"
        )
        probe = (
            "livenessProbe: {exec: {command: %s}, periodSeconds: 1, failureThreshold: 1, "
            "terminationGracePeriodSeconds: 1}"
            % shell(f"test ! -e {self.folder}/ill || (rm {self.folder}/ill; echo ill; exit 9)")
        )
        side = f", initContainers: [{{name: side, image: i, restartPolicy: Always, command: {shell(script)}, {probe}}}]"
        job = self.start(*self.probed("live", until(self.folder + "/go"), "resources: {}", more=side))
        job.await_("container side: its liveness probe has failed, it is stopped: exit code 9: 'ill'")
        job.await_("asked to end")
        job.await_("lives")
        self.file("go", "")
        self.assertEqual(job.wait(), 0, job.said)

    def test_one_that_never_starts_fails_with_its_pod(self):
        probe = "startupProbe: {exec: {command: [sh, -c, 'sleep 1000; exit 0']}, periodSeconds: 1, failureThreshold: 2}"
        said = self.run_job(*self.probed("never", "trap 'exit 7' TERM; while :; do sleep 0.05; done", probe), code=7)
        self.assertIn("container node: its startup probe has failed, it is stopped: no answer in 1 s", said)
        self.assertIn("TrainJob never: Failed", said)

    def test_one_that_cannot_be_asked_counts_neither_way(self):
        probe = "livenessProbe: {exec: {command: [no-such-command]}, periodSeconds: 1, failureThreshold: 1}"
        job = self.start(*self.probed("asked", until(self.folder + "/go"), probe))
        job.await_(
            "container node: its liveness probe could not be run, which counts as no result: "
            ".*no-such-command: (No such file|Permission denied)"
        )
        self.file("go", "")
        self.assertEqual(job.wait(), 0, job.said)
        self.assertNotIn("has failed", job.said)

    def test_what_waits_for_it_waits(self):
        """A step whose dependsOn has the status Ready waits for a readiness probe."""
        jobs = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: waits}
spec:
  mlPolicy: {numNodes: 1}
  template: {spec: {replicatedJobs: [
    {name: dataset-initializer,
     template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}},
     spec: {template: {spec: {containers: [{name: dataset-initializer, image: i, command: FIRST,
      readinessProbe: {exec: {command: [test, -e, GO]}, periodSeconds: 1}}]}}}}},
    {name: node, dependsOn: [{name: dataset-initializer, status: Ready}],
     template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
     spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}]}}
"""
        first = shell(f"echo first; {until(self.folder + '/end')}")
        job = self.start(
            plain_job("waits", f"echo second; touch {self.folder}/end", runtime_name="waits"),
            jobs.replace("FIRST", first).replace("GO", self.folder + "/go"),
        )
        job.await_("first")
        job.await_("its readiness probe has failed")
        self.assertNotIn("second", job.said)
        self.file("go", "")
        self.assertEqual(job.wait(), 0, job.said)
        self.assertIn("second", job.said)


# Rank 1 says which attempt it is in; the first attempt sleeps, or counts without a system call.
ATTEMPTS = """import os, signal, sys
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
os.write(1, f"rank {os.environ['RANK']} attempt {attempt}\\n".encode())
while attempt == 0:
    if sys.argv[1] == "sleeps":
        signal.pause()
"""


class ExitCodes(LocalCase):
    """Drills that make a process end with a code."""

    def attempts(self, name, drill, how="sleeps", code=0):
        script = self.file("attempts.py", ATTEMPTS)
        return self.run_job(train_job(name, f"[torchrun, {script}, {how}]"), arguments=["--kill", drill], code=code)

    def test_a_fatal_one_ends_the_job(self):
        said = self.attempts("fatal", "rank:1:exit=3@rank 1 attempt 0", code=3)
        self.assertIn("drill rank:1:exit=3@rank 1 attempt 0: rank 1 on fatal-node-0-1", said)
        self.assertRegex(said, "rank 1 on fatal-node-0-1.* ends with 3")
        self.assertNotIn("attempt 1", said)

    def test_one_that_stands_for_a_signal_restarts_the_workers(self):
        for how in ("sleeps", "counts"):
            with self.subTest(how):
                said = self.attempts(f"again-{how}", "rank:1:exit=137@rank 1 attempt 0", how)
                self.assertEqual(sorted(re.findall(r"rank (\d) attempt 1", said)), ["0", "1"], said)
                self.assertRegex(said, r"-node-0-1  success after")

    def test_a_nodes(self):
        script = (
            f"if [ -e {self.folder}/back ]; then echo again; exit; fi; touch {self.folder}/back; echo first; sleep 1000"
        )
        said = self.run_job(plain_job("node", script), arguments=["--kill", "node:0:exit=143@first"])
        self.assertRegex(said, r"drill node:0:exit=143@first: node 0 on node-node-0-0.* ends with 143")
        self.assertRegex(said, r"node-node-0-0  exit code 143 .*, then success")


class OpenExitCodes(OpenCase):
    def test_a_nodes(self):
        """Without bubblewrap the traced process is the container itself, a child of muster-local."""
        script = (
            f"if [ -e {self.folder}/back ]; then echo again; exit; fi; touch {self.folder}/back; echo first; sleep 1000"
        )
        said = self.run_job(plain_job("open", script), arguments=["--kill", "node:0:exit=143@first"])
        self.assertRegex(said, r"drill node:0:exit=143@first: node 0 on open-node-0-0.* ends with 143")
        self.assertRegex(said, r"open-node-0-0  exit code 143 .*, then success")


if __name__ == "__main__":
    class_runner.main()
