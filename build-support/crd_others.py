# SPDX-License-Identifier: Apache-2.0
"""The definitions of PyTorchJob and JobSet (make-crds)."""

from api_fields import PYTORCH_JOB
from crd_parts import (
    ANYTHING,
    FLAG,
    TIME,
    Kubernetes,
    condition,
    definition,
    failure,
    metadata,
    number,
    one_word,
    printed,
    record,
    rules,
    several,
    text,
)

# ---- PyTorchJob: no enumeration, bound or list map that v1 does not have, because stored objects must stay valid


def pytorch_job_spec(kubernetes):
    elastic = record(
        minReplicas=number(),
        maxReplicas=number(),
        rdzvBackend=text(),
        rdzvPort=number(),
        rdzvHost=text(),
        rdzvId=text(),
        rdzvConf=several(record(key=text(), value=text())),
        standalone=FLAG,
        nProcPerNode=number(),
        maxRestarts=number(),
        metrics=several(kubernetes["autoscaling.v2.MetricSpec"]),
    )
    scheduling = record(
        minAvailable=number(),
        queue=text(**rules(("self == oldSelf", "spec.runPolicy.schedulingPolicy.queue is immutable"))),
        minResources={"type": "object", "additionalProperties": dict(Kubernetes.QUANTITY)},
        priorityClass=text(),
        scheduleTimeoutSeconds=number(),
    )
    policy = record(
        cleanPodPolicy=text(),
        ttlSecondsAfterFinished=number(),
        activeDeadlineSeconds=number(form="int64"),
        backoffLimit=number(),
        schedulingPolicy=scheduling,
        suspend={**FLAG, "default": False},
        managedBy=text(),
    )
    replica = record(replicas=number(), restartPolicy=text(), template=kubernetes["core.v1.PodTemplateSpec"])
    # In v1 managedBy is meant to be immutable, but the webhook compares the new object with itself. Here a rule refuses
    # the change. The rule is at the spec: a rule at managedBy would not be evaluated when the value is added or
    # removed.
    given, before = (f"(has({of}.runPolicy) && has({of}.runPolicy.managedBy))" for of in ("self", "oldSelf"))
    same = f"{given} == {before} && (!{given} || self.runPolicy.managedBy == oldSelf.runPolicy.managedBy)"
    return {
        **record(
            ["pytorchReplicaSpecs"],
            nprocPerNode=text(),
            runPolicy={**policy, "default": {}},
            elasticPolicy=elastic,
            pytorchReplicaSpecs={"type": "object", "additionalProperties": replica},
        ),
        **rules((same, "field is immutable", {"fieldPath": ".runPolicy.managedBy"})),
    }


def pytorch_job_status(kubernetes):
    condition = record(
        ["type", "status"],
        type=text(),
        status=text(),
        reason=text(),
        message=text(),
        lastUpdateTime=TIME,
        lastTransitionTime=TIME,
    )
    replicas = record(
        active=number(),
        succeeded=number(),
        failed=number(),
        succeededIndexes=text(),
        selector=text(),
        labelSelector=kubernetes.meta("LabelSelector"),
    )
    return record(
        conditions=several(condition),
        replicaStatuses={"type": "object", "additionalProperties": replicas},
        startTime=TIME,
        completionTime=TIME,
        lastReconcileTime=TIME,
        message=text(),
        attempt=number(),
        restarts=number(),
        failures=several(failure(podUID=text())),
        countedPods=several(record(uid=text(), restarts=number())),
    )


def pytorch_job(kubernetes):
    schema = record(
        apiVersion=text(),
        kind=text(),
        metadata={"type": "object"},
        spec=pytorch_job_spec(kubernetes),
        status=pytorch_job_status(kubernetes),
    )
    columns = [("State", "string", ".status.conditions[-1:].type"), ("Age", "date", ".metadata.creationTimestamp")]
    return definition(
        "PyTorchJob",
        "pytorchjobs",
        "Namespaced",
        schema,
        {
            "additionalPrinterColumns": printed(columns, [("Message", "string", ".status.message")]),
            "subresources": {
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
                    "statusReplicasPath": ".status.replicaStatuses.Worker.active",
                    "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
                },
            },
        },
        "kubeflow.org",
        "v1",
        told=PYTORCH_JOB,
    )


# ---- JobSet: Muster creates none, but Kueue watches that kind


def jobset(kubernetes):
    fixed = rules(("self == oldSelf", "Value is immutable"))
    plain = {"type": "integer"}
    texts = {"type": "array", "items": text()}
    names = several(text())
    rule = record(
        ["action", "name"],
        name=text(),
        onJobFailureReasons=texts,
        onJobFailureMessagePatterns=texts,
        targetReplicatedJobs=names,
        action=one_word(
            "FailJobSet",
            "RestartJobSet",
            "RestartJobSetAndIgnoreMaxRestarts",
            "RestartJob",
            "RestartJobAndIgnoreMaxRestarts",
        ),
    )
    depends = {
        **several(record(["name", "status"], name=text(), status=one_word("Ready", "Complete")), 5, ["name"]),
        **fixed,
    }
    replicated = record(
        ["name", "template"],
        name=text(),
        groupName=text(default="default"),
        replicas=number(default=1),
        dependsOn=depends,
        template=kubernetes["batch.v1.JobTemplateSpec"],
    )
    claim = record(
        apiVersion=text(),
        kind=text(),
        metadata=metadata("annotations", "finalizers", "labels", "name", "namespace"),
        spec=kubernetes["core.v1.PersistentVolumeClaimSpec"],
        status=ANYTHING,
    )
    claims = {
        **record(
            templates=several(claim, 50),
            retentionPolicy=record(whenDeleted={**one_word("Delete", "Retain"), "default": "Delete"}),
        ),
        **rules(
            (
                "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)",
                "namespace cannot be set for VolumeClaimPolicies templates",
            )
        ),
    }
    spec = {
        **record(
            replicatedJobs=several(replicated, keys=["name"]),
            network={**record(enableDNSHostnames=FLAG, subdomain=text(), publishNotReadyAddresses=FLAG), **fixed},
            successPolicy={
                **record(["operator"], operator=one_word("All", "Any"), targetReplicatedJobs=names),
                **fixed,
            },
            failurePolicy={
                **record(
                    maxRestarts=number(),
                    restartStrategy={
                        **one_word("Recreate", "BlockingRecreate", "InPlaceRestart"),
                        "default": "Recreate",
                    },
                    rules={"type": "array", "items": rule},
                ),
                **fixed,
            },
            startupPolicy={
                **record(["startupPolicyOrder"], startupPolicyOrder=one_word("AnyOrder", "InOrder")),
                **fixed,
            },
            suspend=FLAG,
            coordinator=record(["replicatedJob"], replicatedJob=text(), jobIndex=plain, podIndex=plain),
            managedBy=text(),
            ttlSecondsAfterFinished=number(0),
            volumeClaimPolicies={**several(claims, 50), **fixed},
        ),
        **rules(
            (
                (
                    "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
                    "self.replicatedJobs.exists(x, has(x.dependsOn)))"
                ),
                "StartupPolicy and DependsOn APIs are mutually exclusive",
            )
        ),
    }
    counts = {name: number() for name in ("ready", "succeeded", "failed", "active", "suspended")}
    restarts = several(number(), 1024)
    status = record(
        conditions=several(condition(), keys=["type"]),
        terminalState=text(),
        restarts=number(),
        restartsCountTowardsMax=number(),
        previousInPlaceRestartAttempt=number(0),
        currentInPlaceRestartAttempt=number(0),
        replicatedJobsStatus=several(
            record(["name", *counts], name=text(), **counts, jobRestarts=restarts, jobRestartsCountTowardsMax=restarts),
            keys=["name"],
        ),
    )
    columns = [
        ("TerminalState", "string", ".status.terminalState"),
        ("Restarts", "string", ".status.restarts"),
        ("Completed", "string", '.status.conditions[?(@.type=="Completed")].status'),
        ("Suspended", "string", ".spec.suspend"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    return definition(
        "JobSet",
        "jobsets",
        "Namespaced",
        record(apiVersion=text(), kind=text(), metadata={"type": "object"}, spec=spec, status=status),
        {"additionalPrinterColumns": printed(columns), "subresources": {"status": {}}},
        "jobset.x-k8s.io",
        "v1alpha2",
    )
