# SPDX-License-Identifier: Apache-2.0
"""A runtime is edited or deleted while a TrainJob of it runs or is suspended. The job goes on with its snapshot, and
its changes are checked against the snapshot. No message mentions the runtime."""

import json

from admission_case import AdmissionCase
from cluster_case import NAMESPACE, changed
from controller_case import TRUE, is_true

import class_runner
from scenario import API, runtime, shell, train_job

IMAGE = "spec.template.spec.replicatedJobs.0.template.spec.template.spec.containers.0.image"


def patch(job="node", pod=None):
    return [
        {
            "manager": "a.example.com/b",
            "trainingRuntimeSpec": {
                "template": {
                    "spec": {
                        "replicatedJobs": [
                            {
                                "name": job,
                                "template": {"spec": {"template": {"spec": pod or {"nodeSelector": {"type": "kwok"}}}}},
                            }
                        ]
                    }
                }
            },
        }
    ]


class RuntimeChanges(AdmissionCase):
    def begin(self, name, **spec):
        self.make(name, runtime("", 2, container=TRUE), **spec)
        if not spec.get("suspend"):
            self.running(name)
            self.api.await_event(name, "Running")  # a controller that ends may not write it any more
        else:
            self.await_job(name, is_true("Suspended"))
            self.api.await_event(name, "Suspended")
        self.told = self.tellings(name)  # also that there is no such runtime, if the controller heard of the job first

    def tellings(self, name):
        """The Events about the TrainJob that tell of trouble or of the runtime: {name: (how often, what)}."""
        return {
            event["metadata"]["name"]: (event["count"], event["message"])
            for event in self.api.about(name)
            if event["involvedObject"]["kind"] == "TrainJob"
            and (event["type"] != "Normal" or "untime" in event["message"])
        }

    def edit(self, name):
        """Changes the image, the command and the number of nodes, and adds a step."""
        made = changed(runtime(name, 3, container={"command": shell("false")}), IMAGE, "edited")
        jobs = made["spec"]["template"]["spec"]["replicatedJobs"]
        jobs.append(
            {
                "name": "more",
                "template": {"spec": {"template": {"spec": {"containers": [{"name": "more", "image": "edited"}]}}}},
            }
        )
        self.api.patch("trainingruntimes", name, {"spec": made["spec"]})

    def delete(self, name):
        self.api.delete("trainingruntimes", name)

    def replace_by_other(self, name):
        """Replaces the runtime by one of the same name with other steps."""
        self.delete(name)
        made = runtime(name, 1, container=TRUE)
        made["spec"]["template"]["spec"]["replicatedJobs"][0]["name"] = "worker"
        self.api.create("trainingruntimes", made)

    @property
    def changes(self):
        return {"edited": self.edit, "deleted": self.delete, "replaced": self.replace_by_other}

    def suspend(self, name):
        self.patch(name, {"suspend": True})
        self.await_job(
            name,
            lambda job: (
                job["status"].get("state") == "Suspended"
                and not any(count["active"] for count in job["status"]["jobsStatus"])
            ),
        )

    def new_controller(self):
        """Starts a controller that has never seen the old runtime."""
        self.cluster.processes.stop("one")
        self.serve("one")
        self.await_webhooks()

    def goes_on(self, name, nodes=2):
        """The job must run to its end by the snapshot, without a message about the runtime."""
        self.running(name)
        (job,) = self.items("jobs", name)
        (node,) = job["spec"]["template"]["spec"]["containers"]
        self.assertEqual(
            (job["metadata"]["name"], job["spec"]["completions"], node["image"] != "edited"),
            (f"{name}-node-0", nodes, True),
        )
        self.assertIn("true", str(node["command"]))
        self.finish(name)
        done = self.await_job(name, is_true("Complete"))
        self.assertEqual(
            (done["status"].get("message", ""), done["status"]["restarts"], done["status"]["attempt"]), ("", 0, 0)
        )
        self.api.await_event(name, "Running")
        self.api.await_event(name, "Complete")  # the last one
        self.assertEqual(self.tellings(name), self.told)

    def test_while_it_runs(self):
        for word, change in self.changes.items():
            with self.subTest(word):
                name = f"runs-{word}"
                self.begin(name)
                pods = {pod["metadata"]["uid"] for pod in self.items("pods", name)}
                change(name)
                self.patch(name, {"ttlSecondsAfterFinished": 900})
                self.api.patch("trainjobs", name, {"metadata": {"labels": {"a": "b"}}})
                self.new_controller()
                self.goes_on(name)
                self.assertEqual({pod["metadata"]["uid"] for pod in self.items("pods", name)}, pods)

    def test_while_it_runs_then_suspended_and_resumed(self):
        for word, change in self.changes.items():
            with self.subTest(word):
                name = f"pauses-{word}"
                self.begin(name)
                change(name)
                self.suspend(name)
                self.updates_are_judged_by_the_snapshot(name)
                self.patch(name, {"suspend": False})
                self.goes_on(name, 3)

    def test_while_it_is_suspended(self):
        """Also for a job that was never started: its first pass has created the snapshot."""
        for word, change in self.changes.items():
            for began in (True, False):
                with self.subTest(word, began=began):
                    name = f"sleeps-{word}-{str(began).lower()}"
                    self.begin(name, **({} if began else {"suspend": True}))
                    if began:
                        self.suspend(name)
                    change(name)
                    self.new_controller()
                    self.updates_are_judged_by_the_snapshot(name)
                    self.patch(name, {"suspend": False})
                    self.goes_on(name, 3)

    def updates_are_judged_by_the_snapshot(self, name):
        with self.refused(403, "has no job 'worker'; there are: node"):
            self.patch(name, {"runtimePatches": patch("worker")})
        with self.refused(422, "spec.trainer.image: field is immutable"):
            self.patch(name, {"trainer": {"image": "another"}})
        self.patch(name, {"runtimePatches": patch()})
        self.patch(name, {"trainer": {"numNodes": 3}})
        # A client writes the whole object back, as Kueue does.
        whole = self.api.get("trainjobs", name)
        whole["metadata"].setdefault("labels", {})["seen"] = "yes"
        del whole["metadata"]["managedFields"], whole["metadata"]["resourceVersion"]
        self.cluster.kubectl("replace", "-n", NAMESPACE, "-f", "-", content=json.dumps(whole))

    def test_a_runtime_of_the_cluster(self):
        made = runtime("shared", 2, container=TRUE)
        self.cluster.apply(
            [{**made, "apiVersion": API, "kind": "ClusterTrainingRuntime", "metadata": {"name": "shared"}}]
        )
        self.api.create("trainjobs", train_job("shared", "shared", runtimeRef={"name": "shared"}))
        self.running("shared")
        self.api.await_event("shared", "Running")
        self.told = self.tellings("shared")
        self.cluster.kubectl("delete", "clustertrainingruntime", "shared")
        self.suspend("shared")
        self.new_controller()
        self.updates_are_judged_by_the_snapshot("shared")
        self.patch("shared", {"suspend": False})
        self.goes_on("shared", 3)


if __name__ == "__main__":
    class_runner.main()
