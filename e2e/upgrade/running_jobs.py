# SPDX-License-Identifier: Apache-2.0
"""Jobs of each kind that run while Muster is upgraded: a TrainJob and a PyTorchJob of PyTorch, a TrainJob of MPI. They
go on step by step, as the scenario says, so none of them ends too early."""

import os
import shutil

import mpi_jobs
import torch_programs
from await_file import await_file
from images import BUSYBOX
from pytorch_jobs import is_true, pytorch_job
from scenario import DEBIAN, Scenario, host_folders, runtime, train_job

SECONDS = 300  # until something that takes some seconds has happened
STEPS = 3
# Each rank waits for the last step before it enters MPI. `set -C`: a second start would fail.
MPI_RANKS = (
    "set -C; : > /shared/{name}.start-$OMPI_COMM_WORLD_RANK && "
    f"until [ -e /shared/go-{STEPS} ]; do sleep 0.1; done && exec /shared/program"
)
KINDS = {"torch": "trainjob", "mpi": "trainjob", "pytorch": "pytorchjob"}
RANKS = {"torch": 2, "mpi": 4, "pytorch": 2}
LABELS = ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name")


class RunningJobs(Scenario):
    def setUp(self):
        super().setUp()
        if missing := torch_programs.missing() or mpi_jobs.missing():
            self.skipTest(f"there is {missing}")
        self.folder = self.shared()
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps.py"), self.folder)
        mpi_jobs.make_program(self.folder)
        self.jobs = {}  # name: kind

    def begin(self, prefix, kinds=tuple(KINDS)):
        """Creates a job PREFIX-KIND of each kind, and waits until their ranks run. Returns the names."""
        names = []
        for kind in kinds:
            name = f"{prefix}-{kind}"
            self.jobs[name] = kind
            names.append(name)
            self.create(*getattr(self, f"{kind}_job")(name))
        for name in names:
            for rank in range(RANKS[self.jobs[name]]):
                await_file(os.path.join(self.folder, f"{name}.start-{rank}"), SECONDS)
            self.await_state(name, "Running")
        return names

    def container(self, name):
        """(its fields, the pod's volumes) of a program of PyTorch"""
        volumes, mounts = host_folders(DEBIAN)
        volumes.append({"name": "shared", "hostPath": {"path": self.folder}})
        mounts.append({"name": "shared", "mountPath": "/shared"})
        return {
            "volumeMounts": mounts,
            "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}],
            "resources": {"requests": {"cpu": "10m"}},
        }, volumes

    @staticmethod
    def steps(name):
        return ["/shared/steps.py", name, "/shared", str(STEPS)]

    def torch_job(self, name):
        container, volumes = self.container(name)
        trainer = {"numNodes": 2, "numProcPerNode": 1, "command": ["torchrun", *self.steps(name)]}
        return [
            runtime(name, 1, {"torch": {}}, container=container, pod={"volumes": volumes}),
            train_job(name, name, trainer=trainer),
        ]

    def pytorch_job(self, name):
        container, volumes = self.container(name)
        command = [torch_programs.PYTHON, *self.steps(name)]
        return [pytorch_job(name, 1, {**container, "command": command}, pod={"volumes": volumes})]

    def mpi_job(self, name):
        command = [mpi_jobs.MPIRUN, "-n", "4", "/bin/sh", "-c", MPI_RANKS.format(name=name)]
        return mpi_jobs.mpi_job(name, self.folder, command, 2, 2)

    def await_state(self, name, state):
        kind = KINDS[self.jobs[name]]
        wanted = (
            (lambda job: is_true(job, state))
            if kind == "pytorchjob"
            else (lambda job: job.get("status", {}).get("state") == state)
        )
        return self.cluster.await_object(f"{kind}/{name}", wanted, self.namespace, SECONDS)

    def step(self, number):
        """Lets all ranks of PyTorch do that step, and waits for it. MPI's ranks go on with the last one."""
        with open(os.path.join(self.folder, f"go-{number}"), "w"):
            pass
        for name, kind in self.jobs.items():
            if kind != "mpi":
                await_file(os.path.join(self.folder, f"{name}.done-{number}"), SECONDS)

    def pods(self, *names):
        """What an upgrade must leave as it is: (pod, uid, images, restarts of its containers) of the jobs, all of them
        if none are named."""
        found = []
        for name in names or self.jobs:
            label = LABELS[KINDS[self.jobs[name]] == "pytorchjob"]
            for pod in self.cluster.get("pods", "-n", self.namespace, "-l", f"{label}={name}")["items"]:
                every = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
                states = pod["status"].get("containerStatuses", [])
                found.append(
                    (
                        pod["metadata"]["name"],
                        pod["metadata"]["uid"],
                        [one["image"] for one in every],
                        [state["restartCount"] for state in states],
                    )
                )
        return sorted(found)

    def agents_of(self, *names):
        """The tags of the agents' images in the pods of the jobs."""
        images = {image for _, _, of_pod, _ in self.pods(*names) for image in of_pod if image != BUSYBOX}
        return {image.rpartition(":")[2] for image in images}

    def all_succeed(self):
        """Lets all jobs do their last step. None has been restarted."""
        self.step(STEPS)
        for name, kind in self.jobs.items():
            if KINDS[kind] == "pytorchjob":
                status = self.await_state(name, "Succeeded")["status"]
                self.assertFalse(
                    is_true({"status": status}, "Running") or is_true({"status": status}, "Failed"), status
                )
                self.assertEqual(status.get("restarts", 0), 0, status)
            else:
                job = self.finished(name, SECONDS)
                self.condition(job, "Complete")
                status = job["status"]
                counts = (status["restarts"], status["attempt"], status.get("failures", []))
                self.assertEqual(counts, (0, 0, []), status)
