"""A pod posts the progress of its job, with the program of docs/controller.md."""

import os
import re

from installation import DEPLOYMENT, NAMESPACE, ROOT
from scenario import DEBIAN, Scenario, host_folders, runtime, train_job

HOST = f"{DEPLOYMENT}.{NAMESPACE}.svc"


def documented_program():
    with open(os.path.join(ROOT, "docs", "controller.md")) as page:
        [program] = re.findall(r"```python\n(.*?)```", page.read(), re.DOTALL)
    return program


class Progress(Scenario):
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
