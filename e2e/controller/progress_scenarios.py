"""The progress of a job, as its pods post it with the program of docs/controller.md, or as its output tells it."""

import os
import re

from installation import DEPLOYMENT, NAMESPACE, ROOT
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
