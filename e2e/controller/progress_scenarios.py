# SPDX-License-Identifier: Apache-2.0
"""The progress of a job, as its pods post it with the program of docs/controller.md, or as its output tells it."""

import contextlib
import json
import os
import re
import subprocess
import time

from installation import DEPLOYMENT, NAMESPACE, ROOT
from processes import WAIT
from scenario import DEBIAN, Scenario, host_folders, runtime, shell, train_job

HOST = f"{DEPLOYMENT}.{NAMESPACE}.svc"


def documented_program():
    with open(os.path.join(ROOT, "docs", "controller.md")) as page:
        [program] = re.findall(r"```python\n(.*?)```", page.read(), re.DOTALL)
    return program


class Progress(Scenario):
    def test_the_output_tells_the_progress(self):
        steps = "for step in $(seq 20); do echo step $step/20 loss 0.25 >&2; sleep 0.2; done"
        self.create(runtime("tells", 2, container={"command": shell(steps)}), train_job("tells", "tells"))
        status = self.finished("tells")["status"]
        told = status["trainerStatus"]
        metrics = {one["name"]: one["value"] for one in told["metrics"]}
        self.assertEqual((told["progressPercentage"], metrics), (100, {"step": "20", "loss": "0.25"}), status)
        seconds = status["goodput"]["seconds"]
        self.assertGreater(seconds["training"], 3, seconds)  # 19 pauses
        wide = self.cluster.kubectl("get", "trainjob", "tells", "-n", self.namespace, "-o", "wide").splitlines()
        column = {name: wide[0].index(name) for name in ("PROGRESS", "SECONDS-LEFT", "GOODPUT")}
        shown = {name: wide[1][place:].split()[0] for name, place in column.items()}
        self.assertEqual((shown["PROGRESS"], shown["GOODPUT"]), ("100", str(status["goodput"]["percentage"])), wide)

    def test_a_pod_posts_its_progress(self):
        """Without kube-proxy the Service's address leads nowhere, so the pod's hosts file has the controller's name."""
        pods = self.cluster.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=manager")["items"]
        address = next(pod["status"]["podIP"] for pod in pods if not pod["metadata"].get("deletionTimestamp"))
        volumes, mounts = host_folders(DEBIAN)
        pod = {
            "volumes": volumes,
            "hostAliases": [{"ip": address, "hostnames": [HOST]}],
            "securityContext": {"runAsUser": 65532},
        }
        self.create(
            runtime(
                "posts",
                1,
                container={
                    "command": ["python3", "-c", documented_program()],
                    "volumeMounts": mounts,
                    "env": [{"name": "PATH", "value": "/usr/bin:/bin"}],
                },
                pod=pod,
            ),
            train_job("posts", "posts"),
        )
        job = self.finished("posts")
        self.assertEqual(
            (job["status"]["state"], job["status"].get("failures")), ("Complete", None), self.logs("posts")
        )
        self.assertEqual(
            job["status"]["trainerStatus"],
            {
                "progressPercentage": 40,
                "metrics": [{"name": "loss", "value": "0.25"}],
                "lastUpdatedTime": "2026-01-01T00:00:00Z",
            },
        )

    def test_top_follows_a_job(self):
        """`muster top` sees both ranks through kubectl's port-forward to one pod, and ends with the run."""
        script = """
        for step in 1 2 3; do echo step $step/4 loss 0.5; sleep 0.5; done >&2
        until [ -e /shared/go ]; do sleep 0.1; done
        echo step 4/4 loss 0.25 >&2
        """
        self.create(
            runtime(
                "seen",
                2,
                {"torch": {"numProcPerNode": 1}},
                {"volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}]},
                container={
                    "command": ["torchrun", "--no-python", *shell(script)],
                    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
                },
            ),
            train_job("seen", "seen"),
        )
        self.cluster.await_object(
            "trainjob/seen", lambda job: job.get("status", {}).get("readyNodes") == 2, self.namespace
        )
        top = subprocess.Popen(
            self.cluster.inside(
                [os.path.join(self.nodes.binaries, "muster"), "top", "trainjob/seen", "-n", self.namespace, "--json"]
            ),
            env=self.cluster.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with contextlib.ExitStack() as end:
            end.callback(top.wait)
            end.callback(top.kill)
            until = time.monotonic() + WAIT
            for line in top.stdout:
                self.assertLess(time.monotonic(), until, line)
                ranks = [rank for node in json.loads(line)["nodes"] for rank in node.get("ranks", [])]
                if [rank.get("position") for rank in ranks] == [3, 3]:
                    break
            else:
                self.fail(f"top ended with {top.wait()}: {top.stderr.read()}")
            self.assertEqual([rank["last_line"] for rank in ranks], ["step 3/4 loss 0.5"] * 2)
            with open(os.path.join(self.shared(), "go"), "w"):
                pass
            last = top.stdout.read().splitlines()[-1:]
            self.assertEqual(top.wait(), 0, (last, top.stderr.read()))
        # Not finished(): the agent stays up to 2 s after the run for who looks, which no part of its time is.
        self.cluster.await_object("trainjob/seen", lambda job: job["status"].get("state") == "Complete", self.namespace)
