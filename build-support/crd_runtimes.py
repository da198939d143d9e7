# SPDX-License-Identifier: Apache-2.0
"""The definitions of TrainingRuntime and ClusterTrainingRuntime (make-crds)."""

from api_fields import RUNTIME
from crd_parts import (
    ANYTHING,
    FLAG,
    MOST_NODES,
    definition,
    metadata,
    number,
    one_of,
    one_word,
    printed,
    processes_per_node,
    record,
    rules,
    several,
    text,
)


def ml_policy(kubernetes):
    target = record(
        ["jobName"],
        jobName=text(253, 1),
        containerNames={
            **several(text(63), 8, kind="set"),
            "minItems": 1,
            **rules(("!self.exists(c, c == 'node')", "containerNames may not contain node")),
        },
    )
    elastic = {
        **record(
            maxRestarts=number(0),
            minNodes=number(1, MOST_NODES),
            maxNodes=number(1, MOST_NODES),
            metrics=several(kubernetes["autoscaling.v2.MetricSpec"], 32),
        ),
        **rules(
            (
                "!has(self.minNodes) || !has(self.maxNodes) || self.minNodes <= self.maxNodes",
                "minNodes may not be greater than maxNodes",
            )
        ),
    }
    frameworks = ("torch", "mpi", "jax", "xgboost", "flux")
    return {
        **record(
            numNodes=number(0, MOST_NODES),
            torch=record(
                numProcPerNode=processes_per_node("numProcPerNode in torchPolicy must be >= 1"),
                elasticPolicy=elastic,
                envInjection=record(targets=several(target, 16, ["jobName"])),
            ),
            mpi=record(
                numProcPerNode=number(default=1, **rules(("self >= 1", "NumProcPerNode in mpiPolicy must be >= 1"))),
                mpiImplementation={"type": "string", "enum": ["OpenMPI", "Intel", "MPICH", ""], "default": "OpenMPI"},
                sshAuthMountPath=text(4096, default="/root/.ssh"),
                runLauncherAsNode={**FLAG, "default": False},
            ),
            flux=record(
                numProcPerNode=number(default=1, **rules(("self >= 1", "NumProcPerNode in fluxPolicy must be >= 1")))
            ),
            jax={"type": "object"},
            xgboost={"type": "object"},
        ),
        **rules(
            (one_of(*frameworks), "Only one of the policy can be configured"),
            (
                "!(has(self.numNodes) && has(self.torch) && has(self.torch.elasticPolicy))",
                "numNodes should not be set if torch.elasticPolicy is configured",
            ),
        ),
    }


def pod_group_policy():
    # Some documents write volcano's policy as {topologyKey, networkPolicy}.
    documented = {"topologyKey": text(316), "networkPolicy": {"type": "string", "enum": ["Best-effort", "Strict"]}}
    topology = record(
        mode={"type": "string", "enum": ["hard", "soft"], "default": "hard"},
        highestTierAllowed=number(default=1),
        **documented,
    )
    return {
        **record(
            coscheduling=record(scheduleTimeoutSeconds=number(default=60)),
            volcano=record(networkTopology=topology, **documented),
        ),
        **rules((one_of("coscheduling", "volcano"), "Only one of coscheduling and volcano can be configured")),
    }


def misplaced(name, schema, place):
    """A field that is often written at the wrong level. The schema has it, so that a rule can refuse it."""
    return {name: schema}, (f"!has(self.{name})", f"{name} does not belong here: it belongs in {place}")


def replicated_job(kubernetes):
    template = kubernetes["batch.v1.JobTemplateSpec"]
    job = template["properties"]["spec"]
    pod = job["properties"]["template"]
    for containers in ("containers", "initContainers"):
        pod["properties"]["spec"]["properties"][containers]["maxItems"] = 64
    fields, rule = misplaced("restartPolicy", text(), "spec of the pod template, beside containers")
    for schema in (job, pod):
        schema["properties"].update(fields)
        schema.update(rules(rule))
    fields, rule = misplaced("failurePolicy", ANYTHING, "spec.template.spec of the runtime, beside replicatedJobs")
    return {
        **record(
            ["name", "template"],
            name=text(253, 1),
            groupName=text(253, default="default"),
            replicas=number(0, default=1),
            dependsOn=several(
                record(["name", "status"], name=text(253, 1), status=one_word("Ready", "Complete")), 100, ["name"]
            ),
            template=template,
            **fields,
        ),
        **rules(rule),
    }


def job_set(kubernetes):
    names = several(text(253), 100)
    failure_rule = record(
        ["action"],
        name=text(128, 1, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        action={
            "type": "string",
            "enum": [
                "FailJobSet",
                "RestartJobSet",
                "RestartJobSetAndIgnoreMaxRestarts",
                "RestartJob",
                "RestartJobAndIgnoreMaxRestarts",
            ],
        },
        onJobFailureReasons=several(
            {
                "type": "string",
                "enum": [
                    "BackoffLimitExceeded",
                    "DeadlineExceeded",
                    "FailedIndexes",
                    "MaxFailedIndexesExceeded",
                    "PodFailurePolicy",
                ],
            },
            16,
        ),
        onJobFailureMessagePatterns=several(text(4096), 32),
        targetReplicatedJobs=names,
    )
    claim = {
        **record(
            metadata=metadata("annotations", "finalizers", "labels", "name", "namespace"),
            spec=kubernetes["core.v1.PersistentVolumeClaimSpec"],
        ),
        **rules(
            (
                "!has(self.metadata) || !has(self.metadata.namespace) || self.metadata.namespace == ''",
                "namespace cannot be set for VolumeClaimPolicies templates",
            )
        ),
    }
    return {
        **record(
            replicatedJobs={
                **several(replicated_job(kubernetes), 100, ["name"]),
                **rules(
                    (
                        "size(self) == 0 || !has(self[0].dependsOn) || size(self[0].dependsOn) == 0",
                        "dependsOn can't be set for the first ReplicatedJob",
                    )
                ),
            },
            network=record(enableDNSHostnames=FLAG, subdomain=text(63), publishNotReadyAddresses=FLAG),
            successPolicy=record(["operator"], operator=one_word("All", "Any"), targetReplicatedJobs=names),
            failurePolicy=record(
                maxRestarts=number(0),
                restartStrategy={
                    "type": "string",
                    "enum": ["Recreate", "BlockingRecreate", "InPlaceRestart"],
                    "default": "Recreate",
                },
                rules=several(failure_rule, 100),
            ),
            startupPolicy=record(["startupPolicyOrder"], startupPolicyOrder=one_word("AnyOrder", "InOrder")),
            suspend=FLAG,
            coordinator=record(["replicatedJob"], replicatedJob=text(253, 1), jobIndex=number(0), podIndex=number(0)),
            managedBy=text(253),
            ttlSecondsAfterFinished=number(0),
            volumeClaimPolicies=several(
                record(
                    ["templates"],
                    templates=several(claim, 50),
                    retentionPolicy=record(
                        whenDeleted={"type": "string", "enum": ["Delete", "Retain"], "default": "Delete"}
                    ),
                ),
                50,
            ),
        ),
        **rules(
            (
                (
                    "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
                    "has(self.replicatedJobs) && "
                    "self.replicatedJobs.exists(x, has(x.dependsOn)))"
                ),
                "StartupPolicy and DependsOn APIs are mutually exclusive",
            )
        ),
    }


def training_runtime(kubernetes, kind, plural, scope):
    fields, rule = misplaced("failurePolicy", ANYTHING, "spec.template.spec, beside replicatedJobs")
    template = {
        **record(
            metadata=metadata("annotations", "finalizers", "labels", "name", "namespace"),
            spec=job_set(kubernetes),
            **fields,
        ),
        "minProperties": 1,
        **rules(rule),
    }
    spec = {
        **record(
            mlPolicy=ml_policy(kubernetes),
            podGroupPolicy=pod_group_policy(),
            template=template,
            runPolicy=record(activeDeadlineSeconds=number(1, form="int64"), ttlSecondsAfterFinished=number(0)),
            **fields,
        ),
        "minProperties": 1,
        **rules(rule),
    }
    schema = {
        "type": "object",
        "properties": {"apiVersion": text(), "kind": text(), "metadata": {"type": "object"}, "spec": spec},
    }
    columns = [
        ("Framework", "string", r".metadata.labels.trainer\.kubeflow\.org/framework"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    # No short name for TrainingRuntimes: `tr` is Tekton's TaskRun, and beside it `kubectl get tr` would mean one of the
    # two.
    return definition(
        kind,
        plural,
        scope,
        schema,
        {"additionalPrinterColumns": printed(columns)},
        told=RUNTIME,
        short="ctr" if scope == "Cluster" else "",
    )
