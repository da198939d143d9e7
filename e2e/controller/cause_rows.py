"""What a user reads after a failure, as a table: what goes wrong, and the cause and the next step that every place
names.

cause_rows_scenarios.py runs the rows in a cluster, tests/local/causes_test.py by `muster local`, with the
same objects and the same words. The table of docs/restarts.md is checked against these rows. A job has two pods of
busybox; rank 1 is to blame unless the row says otherwise. Scripts write to /shared, a folder of their row.
"""

import dataclasses
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

import mpi_jobs
import torch_programs
from failure_rows import volumes
from images import BUSYBOX
from pytorch_jobs import CONTAINER as PYTORCH_CONTAINER, pytorch_job
from scenario import INITIALIZER, INITIALIZER_IMAGE, put_before, runtime, shell, train_job

TRAIN, PYTORCH = "TrainJob", "PyTorchJob"
BOTH = (TRAIN, PYTORCH)
LOGS = "the log"  # the command that shows the log of the container to blame
RAISE = "raise spec."  # and the field of the job
STEPS = {LOGS: "see the log", RAISE: "raise it"}  # for the page
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "restarts.md")
BEGIN_OF_TABLE, END_OF_TABLE = "<!-- Made by e2e/controller/cause_rows.py: -->\n", "<!-- end of what is made -->\n"
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


def table():
    """The table of docs/restarts.md."""
    lines = ["| what happens | code | what every place says | next step | runs as |", "|---|---|---|---|---|"]
    for row in rows():
        says = row.words or row.reason or row.how.partition("|")[0] or (f"exit code {row.code}" if row.code else "")
        ways = [*row.kinds, *(["`muster local`"] if row.local else [])]
        lines.append(
            f"| {row.what} | {row.code or ''} | {says and f'`{says}`'} | {STEPS.get(row.step, row.step)} | "
            f"{', '.join(ways)} |"
        )
    return "\n".join(lines) + "\n"


def renewed(page):
    before, rest = page.split(BEGIN_OF_TABLE)
    return before + BEGIN_OF_TABLE + "\n" + table() + "\n" + END_OF_TABLE + rest.split(END_OF_TABLE)[1]


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


CLOSED = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:34567"
WARNING = (
    "[W1128 09:00:00 ProcessGroupNCCL.cpp:1250] Warning: WARNING: "
    "destroy_process_group() was not called before program exit"
)
SHM = (
    "RuntimeError: DataLoader worker (pid(s) 21) exited unexpectedly. ERROR: "
    "Unexpected bus error encountered in worker. This might be caused by "
    "insufficient shared memory (shm)."
)


def torch_rows(python=torch_programs.PYTHON, prefix="torch"):
    def row(name, what, words, fault, code=1, **more):
        return Row(
            f"{prefix}-{name}",
            what,
            words,
            code,
            command=torch_programs.command(fault, python),
            change=torch_programs.on_debian,
            missing=lambda: torch_programs.missing(python),
            **more,
        )

    return [
        row(
            "raises",
            "PyTorch: an exception while the others are in an all_reduce",
            "KeyError: 'step'",
            torch_programs.RAISES,
        ),
        row(
            "alone",
            "The same without torchrun",
            "KeyError: 'step'",
            torch_programs.RAISES,
            torchrun=False,
            kinds=(PYTORCH,),
        ),
        row(
            "dies",
            "PyTorch: SIGKILL while the others are in an all_reduce",
            "",
            torch_programs.DIES,
            137,
            how="was killed by SIGKILL",
        ),
        row(
            "data",
            "PyTorch: an exception in a worker of DataLoader",
            "ValueError: no such sample",
            torch_programs.LOADS,
        ),
        row(
            "timeout",
            "PyTorch: a rank that does not join an all_reduce",
            f"Timed out waiting {torch_programs.TIMEOUT}000ms for recv operation to complete",
            torch_programs.SLEEPS,
            rank=0,
        ),
    ]


def mpi_rows():
    def row(name, what, words, code, command, **more):
        return MpiRow(
            f"mpi-{name}",
            what,
            words,
            code,
            kinds=(TRAIN,),
            torchrun=False,
            rank=None,
            command=command,
            missing=mpi_jobs.missing,
            **more,
        )

    run = [mpi_jobs.MPIRUN, "-n", "2"]
    return [
        row(
            "rank",
            "MPI: a rank that ends with 7",
            "one or more processes exited with non-zero status",
            7,
            [*run, "/shared/program", "exit", "1", "7"],
        ),
        row(
            "no-program",
            "MPI: a program that does not exist",
            "could not access or execute an executable: Executable: /shared/nothing",
            132,
            [*run, "/shared/nothing"],
            how="exit code 132",
        ),
        row(
            "no-mpirun",
            "MPI: an `mpirun` that does not exist",
            "'no-such-mpirun' was not found in PATH",
            127,
            ["no-such-mpirun", "-n", "2", "/shared/program"],
            how="exit code 127",
            step="correct the command of container",
        ),
    ]


FETCHES = {"image": INITIALIZER_IMAGE, "volumeMounts": [{"name": "shared", "mountPath": "/workspace"}]}


def rows():
    return [
        # The words of the worker that is to blame, whatever else was printed, and whoever was first to end.
        Row(
            "key-error",
            "An exception, and warnings after it",
            "KeyError: 'step'",
            script=raises("KeyError: 'step'", "exit 1", WARNING),
        ),
        Row(
            "import-error",
            "A module that is not there",
            "ModuleNotFoundError: No module named 'transformers'",
            script=raises("ModuleNotFoundError: No module named 'transformers'"),
        ),
        Row(
            "syntax-error",
            "A script that Python cannot read",
            "SyntaxError: invalid syntax",
            script=last_words(
                ['  File "train.py", line 3', "    def main(:", "             ^", "SyntaxError: invalid syntax"],
                "exit 1",
            ),
        ),
        Row(
            "usage",
            "Wrong arguments of the script",
            "train.py: error: unrecognized arguments: --lrr 1",
            2,
            script=last_words(
                ["usage: train.py [-h] [--lr LR]", "train.py: error: unrecognized arguments: --lrr 1"], "exit 2"
            ),
        ),
        Row(
            "exit-text",
            '`sys.exit("text")`',
            "no checkpoint in /data",
            script=last_words(["no checkpoint in /data"], "exit 1"),
        ),
        Row("silent", "`os._exit(7)`, without a word", "", 7, script="exit 7"),
        Row("segmentation-fault", "SIGSEGV", "", 139, how="was killed by SIGSEGV", script=DIE.format("SEGV")),
        Row(
            "abort",
            "SIGABRT after a C++ exception",
            "terminate called after throwing an instance of 'c10::Error': CUDA error: an illegal memory access",
            134,
            how="was killed by SIGABRT",
            script=last_words(
                [
                    "terminate called after throwing an instance of 'c10::Error'",
                    "  what():  CUDA error: an illegal memory access was encountered",
                ],
                DIE.format("ABRT"),
            ),
        ),
        Row(
            "shared-memory",
            "A full /dev/shm, in the words of DataLoader",
            "insufficient shared memory (shm)",
            script=raises(SHM),
            step="mount an emptyDir of medium Memory at /dev/shm",
        ),
        Row(
            "gpu-memory",
            "Too little memory of the GPU",
            "torch.OutOfMemoryError: CUDA out of memory.",
            script=raises(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
                "GPU 0 has a total capacity of 79.10 GiB"
            ),
        ),
        Row(
            "hydra",
            "An exception under Hydra, with its advice after it",
            "ValueError: no such optimizer",
            script=last_words(
                [
                    "Error executing job with overrides: []",
                    "Traceback (most recent call last):",
                    '  File "/app/train.py", line 9, in main',
                    "    raise ValueError('no such optimizer')",
                    "ValueError: no such optimizer",
                    "",
                    "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
                ],
                "exit 1",
            ),
        ),
        Row(
            "disk-full",
            "A volume without room",
            "No space left on device",
            script="cat /dev/zero > /small/file || exit 1",
            change=with_small_tmpfs,
        ),
        Row(
            "hidden-before",
            "Its peer ends first, since it has lost the worker",
            "KeyError: 'step'",
            others="await raised; " + raises(CLOSED),
            script=last_words(
                ["Traceback (most recent call last):", "KeyError: 'step'"], ": > /shared/raised; sleep 0.5; exit 1"
            ),
        ),
        Row(
            "hidden-after",
            "Its peer ends after it, with many lines",
            "KeyError: 'step'",
            others="await raised; " + raises(CLOSED),
            script=raises("KeyError: 'step'", ": > /shared/raised; exit 1"),
        ),
        Row(
            "slow-teardown",
            "An exception that the worker catches; its teardown takes long, its peers end first",
            "KeyError: 'step'",
            others="await raised; " + raises(CLOSED),
            script=raises("KeyError: 'step'", ": > /shared/raised; sleep 3; exit 1"),
        ),
        Row(
            "hang",
            "A worker that stands still",
            "no heartbeat for",
            203,
            script=": > $MUSTER_HEARTBEAT_FILE; exec sleep 1000",
            how="exit code 203",
            others="while :; do date > $MUSTER_HEARTBEAT_FILE; sleep 0.2; done",
            change=with_env(MUSTER_HANG_TIMEOUT="3s"),
        ),
        Row(
            "budget",
            "Each restart in the pods ends the same way",
            "out of luck",
            143,
            max_restarts=1,
            script=last_words(["out of luck"], "exit 143"),
        ),
        # Commands that are no workers of torchrun.
        Row(
            "command",
            "A command that fails",
            "KeyError: 'step'",
            torchrun=False,
            script=raises("KeyError: 'step'", "exit 1", WARNING),
        ),
        Row(
            "command-hidden",
            "A command whose peer ends first, since it has lost it",
            "KeyError: 'step'",
            torchrun=False,
            others="await raised; " + raises(CLOSED),
            script=raises("KeyError: 'step'", ": > /shared/raised; sleep 0.5; exit 1"),
        ),
        Row(
            "not-found",
            "A command that does not exist",
            "'no-such-program' was not found in PATH",
            127,
            torchrun=False,
            rank=None,
            how="exit code 127",
            command=["no-such-program"],
            step="correct the command of container",
        ),
        Row(
            "not-executable",
            "A command without the right to run it",
            "'/etc/passwd' cannot be executed: Permission denied",
            126,
            torchrun=False,
            rank=None,
            how="exit code 126",
            command=["/etc/passwd"],
            step="correct the command of container",
        ),
        Row(
            "killed-from-inside",
            "A command that a signal kills",
            "",
            137,
            torchrun=False,
            how="was killed by SIGKILL|128 \\+ SIGKILL",
            script=DIE.format("KILL"),
        ),
        Row(
            "beside-1",
            "Another container serves the one that fails",
            "KeyError: 'step'",
            torchrun=False,
            script=raises("KeyError: 'step'"),
            change=beside(STAYS),
        ),
        Row(
            "beside-137",
            "The same after a signal",
            "",
            137,
            torchrun=False,
            how="was killed by SIGKILL|128 \\+ SIGKILL",
            script=DIE.format("KILL"),
            change=beside(STAYS),
        ),
        # What the kernel and the kubelet do.
        Row(
            "out-of-memory",
            "A worker over `limits.memory`",
            "",
            137,
            how="was killed by SIGKILL, out of memory",
            script="exec tail /dev/zero",
            change=with_limit("64Mi"),
            step="raise resources.limits.memory of container",
            local=False,
        ),
        Row(
            "command-out-of-memory",
            "A command over `limits.memory`",
            "",
            137,
            torchrun=False,
            how="out of memory",
            script="exec tail /dev/zero",
            change=with_limit("64Mi"),
            step="raise resources.limits.memory of container",
            local=False,
        ),
        Row(
            "agent-killed",
            "SIGKILL of the agent",
            "",
            137,
            how="was killed by SIGKILL",
            script=STAYS,
            act="kill_agent",
            local=False,
        ),
        Row(
            "init-container",
            "An init container of the pod",
            "",
            5,
            rank=None,
            container="prepare",
            script="exit 0",
            torchrun=False,
            change=before("echo 'no licence' >&2; exit 5"),
        ),
        Row(
            "initializer",
            "An initializer's container of the user",
            "",
            3,
            kinds=(TRAIN,),
            rank=None,
            container=INITIALIZER,
            script="exit 0",
            torchrun=False,
            initializer={"image": BUSYBOX, "command": shell("echo 'no such table' >&2; exit 3")},
        ),
        Row(
            "initializer-path",
            "`muster-initializer`: a path that does not exist",
            "/nothing",
            1,
            kinds=(TRAIN,),
            rank=None,
            container=INITIALIZER,
            script="exit 0",
            torchrun=False,
            initializer=FETCHES,
            again="OnFailure",
            spec={"initializer": {"dataset": {"storageUri": "file:///nothing"}}},
        ),
        Row(
            "initializer-scheme",
            "`muster-initializer`: a scheme that it does not know",
            "the scheme 'ftp' is not known",
            78,
            kinds=(TRAIN,),
            rank=None,
            container=INITIALIZER,
            script="exit 0",
            torchrun=False,
            initializer=FETCHES,
            again="OnFailure",
            how="exit code 78",
            spec={"initializer": {"dataset": {"storageUri": "ftp://server/data"}}},
        ),
        *torch_rows(),
        *mpi_rows(),
        # Kubernetes.
        Row(
            "deleted",
            "The pod is deleted",
            "Deleted: the pod was deleted",
            143,
            script=STAYS,
            torchrun=False,
            act="delete",
            reason="Deleted",
            state="Running",
            local=False,
            how="ended with exit code 143",
            step="",
        ),
        Row(
            "evicted",
            "The pod is evicted by the API",
            "EvictionByEvictionAPI",
            143,
            script=STAYS,
            torchrun=False,
            act="evict",
            reason="EvictionByEvictionAPI",
            state="Running",
            step="",
            local=False,
            how="ended with exit code 143",
        ),
        Row(
            "volume-limit",
            "The pod exceeds the `sizeLimit` of an emptyDir",
            'Usage of EmptyDir volume "small" exceeds the limit "1Mi"',
            0,
            torchrun=False,
            script=f"[ -e /shared/once ] || {{ : > /shared/once; head -c 20000000 /dev/zero > /small/file; }}\n{STAYS}",
            reason="Evicted",
            state="Running",
            step="raise the limit that it exceeded",
            local=False,
            how="failed \\(Evicted\\)|exit code 143|was killed by SIGKILL",
            change=with_small_volume,
        ),
        Row(
            "pod-deadline",
            "`activeDeadlineSeconds` of the pod",
            "Pod was active on the node longer than the specified deadline",
            0,
            script=STAYS,
            torchrun=False,
            rank=None,
            reason="DeadlineExceeded",
            change=lambda pod, container: pod.update(activeDeadlineSeconds=5),
            how="DeadlineExceeded",
            step="raise activeDeadlineSeconds of the pod",
            local=False,
        ),
        Row(
            "unhealthy",
            "The liveness probe fails",
            "Unhealthy: Liveness probe failed",
            143,
            script=STAYS,
            torchrun=False,
            rank=None,
            reason="Unhealthy",
            change=lambda pod, container: container.update(
                livenessProbe={"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
            ),
            step="if the container was only slow, raise failureThreshold or timeoutSeconds of its probe",
        ),
        Row(
            "preempted",
            "A pod of a higher priority needs the room",
            "PreemptionByScheduler: ",
            143,
            script=STAYS,
            torchrun=False,
            rank=None,
            act="preempt",
            reason="PreemptionByScheduler",
            state="Running",
            step="give the job a higher priority (priorityClassName)",
            local=False,
            how="ended with exit code 143",
            change=lambda pod, container: container.update(resources={"limits": {SLOT: "1"}}),
        ),
        Row(
            "deadline",
            "`spec.activeDeadlineSeconds` of the job",
            "activeDeadlineSeconds",
            0,
            script=STAYS,
            torchrun=False,
            spec={"activeDeadlineSeconds": 6},
            failures=0,
            step=RAISE,
        ),
        Row(
            "suspended",
            "`spec.suspend`: no failure, no Warning",
            "",
            0,
            script=STAYS,
            torchrun=False,
            act="suspend",
            state="Suspended",
            failures=0,
            step="",
            local=False,
        ),
        # Pods that do not start.
        Row(
            "no-image",
            "An image that does not exist",
            "muster.invalid/nothing:1",
            0,
            state="Waiting",
            failures=0,
            rank=None,
            step="correct the image",
            local=False,
            torchrun=False,
            script="exit 0",
            reason="ErrImagePull|ImagePullBackOff|Failed",
            change=lambda pod, container: container.update(image="muster.invalid/nothing:1"),
        ),
        Row(
            "no-config-map",
            "A ConfigMap that does not exist",
            'configmap "settings" not found',
            0,
            state="Waiting",
            failures=0,
            rank=None,
            step="once it exists the pod starts",
            local=False,
            script="exit 0",
            torchrun=False,
            reason="CreateContainerConfigError|Failed",
            change=lambda pod, container: container["env"].append(
                {"name": "LR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "lr"}}}
            ),
        ),
        Row(
            "no-secret",
            "A Secret that does not exist, as a volume",
            'secret "token" not found',
            0,
            state="Waiting",
            failures=0,
            rank=None,
            step="once it can be mounted the pod starts",
            local=False,
            script="exit 0",
            torchrun=False,
            reason="FailedMount",
            change=lambda pod, container: (
                pod["volumes"].append({"name": "token", "secret": {"secretName": "token"}}),
                container["volumeMounts"].append({"name": "token", "mountPath": "/token"}),
            ),
        ),
        Row(
            "unschedulable",
            "No node fits",
            "node(s) didn't match Pod's node affinity/selector",
            0,
            state="Waiting",
            failures=0,
            rank=None,
            step="the pod starts once a node fits",
            local=False,
            script="exit 0",
            torchrun=False,
            reason="Unschedulable",
            change=lambda pod, container: pod.update(nodeSelector={"gpu": "h200"}),
        ),
    ]


def runnable(some):
    """Those of the rows that this machine can run. Tells of the others."""
    lacks = {row.name: row.missing() for row in some}
    print(
        "".join(f"left out: {name}: there is {missing}\n" for name, missing in lacks.items() if missing),
        end="",
        flush=True,
    )
    return [row for row in some if not lacks[row.name]]


if __name__ == "__main__":
    with open(PAGE) as file:
        page = file.read()
    with open(PAGE, "w") as file:
        file.write(renewed(page))
