# SPDX-License-Identifier: Apache-2.0
"""A row of the table of causes (cause_rows.py): what goes wrong, by which objects, and what every place says."""

import dataclasses
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

import mpi_jobs
from failure_rows import volumes
from images import BUSYBOX
from pytorch_jobs import CONTAINER as PYTORCH_CONTAINER, pytorch_job
from scenario import INITIALIZER, put_before, runtime, shell, train_job

TRAIN, PYTORCH = "TrainJob", "PyTorchJob"
BOTH = (TRAIN, PYTORCH)
LOGS = "the log"  # the command that shows the log of the container to blame
RAISE = "raise spec."  # and the field of the job
BEGIN = (
    "who=${RANK:-$JOB_COMPLETION_INDEX}\nsay() { printf '%s\\n' \"$@\" >&2; }\n"
    "await() { until [ -e /shared/$1 ]; do sleep 0.1; done; }\n: > /shared/begun-$who\n"
)
STAYS = "exec sleep 1000"
DIE = "sh -c 'kill -{} $PPID'; sleep 9"
SLOT = "muster.dev/slot"  # a resource of the node, of which there are two


@dataclasses.dataclass
class Row:
    """`words` stand in every sentence about the failure, and `how` behind its pod's name. `rank`: None: either. `code`:
    0: any, or no container ended. `step`: words of the next step; "": there is none. `act`: what
    cause_rows_scenarios.py does once both ranks have begun."""

    name: str
    what: str  # for docs/restarts.md
    words: str
    code: int = 1
    script: str = ""  # of rank 1
    kinds: tuple = BOTH
    local: bool = True
    rank: int = 1
    how: str = ""
    step: str = LOGS
    state: str = "Failed"  # "Running": the pod is replaced
    container: str = ""  # "": `node`, or `pytorch`
    torchrun: bool = True  # the script is a worker of torchrun
    others: str = STAYS
    act: str = ""
    reason: str = ""  # of the failure, or of what the job waits for
    change: object = None  # changes (pod, container) before the job is made
    command: list = None  # in place of the script
    max_restarts: int = 0
    failures: int = 1  # 0: no pod failed
    initializer: dict = None  # a container before the nodes; only for a TrainJob
    again: str = "Never"  # restartPolicy of its pod
    missing: object = lambda: ""  # what the row needs and this machine lacks
    spec: dict = dataclasses.field(default_factory=dict)  # of the TrainJob, or the runPolicy

    def container_of(self, kind):
        return self.container or ("node" if kind == TRAIN else PYTORCH_CONTAINER)

    def pod(self, kind):
        """A pattern of the name of the pod that is to blame."""
        if self.initializer:
            return f"{self.name}-{INITIALIZER}-0-0-\\w+"
        if kind == TRAIN:
            return f"{self.name}-node-0-{'[01]' if self.rank is None else self.rank}-\\w+"
        return f"{self.name}-{'(master|worker)' if self.rank is None else ('master', 'worker')[self.rank]}-0"

    def objects(self, kind, folder, port):
        """The job, and its runtime before it. Each row has a folder and, where pods share a network, a port of its
        own."""
        command = self.command or shell(f"{BEGIN}[ $who = 1 ] || {{ {self.others}; }}\n{self.script}")
        if self.torchrun:
            command = ["torchrun", "--no-python", *command]
        container = {"command": command, "volumeMounts": [{"name": "shared", "mountPath": "/shared"}], "env": []}
        pod = {"volumes": volumes(folder), "terminationGracePeriodSeconds": 5}
        if self.change:
            self.change(pod, container)
        beside = pod.pop("beside", [])
        return (self.train_job if kind == TRAIN else self.pytorch_job)(pod, container, beside, port)

    def train_job(self, pod, container, beside, port):
        container["env"].append({"name": "PET_MASTER_PORT", "value": str(port)})
        made = runtime(
            self.name, 2, {"torch": {"numProcPerNode": 1}} if self.torchrun else None, pod=pod, container=container
        )
        spec = made["spec"]["template"]["spec"]
        spec["failurePolicy"] = {"maxRestarts": self.max_restarts}
        step = spec["replicatedJobs"][0]["template"]
        step["metadata"].setdefault("annotations", {})["muster.dev/restart-policy"] = "exit-code"
        step["spec"]["template"]["spec"]["containers"] += beside
        if self.initializer:
            put_before(
                made,
                INITIALIZER,
                {
                    "volumes": pod["volumes"],
                    "restartPolicy": self.again,
                    "containers": [{"name": INITIALIZER, "imagePullPolicy": "IfNotPresent", **self.initializer}],
                },
            )
            if self.again == "Never":
                spec["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
        return [made, train_job(self.name, self.name, **self.spec)]

    def pytorch_job(self, pod, container, beside, port):
        container["ports"] = [{"name": "pytorchjob-port", "containerPort": port}]
        made = pytorch_job(
            self.name,
            1,
            container,
            "ExitCode",
            {"backoffLimit": self.max_restarts, "cleanPodPolicy": "Running", **self.spec},
            pod=pod,
            processes=1 if self.torchrun else None,
        )
        made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"] += (
            beside  # the Worker has the same template
        )
        return [made]


class MpiRow(Row):
    """A TrainJob of Open MPI: the launcher and one more node, of one process each."""

    def pod(self, kind):
        return f"{self.name}-{mpi_jobs.LAUNCHER}-0-0-\\w+"

    def objects(self, kind, folder, port):
        mpi_jobs.make_program(folder)
        return mpi_jobs.mpi_job(self.name, folder, self.command, 2, 1, max_restarts=0)


def wrong(row, kind, place, text, pod, logs):
    """What `text`, a sentence of `place`, lacks. "": nothing. `pod`: a pattern of its name. `logs`: the command for
    LOGS."""
    patterns = []
    if row.state == "Waiting":
        patterns = [f"pod {pod}: ", row.reason]
    elif row.failures:
        named = (
            "" if row.initializer or not row.code else row.container or (PYTORCH_CONTAINER if kind == PYTORCH else "")
        )
        who = "" if row.rank is None or row.initializer else f"(rank|node) {row.rank}(:| on) "
        patterns = [
            f"{who}pod {pod}{named and ', container ' + named}",
            row.how or (f"ended with exit code {row.code}" if row.code else r"failed \("),
        ]
    lacks = [pattern for pattern in patterns if not re.search(pattern, text)]
    lacks += [words for words in (row.words, logs if row.step == LOGS else row.step) if words not in text]
    return f"{row.name}: {place}: not {lacks} in: {text}" if lacks else ""


def with_limit(amount):
    def change(pod, container):
        container["resources"] = {"limits": {"memory": amount}}

    return change


def with_env(**values):
    def change(pod, container):
        container["env"] += [{"name": name, "value": value} for name, value in values.items()]

    return change


def with_small_tmpfs(pod, container):
    pod["volumes"].append({"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
    container["volumeMounts"].append({"name": "small", "mountPath": "/small"})


def with_small_volume(pod, container):
    """On the node's disk, where the kubelet holds the limit."""
    pod["volumes"].append({"name": "small", "emptyDir": {"sizeLimit": "1Mi"}})
    container["volumeMounts"].append({"name": "small", "mountPath": "/small"})


def beside(script):
    """A container beside the one that trains."""

    def change(pod, container):
        pod["beside"] = [
            {"name": "beside", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": shell(script)}
        ]

    return change


def before(script):
    def change(pod, container):
        pod["initContainers"] = [
            {"name": "prepare", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": shell(script)}
        ]

    return change


def last_words(lines, end):
    """A worker that prints `lines` and ends."""
    return "say " + " ".join("'" + line.replace("'", "'\\''") + "'" for line in lines) + "\n" + end


def raises(error, end="exit 1", *after):
    return last_words(
        ["Traceback (most recent call last):", '  File "train.py", line 7, in <module>', "    main()", error, *after],
        end,
    )
