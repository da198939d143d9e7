# SPDX-License-Identifier: Apache-2.0
"""PyTorchJobs whose pods start together, by PodGroups of Volcano and scheduler-plugins, which the test plays."""

from cluster_case import NAMESPACE, WAIT, establish, pod_group_definition
from pytorch_case import PyTorchCase, conditions

import class_runner

VOLCANO = ("scheduling.volcano.sh", "v1beta1")
PLUGINS = ("scheduling.x-k8s.io", "v1alpha1")
REQUESTS = {"resources": {"requests": {"cpu": "500m"}, "limits": {"nvidia.com/gpu": "1"}}}
LEAST = {"cpu": "1", "memory": "10485760", "nvidia.com/gpu": "2"}  # of two pods; the memory is init-pytorch's


class Gang(PyTorchCase):
    @classmethod
    def install_definitions(cls):
        super().install_definitions()
        for group, version in (VOLCANO, PLUGINS):
            cls.cluster.apply([pod_group_definition(group, version)])
        establish(cls.cluster)

    def serve_with(self, scheduler):
        self.serve(scheduler, "--no-leader-elect", "--gang-scheduler-name", scheduler)
        self.addCleanup(self.cluster.processes.stop, scheduler)

    def group_path(self, kind, name):
        return f"/apis/{kind[0]}/{kind[1]}/namespaces/{NAMESPACE}/podgroups/{name}"

    def await_group(self, kind, name, wanted=lambda group: True):
        return self.cluster.await_object(f"podgroups.{kind[0]}/{name}", wanted, NAMESPACE)

    def await_no_group(self, kind, name):
        self.cluster.kubectl(
            "wait", "--for=delete", f"podgroups.{kind[0]}/{name}", "-n", NAMESPACE, f"--timeout={WAIT}s"
        )

    def let_in(self, name, phase="Inqueue"):
        self.api.ask(
            "PATCH", self.group_path(VOLCANO, name), {"status": {"phase": phase}}, "application/merge-patch+json"
        )

    def bind(self, *pods):
        """Binds the pods, as the gang scheduler does."""
        for pod in pods:
            self.api.await_object("pods", pod, lambda made: True)
            self.api.ask(
                "POST",
                self.api.path("pods", pod, "binding"),
                {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": pod},
                    "target": {"kind": "Node", "name": "kwok-000"},
                },
            )

    def test_pods_wait_for_the_group_of_volcano(self):
        self.serve_with("volcano")
        pods = ["gang-master-0", "gang-worker-0", "gang-worker-1"]
        policy = {"schedulingPolicy": {"minAvailable": 2, "queue": "research", "priorityClass": "high"}}
        self.create_job("gang", workers=2, policy=policy, container=REQUESTS, annotations={"note": "kept"})
        group = self.await_group(VOLCANO, "gang")
        self.assertEqual(
            group["spec"], {"minMember": 2, "queue": "research", "priorityClassName": "high", "minResources": LEAST}
        )
        self.assertEqual(group["metadata"]["annotations"]["note"], "kept")
        (owner,) = group["metadata"]["ownerReferences"]
        self.assertEqual((owner["kind"], owner["name"], owner["controller"]), ("PyTorchJob", "gang", True))
        # The Services exist; the pods are not created yet.
        for phase in ("", "Pending"):
            if phase:
                self.let_in("gang", phase)
            job = self.await_pytorch(
                "gang",
                lambda job: "PodGroup gang: Volcano has not let it in yet" in job.get("status", {}).get("message", ""),
            )
            self.assertEqual(
                (conditions(job), self.of("pods", "gang"), sorted(self.of("services", "gang"))), (["Created"], {}, pods)
            )
        self.let_in("gang")
        self.bind(*pods)
        job = self.await_running("gang")
        self.assertEqual(job["status"].get("message", ""), "")
        for name, pod in self.of("pods", "gang").items():
            self.assertEqual(pod["spec"]["schedulerName"], "volcano")
            notes = pod["metadata"]["annotations"]
            self.assertEqual(
                (notes["scheduling.k8s.io/group-name"], notes["volcano.sh/task-spec"]), ("gang", name.split("-")[1])
            )
        # A suspension deletes the group, too. A resume creates it again.
        self.api.patch("pytorchjobs", "gang", {"spec": {"runPolicy": {"suspend": True}}})
        self.await_no_group(VOLCANO, "gang")
        for pod in pods:
            self.api.await_gone("pods", pod)
        self.api.patch("pytorchjobs", "gang", {"spec": {"runPolicy": {"suspend": False}}})
        self.await_group(VOLCANO, "gang")
        self.await_pytorch("gang", lambda job: "Volcano has not let it in yet" in job["status"].get("message", ""))
        self.let_in("gang", "Running")
        self.bind(*pods)
        self.await_running("gang")
        self.end("gang-master-0")
        self.await_end("gang", "Succeeded")
        self.await_no_group(VOLCANO, "gang")
        self.api.await_event("gang", "SuccessfulDeletePodGroup")

    def test_scheduler_plugins(self):
        self.serve_with("scheduler-plugins-scheduler")
        self.create_job(
            "group", workers=1, policy={"schedulingPolicy": {"scheduleTimeoutSeconds": 30}}, container=REQUESTS
        )
        group = self.await_group(PLUGINS, "group")
        self.assertEqual(group["spec"], {"minMember": 2, "scheduleTimeoutSeconds": 30, "minResources": LEAST})
        self.bind("group-master-0", "group-worker-0")
        self.await_running("group")
        for pod in self.of("pods", "group").values():
            self.assertEqual(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "group")
            self.assertEqual(pod["spec"]["schedulerName"], "scheduler-plugins-scheduler")
        self.end("group-master-0")
        self.await_end("group", "Succeeded")
        self.await_no_group(PLUGINS, "group")
        # A PodGroup of another owner with the job's name is not used.
        self.cluster.apply(
            [
                {
                    "apiVersion": "/".join(PLUGINS),
                    "kind": "PodGroup",
                    "metadata": {"name": "theirs", "namespace": NAMESPACE},
                    "spec": {"minMember": 9},
                }
            ]
        )
        self.create_job("theirs")
        self.await_pytorch(
            "theirs",
            lambda job: (
                "podgroups vision/theirs is needed, and belongs to nobody" in job.get("status", {}).get("message", "")
            ),
        )
        self.assertEqual(self.await_group(PLUGINS, "theirs")["spec"], {"minMember": 9})
        self.cluster.kubectl("delete", "podgroups.scheduling.x-k8s.io", "theirs", "-n", NAMESPACE)
        self.bind("theirs-master-0")
        self.await_running("theirs")


if __name__ == "__main__":
    class_runner.main()
