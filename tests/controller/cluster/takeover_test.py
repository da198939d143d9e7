# SPDX-License-Identifier: Apache-2.0
"""TrainJobs that Kubeflow Trainer has started go on under their JobSets. The test acts as JobSet's controller."""

import os

from cluster_case import MANIFESTS, establish
from controller_case import TRUE, ControllerCase, is_true

import class_runner
from scenario import API, runtime

JOB_SET = "jobset.x-k8s.io/v1alpha2"


class Takeover(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.kubectl("apply", "--server-side", "-k", os.path.join(MANIFESTS, "components", "kueue"))
        establish(cls.cluster)

    def made_by_upstream(self, name, **spec):
        """Creates a TrainJob and its JobSet as Kubeflow Trainer leaves them."""
        job = self.make(name, runtime("", 1, container=TRUE), **spec)
        owner = {
            "apiVersion": API,
            "kind": "TrainJob",
            "name": name,
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        pod = {"restartPolicy": "Never", "containers": [{"name": "node", "image": "busybox"}]}
        return self.api.create(
            "jobsets",
            {
                "apiVersion": JOB_SET,
                "kind": "JobSet",
                "metadata": {"name": name, "ownerReferences": [owner]},
                "spec": {
                    "replicatedJobs": [
                        {"name": "node", "replicas": 1, "template": {"spec": {"template": {"spec": pod}}}}
                    ]
                },
            },
        )

    def tell(self, name, **status):
        self.api.patch("jobsets", name, {"status": status}, "status")

    def test_from_one_controller_to_the_other(self):
        self.made_by_upstream("done")
        self.made_by_upstream("lost")
        counts = {"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
        self.tell("done", replicatedJobsStatus=[counts])
        self.start_controller()
        job = self.await_job("done", lambda job: job.get("status", {}).get("state") == "Running")
        self.assertEqual(job["status"]["jobsStatus"], [counts])
        self.patch("done", {"suspend": True})
        self.api.await_object("jobsets", "done", lambda job_set: job_set["spec"].get("suspend") is True)
        self.await_job("done", is_true("Suspended"))
        self.patch("done", {"suspend": False})
        self.api.await_object("jobsets", "done", lambda job_set: job_set["spec"].get("suspend") is False)
        end = {"lastTransitionTime": "2026-01-01T00:00:00Z", "status": "True"}
        self.tell(
            "done",
            conditions=[
                {**end, "type": "Completed", "reason": "AllJobsCompleted", "message": "jobset completed successfully"}
            ],
        )
        self.tell(
            "lost",
            conditions=[
                {
                    **end,
                    "type": "Failed",
                    "reason": "FailedJobs",
                    "message": "jobset failed due to one or more job failures",
                }
            ],
        )
        self.assertEqual(
            self.condition(self.await_job("done", is_true("Complete")), "Complete"),
            ("AllJobsCompleted", "jobset completed successfully"),
        )
        self.assertEqual(
            self.condition(self.await_job("lost", is_true("Failed")), "Failed"),
            ("FailedJobs", "jobset failed due to one or more job failures"),
        )
        for kind in ("jobs", "services"):
            self.assertEqual(
                [made["metadata"]["name"] for name in ("done", "lost") for made in self.items(kind, name)], []
            )
        # A job that was not started yet is Muster's own.
        self.make("own", runtime("", 1, container=TRUE))
        self.running("own")


if __name__ == "__main__":
    class_runner.main()
