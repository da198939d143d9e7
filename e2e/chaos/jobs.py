# SPDX-License-Identifier: Apache-2.0
"""The jobs of a chaos run: their objects, the result that is right, and the failures that their own rules allow.

Most of them count: each rank writes "WORKER MASTER ROUND RANK WORLD STEP" for each step, and rank 0 keeps the last step
as its checkpoint. So the file shows a lost step, and workers of two rounds that were at work at once. Others train the
digits by PyTorch's DDP, or sum over MPI.
"""

import collections
import dataclasses
import itertools
import json
import os
import re

import mpi_jobs
from digits import BUCKET, KEY_OF_DATA, MIN_ACCURACY, TRAINING
from hub import Hub
from object_store import KEY, SECRET
from pytorch_jobs import pytorch_job
from scenario import (
    DEBIAN,
    INITIALIZER,
    INITIALIZER_IMAGE,
    MODEL_INITIALIZER,
    host_folders,
    put_before,
    runtime,
    shell,
    train_job,
)

SECRET_OF_STORE = "s3-keys"
MODEL = "muster/model"
QUEUE = "chaos"
MARK = "CHAOS_JOB"  # the variable of a job's containers that has its name
PATH = {"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}
COUNT = """
me=$HOSTNAME-$(date +%s%N)
step=$(cat /shared/done 2>/dev/null || echo 0)
while [ $step -lt {steps} ]; do
  sleep 0.5
  step=$((step + 1))
  echo "$me $MASTER_ADDR:$MASTER_PORT ${{MUSTER_ROUND:-0}} $RANK $WORLD_SIZE $step" >>/shared/steps
  [ $RANK != 0 ] || {{ echo $step >/shared/done.new && mv /shared/done.new /shared/done; }}
done
"""
ALONE = """
me=$JOB_COMPLETION_INDEX
step=$(cat /shared/done.$me 2>/dev/null || echo 0)
while [ $step -lt {steps} ]; do
  sleep 0.5
  step=$((step + 1))
  echo $step >/shared/new.$me && mv /shared/new.$me /shared/done.$me
done
"""


@dataclasses.dataclass
class Worker:
    """One that counts. `lines`: (number in the file, text) of each step."""

    round: tuple
    rank: str
    lines: list = dataclasses.field(default_factory=list)


def at_once(workers, allowed):
    """Which worker was at work when one of another round had begun, beyond `allowed` steps; None: there is none.
    `workers`: in the order of their first steps."""
    for older, newer in itertools.combinations(workers, 2):
        if older.round == newer.round and older.rank != newer.rank:
            continue
        begin, first = newer.lines[0]
        late = [line for number, line in older.lines if number > begin]
        if len(late) > allowed:
            return f"workers of two rounds were at work: {late[allowed]!r} came after {first!r}"
    return None


@dataclasses.dataclass
class Job:
    name: str
    kind: str  # of the object, as kubectl takes it
    objects: list
    folder: str
    wrong: object  # function() -> what is wrong with the result of a complete job; None: it is right
    budget: int  # restarts that may be charged
    may_fail: tuple = ()  # kinds of charges after which its own rules let it fail
    reasons: tuple = ()  # of the condition Failed that are right then
    endless: bool = False  # its own rule starts it again after a success

    def full_name(self):
        return f"{self.kind}/{self.name}"


def read(*parts):
    """The text of a file; "": there is none."""
    try:
        with open(os.path.join(*parts)) as file:
            return file.read()
    except FileNotFoundError:
        return ""


class Makers:
    """Makes the jobs. `folder`: of their shared folders. `store`, `hub`: where initializers fetch from."""

    def __init__(self, folder, data, steps, store, hub):
        self.folder, self.data, self.steps, self.store, self.hub = folder, data, steps, store, hub
        self.frozen = collections.Counter()  # how often processes of a job were

    def shared(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path

    def container(self, name, **fields):
        return {
            "env": [{"name": MARK, "value": name}, PATH, *fields.pop("env", [])],
            "volumeMounts": [{"name": "shared", "mountPath": "/shared"}, *fields.pop("volumeMounts", [])],
            "resources": {"requests": {"cpu": "10m"}},
            **fields,
        }

    def pod(self, name, volumes=()):
        return {
            "terminationGracePeriodSeconds": 5,
            "volumes": [{"name": "shared", "hostPath": {"path": self.shared(name)}}, *volumes],
        }

    def counted(self, name):
        """What is wrong with the steps of a counting job; None: all is right."""
        if read(self.folder, name, "done").strip() != str(self.steps):
            return f"its last step is {read(self.folder, name, 'done').strip()!r}, not {self.steps}"
        workers, seen = {}, set()
        for number, line in enumerate(read(self.folder, name, "steps").splitlines()):
            worker, master, round_, rank, _, step = line.split()
            workers.setdefault(worker, Worker((master, round_), rank)).lines.append((number, line))
            if rank == "0":
                seen.add(int(step))
        # A worker that was frozen in its step takes it when its node goes on, before anybody can end it.
        if wrong := at_once(list(workers.values()), self.frozen[name]):
            return wrong
        missing = set(range(1, self.steps + 1)) - seen
        return f"rank 0 has left out the steps {sorted(missing)}" if missing else None

    def torchrun(self):
        return ["torchrun", "--no-python", *shell(COUNT.format(steps=self.steps))]

    def counting(self, name, nodes=2, policy=None, restarts=60, labels=None, **spec):
        """A TrainJob that counts, on two workers a node."""
        made = runtime(
            name,
            nodes,
            policy or {"torch": {"numProcPerNode": 2}},
            container=self.container(name, command=self.torchrun()),
            pod=self.pod(name),
        )
        made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": restarts}
        job = train_job(name, name, **spec)
        job["metadata"]["labels"] = labels or {}
        return Job(
            name,
            "trainjob",
            [made, job],
            os.path.join(self.folder, name),
            lambda: self.counted(name),
            restarts,
            ("worker", "agent") if restarts < 60 else (),
            ("ReachedMaxRestarts",),
        )

    def elastic(self, name):
        policy = {"numNodes": None, "torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 3, "maxRestarts": 60}}}
        return self.counting(name, policy=policy, trainer={"numNodes": 2})

    def queued(self, name):
        return self.counting(name, labels={"kueue.x-k8s.io/queue-name": QUEUE}, trainer={"numNodes": 2})

    def without_agent(self, name):
        """Two pods that count by themselves. The rules of the Job replace them."""

        def wrong():
            done = [read(self.folder, name, f"done.{rank}").strip() for rank in range(2)]
            return None if done == [str(self.steps)] * 2 else f"its last steps are {done}"

        made = runtime(
            name,
            2,
            container=self.container(name, command=shell(ALONE.format(steps=self.steps))),
            pod=self.pod(name),
            job={"backoffLimit": 60},
            annotations={"muster.dev/agent": "off"},
        )
        return Job(name, "trainjob", [made, train_job(name, name)], os.path.join(self.folder, name), wrong, 0)

    def initialized(self, name):
        """Counts after an initializer has brought a model from a hub."""
        job = self.counting(name)
        initializer = {
            "name": MODEL_INITIALIZER,
            "image": INITIALIZER_IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "volumeMounts": [{"name": "shared", "mountPath": "/workspace/model"}],
        }
        made, train = job.objects
        put_before(made, MODEL_INITIALIZER, {"containers": [initializer], **self.pod(name)})
        train["spec"]["initializer"] = {
            "model": {"storageUri": f"hf://{MODEL}", "env": [{"name": "HF_ENDPOINT", "value": self.hub.url}]}
        }

        def wrong():
            if not os.path.exists(os.path.join(self.folder, name, "weights.bin")):
                return "the model is not there"
            return self.counted(name)

        return dataclasses.replace(job, wrong=wrong)

    def digits(self, name):
        """Trains the digits by PyTorch's DDP, after an initializer has brought them from an S3 server."""
        volumes, mounts = host_folders([*DEBIAN, TRAINING])
        epochs = max(20, self.steps // 4)  # fewer are not accurate enough
        container = self.container(name, volumeMounts=mounts)
        command = [
            *("torchrun", os.path.join(TRAINING, "train.py")),
            *("--data", f"/shared/dataset/{os.path.basename(KEY_OF_DATA)}", "--checkpoints", "/shared"),
            *("--epochs", str(epochs), "--epoch-seconds", "2", "--min-accuracy", str(MIN_ACCURACY)),
        ]
        made = runtime(name, 2, {"torch": {}}, container=container, pod=self.pod(name, volumes))
        made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 60}
        initializer = {
            "name": INITIALIZER,
            "image": INITIALIZER_IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "volumeMounts": [{"name": "shared", "mountPath": "/workspace/dataset", "subPath": "dataset"}],
        }
        put_before(made, INITIALIZER, {"containers": [initializer], **self.pod(name)})
        job = train_job(name, name, trainer={"numNodes": 2, "numProcPerNode": 1, "command": command})
        job["spec"]["initializer"] = {
            "dataset": {
                "storageUri": f"s3://{BUCKET}/{os.path.dirname(KEY_OF_DATA)}/",
                "secretRef": {"name": SECRET_OF_STORE},
                "env": [{"name": "ENDPOINT", "value": self.store.url}],
            }
        }
        os.makedirs(os.path.join(self.shared(name), "dataset"), exist_ok=True)

        def wrong():
            last = f"epoch_{epochs:04}.pt"
            return None if os.path.exists(os.path.join(self.folder, name, last)) else f"it has no {last}"

        return Job(name, "trainjob", [made, job], os.path.join(self.folder, name), wrong, 60)

    def mpi(self, name):
        """A launcher starts one program after the other on two pods by Open MPI."""
        folder = self.shared(name)
        mpi_jobs.make_program(folder)
        runs = max(2, self.steps // 20)
        script = (
            f"for run in $(seq {runs}); do [ -e /shared/run.$run ] || "
            f"{{ {mpi_jobs.MPIRUN} -n 2 /shared/program >/shared/said.$run && sleep 5 && "
            "mv /shared/said.$run /shared/run.$run; } || exit 130; done"
        )
        made, job = mpi_jobs.mpi_job(name, folder, shell(script), 2, 1, max_restarts=60)
        for step in made["spec"]["template"]["spec"]["replicatedJobs"]:
            pod = step["template"]["spec"]["template"]["spec"]
            pod["terminationGracePeriodSeconds"] = 5
            pod["containers"][0]["env"] = [{"name": MARK, "value": name}, *pod["containers"][0]["env"]]

        def wrong():
            for run in range(1, runs + 1):
                ranks = re.findall(r"rank (\d+) of 2 on \S+ sum 1", read(folder, f"run.{run}"))
                if sorted(ranks) != ["0", "1"]:
                    return f"run {run} of the program has the ranks {ranks}"
            return None

        return Job(name, "trainjob", [made, job], folder, wrong, 60)

    def pytorch(self, name, restart, whole=False):
        """A PyTorchJob of three pods that count."""
        made = pytorch_job(
            name,
            2,
            self.container(name, command=self.torchrun()),
            restart=restart,
            policy={"backoffLimit": 60, "cleanPodPolicy": "None"},
            annotations={"muster.dev/restart": "job"} if whole else None,
            pod=self.pod(name),
            processes=1,
        )
        may_fail = ("worker", "agent", "platform") if restart == "Never" else ()
        return Job(
            name,
            "pytorchjob",
            [made],
            os.path.join(self.folder, name),
            lambda: self.counted(name),
            60,
            may_fail,
            ("PyTorchJobFailed",),
            restart == "Always",
        )

    def all(self):
        made = [
            *(self.counting(f"fixed-{number}") for number in range(3)),
            self.counting("budget", restarts=2),
            *(self.elastic(f"elastic-{number}") for number in range(3)),
            *(self.queued(f"queued-{number}") for number in range(2)),
            self.without_agent("bare"),
            self.initialized("model"),
            *(self.digits(f"digits-{number}") for number in range(2)),
            *(self.pytorch(f"pytorch-{policy.lower()}", policy) for policy in ("OnFailure", "Always", "Never")),
            *(self.pytorch(f"pytorch-{number}", "ExitCode") for number in range(2)),
            self.pytorch("pytorch-job", "ExitCode", whole=True),
        ]
        if not mpi_jobs.missing():
            made.append(self.mpi("mpi"))
        return made


def serve_model(cluster, folder):
    """A hub with the model that initializers fetch."""
    files = os.path.join(folder, "model-files")
    os.makedirs(files, exist_ok=True)
    with open(os.path.join(files, "weights.bin"), "wb") as file:
        file.write(bytes(range(256)) * (32 << 10))
    with open(os.path.join(files, "config.json"), "w") as file:
        json.dump({"model_type": "chaos"}, file)
    return Hub(cluster, MODEL, files, hold_from=1 << 40)


def secret_of_store():
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET_OF_STORE},
        "stringData": {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET},
    }
