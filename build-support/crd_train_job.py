# SPDX-License-Identifier: Apache-2.0
"""The definition of TrainJob (make-crds)."""

from api_fields import TRAIN_JOB
from crd_parts import (
    ANYTHING,
    FLAG,
    GROUP,
    MANAGED_BY,
    MOST_NODES,
    MULTIKUEUE,
    TEXTS,
    TIME,
    condition,
    definition,
    failure,
    metadata,
    number,
    printed,
    processes_per_node,
    record,
    rules,
    several,
    text,
)


def train_job_spec(kubernetes):
    environment = several(kubernetes["core.v1.EnvVar"], 128, ["name"])
    initializer = record(
        storageUri=text(
            2048,
            **rules(
                (
                    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
                    "storageUri may be empty, or it must be a valid URI (scheme://...)",
                )
            ),
        ),
        env=environment,
        secretRef=kubernetes["core.v1.LocalObjectReference"],
    )
    words = several(text(1048576), 128)
    return record(
        ["runtimeRef"],
        runtimeRef={
            **record(
                ["name"],
                name=text(253, 1),
                apiGroup=text(253, default=GROUP),
                kind=text(253, default="ClusterTrainingRuntime"),
            ),
            **rules(("self == oldSelf", "field is immutable")),
        },
        initializer=record(dataset=initializer, model=initializer),
        trainer=record(
            image=text(500),
            command=words,
            args=words,
            env=environment,
            numNodes=number(1, MOST_NODES),
            numProcPerNode=processes_per_node("numProcPerNode must be greater than or equal to 1"),
            resourcesPerNode=kubernetes["core.v1.ResourceRequirements"],
        ),
        runtimePatches=several(runtime_patch(kubernetes), 16, ["manager"]),
        suspend={**FLAG, "default": False},
        activeDeadlineSeconds=number(1, form="int64"),
        ttlSecondsAfterFinished=number(0),
        managedBy=text(
            253,
            default=MANAGED_BY,
            **rules(
                (f"self in ['{MANAGED_BY}', '{MULTIKUEUE}']", f"ManagedBy must be {MANAGED_BY} or {MULTIKUEUE} if set"),
                ("self == oldSelf", "field is immutable"),
            ),
        ),
        # The shape of v2.0 and v2.1.
        labels=TEXTS,
        annotations=TEXTS,
        podTemplateOverrides=several(
            record(
                targetJobs=several(record(["name"], name=text(253, 1)), 100),
                metadata=metadata("labels", "annotations"),
                spec=ANYTHING,
            ),
            64,
        ),
        podSpecOverrides=several(
            {
                **record(targetJobs=several(record(["name"], name=text(253, 1)), 100)),
                "x-kubernetes-preserve-unknown-fields": True,
            },
            64,
        ),
    )


def runtime_patch(kubernetes):
    pod = kubernetes["core.v1.PodSpec"]["properties"]
    container = kubernetes["core.v1.Container"]["properties"]
    containers = several(
        record(
            ["name"],
            name=text(253, 1),
            env=several(kubernetes["core.v1.EnvVar"], 128, ["name"]),
            volumeMounts={**container["volumeMounts"], "maxItems": 128},
            securityContext=container["securityContext"],
        ),
        64,
        ["name"],
    )
    pod_patch = record(
        serviceAccountName=text(253),
        nodeSelector=pod["nodeSelector"],
        affinity=pod["affinity"],
        tolerations={**pod["tolerations"], "maxItems": 128},
        volumes={**pod["volumes"], "maxItems": 128},
        initContainers=containers,
        containers=containers,
        imagePullSecrets={**pod["imagePullSecrets"], "maxItems": 64},
        securityContext=pod["securityContext"],
        schedulingGates={**pod["schedulingGates"], "maxItems": 16},
        terminationGracePeriodSeconds=number(0, form="int64"),
    )
    both = metadata("labels", "annotations")
    job = record(
        ["name"],
        name=text(253, 1),
        template=record(metadata=both, spec=record(template=record(metadata=both, spec=pod_patch))),
    )
    return record(
        ["manager"],
        manager=text(253, 1),
        time=TIME,
        trainingRuntimeSpec=record(
            template=record(metadata=both, spec=record(replicatedJobs=several(job, 100, ["name"])))
        ),
    )


SECONDS = {"type": "number", "minimum": 0}
USES = ("initializers", "pods", "suspended", "waiting", "start", "training", "redone", "hang", "restart")


def train_job_status():
    counts = ("ready", "succeeded", "failed", "active", "suspended")
    return {
        **record(
            conditions=several(condition(), 8, ["type"]),
            jobsStatus=several(
                record(["name", *counts], name=text(253, 1), **{count: number(0) for count in counts}), 100, ["name"]
            ),
            trainerStatus={
                **record(
                    progressPercentage=number(0, 100),
                    estimatedRemainingSeconds=number(0),
                    lastUpdatedTime=TIME,
                    metrics=several(record(["name", "value"], name=text(64, 1), value=text(64, 1)), 256),
                ),
                **rules(("has(self.lastUpdatedTime)", "lastUpdatedTime is required when trainerStatus is present")),
            },
            state=text(),
            reason=text(),
            message=text(),
            startTime=TIME,
            completionTime=TIME,
            ttlSecondsAfterFinished=number(0),
            nodes=number(0),
            readyNodes=number(0),
            selector=text(),
            attempt=number(0),
            restarts=number(0),
            failures=several(failure(), 100),
            goodput=record(
                percentage=number(0, 100),
                since=TIME,
                seconds=record(**dict.fromkeys(USES, SECONDS)),
                run=record(pod=text(), since=TIME, seconds={"type": "object", "additionalProperties": SECONDS}),
            ),
            completedJobs=several(text()),
        ),
        "minProperties": 1,
    }


def train_job(kubernetes):
    schema = {
        "type": "object",
        "properties": {
            "apiVersion": text(),
            "kind": text(),
            "metadata": {"type": "object"},
            "spec": train_job_spec(kubernetes),
            "status": train_job_status(),
        },
        # For new objects only: a stored object keeps its name, and its status must stay writable.
        **rules(
            (
                "oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name must match RFC 1035 DNS label format",
                {"optionalOldSelf": True},
            ),
            (
                "oldSelf.hasValue() || size(self.metadata.name) <= 63",
                "metadata.name must be no more than 63 characters",
                {"optionalOldSelf": True},
            ),
        ),
    }
    columns = [
        ("State", "string", ".status.state"),
        ("Nodes", "integer", ".status.nodes"),
        ("Ready", "integer", ".status.readyNodes"),
        ("Restarts", "integer", ".status.restarts"),
        ("Reason", "string", ".status.reason"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    wide = [
        ("Progress", "integer", ".status.trainerStatus.progressPercentage"),
        ("Seconds-Left", "integer", ".status.trainerStatus.estimatedRemainingSeconds"),
        ("Goodput", "integer", ".status.goodput.percentage"),
        ("Runtime", "string", ".spec.runtimeRef.name"),
        ("Message", "string", ".status.message"),
    ]
    return definition(
        "TrainJob",
        "trainjobs",
        "Namespaced",
        schema,
        {
            "additionalPrinterColumns": printed(columns, wide),
            "subresources": {
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.trainer.numNodes",
                    "statusReplicasPath": ".status.nodes",
                    "labelSelectorPath": ".status.selector",
                },
            },
        },
        told=TRAIN_JOB,
        short="tj",
    )
