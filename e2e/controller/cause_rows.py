# SPDX-License-Identifier: Apache-2.0
"""What a user reads after a failure, as a table: what goes wrong, and the cause and the next step that every place
names.

cause_rows_scenarios.py runs the rows in a cluster, tests/local/causes_test.py by `muster local`, with the
same objects and the same words. The table of docs/restarts.md is checked against these rows. A job has two pods of
busybox; rank 1 is to blame unless the row says otherwise. Scripts write to /shared, a folder of their row.
"""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

from cause_row import LOGS, RAISE, SLOT, STAYS, TRAIN, Row, before, with_limit, with_small_volume
from cause_rows_of_programs import mpi_rows, torch_rows, worker_rows
from images import BUSYBOX
from scenario import INITIALIZER, INITIALIZER_IMAGE, shell

STEPS = {LOGS: "see the log", RAISE: "raise it"}  # for the page
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "restarts.md")
BEGIN_OF_TABLE, END_OF_TABLE = "<!-- Made by e2e/controller/cause_rows.py: -->\n", "<!-- end of what is made -->\n"
FETCHES = {"image": INITIALIZER_IMAGE, "volumeMounts": [{"name": "shared", "mountPath": "/workspace"}]}


def rows():
    return [
        *worker_rows(),
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
            how="ended with exit code 143|was killed by SIGTERM",  # the probe may fail before the agent takes signals
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
