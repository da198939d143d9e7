# SPDX-License-Identifier: Apache-2.0
"""What each field of a TrainJob, of a runtime and of a PyTorchJob is. make-crds makes the descriptions in the
definitions of it, which `kubectl explain` shows, and api_page.py the tables of docs/api.md.

An entry is `path: verdict; words`; its further lines begin with two spaces. The verdicts:
served (it works as upstream), mapped (it becomes another field or an object), ignored (it changes nothing),
refused (by its name), written (by Muster), kept (stored as given, without effect),
holds (it only holds the fields below it; the page leaves it out).
The words stand alone: `kubectl explain` shows one field. A link in brackets is for the page alone.
"""

VERDICTS = ("served", "mapped", "ignored", "refused", "written", "kept", "holds")
KINDS = {
    "TrainJob": (
        "A training job: what is trained, and on how many nodes. How its pods look is in the runtime that it refers to."
    ),
    "TrainingRuntime": (
        "How the pods of TrainJobs look and how they find each other, for the TrainJobs of its namespace."
    ),
    "ClusterTrainingRuntime": (
        "How the pods of TrainJobs look and how they find each other, for the TrainJobs of all namespaces."
    ),
    "PyTorchJob": "A training job of PyTorch: its replicas Master and Worker, and how they run.",
}

# Kubernetes' own types, by the end of the path: the page has one line for all fields inside.
TYPES = {
    "env": "EnvVar[]",
    "claims": "ResourceClaim[]",
    "metrics": "MetricSpec[]",
    "affinity": "Affinity",
    "tolerations": "Toleration[]",
    "volumes": "Volume[]",
    "volumeMounts": "VolumeMount[]",
    "imagePullSecrets": "LocalObjectReference[]",
    "schedulingGates": "PodSchedulingGate[]",
    "securityContext": "PodSecurityContext",
    "containers[].securityContext": "SecurityContext",
    "initContainers[].securityContext": "SecurityContext",
    "podFailurePolicy": "PodFailurePolicy",
    "selector": "LabelSelector",
    "template.spec.successPolicy": "JobSuccessPolicy",
    "template.spec.template.spec": "PodSpec",
    "KEY.template.spec": "PodSpec",
    "labelSelector": "LabelSelector",
    "templates[].spec": "PersistentVolumeClaimSpec",
}
# Fields with such a path that are the Trainer's own.
NO_TYPES = (
    "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template.spec",
    "status.trainerStatus.metrics",
    "status.selector",
    "status.replicaStatuses.KEY.selector",
    "spec.template.spec.successPolicy",
)

FAILURES = """\
status.failures[].time: written; when it failed
status.failures[].pod: written; the pod that failed
status.failures[].job: written; the Job of that pod, or the Job that failed
status.failures[].node: written; the node of the cluster on which the pod ran
status.failures[].reportedBy: written; the pod that told of the failure, if another one than `pod`
status.failures[].container: written; the container that failed
status.failures[].rank: written; the rank of the worker that failed first
status.failures[].nodeRank: written; the rank of its node among the nodes of the job
status.failures[].exitCode: written; the exit code; 128 + n after signal n; absent if no container ended
status.failures[].signal: written; the signal that ended it, such as `SIGKILL`
status.failures[].oom: written; whether it was killed because memory ran out
status.failures[].reason: written; a word for the cause, such as `OOMKilled`
status.failures[].message: written; the cause in a sentence, with the last line of its output that explains it
status.failures[].nextStep: written; what to do about it: the command that shows the log while the pod is there, or the
  setting to change
status.failures[].counted: written; whether it counts for the budget of restarts
status.failures[].origin: written; one key for all pods that ended for the same failure
"""

TRAIN_JOB = (
    """
spec: holds; what is trained, on how many nodes, by which runtime
spec.runtimeRef: holds; the runtime by which the pods are made; immutable
spec.runtimeRef.name: served; name of the runtime. The webhooks refuse a job whose runtime does not exist. Without
  webhooks the job waits for it, and `status.message` says so
spec.runtimeRef.apiGroup: served; API group of the runtime; only `trainer.kubeflow.org` is accepted
spec.runtimeRef.kind: served; `ClusterTrainingRuntime` or `TrainingRuntime`
spec.initializer: holds; data set and model that initializers bring in before the training; immutable
spec.initializer.dataset: holds; the data set that the step `dataset-initializer` brings in
spec.initializer.dataset.storageUri: served; where the data set comes from: `STORAGE_URI` of the initializer
  ([initializers.md](initializers.md))
spec.initializer.dataset.env: served; variables of the initializer of the data set
spec.initializer.dataset.secretRef: holds; a Secret for the initializer of the data set
spec.initializer.dataset.secretRef.name: served; name of the Secret; each of its keys is a variable of the initializer
spec.initializer.model: holds; the model that the step `model-initializer` brings in
spec.initializer.model.storageUri: served; where the model comes from: `STORAGE_URI` of the initializer
spec.initializer.model.env: served; variables of the initializer of the model
spec.initializer.model.secretRef: holds; a Secret for the initializer of the model
spec.initializer.model.secretRef.name: served; name of the Secret; each of its keys is a variable of the initializer
spec.trainer: holds; what the pods of the training run; replaces the runtime's values; immutable, except `numNodes`
spec.trainer.image: served; image of the container `node`
spec.trainer.command: served; command of the container `node`; it runs under the agent ([agent.md](agent.md))
spec.trainer.args: served; arguments of the command
spec.trainer.env: served; variables of the container `node`; one that follows from another field is refused
spec.trainer.numNodes: served; number of nodes: pods that train together, 1 to 100,000 ([limits](controller.md#limits)).
  `kubectl scale` changes it ([below](#elastic-jobs))
spec.trainer.numProcPerNode: served; number of processes on each node. `auto`, `cpu`, `gpu` and numbers in quotes are
  the shape of v2.0 and v2.1: a word becomes the annotation `muster.dev/num-proc-per-node`
spec.trainer.resourcesPerNode: holds; resources of the container `node`
spec.trainer.resourcesPerNode.claims: served; claims of devices; merged with the runtime's by name
spec.trainer.resourcesPerNode.limits: served; the most that the container may use; merged with the runtime's, key by key
spec.trainer.resourcesPerNode.requests: served; what the container needs at least; merged with the runtime's, key by key
spec.suspend: served; true: the job does not run, and its Jobs are suspended. At the resume they are created again from
  their templates, once the old pods have ended
spec.activeDeadlineSeconds: served; how many seconds the job may take, from its creation or its last resume; then it
  fails. Immutable
spec.ttlSecondsAfterFinished: served; Muster's own field: how many seconds after its end the TrainJob is deleted
spec.managedBy: served; the controller that serves the job. Muster ignores a job of another manager, and does not write
  its status. Immutable
spec.labels: mapped; v2.0 and v2.1: labels of the job's objects, as `template.metadata` of the patch of manager
  `muster.dev/v21`
spec.annotations: mapped; v2.0 and v2.1: annotations of the job's objects, as `template.metadata` of the patch of
  manager `muster.dev/v21`
spec.podTemplateOverrides: holds; v2.1: changes of the runtime's pods; they become the patch of manager `muster.dev/v21`
spec.podTemplateOverrides[].targetJobs: holds; the jobs of the runtime whose pods are changed
spec.podTemplateOverrides[].targetJobs[].name: mapped; v2.1: `replicatedJobs[].name` of the patch of manager
  `muster.dev/v21`
spec.podTemplateOverrides[].metadata: holds; labels and annotations of the pods
spec.podTemplateOverrides[].metadata.labels: mapped; v2.1: labels of the pods in the patch of manager `muster.dev/v21`
spec.podTemplateOverrides[].metadata.annotations: mapped; v2.1: annotations of the pods in the patch of manager
  `muster.dev/v21`
spec.podTemplateOverrides[].spec: mapped; v2.1: the PodSpec of the pods in the patch of manager `muster.dev/v21`.
  Clients of v2.2 and later drop `labels`, `annotations` and both overrides, so Muster restores them if all four are
  missing. To remove one of them, write it with an empty value
spec.podSpecOverrides: holds; v2.0: changes of the runtime's pods; they become the patch of manager `muster.dev/v21`
spec.podSpecOverrides[].targetJobs: holds; the jobs of the runtime whose pods are changed
spec.podSpecOverrides[].targetJobs[].name: mapped; v2.0: `replicatedJobs[].name` of the patch of manager
  `muster.dev/v21`. The fields of the PodSpec are beside `targetJobs`

spec.runtimePatches: holds; changes of the runtime for this job, one patch for each manager; later ones win
spec.runtimePatches[].manager: served; who has written the patch: a path with a domain before it, such as
  `example.com/team`
spec.runtimePatches[].time: written; when the patch was written, set by the webhook
spec.runtimePatches[].trainingRuntimeSpec: holds; the patch, in the form of a runtime's spec
spec.runtimePatches[].trainingRuntimeSpec.template: holds; changes of the job's objects
spec.runtimePatches[].trainingRuntimeSpec.template.metadata: holds; labels and annotations of all objects of the job
spec.runtimePatches[].trainingRuntimeSpec.template.metadata.labels: served; labels, set on each object of the job, but
  those with `kueue.x-k8s.io/` not on Jobs and pods
spec.runtimePatches[].trainingRuntimeSpec.template.metadata.annotations: served; annotations, set on each object of the
  job, but those with `kueue.x-k8s.io/` not on Jobs and pods
spec.runtimePatches[].trainingRuntimeSpec.template.spec: holds; changes of the runtime's jobs
spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs: holds; changes of the runtime's jobs, by their
  names
PATCHED.name: served; name of the job. One that the runtime does not have is refused; the message lists the jobs that it
  has
PATCHED.template: holds; changes of the Job
PATCHED.template.metadata: holds; labels and annotations of the Job
PATCHED.template.metadata.labels: served; labels, set on the Job
PATCHED.template.metadata.annotations: served; annotations, set on the Job
PATCHED.template.spec: holds; changes of the Job's pods
PATCHED.template.spec.template: holds; changes of the Job's pods
PATCHED.template.spec.template.metadata: holds; labels and annotations of the pods
PATCHED.template.spec.template.metadata.labels: served; labels, set on the pods
PATCHED.template.spec.template.metadata.annotations: served; annotations, set on the pods
PATCHED.template.spec.template.spec: holds; changes of the pods' spec
POD.serviceAccountName: served; service account of the pods
POD.nodeSelector: served; labels that the pods' nodes must have; may change while the job is suspended
POD.affinity: served; where the pods may or should run; may change while the job is suspended
POD.tolerations: served; taints of nodes that the pods tolerate; they replace the runtime's; may change while the job is
  suspended
POD.schedulingGates: served; the pods are not scheduled before these gates are removed; may change while the job is
  suspended
POD.volumes: served; volumes of the pods; merged by name
POD.imagePullSecrets: served; Secrets to pull the images with; merged by name
POD.securityContext: served; security settings of the pods
POD.terminationGracePeriodSeconds: served; how many seconds the pods have to end
POD.containers: holds; changes of the pods' containers, by their names
POD.containers[].name: served; name of the container. One that the runtime does not have is refused; the message lists
  the containers that it has
POD.containers[].env: served; variables of the container; one that the runtime or Muster sets is refused
POD.containers[].volumeMounts: served; volumes that the container mounts; merged by path
POD.containers[].securityContext: served; security settings of the container
POD.initContainers: holds; changes of the pods' init containers, by their names
POD.initContainers[].name: served; name of the init container. One that the runtime does not have is refused; the
  message lists those that it has
POD.initContainers[].env: served; variables of the init container; one that the runtime or Muster sets is refused
POD.initContainers[].volumeMounts: served; volumes that the init container mounts; merged by path
POD.initContainers[].securityContext: served; security settings of the init container

status: holds; what has become of the job
status.conditions: holds; the conditions `Suspended`, `Complete` and `Failed`, as upstream
status.conditions[].type: written; `Suspended`, `Complete` or `Failed`
status.conditions[].status: written; `True` or `False`
status.conditions[].lastTransitionTime: written; when `status` changed last
status.conditions[].observedGeneration: written; the generation of the TrainJob that the condition is about
status.conditions[].reason: written; a word for the cause, as upstream
status.conditions[].message: written; upstream's sentence, followed by the cause
status.jobsStatus: holds; numbers of Jobs, not of pods, for each job of the runtime
status.jobsStatus[].name: written; name of the runtime's job
status.jobsStatus[].ready: written; Jobs whose pods are ready or have succeeded
status.jobsStatus[].succeeded: written; Jobs that have succeeded
status.jobsStatus[].failed: written; Jobs that have failed
status.jobsStatus[].active: written; Jobs that have pods which run or wait
status.jobsStatus[].suspended: written; Jobs that are suspended
status.trainerStatus: holds; progress of the training, as its pods post it, else as its agents read it in their output
status.trainerStatus.progressPercentage: written; how much of the training is done, in percent
  ([controller.md](controller.md#progress-of-the-training))
status.trainerStatus.estimatedRemainingSeconds: written; seconds that are left, as the pods estimate it
status.trainerStatus.lastUpdatedTime: written; when it was written last
status.trainerStatus.metrics: holds; the newest metrics of the training
status.trainerStatus.metrics[].name: written; name of the metric
status.trainerStatus.metrics[].value: written; value of the metric
status.state: written; `Created`, `Waiting`, `Initializing`, `Running`, `Restarting`, `Suspended`, `Complete`, `Failed`
status.reason: written; a word for the column Reason
status.message: written; why the job does not go on yet, or why it ended
status.startTime: written; when the job was planned first
status.completionTime: written; when the job ended
status.ttlSecondsAfterFinished: written; the runtime's value when the TrainJob began
status.nodes: written; the number of pods that the trainer step is meant to have
status.readyNodes: written; the number of these pods that are ready
status.selector: written; the selector of an elastic job's pods, for autoscalers
status.attempt: written; how often the trainer step has started again
status.restarts: written; how many restarts of the budget were used ([restarts.md](restarts.md))
status.failures: holds; the newest 10 failures, the newest last: what failed and why
status.goodput: holds; where the job's time went, as its agents tell it ([controller.md](controller.md#goodput))
status.goodput.percentage: written; the part of the time since its first agent began in which it did work that was not
  done before, in percent
status.goodput.since: written; when its first agent began
status.goodput.seconds: holds; seconds by use; they add up to the time since the job began
status.goodput.seconds.initializers: written; until the initializers had ended
status.goodput.seconds.pods: written; from then on until the first agent began
status.goodput.seconds.suspended: written; for which the job was suspended between two runs
status.goodput.seconds.waiting: written; until the first round, for other nodes and for the rendezvous
status.goodput.seconds.start: written; from the start of the workers until they train
status.goodput.seconds.training: written; work that was not done before
status.goodput.seconds.redone: written; work that an earlier attempt had done
status.goodput.seconds.hang: written; from the last sign of progress until the hang was found
status.goodput.seconds.restart: written; from a failure until the workers run again
status.goodput.run: holds; the part of `seconds` that the newest agent tells; what a further agent tells is added
status.goodput.run.pod: written; the pod of that agent
status.goodput.run.since: written; when that agent began
status.goodput.run.seconds: written; seconds by use
status.completedJobs: written; the Jobs that have ended with success, as the [containers that
  decide](restarts.md#other-containers) say, though Kubernetes does not see it
""".replace("POD.", "PATCHED.template.spec.template.spec.").replace(
        "PATCHED.", "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[]."
    )
    + FAILURES
)

MISPLACED = "refused; a common mistake: it belongs in"

RUNTIME = f"""
spec: holds; how the pods of TrainJobs look, and how they find each other
spec.mlPolicy: holds; the framework of the training; at most one of torch, mpi, jax, xgboost and flux
spec.mlPolicy.numNodes: served; number of nodes for TrainJobs that do not set it; with 0 a TrainJob must set it; refused
  beside `elasticPolicy`
spec.mlPolicy.torch: holds; PyTorch: the pods get the variables of torchrun
spec.mlPolicy.torch.numProcPerNode: served; v2.0 and v2.1: processes on each node: `auto`, `cpu`, `gpu` or a number
spec.mlPolicy.torch.elasticPolicy: holds; v2.0 and v2.1: the number of nodes may change while the job runs
  ([below](#elastic-jobs))
spec.mlPolicy.torch.elasticPolicy.minNodes: served; the least number of nodes with which training goes on
  ([below](#elastic-jobs))
spec.mlPolicy.torch.elasticPolicy.maxNodes: served; the greatest number of nodes
spec.mlPolicy.torch.elasticPolicy.maxRestarts: served; the budget of restarts, and `PET_MAX_RESTARTS`
spec.mlPolicy.torch.elasticPolicy.metrics: mapped; metrics by which a HorizontalPodAutoscaler changes the number of
  nodes
spec.mlPolicy.torch.envInjection: holds; further containers that get the variables of torchrun
spec.mlPolicy.torch.envInjection.targets: holds; these containers, for each job of the runtime
spec.mlPolicy.torch.envInjection.targets[].jobName: served; name of the runtime's job
spec.mlPolicy.torch.envInjection.targets[].containerNames: served; these containers get the variables of torchrun.
  `node` always gets them, and is refused here
spec.mlPolicy.mpi: holds; MPI: the job `launcher` runs mpirun, which starts processes in the pods of the job `node`
spec.mlPolicy.mpi.numProcPerNode: served; slots of a host, if it is more than 1 ([mpi.md](mpi.md#trainjobs))
spec.mlPolicy.mpi.mpiImplementation: served; `OpenMPI`, `Intel` or `MPICH`; empty is `OpenMPI`
spec.mlPolicy.mpi.sshAuthMountPath: served; folder of the ssh keys, with the annotation `muster.dev/rsh: ssh`
spec.mlPolicy.mpi.runLauncherAsNode: served; true: processes run in the launcher's pod, too, and it counts as a node
spec.mlPolicy.jax: served; JAX: `JAX_NUM_PROCESSES`, `JAX_PROCESS_ID`, `JAX_COORDINATOR_ADDRESS`, unless the container
  sets them. The command is wired as [jax](agent.md#pods-of-jax-and-xgboost)
spec.mlPolicy.xgboost: served; XGBoost: `DMLC_TRACKER_URI`, `DMLC_TRACKER_PORT`, `DMLC_TASK_ID`, `DMLC_NUM_WORKER`
  (nodes x GPUs, or x 1). The command is wired as xgboost
spec.mlPolicy.flux: holds; Flux, which Muster refuses
spec.mlPolicy.flux.numProcPerNode: refused; `mlPolicy.flux` is refused as a whole: Flux's brokers would have to be
  installed in every pod, and the agent would not see the processes that they start
spec.podGroupPolicy: holds; gang scheduling: the pods that start together start at the same time or not at all
  ([below](#gang-scheduling))
spec.podGroupPolicy.coscheduling: holds; a PodGroup of the scheduler plugin coscheduling
spec.podGroupPolicy.coscheduling.scheduleTimeoutSeconds: served; `scheduleTimeoutSeconds` of the PodGroup
  ([below](#gang-scheduling))
spec.podGroupPolicy.volcano: holds; a PodGroup of Volcano
spec.podGroupPolicy.volcano.networkTopology: holds; how near to each other in the network the nodes must be
spec.podGroupPolicy.volcano.networkTopology.mode: served; `hard` or `soft`; `mode` of the PodGroup
spec.podGroupPolicy.volcano.networkTopology.highestTierAllowed: served; `highestTierAllowed` of the PodGroup
spec.podGroupPolicy.volcano.networkTopology.topologyKey: mapped; label of nodes by which the pods are together: affinity
  of the pods
spec.podGroupPolicy.volcano.networkTopology.networkPolicy: mapped; becomes `mode`: `Strict` is `hard`, `Best-effort` is
  `soft`
spec.podGroupPolicy.volcano.topologyKey: mapped; as `networkTopology.topologyKey`; some documents place the field here
spec.podGroupPolicy.volcano.networkPolicy: mapped; as `networkTopology.networkPolicy`; some documents place the field
  here
spec.runPolicy: holds; Muster's own field: how long TrainJobs may take, and how long they stay
spec.runPolicy.activeDeadlineSeconds: served; Muster's own field: `activeDeadlineSeconds` of TrainJobs that do not set
  it
spec.runPolicy.ttlSecondsAfterFinished: served; Muster's own field: `ttlSecondsAfterFinished` of TrainJobs that do not
  set it. The value when the TrainJob began counts
spec.template: holds; the job's objects, in the form of a JobSet
spec.template.metadata: holds; labels and annotations of all objects of the job
spec.template.metadata.labels: served; labels, set on each object of the job, but those with `kueue.x-k8s.io/` not on
  Jobs and pods
spec.template.metadata.annotations: served; annotations, set on each object of the job, but those with `kueue.x-k8s.io/`
  not on Jobs and pods
spec.template.metadata.finalizers: ignored; Muster creates no JobSet
spec.template.metadata.name: ignored; Muster creates no JobSet
spec.template.metadata.namespace: ignored; Muster creates no JobSet
spec.template.failurePolicy: {MISPLACED} `template.spec`
spec.failurePolicy: {MISPLACED} `template.spec`

spec.template.spec: holds; the Jobs of a TrainJob, and what their ends lead to
spec.template.spec.replicatedJobs: holds; the jobs: those of the steps, by their label, and others
spec.template.spec.replicatedJobs[].name: served; name of the job, which is in the names of its Jobs and pods
spec.template.spec.replicatedJobs[].groupName: served; name of a group of jobs, in JobSet's labels
spec.template.spec.replicatedJobs[].replicas: served; number of Jobs; for a step of the TrainJob always 1; the webhooks
  refuse another number
spec.template.spec.replicatedJobs[].dependsOn: holds; what must be reached before the Jobs are created
spec.template.spec.replicatedJobs[].dependsOn[].name: served; name of a job above this one
spec.template.spec.replicatedJobs[].dependsOn[].status: served; what that job must have reached: `Ready` or `Complete`.
  A Job that has succeeded or failed also counts as `Ready`. The condition is checked whenever Jobs are created, also
  after a resume and when a step starts again
spec.template.spec.replicatedJobs[].template: holds; the template of the Jobs
spec.template.spec.replicatedJobs[].failurePolicy: {MISPLACED} `template.spec`
spec.template.spec.network: holds; how pods find each other
spec.template.spec.network.enableDNSHostnames: served; `false`: no Service and no host names. `false` is refused beside
  a framework of `mlPolicy`, because its pods find each other by name
spec.template.spec.network.subdomain: served; name of the Service, and so the domain of the pods; default: the
  TrainJob's name
spec.template.spec.network.publishNotReadyAddresses: served; whether names of pods that are not ready resolve; default
  `true`
spec.template.spec.successPolicy: holds; when the TrainJob has succeeded; default: when all its Jobs have
spec.template.spec.successPolicy.operator: served; `All` or `Any` of the jobs must have succeeded; when the policy is
  met, Jobs that still run are deleted
spec.template.spec.successPolicy.targetReplicatedJobs: served; names of the jobs that count; default: all
spec.template.spec.failurePolicy: holds; what a failed Job leads to
spec.template.spec.failurePolicy.maxRestarts: served; the budget of restarts; see [restarts.md](restarts.md)
spec.template.spec.failurePolicy.restartStrategy: served; how the step starts again. The agent does `InPlaceRestart`.
  Without the agent the step starts again, and an event says so
spec.template.spec.failurePolicy.rules: holds; rules for failed Jobs; the first that matches counts
spec.template.spec.failurePolicy.rules[].name: served; name of the rule, for messages
spec.template.spec.failurePolicy.rules[].action: served; `FailJobSet`, `RestartJobSet` or
  `RestartJobSetAndIgnoreMaxRestarts`; `RestartJob` and `RestartJobAndIgnoreMaxRestarts` are refused: use
  `RestartJobSet`
spec.template.spec.failurePolicy.rules[].onJobFailureReasons: served; reasons of the Job's failure; default: all
spec.template.spec.failurePolicy.rules[].onJobFailureMessagePatterns: served; regular expressions of RE2 for the message
  of the Job's failure; default: all
spec.template.spec.failurePolicy.rules[].targetReplicatedJobs: served; names of the jobs for which the rule is; default:
  all
spec.template.spec.startupPolicy: holds; in which order the jobs start
spec.template.spec.startupPolicy.startupPolicyOrder: served; `AnyOrder`, or `InOrder`: each job starts when the one
  before it is ready
spec.template.spec.suspend: ignored; the TrainJob's `suspend` counts
spec.template.spec.coordinator: holds; the pod that coordinates the others, for labels and annotations of all pods
spec.template.spec.coordinator.replicatedJob: served; name of the coordinator's job; becomes a label and an annotation
  of all pods. A name longer than 63 characters is left out
spec.template.spec.coordinator.jobIndex: served; index of the coordinator's Job; part of the label and the annotation of
  the coordinator
spec.template.spec.coordinator.podIndex: served; index of the coordinator's pod; part of the label and the annotation of
  the coordinator
spec.template.spec.managedBy: ignored; the TrainJob's `managedBy` counts
spec.template.spec.ttlSecondsAfterFinished: served; how long after the end of the TrainJob its Jobs and their pods are
  deleted. The TrainJob stays
spec.template.spec.volumeClaimPolicies: holds; volumes that are made for each TrainJob
spec.template.spec.volumeClaimPolicies[].templates: holds; the claims of these volumes; containers mount them by the
  claims' names
spec.template.spec.volumeClaimPolicies[].templates[].metadata: holds; name, labels and annotations of the claim
spec.template.spec.volumeClaimPolicies[].templates[].metadata.name: served; name of the volume; the claim is `NAME-JOB`,
  created before the first pod. An existing claim of that name is used
spec.template.spec.volumeClaimPolicies[].templates[].metadata.labels: served; labels of the claim
spec.template.spec.volumeClaimPolicies[].templates[].metadata.annotations: served; annotations of the claim
spec.template.spec.volumeClaimPolicies[].templates[].metadata.finalizers: ignored; Kubernetes sets the finalizers of
  claims
spec.template.spec.volumeClaimPolicies[].templates[].metadata.namespace: refused; the claim is in the TrainJob's
  namespace
spec.template.spec.volumeClaimPolicies[].templates[].spec: served; the claim
spec.template.spec.volumeClaimPolicies[].retentionPolicy: holds; what becomes of the claims
spec.template.spec.volumeClaimPolicies[].retentionPolicy.whenDeleted: served; what happens when the TrainJob is deleted:
  `Delete`, or `Retain`: the claim stays

JOB.metadata: holds; labels and annotations of the Job
JOB.metadata.labels: served; labels of the Job; `trainer.kubeflow.org/trainjob-ancestor-step` says which step of the
  TrainJob the job is
JOB.metadata.annotations: served; annotations of the Job
JOB.metadata.finalizers: ignored; Kubernetes sets the finalizers of Jobs
JOB.metadata.name: ignored; the Job is `TRAINJOB-REPLICATEDJOB-INDEX`
JOB.metadata.namespace: ignored; the TrainJob's namespace counts
JOB.spec: holds; the Job
JOB.spec.activeDeadlineSeconds: served; how many seconds the Job may take
JOB.spec.backoffLimit: served; how many failed pods are replaced; default under the agent: the rest of the budget of
  restarts
JOB.spec.backoffLimitPerIndex: served; how many failed pods of one index are replaced
JOB.spec.completionMode: served; `Indexed` or `NonIndexed`; default `Indexed`
JOB.spec.completions: ignored; it is the number of pods
JOB.spec.managedBy: served; the controller that serves the Job
JOB.spec.manualSelector: served; whether `selector` is the user's
JOB.spec.maxFailedIndexes: served; how many indexes may fail before the Job fails
JOB.spec.parallelism: served; the number of pods; for the trainer step the number of nodes
JOB.spec.podFailurePolicy: served; what the end of a pod leads to; replaces the policy that Muster sets under the agent
JOB.spec.podReplacementPolicy: served; when a pod is replaced: `Failed` or `TerminatingOrFailed`
JOB.spec.selector: served; the labels by which the Job knows its pods, with `manualSelector`
JOB.spec.successPolicy: served; when the Job has succeeded
JOB.spec.suspend: ignored; the TrainJob's `suspend` counts
JOB.spec.ttlSecondsAfterFinished: served; as `ttlSecondsAfterFinished` of `template.spec`; the shorter of the two counts
JOB.spec.restartPolicy: {MISPLACED} `template.spec`
JOB.spec.template: holds; the template of the pods
JOB.spec.template.metadata: holds; labels and annotations of the pods
JOB.spec.template.metadata.labels: served; labels, set on the pods
JOB.spec.template.metadata.annotations: served; annotations, set on the pods
JOB.spec.template.metadata.finalizers: served; finalizers, set on the pods
JOB.spec.template.metadata.name: kept; Kubernetes ignores it
JOB.spec.template.metadata.namespace: kept; Kubernetes ignores it
JOB.spec.template.restartPolicy: {MISPLACED} `spec`
JOB.spec.template.spec: served; the spec of the pods. The default of `restartPolicy` is `OnFailure`; with the agent, or
  beside a `podFailurePolicy`, it is `Never`
""".replace("JOB.", "spec.template.spec.replicatedJobs[].template.")

PYTORCH_JOB = (
    """
spec: holds; the replicas, and how they run
spec.pytorchReplicaSpecs: holds; the replicas, by `Master` and `Worker`
spec.pytorchReplicaSpecs.KEY.replicas: served; number of pods. KEY is `Master` or `Worker`, spelled like this. Default 1
  for Workers; a Master must set it. `kubectl scale` changes the number of Workers
spec.pytorchReplicaSpecs.KEY.restartPolicy: served; what the end of a pod leads to: `Always`, `OnFailure`, `Never` or
  `ExitCode`; default `OnFailure`
spec.pytorchReplicaSpecs.KEY.template: holds; the template of the pods
spec.pytorchReplicaSpecs.KEY.template.metadata: holds; labels and annotations of the pods
spec.pytorchReplicaSpecs.KEY.template.metadata.labels: served; labels, set on the pods, except labels that Muster sets
spec.pytorchReplicaSpecs.KEY.template.metadata.annotations: served; annotations, set on the pods
spec.pytorchReplicaSpecs.KEY.template.metadata.finalizers: served; finalizers, set on the pods
spec.pytorchReplicaSpecs.KEY.template.metadata.name: ignored; the pod is `JOB-master-0`, or `JOB-worker-INDEX`
spec.pytorchReplicaSpecs.KEY.template.metadata.namespace: ignored; the PyTorchJob's namespace counts
spec.pytorchReplicaSpecs.KEY.template.spec: served; the spec of the pods; one container must be called `pytorch`. The
  pod's `restartPolicy` follows from the replica's
spec.nprocPerNode: served; processes in each pod: `auto`, `cpu`, `gpu`, or a number in quotes: sets
  `PET_NPROC_PER_NODE`. Default `auto`
spec.runPolicy: holds; how long the job may take, what is restarted, and what becomes of the pods
spec.runPolicy.cleanPodPolicy: served; which pods are deleted at the end: `None`, `Running` or `All`. Default `None`
spec.runPolicy.ttlSecondsAfterFinished: served; how many seconds after its end the PyTorchJob is deleted
spec.runPolicy.activeDeadlineSeconds: served; how many seconds the job may take, from `status.startTime`
spec.runPolicy.backoffLimit: served; the budget of restarts; default: no limit
spec.runPolicy.schedulingPolicy: holds; fields of the PodGroup, for gang scheduling
spec.runPolicy.schedulingPolicy.minAvailable: served; how many pods start at the same time or not at all; default: all
  replicas
spec.runPolicy.schedulingPolicy.queue: served; `queue` of Volcano's PodGroup; immutable
spec.runPolicy.schedulingPolicy.minResources: served; resources of the PodGroup; default: the sum of the pods' requests
spec.runPolicy.schedulingPolicy.priorityClass: served; priority of Volcano's PodGroup
spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds: served; `scheduleTimeoutSeconds` of coscheduling's PodGroup
spec.runPolicy.suspend: served; true: pods and Services are deleted; they are created again at the resume
spec.runPolicy.managedBy: served; the controller that serves the job: absent or `kubeflow.org/training-operator`. Muster
  ignores a job of another manager, and does not write its status. Immutable
spec.elasticPolicy: holds; the number of Workers may change while the job runs
spec.elasticPolicy.minReplicas: served; the least number of Workers: `PET_NNODES`; default `maxReplicas`, without both
  the number of Workers
spec.elasticPolicy.maxReplicas: served; the greatest number of Workers: `PET_NNODES`; default `minReplicas`
spec.elasticPolicy.rdzvBackend: served; `c10d`, `etcd` or `etcd-v2`: `PET_RDZV_BACKEND`; default `c10d`
spec.elasticPolicy.rdzvPort: served; port of `PET_RDZV_ENDPOINT`; default: the container's port `pytorchjob-port`
spec.elasticPolicy.rdzvHost: served; host of `PET_RDZV_ENDPOINT`; default `JOB-worker-0`
spec.elasticPolicy.rdzvId: served; name of the run: `PET_RDZV_ID`
spec.elasticPolicy.rdzvConf: holds; settings of the rendezvous: `PET_RDZV_CONF`
spec.elasticPolicy.rdzvConf[].key: served; name of the setting, in `PET_RDZV_CONF`
spec.elasticPolicy.rdzvConf[].value: served; its value
spec.elasticPolicy.standalone: served; a rendezvous of its own on each node: `PET_STANDALONE`
spec.elasticPolicy.nProcPerNode: served; deprecated: sets `PET_NPROC_PER_NODE`; refused beside `nprocPerNode`
spec.elasticPolicy.maxRestarts: served; restarts of the workers by torchrun: `PET_MAX_RESTARTS`
spec.elasticPolicy.metrics: mapped; metrics by which a HorizontalPodAutoscaler changes the number of Workers

status: holds; what has become of the job
status.conditions: holds; `Created`, `Running`, `Restarting`, `Suspended`, `Succeeded`, `Failed`, as upstream. The last
  one is the state
status.conditions[].type: written; `Created`, `Running`, `Restarting`, `Suspended`, `Succeeded`, `Failed`, as upstream.
  The last one is the state
status.conditions[].status: written; `True` or `False`
status.conditions[].reason: written; a word for the cause, as upstream
status.conditions[].message: written; upstream's sentence, followed by the cause
status.conditions[].lastUpdateTime: written; when the condition was written last
status.conditions[].lastTransitionTime: written; when `status` changed last
status.replicaStatuses: holds; numbers of pods, by `Master` and `Worker`
status.replicaStatuses.KEY.active: written; the number of pods that run or wait
status.replicaStatuses.KEY.succeeded: written; the number of pods that have succeeded
status.replicaStatuses.KEY.failed: written; the number of pods that have failed
status.replicaStatuses.KEY.succeededIndexes: written; the replicas that have succeeded, such as `0,2-4`; they do not run
  again when their pods are gone
status.replicaStatuses.KEY.selector: written; the selector of the pods, for autoscalers
status.replicaStatuses.KEY.labelSelector: kept; older versions of training-operator wrote it
status.startTime: written; the first start, or the last resume
status.completionTime: written; when the job ended
status.lastReconcileTime: kept; training-operator writes it while it waits for a PodGroup
status.message: written; Muster's own field, as those below: why the job does not go on yet, or why it failed
status.attempt: written; how often all pods were created again
status.restarts: written; how many restarts of `backoffLimit` were used
status.failures: holds; the newest 10 failures, the newest last: what failed and why
"""
    + FAILURES
    + """status.failures[].podUID: written; the uid of the pod that failed
status.countedPods: holds; restarts that were counted for pods that still exist
status.countedPods[].uid: written; the uid of the pod
status.countedPods[].restarts: written; restarts of its containers that were counted
"""
)
