# SPDX-License-Identifier: Apache-2.0
"""The failures of docs/restarts.md and docs/pytorchjob.md as a table: a job, what happens to it, how it must end.

failure_rows_scenarios.py runs the rows in a cluster, tests/local/failures_test.py by `muster local`, with
the same objects and the same expected ends. Scripts need only a shell. They write to /shared, a folder of their row.
"""

import dataclasses
import glob
import os
import signal

from await_file import await_file
from images import BUSYBOX
from pytorch_jobs import pytorch_job
from scenario import INITIALIZER, put_before, runtime, shell, train_job

OFF = {"muster.dev/agent": "off"}
WHOLE = {"muster.dev/restart": "job"}
POLICY = "muster.dev/restart-policy"
UID, ROW = "POD_UID", "ROW"  # variables in the containers' environment
# Each life of a container, or of torchrun's worker, adds a line with its pod's UID to lives-RANK.
BEGIN = (
    "who=${WHO:-${RANK:-$JOB_COMPLETION_INDEX}}; echo $POD_UID >> /shared/lives-$who; "
    "life=$(wc -l < /shared/lives-$who)\n"
    "await() { until [ -e /shared/$1 ]; do sleep 0.1; done; }\n"
)
HANGS = ": > /shared/hangs; exec sleep 1000"


@dataclasses.dataclass
class Row:
    """`code`: of the failure that ended the job; 0: success; 1: no pod failed. `lives`: rank -> (pods, starts)."""

    name: str
    objects: list  # the job comes last
    state: str
    code: int
    restarts: int
    lives: dict
    most: int = 9  # how many starts are compared: later ones race with the end of the job
    killed: str = None  # the rank whose agent gets SIGKILL once it HANGS

    @property
    def kind(self):
        return self.objects[-1]["kind"]

    @property
    def end(self):
        return self.state, self.code, self.restarts, self.lives


def script(text):
    return shell(BEGIN + text)


def once(how, who=1, others="exit 0", then="exit 0"):
    """A script for two ranks: `who` awaits the other and runs `how`, in later lives `then`. The other runs `others`."""
    return (
        f"[ $who = {who} ] || {{ {others}; exit 0; }}\n[ $life = 1 ] || {{ {then}; exit 0; }}\n"
        f"await lives-{1 - who}; echo first life >&2; {how}"
    )


def container(row, text, torchrun=False, env=(), **more):
    command = script(text)
    return {
        "command": ["torchrun", "--no-python", *command] if torchrun else command,
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
        "env": [
            {"name": ROW, "value": row},
            {"name": UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            *env,
        ],
        **more,
    }


def volumes(folder):
    return [{"name": "shared", "hostPath": {"path": folder}}]


def train(
    folder,
    name,
    text,
    annotations=None,
    policy=None,
    max_restarts=2,
    rules=None,
    torchrun=False,
    port=None,
    before=None,
    job=None,
    pod=None,
):
    """A runtime and its TrainJob `name`. `policy`: restart policy of its nodes; None: exit-code under the agent, unless
    rules decide. `before`: an initializer's script."""
    if policy is None and annotations != OFF and not rules:
        policy = "exit-code"  # max_restarts alone would restart after any code
    env = [{"name": "PET_MASTER_PORT", "value": str(port)}] if port else []
    made = runtime(
        name,
        2,
        {"torch": {"numProcPerNode": 1}} if torchrun else None,
        annotations=annotations,
        container=container(name, text, torchrun=torchrun, env=env),
        job=job,
        pod={"volumes": volumes(folder), "terminationGracePeriodSeconds": 1, **(pod or {})},
    )
    spec = made["spec"]["template"]["spec"]
    spec["failurePolicy"] = {"maxRestarts": max_restarts, **({"rules": rules} if rules else {})}
    if policy:
        spec["replicatedJobs"][0]["template"]["metadata"]["annotations"] = {POLICY: policy}
    if before:
        first = container(name, before, env=[{"name": "WHO", "value": "first"}])
        put_before(
            made,
            INITIALIZER,
            {
                "volumes": volumes(folder),
                "restartPolicy": "Never",
                "containers": [{"name": INITIALIZER, "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", **first}],
            },
        )
        spec["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 1
    return [made, train_job(name, name)]


def both(pods, starts, other=(1, 1)):
    """Row.lives for two ranks: rank 1 has (pods, starts), rank 0 has `other`."""
    return {"0": other, "1": (pods, starts)}


def train_rows(folder_of, port):
    """`folder_of`: name -> the folder of the row. `port`: returns a port that no other job has."""

    def row(name, text, state, code, restarts, lives, most=9, killed=None, **more):
        return Row(name, train(folder_of(name), name, text, **more), state, code, restarts, lives, most, killed)

    def worker(how):
        return once(how, others="[ $life = 1 ] || exit 0; exec sleep 1000")

    hang = "exec sleep 1000"
    again, stays = "Complete", both(2, 2)
    die = "sh -c 'kill -9 $PPID'; exit 0"
    rules = {
        action: [{"name": "rule", "action": action}]
        for action in ("FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts")
    }
    whole = once("exit 3", others="[ $life = 1 ] || exit 0; exec sleep 1000")
    return [
        # With the agent.
        row("worker-killed", worker(die), again, 0, 1, both(1, 2, (1, 2)), torchrun=True, port=port()),
        row("worker-retryable", worker("exit 143"), again, 0, 1, both(1, 2, (1, 2)), torchrun=True, port=port()),
        row("worker-fatal", worker("exit 3"), "Failed", 3, 0, both(1, 1), torchrun=True, port=port()),
        row(
            "worker-budget",
            "[ $who = 1 ] || exec sleep 1000; await lives-0; until [ $(wc -l < /shared/lives-0) = $life ]; "
            "do sleep 0.1; done; exit 143",
            "Failed",
            143,
            2,
            both(1, 3, (1, 3)),
            torchrun=True,
            port=port(),
        ),
        row("command-retryable", once("exit 143"), again, 0, 1, stays),
        row("command-killed", once(die), again, 0, 1, stays),
        row("command-fatal", once("exit 3"), "Failed", 3, 0, both(1, 1)),
        row("command-not-found", once("exec nothing-of-that-name"), "Failed", 127, 0, both(1, 1)),
        row("command-budget", once("exit 143", then="exit 137"), "Failed", 137, 1, stays, max_restarts=1),
        row("agent-killed", once(HANGS), again, 0, 1, stays, killed="1"),
        row(
            "agent-of-workers-killed",
            worker(HANGS),
            again,
            0,
            1,
            both(2, 2, (1, 2)),
            killed="1",
            torchrun=True,
            port=port(),
        ),
        row("initializer-fatal", "exit 0", "Failed", 3, 0, {"first": (2, 2)}, before="exit 3"),
        row(
            "initializer-again",
            "exit 0",
            again,
            0,
            0,
            {"first": (2, 2), **both(1, 1)},
            before="[ $life = 2 ] || exit 3",
        ),
        row(
            "kubelets-own-fatal",
            once("exit 3", others=hang, then=hang),
            "Failed",
            3,
            0,
            both(1, 1),
            most=1,
            pod={"restartPolicy": "OnFailure"},
        ),
        # Policies of roles, with the agent.
        row("on-failure-fatal", once("exit 3"), again, 0, 1, stays, policy="on-failure"),
        row("max-restarts-fatal", once("exit 3"), again, 0, 1, stays, policy=""),
        row(
            "max-restarts-worker",
            worker("exit 3"),
            again,
            0,
            1,
            both(1, 2, (1, 2)),
            policy="",
            torchrun=True,
            port=port(),
        ),
        row(
            "on-failure-budget",
            once("exit 3", then="exit 4"),
            "Failed",
            4,
            1,
            stays,
            policy="on-failure",
            max_restarts=1,
        ),
        row("never-retryable", once("exit 143"), "Failed", 143, 0, both(1, 1), policy="never"),
        row("never-fatal", once("exit 3"), "Failed", 3, 0, both(1, 1), policy="never"),
        # Rules of the runtime, with the agent.
        row("rule-fails", whole, "Failed", 3, 0, both(1, 1), rules=rules["FailJobSet"]),
        row("rule-restarts", whole, again, 0, 1, both(2, 2, (2, 2)), rules=rules["RestartJobSet"]),
        row(
            "rule-restarts-free",
            whole,
            again,
            0,
            0,
            both(2, 2, (2, 2)),
            rules=rules["RestartJobSetAndIgnoreMaxRestarts"],
        ),
        row("rule-without-budget", whole, "Failed", 3, 0, both(1, 1), rules=rules["RestartJobSet"], max_restarts=0),
        # Without the agent.
        row(
            "off-replaced",
            once("exit 3"),
            again,
            0,
            0,
            stays,
            annotations=OFF,
            job={"backoffLimit": 2},
            pod={"restartPolicy": "Never"},
        ),
        row(
            "off-again-in-its-pod",
            once("exit 3"),
            again,
            0,
            0,
            both(1, 2),
            annotations=OFF,
            job={"backoffLimit": 2},
            pod={"restartPolicy": "OnFailure"},
        ),
        row(
            "off-step-anew",
            whole,
            again,
            0,
            1,
            both(2, 2, (2, 2)),
            annotations=OFF,
            job={"backoffLimit": 0},
            pod={"restartPolicy": "Never"},
        ),
        row(
            "off-budget",
            once("exit 3", others="[ $life = 1 ] || : > /shared/again; exec sleep 1000", then="await again; exit 4"),
            "Failed",
            4,
            1,
            both(2, 2, (2, 2)),
            annotations=OFF,
            max_restarts=1,
            job={"backoffLimit": 0},
            pod={"restartPolicy": "Never"},
        ),
        row("off-exit-code-fatal", once("exit 3"), "Failed", 3, 0, both(1, 1), annotations=OFF, policy="exit-code"),
        row("off-exit-code-retryable", once("exit 143"), again, 0, 0, stays, annotations=OFF, policy="exit-code"),
        row("off-on-failure", once("exit 3"), again, 0, 0, both(1, 2), annotations=OFF, policy="on-failure"),
        row("off-never", once("exit 143"), "Failed", 143, 0, both(1, 1), annotations=OFF, policy="never"),
    ]


# restartPolicy -> code -> effect. None: the job fails; "pod": the pod is replaced; "container": it restarts in its pod.
PYTORCH = {
    "ExitCode": {3: None, 143: "pod"},
    "OnFailure": {3: "container", 143: "container"},
    "Never": {3: None, 143: None},
}


def pytorch_rows(folder_of, port):
    """Master: rank 0, Worker: rank 1. The Master ends with 0 once the failed rank's next life made /shared/over."""

    def row(
        name,
        text,
        state,
        code,
        restarts,
        lives,
        killed=None,
        restart="ExitCode",
        limit=1,
        most=9,
        torchrun=False,
        **more,
    ):
        folder = folder_of(name)
        made = container(name, text, torchrun=torchrun, ports=[{"name": "pytorchjob-port", "containerPort": port()}])
        pod = {"volumes": volumes(folder), "terminationGracePeriodSeconds": 1}
        job = pytorch_job(name, 1, made, restart, {"backoffLimit": limit, "cleanPodPolicy": "Running"}, pod=pod, **more)
        return Row(name, [job], state, code, restarts, lives, most, killed)

    over = "[ $life = 1 ] || : > /shared/over; await over"
    rows = []
    for policy, codes in PYTORCH.items():
        for code, anew in codes.items():
            for who, role in enumerate(("master", "worker")):
                ends = "Succeeded" if anew else "Failed", 0 if anew else code, 1 if anew else 0
                rows.append(
                    row(
                        f"{policy.lower()}-{code}-{role}",
                        once(f"exit {code}", who, others="await over", then=over),
                        *ends,
                        {str(1 - who): (1, 1), str(who): {None: (1, 1), "pod": (2, 2), "container": (1, 2)}[anew]},
                        restart=policy,
                    )
                )
    die, go_on = "sh -c 'kill -9 $PPID'; exit 0", "[ $life = 1 ] && exec sleep 1000; await again"
    again = ": > /shared/again"
    return [
        *rows,
        row("exitcode-limit", once("exit 143", others="await over", then="exit 137"), "Failed", 137, 1, both(2, 2)),
        row(
            "onfailure-limit",
            once("exit 3", others="await over", then="exit 4"),
            "Failed",
            4,
            1,
            both(1, 2),
            most=2,
            restart="OnFailure",
        ),
        row(
            "always-fatal",
            once("exit 3", others="await nothing", then="exit 4"),
            "Failed",
            4,
            1,
            both(1, 2),
            most=2,
            restart="Always",
        ),
        row(
            "always-again-after-0",
            once("exit 0", others="await nothing"),
            "Failed",
            1,
            1,
            both(1, 2),
            most=2,
            restart="Always",
        ),
        row(
            "onfailure-agent-killed",
            once("exit 3", others="await over", then=HANGS),
            "Failed",
            137,
            1,
            both(1, 2),
            most=2,
            restart="OnFailure",
            killed="1",
        ),
        row("master-first", "[ $who = 1 ] && await nothing; await lives-1", "Succeeded", 0, 0, both(1, 1)),
        row(
            "exitcode-agent-killed",
            once(HANGS, others="await over", then=over),
            "Succeeded",
            0,
            1,
            both(2, 2),
            killed="1",
        ),
        row(
            "whole-job",
            once("exit 143", others=go_on, then=again),
            "Succeeded",
            0,
            1,
            both(2, 2, (2, 2)),
            annotations=WHOLE,
        ),
        row("whole-job-fatal", once("exit 3", others=go_on), "Failed", 3, 0, both(1, 1), annotations=WHOLE),
        row(
            "whole-job-of-torchrun",
            once(die, others=go_on, then=again),
            "Succeeded",
            0,
            1,
            both(1, 2, (1, 2)),
            annotations=WHOLE,
            torchrun=True,
            processes=1,
        ),
        row(
            "exitcode-torchrun",
            once("exit 143", others=go_on, then=again),
            "Succeeded",
            0,
            1,
            both(2, 2, (2, 2)),
            torchrun=True,
            processes=1,
        ),
        row(
            "exitcode-torchrun-fatal",
            once("exit 3", others=go_on),
            "Failed",
            3,
            0,
            both(1, 1),
            torchrun=True,
            processes=1,
        ),
    ]


def lives(row, folder):
    """What has run, in the form of Row.lives."""
    told = {}
    for path in glob.glob(os.path.join(folder, "lives-*")):
        with open(path) as file:
            uids = file.read().split()
        told[os.path.basename(path).removeprefix("lives-")] = (len(set(uids)), min(len(uids), row.most))
    return told


def kill_agent(row, folder, seconds):
    """Waits until the rank row.killed hangs, and kills the agent in its newest pod."""
    await_file(os.path.join(folder, "hangs"), seconds)
    os.kill(agent_of(folder, row.killed), signal.SIGKILL)


def agent_of(folder, rank):
    """The pid, on this machine, of the agent in the newest pod of that rank. `folder`: of the row."""
    with open(os.path.join(folder, f"lives-{rank}")) as file:
        entries = {f"{UID}={file.read().split()[-1]}".encode(), f"{ROW}={os.path.basename(folder)}".encode()}
    agents = {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_agent(pid, entries)}
    (first,) = (pid for pid in agents if parent_of(pid) not in agents)
    return first


def is_agent(pid, entries):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return (
                entries <= set(file.read().split(b"\0"))
                and os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "muster"
            )
    except OSError:
        return False


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
