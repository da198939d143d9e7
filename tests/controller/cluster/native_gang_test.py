# SPDX-License-Identifier: Apache-2.0
"""Jobs that Kubernetes itself schedules as gangs (muster.dev/gang: native), on the real scheduler with fake nodes."""

import os
import threading

from admission_case import AdmissionCase
from cluster_case import NAMESPACE, tries
from controller_case import OFF, ONCE, TRUE, is_true
from pytorch_case import LABEL, PyTorchCase, pytorch_job

import class_runner
from scenario import runtime

NATIVE = {"muster.dev/gang": "native"}
GATES = ["GenericWorkload", "GangScheduling"]
FURTHER = ["TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption", "DRAWorkloadResourceClaims"]
ROUNDS = int(os.environ.get("MUSTER_GANG_ROUNDS", "3"))
NODES, PER_NODE = 2, 3  # the pods of `wide` that fit: three on each of the two nodes
ALL = NODES * PER_NODE - 1  # pods of each of two jobs that do not fit at the same time
WIDE = {**TRUE, "resources": {"requests": {"cpu": "10"}}}


def flags(gates):
    gates = "--feature-gates=" + ",".join(f"{gate}=true" for gate in gates)
    api = "--runtime-config=scheduling.k8s.io/v1alpha2=true"
    return {"apiserver": [gates, api], "scheduler": [gates], "controller-manager": [gates]}


def make_high_priority(api):
    """The PriorityClass `high`, which preempts pods without one."""
    api.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})


class GangCase(AdmissionCase):
    CERTIFICATE = False

    @classmethod
    def serve(cls, name, *more):
        return super().serve(name, "--webhook-trust-clients", *more)

    def wide(self, name, nodes, annotations=None, made=None, **spec):
        """Creates a TrainJob of `nodes` pods, of which PER_NODE fit on a node."""
        made = made or runtime("", nodes, container=WIDE, annotations=OFF, **ONCE)
        return self.make(name, made, NATIVE if annotations is None else annotations, **spec)

    def groups(self, name):
        return self.items("podgroups", name)

    def await_groups(self, name, wanted):
        """Waits until the PodGroups of a job have these names."""
        return self.api.await_items(
            "podgroups",
            f"jobset.sigs.k8s.io/jobset-name={name}",
            lambda items: sorted(item["metadata"]["name"] for item in items) == sorted(wanted),
        )

    def placed(self, name):
        """The pods of a job that have a node, by their PodGroup."""
        found = {}
        for pod in self.items("pods", name):
            if pod["spec"].get("nodeName"):
                group = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")
                found[group] = found.get(group, 0) + 1
        return found

    def remove(self, *names):
        for name in names:
            self.api.delete("trainjobs", name)
            self.api.delete("trainingruntimes", name)
        for name in names:
            self.api.await_items("pods", f"jobset.sigs.k8s.io/jobset-name={name}", lambda items: not items)


class NativeGang(GangCase):
    FLAGS = flags(GATES)

    def test_from_the_start_to_the_end(self):
        self.wide("life", 2)
        self.running("life")
        (group,) = self.groups("life")
        self.assertEqual(group["metadata"]["name"], "life-0")
        self.assertEqual(group["spec"]["schedulingPolicy"], {"gang": {"minCount": 2}})
        workload = self.api.get("workloads", "life")
        self.assertEqual(
            workload["spec"]["controllerRef"],
            {"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob", "name": "life"},
        )
        for made in (group, workload):
            (owner,) = made["metadata"]["ownerReferences"]
            self.assertEqual((owner["kind"], owner["name"], owner["controller"]), ("TrainJob", "life", True))
        self.assertEqual(self.placed("life"), {"life-0": 2})
        # A suspension deletes the PodGroup, and the resume makes another one, here of more pods.
        self.patch("life", {"suspend": True})
        self.await_job("life", is_true("Suspended"))
        self.await_groups("life", [])
        self.patch("life", {"trainer": {"numNodes": 3}})
        self.patch("life", {"suspend": False})
        self.running("life")
        (group,) = self.groups("life")
        self.assertRegex(group["metadata"]["name"], r"^life-0-\d+$")
        self.assertEqual(group["spec"]["schedulingPolicy"], {"gang": {"minCount": 3}})
        self.assertEqual(self.placed("life"), {group["metadata"]["name"]: 3})
        template = self.api.get("workloads", "life")["spec"]["podGroupTemplates"][0]
        self.assertEqual(template["schedulingPolicy"], {"gang": {"minCount": 3}})
        with self.refused(403, "Kubernetes refuses to change the number of pods of a gang that runs"):
            self.patch("life", {"trainer": {"numNodes": 2}})
        self.finish("life")
        self.await_job("life", is_true("Complete"))
        self.await_groups("life", [])
        self.api.await_gone("workloads", "life")
        self.remove("life")

    def test_each_attempt_has_its_own_group(self):
        made = runtime("", 2, container=WIDE, annotations=OFF, **ONCE)
        made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 2}
        self.wide("again", 2, made=made)
        self.running("again")
        self.finish("again", "failed", rank=0)
        self.running("again", attempt=1)
        self.await_groups("again", ["again-1"])
        self.assertEqual(self.placed("again")["again-1"], 2)
        self.api.delete("trainjobs", "again")
        self.await_groups("again", [])  # the garbage collector
        self.api.await_gone("workloads", "again")

    def test_a_group_of_another_owner_is_not_used(self):
        theirs = {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "taken-0"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 9}}},
        }
        self.api.create("podgroups", theirs)
        self.wide("taken", 2)
        said = f"podgroups {NAMESPACE}/taken-0 is needed, and belongs to nobody"
        self.await_job("taken", lambda job: said in job.get("status", {}).get("message", ""))
        self.assertEqual(self.items("jobs", "taken"), [])
        self.assertEqual(self.api.get("podgroups", "taken-0")["spec"]["schedulingPolicy"], {"gang": {"minCount": 9}})
        self.api.delete("podgroups", "taken-0")
        self.running("taken")
        self.remove("taken")

    def test_the_scheduler_says_why(self):
        self.wide("large", NODES * PER_NODE + 1)
        job = self.await_job("large", lambda job: "Insufficient cpu" in job.get("status", {}).get("message", ""))
        self.assertIn("0/2 nodes are available", job["status"]["message"])
        self.assertEqual((job["status"]["state"], job["status"]["reason"]), ("Waiting", "Unschedulable"))
        self.assertEqual(self.placed("large"), {})
        self.remove("large")

    def test_what_a_gate_would_be_needed_for_is_refused(self):
        self.api.create("trainingruntimes", runtime("gated", 2, container=WIDE))
        for annotation, pod, said in (
            ("topology", {}, "its feature gate TopologyAwareWorkloadScheduling is off; enable it"),
            (
                "claims",
                {"resourceClaims": [{"name": "zone", "resourceClaimName": "fabric"}]},
                "its feature gate DRAWorkloadResourceClaims is off; enable it",
            ),
        ):
            name = f"gated-{annotation}"
            made = runtime(name, 2, container=WIDE, pod=pod)
            with self.refused(403, f"metadata.annotations.muster.dev/gang-{annotation}", said):
                self.make(name, made, {**NATIVE, f"muster.dev/gang-{annotation}": "zone"})

    # Two jobs that fit only one at a time, and start at the same time.

    def one_after_the_other(self, first, second, annotations):
        """How many pods of two jobs are placed once there is no more room: [0, all] for gangs. If one job has all, it
        ends, and the other one runs."""
        for name in (first, second):
            self.wide(name, ALL, annotations, suspend=True)
            self.await_job(name, is_true("Suspended"))
        resumes = [threading.Thread(target=self.patch, args=(name, {"suspend": False})) for name in (first, second)]
        for resume in resumes:
            resume.start()
        for resume in resumes:
            resume.join()
        for _ in tries():
            counts = {name: sum(self.placed(name).values()) for name in (first, second)}
            if ALL in counts.values() or sum(counts.values()) == NODES * PER_NODE:
                break
        runs = [name for name in counts if counts[name] == ALL]
        if not runs:
            return sorted(counts.values())
        (other,) = {first, second} - set(runs)
        self.running(runs[0])
        self.finish(runs[0])
        self.await_job(runs[0], is_true("Complete"))
        self.running(other)
        return sorted(counts.values())

    def test_two_gangs_never_share_the_room(self):
        for number in range(ROUNDS):
            names = f"gang-a-{number}", f"gang-b-{number}"
            self.assertEqual(self.one_after_the_other(*names, NATIVE), [0, ALL], f"round {number}")
            self.remove(*names)

    def test_plain_pods_do(self):
        """Else the rounds with gangs would show nothing."""
        for number in range(max(ROUNDS, 10)):
            names = f"plain-a-{number}", f"plain-b-{number}"
            counts = self.one_after_the_other(*names, {})
            self.remove(*names)
            if ALL not in counts:
                return
        self.fail("two jobs without gangs never shared the room")


class FurtherGates(GangCase):
    FLAGS = flags(GATES + FURTHER)

    def test_a_topology_and_one_disruption(self):
        self.wide("zoned", PER_NODE, {**NATIVE, "muster.dev/gang-topology": "kubernetes.io/hostname"})
        self.running("zoned")
        (group,) = self.groups("zoned")
        self.assertEqual(group["spec"]["disruptionMode"], "PodGroup")
        self.assertEqual(group["spec"]["schedulingConstraints"], {"topology": [{"key": "kubernetes.io/hostname"}]})
        self.assertEqual(len({pod["spec"]["nodeName"] for pod in self.items("pods", "zoned")}), 1)
        self.remove("zoned")
        with self.refused(403, "spec.podGroupTemplates", "a/b/c"):
            self.wide("wrong", 2, {**NATIVE, "muster.dev/gang-topology": "a/b/c"})

    def test_a_gang_is_preempted_as_a_whole(self):
        make_high_priority(self.api)
        self.wide("low", NODES * PER_NODE)
        self.running("low")
        urgent = runtime("", 2, container=WIDE, annotations=OFF, pod={"priorityClassName": "high"})
        self.wide("urgent", 2, made=urgent)
        self.running("urgent")
        (group,) = self.groups("urgent")
        self.assertEqual(group["spec"]["priority"], 1000)
        self.assertEqual(sum(self.placed("low").values()), 0)
        self.remove("low", "urgent")

    def test_a_claim_of_the_group(self):
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "fabric", "namespace": NAMESPACE},
            "spec": {"spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "none"}}]}}},
        }
        self.cluster.apply([claim])
        pod = {"resourceClaims": [{"name": "net", "resourceClaimTemplateName": "fabric"}]}
        made = runtime("", 2, container=WIDE, annotations=OFF, pod=pod)
        self.wide("claims", 2, {**NATIVE, "muster.dev/gang-claims": "net"}, made)
        group = self.api.await_object(
            "podgroups", "claims-0", lambda group: group.get("status", {}).get("resourceClaimStatuses")
        )
        self.assertEqual(group["spec"]["resourceClaims"], pod["resourceClaims"])
        # One claim for both pods. Its class does not exist, so they wait.
        found = self.cluster.get("resourceclaims", "-n", NAMESPACE)["items"]
        self.assertEqual(len(found), 1, found)
        self.remove("claims")


class PyTorchGang(PyTorchCase):
    FLAGS = flags(GATES)

    def test_from_the_start_to_the_end(self):
        self.serve()
        pods = ["life-master-0", "life-worker-0", "life-worker-1"]
        self.create_job("life", workers=2, annotations=NATIVE, container=WIDE)
        self.await_running("life")
        group = self.api.get("podgroups", "life")
        self.assertEqual(group["spec"]["schedulingPolicy"], {"gang": {"minCount": 3}})
        (owner,) = group["metadata"]["ownerReferences"]
        self.assertEqual((owner["kind"], owner["name"], owner["controller"]), ("PyTorchJob", "life", True))
        self.assertEqual(sorted(self.of("pods", "life")), pods)
        for pod in self.of("pods", "life").values():
            self.assertEqual(pod["spec"]["schedulingGroup"], {"podGroupName": "life"})
        # A pod that is replaced is placed beside those that run.
        uid = self.uid("life-worker-1")
        self.end("life-worker-1", 143)
        self.await_other("life-worker-1", uid)
        self.api.patch("pytorchjobs", "life", {"spec": {"runPolicy": {"suspend": True}}})
        self.api.await_gone("podgroups", "life")
        self.api.await_gone("workloads", "life")
        self.api.patch("pytorchjobs", "life", {"spec": {"runPolicy": {"suspend": False}}})
        self.api.await_object("podgroups", "life", lambda group: True)
        self.await_running("life")
        self.end("life-master-0")
        self.await_end("life", "Succeeded")
        self.api.await_gone("workloads", "life")


class PyTorchPreemption(PyTorchCase):
    FLAGS = flags(GATES + FURTHER)

    def test_all_pods_go_and_come_back_together(self):
        self.serve()
        make_high_priority(self.api)
        self.create_job("low", workers=ALL, annotations=NATIVE, container=WIDE)  # and the master: all room
        self.await_running("low")
        group = self.api.get("podgroups", "low")
        self.assertEqual(group["spec"]["disruptionMode"], "PodGroup")
        before = {pod["metadata"]["uid"] for pod in self.of("pods", "low").values()}
        self.assertEqual(len(before), NODES * PER_NODE)
        urgent = pytorch_job("urgent", workers=1, policy={"cleanPodPolicy": "All"}, annotations=NATIVE, container=WIDE)
        for replica in urgent["spec"]["pytorchReplicaSpecs"].values():
            replica["template"]["spec"]["priorityClassName"] = "high"
        self.api.create("pytorchjobs", urgent)
        self.await_running("urgent")
        # The pods wait again. The scheduler may place one of them while it still counts pods that it deletes.
        waiting = self.api.await_items(
            "pods",
            f"{LABEL}job-name=low",
            lambda pods: len({pod["metadata"]["uid"] for pod in pods} - before) == NODES * PER_NODE == len(pods),
        )
        self.assertIn(None, [pod["spec"].get("nodeName") for pod in waiting])
        self.end("urgent-master-0")
        self.await_end("urgent", "Succeeded")
        status = self.await_running("low")["status"]
        self.assertEqual((status.get("restarts", 0), status.get("attempt", 0)), (0, 0))


if __name__ == "__main__":
    class_runner.main()
