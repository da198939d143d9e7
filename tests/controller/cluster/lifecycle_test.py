# SPDX-License-Identifier: Apache-2.0
"""A TrainJob is suspended and resumed in each of its states. One that has ended stays so, whatever its children do."""

import itertools

from cluster_case import NAMESPACE, changed
from controller_case import OFF, ONCE, TRUE, WAIT, ControllerCase, is_true

import class_runner
from mpi_test import mpi_runtime
from scenario import ANCESTOR, INITIALIZER, runtime

STEP = "jobset.sigs.k8s.io/replicatedjob-name"


def with_initializer(nodes):
    """A runtime whose trainer waits for its data."""
    made = runtime("", nodes, container=TRUE)
    mount = {"volumeMounts": [{"name": "initializer", "mountPath": "/workspace"}]}
    first = {
        "name": INITIALIZER,
        "template": {
            "metadata": {"labels": {ANCESTOR: INITIALIZER}},
            "spec": {
                "template": {
                    "spec": {
                        "containers": [{"name": INITIALIZER, "image": "initializer", **mount}],
                        "volumes": [{"name": "initializer", "emptyDir": {}}],
                    }
                }
            },
        },
    }
    made["spec"]["template"]["spec"]["replicatedJobs"].insert(0, first)
    return made


class Lifecycle(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()
        cls.numbers = itertools.count()

    def suspended(self, name):
        """Suspends the job. Returns when none of its pods is left."""
        self.patch(name, {"suspend": True})
        job = self.await_job(
            name,
            lambda job: (
                is_true("Suspended")(job)
                and job["status"]["state"] == "Suspended"
                and not any(count["active"] for count in job["status"]["jobsStatus"])
            ),
        )
        self.assertEqual(
            [pod["metadata"]["name"] for pod in self.pods(name) if pod["status"]["phase"] == "Running"], []
        )
        return job

    def resume(self, name):
        self.patch(name, {"suspend": False})

    def pods(self, name, step=None):
        """The pods that are not being deleted."""
        return [
            pod
            for pod in self.items("pods", name)
            if "deletionTimestamp" not in pod["metadata"] and step in (None, pod["metadata"]["labels"][STEP])
        ]

    def completes_after_all(self, name):
        """Ends running pods at each change of the status until the job is Complete: more may come."""
        for _, job in self.api.events("trainjobs", name=name, seconds=WAIT):
            if is_true("Complete")(job):
                return job
            self.finish(name)
        return self.fail(f"{name} is not complete: {self.api.get('trainjobs', name)['status']}")

    def completes(self, name):
        self.running(name)
        self.finish(name)
        return self.await_job(name, is_true("Complete"))

    def counts(self, job):
        return {
            count["name"]: (count["active"], count["succeeded"], count["suspended"])
            for count in job["status"]["jobsStatus"]
        }

    # ---- states

    def test_before_it_has_begun(self):
        """Already the first status says Suspended, and no pod was created."""
        self.make("unborn", runtime("", 2, container=TRUE), suspend=True)
        job = self.await_job("unborn", lambda job: job.get("status"))
        self.assertEqual(
            (job["status"]["state"], [condition["type"] for condition in job["status"]["conditions"]]),
            ("Suspended", ["Suspended"]),
        )
        self.assertNotIn("startTime", job["status"])
        self.assertEqual(self.items("jobs", "unborn"), [])
        self.assertEqual(self.shown_state("unborn"), "Suspended")
        self.resume("unborn")
        self.running("unborn")
        self.assertEqual(self.shown_state("unborn"), "Running")
        self.assertIn("startTime", self.completes("unborn")["status"])

    def shown_state(self, name):
        """In kubectl's column STATE."""
        titles, row = (
            line.split() for line in self.cluster.kubectl("get", "trainjob", name, "-n", NAMESPACE).splitlines()
        )
        return row[titles.index("STATE")]

    def test_while_its_runtime_is_awaited(self):
        self.make("no-runtime")
        self.await_job("no-runtime", lambda job: job.get("status", {}).get("state") == "Waiting")
        self.patch("no-runtime", {"suspend": True})
        self.await_job("no-runtime", is_true("Suspended"))
        self.api.create("trainingruntimes", changed(runtime("", 1, container=TRUE), "metadata.name", "no-runtime"))
        job = self.await_job("no-runtime", lambda job: not job["status"].get("message"))
        self.assertEqual((job["status"]["state"], self.items("jobs", "no-runtime")), ("Suspended", []))
        self.resume("no-runtime")
        self.completes("no-runtime")

    def test_while_it_is_initialized(self):
        """The initializer starts again after the resume; the trainer has not started."""
        self.make("data", with_initializer(2), initializer={"dataset": {"storageUri": "s3://a/b"}})
        self.await_job(
            "data", lambda job: job.get("status", {}).get("state") == "Initializing" and self.pods("data", INITIALIZER)
        )
        (first,) = self.pods("data", INITIALIZER)
        self.suspended("data")
        self.resume("data")
        self.await_job(
            "data", lambda job: job["status"]["state"] == "Initializing" and self.counts(job)[INITIALIZER][0] == 1
        )
        (second,) = self.pods("data", INITIALIZER)
        self.assertNotEqual(first["metadata"]["uid"], second["metadata"]["uid"])
        self.assertEqual(self.pods("data", "node"), [])
        self.finish_running(second)
        self.running("data")
        # Only the trainer starts again.
        self.suspended("data")
        self.resume("data")
        job = self.running("data")
        self.assertEqual(self.counts(job)[INITIALIZER], (0, 1, 0))
        self.assertEqual(
            [pod["metadata"]["uid"] for pod in self.pods("data", INITIALIZER)], [second["metadata"]["uid"]]
        )
        self.assertEqual(self.counts(self.completes("data")), {INITIALIZER: (0, 1, 0), "node": (0, 1, 0)})

    def finish_running(self, pod):
        """Ends the pod as soon as it runs."""
        self.api.await_object("pods", pod["metadata"]["name"], lambda same: same["status"]["phase"] == "Running")
        self.api.patch(
            "pods", pod["metadata"]["name"], {"metadata": {"annotations": {"e2e.muster.dev/finish": "succeeded"}}}
        )

    def test_while_it_begins_anew(self):
        """The nodes accept no pods meanwhile, so the step stays between two attempts."""
        made = runtime("", 2, container=TRUE, annotations=OFF, **ONCE)
        made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 1}
        self.make("again", made)
        self.running("again")
        self.cordon(True)
        self.addCleanup(self.cordon, False)
        self.finish("again", "failed", rank=1, code=3)
        job = self.await_job("again", lambda job: job["status"]["attempt"] == 1 and job["status"]["state"] == "Waiting")
        self.assertIn("Unschedulable", job["status"]["message"])
        job = self.suspended("again")
        self.assertEqual(
            (job["status"].get("message", ""), job["status"]["attempt"], job["status"]["restarts"]), ("", 1, 1)
        )
        self.cordon(False)
        self.resume("again")
        self.running("again", attempt=1)
        self.finish("again")
        self.assertEqual(self.await_job("again", is_true("Complete"))["status"]["restarts"], 1)

    def cordon(self, value):
        for node in self.cluster.get("nodes")["items"]:
            self.cluster.kubectl(
                "patch",
                "node",
                node["metadata"]["name"],
                "-p",
                f'{{"spec": {{"unschedulable": {str(value).lower()}}}}}',
            )

    def test_again_and_again_without_waiting(self):
        """Each change comes while the last one is carried out. The last change counts."""
        self.make("flaps", runtime("", 2, container=TRUE))
        self.running("flaps")
        for _ in range(5):
            self.patch("flaps", {"suspend": True})
            self.resume("flaps")
        job = self.completes_after_all("flaps")
        self.assertEqual(
            (job["status"]["restarts"], job["status"]["attempt"], job["status"].get("failures", [])), (0, 0, [])
        )

    def test_where_it_is_placed_follows_the_patches(self):
        """After a resume the pods have nothing of an older patch."""
        patches = [
            {
                "nodeSelector": {"kubernetes.io/hostname": "kwok-000"},
                "tolerations": [{"key": "a", "operator": "Exists"}],
            },
            {"nodeSelector": {"type": "kwok"}, "tolerations": [{"key": "b", "operator": "Exists"}]},
            None,
        ]
        self.make("placed", runtime("", 1, container=TRUE), suspend=True)
        self.await_job("placed", is_true("Suspended"))
        for patch in patches:
            entries = (
                [
                    {
                        "manager": "a.example.com/b",
                        "trainingRuntimeSpec": {
                            "template": {
                                "spec": {
                                    "replicatedJobs": [
                                        {"name": "node", "template": {"spec": {"template": {"spec": patch}}}}
                                    ]
                                }
                            }
                        },
                    }
                ]
                if patch
                else None
            )
            self.patch("placed", {"runtimePatches": entries, "suspend": False})
            self.running("placed")
            (pod,) = self.pods("placed")
            tolerations = [
                toleration
                for toleration in pod["spec"]["tolerations"]
                if not toleration["key"].startswith("node.kubernetes.io/")
            ]
            self.assertEqual(
                (pod["spec"].get("nodeSelector"), tolerations or None),
                ((patch or {}).get("nodeSelector"), (patch or {}).get("tolerations")),
            )
            self.suspended("placed")

    def test_a_launcher_waits_for_its_nodes_at_a_resume_too(self):
        self.make("ordered", mpi_runtime(), trainer={"numNodes": 2})
        self.running("ordered")
        self.suspended("ordered")
        self.cordon(True)
        self.addCleanup(self.cordon, False)
        self.resume("ordered")
        self.await_job(
            "ordered", lambda job: job["status"]["state"] == "Waiting" and "Unschedulable" in job["status"]["message"]
        )
        self.api.await_items(
            "pods",
            "jobset.sigs.k8s.io/jobset-name=ordered",
            lambda pods: (
                [pod["metadata"]["labels"][STEP] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
                == ["node", "node"]
            ),
        )
        self.cordon(False)
        self.running("ordered")
        self.finish("ordered")
        self.await_job("ordered", is_true("Complete"))

    # ---- jobs that have ended

    def ended(self, name, how):
        """Runs and ends a job. Returns its last status."""
        self.make(name, runtime("", 2, container=TRUE, annotations=OFF, **ONCE))
        self.running(name)
        self.finish(name, "succeeded" if how == "Complete" else "failed")
        return self.await_job(name, is_true(how))["status"]

    def kept(self, name):
        """The uids of the Job and its pods when the Job is over: until then its controller may end pods."""
        over = lambda job: any(
            condition["type"] in ("Complete", "Failed") for condition in job.get("status", {}).get("conditions", [])
        )
        self.api.await_object("jobs", f"{name}-node-0", over)
        children = {each["metadata"]["uid"] for each in self.items("jobs", name) + self.pods(name)}
        self.assertGreater(len(children), 1, "its pods are kept, with what they have said")
        return children

    def stays(self, name, status):
        """Checks that the job stays as it is while another job runs, under this controller and then under a new one."""
        for _ in range(2):
            other = f"beside-{next(self.numbers)}"
            self.make(other, runtime("", 1, container=TRUE))
            self.completes(other)
            self.assertEqual(self.api.get("trainjobs", name)["status"], status)
            self.cluster.processes.stop("controller")
            self.start_controller()

    def test_what_has_ended_is_suspended(self):
        for how in ("Complete", "Failed"):
            with self.subTest(how):
                name = f"over-{how.lower()}"
                status = self.ended(name, how)
                kept = self.kept(name)
                for suspend in (True, False):
                    self.patch(name, {"suspend": suspend})
                    self.stays(name, status)
                self.assertEqual(self.kept(name), kept)

    def test_the_children_of_what_has_ended_vanish(self):
        for how in ("Complete", "Failed"):
            with self.subTest(how):
                name = f"bare-{how.lower()}"
                status = self.ended(name, how)
                for kind in ("jobs", "services", "pods"):
                    self.cluster.kubectl(
                        "delete", kind, "-n", NAMESPACE, "-l", f"jobset.sigs.k8s.io/jobset-name={name}", "--wait=true"
                    )
                self.api.delete("configmaps", f"{name}-runtime-snapshot")
                self.api.delete("trainingruntimes", name)
                self.stays(name, status)
                for kind in ("jobs", "services", "pods"):
                    self.assertEqual(self.items(kind, name), [], kind)
                self.assertIsNone(self.api.find("configmaps", f"{name}-runtime-snapshot"))


if __name__ == "__main__":
    class_runner.main()
