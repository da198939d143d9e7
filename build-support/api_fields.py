"""What Muster does with each field of a TrainJob, of a runtime and of a PyTorchJob. api_page.py makes the tables of docs/api.md of it.

A line is `path: verdict` or `path: verdict; words`. The verdicts:
served (it works as upstream), mapped (it becomes another field or an object), ignored (it changes nothing), refused (by its name),
written (by Muster), kept (stored as given, without effect). `PREFIX*` stands for each field that begins with PREFIX.
"""

VERDICTS = ("served", "mapped", "ignored", "refused", "written", "kept")

# Kubernetes' own types, by the end of the path: the page has one line for all fields inside.
TYPES = {
    "env": "EnvVar[]", "claims": "ResourceClaim[]", "metrics": "MetricSpec[]", "affinity": "Affinity", "tolerations": "Toleration[]", "volumes": "Volume[]",
    "volumeMounts": "VolumeMount[]", "imagePullSecrets": "LocalObjectReference[]", "schedulingGates": "PodSchedulingGate[]",
    "securityContext": "PodSecurityContext", "containers[].securityContext": "SecurityContext", "initContainers[].securityContext": "SecurityContext",
    "podFailurePolicy": "PodFailurePolicy", "selector": "LabelSelector", "template.spec.successPolicy": "JobSuccessPolicy",
    "template.spec.template.spec": "PodSpec", "KEY.template.spec": "PodSpec", "labelSelector": "LabelSelector", "templates[].spec": "PersistentVolumeClaimSpec"}
# Fields with such a path that are the Trainer's own.
NO_TYPES = ("spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template.spec", "status.trainerStatus.metrics",
            "status.selector", "status.replicaStatuses.KEY.selector", "spec.template.spec.successPolicy")

TRAIN_JOB = """
spec.runtimeRef.name: served; the webhooks refuse a job whose runtime does not exist. Without webhooks the job waits for it, and `status.message` says so
spec.runtimeRef.apiGroup: served; another group is refused
spec.runtimeRef.kind: served; `ClusterTrainingRuntime` or `TrainingRuntime`
spec.initializer.dataset.storageUri: served; `STORAGE_URI` of the initializer ([initializers.md](initializers.md))
spec.initializer.dataset.env: served
spec.initializer.dataset.secretRef.name: served; each key of the Secret is a variable
spec.initializer.model.storageUri: served; the same
spec.initializer.model.env: served
spec.initializer.model.secretRef.name: served; the same
spec.trainer.image: served
spec.trainer.command: served; it runs under the agent ([agent.md](agent.md))
spec.trainer.args: served
spec.trainer.env: served; a variable that follows from another field is refused
spec.trainer.numNodes: served; `kubectl scale` changes it ([below](#elastic-jobs))
spec.trainer.numProcPerNode: served; `auto`, `cpu`, `gpu` and numbers in quotes are the shape of v2.0 and v2.1: a word becomes the annotation `muster.dev/num-proc-per-node`
spec.trainer.resourcesPerNode.claims: served; merged with the runtime's by name
spec.trainer.resourcesPerNode.limits: served; merged with the runtime's, key by key
spec.trainer.resourcesPerNode.requests: served; the same
spec.suspend: served; the Jobs are suspended. At the resume they are created again from their templates, once the old pods have ended
spec.activeDeadlineSeconds: served; counts from the creation, or from the last resume
spec.ttlSecondsAfterFinished: served; Muster's own field: how long after its end the TrainJob is deleted
spec.managedBy: served; Muster ignores a job of another manager, and does not write its status
spec.labels: mapped; v2.0 and v2.1: the patch of manager `muster.dev/v21`, as its `template.metadata`
spec.annotations: mapped; the same
spec.podTemplateOverrides[].targetJobs[].name: mapped; v2.1: `replicatedJobs[].name` of that patch
spec.podTemplateOverrides[].metadata.labels: mapped; v2.1: labels of the pods in that patch
spec.podTemplateOverrides[].metadata.annotations: mapped; v2.1: their annotations
spec.podTemplateOverrides[].spec: mapped; v2.1: their PodSpec. Clients of v2.2 and later drop `labels`, `annotations` and both overrides, so Muster restores them if all four are missing. To remove one of them, write it with an empty value
spec.podSpecOverrides[].targetJobs[].name: mapped; v2.0: the same patch. The fields of the PodSpec are beside `targetJobs`

spec.runtimePatches[].manager: served; one patch each
spec.runtimePatches[].time: written; by the webhook
spec.runtimePatches[].trainingRuntimeSpec.template.metadata.labels: served; set on each object of the job, but those with `kueue.x-k8s.io/` not on Jobs and pods
spec.runtimePatches[].trainingRuntimeSpec.template.metadata.annotations: served; the same
PATCHED.name: served; a job that the runtime does not have is refused; the message lists the jobs that it has
PATCHED.template.metadata.labels: served; set on the Job
PATCHED.template.metadata.annotations: served; set on the Job
PATCHED.template.spec.template.metadata.labels: served; set on its pods
PATCHED.template.spec.template.metadata.annotations: served; set on its pods
PATCHED.template.spec.template.spec.serviceAccountName: served
PATCHED.template.spec.template.spec.nodeSelector: served; may change while the job is suspended
PATCHED.template.spec.template.spec.affinity: served; may change while the job is suspended
PATCHED.template.spec.template.spec.tolerations: served; they replace the runtime's; may change while the job is suspended
PATCHED.template.spec.template.spec.schedulingGates: served; may change while the job is suspended
PATCHED.template.spec.template.spec.volumes: served; merged by name
PATCHED.template.spec.template.spec.imagePullSecrets: served; merged by name
PATCHED.template.spec.template.spec.securityContext: served
PATCHED.template.spec.template.spec.terminationGracePeriodSeconds: served
PATCHED.template.spec.template.spec.containers[].name: served; a container that the runtime does not have is refused; the message lists the containers that it has
PATCHED.template.spec.template.spec.containers[].env: served; a variable that the runtime or Muster sets is refused
PATCHED.template.spec.template.spec.containers[].volumeMounts: served; merged by path
PATCHED.template.spec.template.spec.containers[].securityContext: served
PATCHED.template.spec.template.spec.initContainers[].*: served; as for containers

status.conditions[].*: written; `Suspended`, `Complete`, `Failed`, as upstream
status.jobsStatus[].*: written; numbers of Jobs, not of pods
status.trainerStatus.*: kept; pods post it ([controller.md](controller.md#progress-of-the-training))
status.state: written; `Created`, `Waiting`, `Initializing`, `Running`, `Restarting`, `Suspended`, `Complete`, `Failed`
status.reason: written; a word for the column Reason
status.message: written; why the job does not go on yet, or why it ended
status.startTime: written
status.completionTime: written
status.ttlSecondsAfterFinished: written; the runtime's value when the TrainJob began
status.nodes: written; the number of pods that the trainer step is meant to have
status.readyNodes: written; the number of these pods that are ready
status.selector: written; the selector of an elastic job's pods, for autoscalers
status.attempt: written; how often the trainer step has started again
status.restarts: written; how many restarts of the budget were used ([restarts.md](restarts.md))
status.failures[].*: written; the newest 10 failures, the newest last: what failed and why
""".replace("PATCHED.", "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].")

MISPLACED = "refused; a common mistake: it belongs in"

RUNTIME = f"""
spec.mlPolicy.numNodes: served; refused beside `elasticPolicy`
spec.mlPolicy.torch.numProcPerNode: served; v2.0 and v2.1: `auto`, `cpu`, `gpu` or a number
spec.mlPolicy.torch.elasticPolicy.minNodes: served; v2.0 and v2.1 ([below](#elastic-jobs))
spec.mlPolicy.torch.elasticPolicy.maxNodes: served; the same
spec.mlPolicy.torch.elasticPolicy.maxRestarts: served; sets `PET_MAX_RESTARTS` and the budget of restarts
spec.mlPolicy.torch.elasticPolicy.metrics: mapped; a HorizontalPodAutoscaler
spec.mlPolicy.torch.envInjection.targets[].jobName: served
spec.mlPolicy.torch.envInjection.targets[].containerNames: served; these containers get the variables of torchrun. `node` always gets them, and is refused here
spec.mlPolicy.mpi.numProcPerNode: served; slots of a host, if it is more than 1 ([mpi.md](mpi.md#trainjobs))
spec.mlPolicy.mpi.mpiImplementation: served; empty is `OpenMPI`
spec.mlPolicy.mpi.sshAuthMountPath: served; with the annotation `muster.dev/rsh: ssh`
spec.mlPolicy.mpi.runLauncherAsNode: served
spec.mlPolicy.jax: served; `JAX_NUM_PROCESSES`, `JAX_PROCESS_ID`, `JAX_COORDINATOR_ADDRESS`, unless the container sets them. The command is wired as [jax](agent.md#pods-of-jax-and-xgboost)
spec.mlPolicy.xgboost: served; `DMLC_TRACKER_URI`, `DMLC_TRACKER_PORT`, `DMLC_TASK_ID`, `DMLC_NUM_WORKER` (nodes x GPUs, or x 1). The command is wired as xgboost
spec.mlPolicy.flux.numProcPerNode: refused; `mlPolicy.flux` is refused as a whole: Flux's brokers would have to be installed in every pod, and the agent would not see the processes that they start
spec.podGroupPolicy.coscheduling.scheduleTimeoutSeconds: served; of the PodGroup ([below](#gang-scheduling))
spec.podGroupPolicy.volcano.networkTopology.mode: served; of the PodGroup
spec.podGroupPolicy.volcano.networkTopology.highestTierAllowed: served; of the PodGroup
spec.podGroupPolicy.volcano.networkTopology.topologyKey: mapped; affinity of the pods
spec.podGroupPolicy.volcano.networkTopology.networkPolicy: mapped; `mode`: `Strict` is `hard`, `Best-effort` is `soft`
spec.podGroupPolicy.volcano.topologyKey: mapped; the same; some documents place the field here
spec.podGroupPolicy.volcano.networkPolicy: mapped; the same
spec.runPolicy.activeDeadlineSeconds: served; Muster's own field, for TrainJobs that do not set it
spec.runPolicy.ttlSecondsAfterFinished: served; the same. The value when the TrainJob began counts
spec.template.metadata.labels: served; set on each object of the job, but those with `kueue.x-k8s.io/` not on Jobs and pods
spec.template.metadata.annotations: served; the same
spec.template.metadata.finalizers: ignored; Muster creates no JobSet
spec.template.metadata.name: ignored; the same
spec.template.metadata.namespace: ignored; the same
spec.template.failurePolicy: {MISPLACED} `template.spec`
spec.failurePolicy: {MISPLACED} `template.spec`

spec.template.spec.replicatedJobs[].name: served
spec.template.spec.replicatedJobs[].groupName: served; in JobSet's labels
spec.template.spec.replicatedJobs[].replicas: served; for a step of the TrainJob always 1; the webhooks refuse another number
spec.template.spec.replicatedJobs[].dependsOn[].name: served; a job above this one
spec.template.spec.replicatedJobs[].dependsOn[].status: served; a Job that has succeeded or failed also counts as `Ready`. The condition is checked whenever Jobs are created, also after a resume and when a step starts again
spec.template.spec.replicatedJobs[].failurePolicy: {MISPLACED} `template.spec`
spec.template.spec.network.enableDNSHostnames: served; `false`: no Service and no host names. `false` is refused beside a framework of `mlPolicy`, because its pods find each other by name
spec.template.spec.network.subdomain: served
spec.template.spec.network.publishNotReadyAddresses: served
spec.template.spec.successPolicy.operator: served; when the policy is met, Jobs that still run are deleted
spec.template.spec.successPolicy.targetReplicatedJobs: served
spec.template.spec.failurePolicy.maxRestarts: served; see [restarts.md](restarts.md)
spec.template.spec.failurePolicy.restartStrategy: served; the agent does `InPlaceRestart`. Without the agent the step starts again, and an event says so
spec.template.spec.failurePolicy.rules[].name: served
spec.template.spec.failurePolicy.rules[].action: served; `RestartJob` and `RestartJobAndIgnoreMaxRestarts` are refused: use `RestartJobSet`
spec.template.spec.failurePolicy.rules[].onJobFailureReasons: served
spec.template.spec.failurePolicy.rules[].onJobFailureMessagePatterns: served; regular expressions of RE2
spec.template.spec.failurePolicy.rules[].targetReplicatedJobs: served
spec.template.spec.startupPolicy.startupPolicyOrder: served; `InOrder`: each job starts when the one before it is ready
spec.template.spec.suspend: ignored; the TrainJob's `suspend` counts
spec.template.spec.coordinator.replicatedJob: served; becomes a label and an annotation. A name longer than 63 characters is left out
spec.template.spec.coordinator.jobIndex: served; the same
spec.template.spec.coordinator.podIndex: served; the same
spec.template.spec.managedBy: ignored; the TrainJob's `managedBy` counts
spec.template.spec.ttlSecondsAfterFinished: served; how long after the end of the TrainJob its Jobs and their pods are deleted. The TrainJob stays
spec.template.spec.volumeClaimPolicies[].templates[].metadata.name: served; the claim is `NAME-JOB`, created before the first pod. An existing claim of that name is used
spec.template.spec.volumeClaimPolicies[].templates[].metadata.labels: served
spec.template.spec.volumeClaimPolicies[].templates[].metadata.annotations: served
spec.template.spec.volumeClaimPolicies[].templates[].metadata.finalizers: ignored
spec.template.spec.volumeClaimPolicies[].templates[].metadata.namespace: refused; the claim is in the TrainJob's namespace
spec.template.spec.volumeClaimPolicies[].templates[].spec: served
spec.template.spec.volumeClaimPolicies[].retentionPolicy.whenDeleted: served; `Retain`: the claim stays when the TrainJob is deleted

JOB.metadata.labels: served; the label `trainer.kubeflow.org/trainjob-ancestor-step` says which step of the TrainJob the job is
JOB.metadata.annotations: served
JOB.metadata.finalizers: ignored
JOB.metadata.name: ignored; the Job is `JOB-REPLICATEDJOB-INDEX`
JOB.metadata.namespace: ignored; the TrainJob's namespace counts
JOB.spec.activeDeadlineSeconds: served
JOB.spec.backoffLimit: served; default under the agent: the rest of the budget of restarts
JOB.spec.backoffLimitPerIndex: served
JOB.spec.completionMode: served; default `Indexed`
JOB.spec.completions: ignored; it is the number of pods
JOB.spec.managedBy: served
JOB.spec.manualSelector: served
JOB.spec.maxFailedIndexes: served
JOB.spec.parallelism: served; the number of pods; for the trainer step the number of nodes
JOB.spec.podFailurePolicy: served; replaces the one that Muster sets under the agent
JOB.spec.podReplacementPolicy: served
JOB.spec.selector: served
JOB.spec.successPolicy: served
JOB.spec.suspend: ignored; the TrainJob's `suspend` counts
JOB.spec.ttlSecondsAfterFinished: served; as `ttlSecondsAfterFinished` of `template.spec`; the shorter of the two counts
JOB.spec.restartPolicy: {MISPLACED} `template.spec`
JOB.spec.template.metadata.labels: served; set on the pods
JOB.spec.template.metadata.annotations: served; set on the pods
JOB.spec.template.metadata.finalizers: served; set on the pods
JOB.spec.template.metadata.name: kept; Kubernetes ignores it
JOB.spec.template.metadata.namespace: kept; Kubernetes ignores it
JOB.spec.template.restartPolicy: {MISPLACED} `spec`
JOB.spec.template.spec: served; the default of `restartPolicy` is `OnFailure`; with the agent, or beside a `podFailurePolicy`, it is `Never`
""".replace("JOB.", "spec.template.spec.replicatedJobs[].template.").replace("`spec.template.spec.replicatedJobs[].template.", "`JOB.")

PYTORCH_JOB = """
spec.pytorchReplicaSpecs.KEY.replicas: served; KEY is `Master` or `Worker`, spelled like this. Default 1 for Workers; a Master must set it. `kubectl scale` changes the number of Workers
spec.pytorchReplicaSpecs.KEY.restartPolicy: served; `Always`, `OnFailure`, `Never` or `ExitCode`; default `OnFailure`
spec.pytorchReplicaSpecs.KEY.template.metadata.labels: served; set on the pods, except labels that Muster sets
spec.pytorchReplicaSpecs.KEY.template.metadata.annotations: served; set on the pods
spec.pytorchReplicaSpecs.KEY.template.metadata.finalizers: served; set on the pods
spec.pytorchReplicaSpecs.KEY.template.metadata.name: ignored; the pod is `JOB-master-0`, or `JOB-worker-INDEX`
spec.pytorchReplicaSpecs.KEY.template.metadata.namespace: ignored; the PyTorchJob's namespace counts
spec.pytorchReplicaSpecs.KEY.template.spec: served; one container must be called `pytorch`. The pod's `restartPolicy` follows from the replica's
spec.nprocPerNode: served; `auto`, `cpu`, `gpu`, or a number in quotes: sets `PET_NPROC_PER_NODE`. Default `auto`
spec.runPolicy.cleanPodPolicy: served; `None`, `Running` or `All`: which pods are deleted at the end. Default `None`
spec.runPolicy.ttlSecondsAfterFinished: served; how long after its end the PyTorchJob is deleted
spec.runPolicy.activeDeadlineSeconds: served; counts from `status.startTime`
spec.runPolicy.backoffLimit: served; the budget of restarts; default: no limit
spec.runPolicy.schedulingPolicy.minAvailable: served; of the PodGroup; default: all replicas
spec.runPolicy.schedulingPolicy.queue: served; of Volcano's PodGroup; immutable
spec.runPolicy.schedulingPolicy.minResources: served; of the PodGroup; default: the sum of the pods' requests
spec.runPolicy.schedulingPolicy.priorityClass: served; of Volcano's PodGroup
spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds: served; of coscheduling's PodGroup
spec.runPolicy.suspend: served; pods and Services are deleted, and created again at the resume
spec.runPolicy.managedBy: served; absent or `kubeflow.org/training-operator`. Muster ignores a job of another manager, and does not write its status. Immutable
spec.elasticPolicy.minReplicas: served; `PET_NNODES`; default `maxReplicas`, without both the number of Workers
spec.elasticPolicy.maxReplicas: served; `PET_NNODES`; default `minReplicas`
spec.elasticPolicy.rdzvBackend: served; `c10d`, `etcd` or `etcd-v2`: `PET_RDZV_BACKEND`; default `c10d`
spec.elasticPolicy.rdzvPort: served; `PET_RDZV_ENDPOINT`; default: the container's port `pytorchjob-port`
spec.elasticPolicy.rdzvHost: served; `PET_RDZV_ENDPOINT`; default `JOB-worker-0`
spec.elasticPolicy.rdzvId: served; `PET_RDZV_ID`
spec.elasticPolicy.rdzvConf[].*: served; `PET_RDZV_CONF`
spec.elasticPolicy.standalone: served; `PET_STANDALONE`
spec.elasticPolicy.nProcPerNode: served; deprecated: sets `PET_NPROC_PER_NODE`; refused beside `nprocPerNode`
spec.elasticPolicy.maxRestarts: served; `PET_MAX_RESTARTS`
spec.elasticPolicy.metrics: mapped; a HorizontalPodAutoscaler

status.conditions[].*: written; `Created`, `Running`, `Restarting`, `Suspended`, `Succeeded`, `Failed`, as upstream. The last one is the state
status.replicaStatuses.KEY.active: written; numbers of pods
status.replicaStatuses.KEY.succeeded: written
status.replicaStatuses.KEY.failed: written
status.replicaStatuses.KEY.selector: written; the selector of the pods, for autoscalers
status.replicaStatuses.KEY.labelSelector: kept; older versions of training-operator wrote it
status.startTime: written; the first start, or the last resume
status.completionTime: written
status.lastReconcileTime: kept; training-operator writes it while it waits for a PodGroup
status.message: written; Muster's own field, as those below: why the job does not go on yet
status.attempt: written; how often all pods were created again
status.restarts: written; how many restarts of `backoffLimit` were used
status.failures[].*: written; the newest 10 failures, the newest last: what failed and why
status.countedPods[].*: written; restarts that were counted for pods that still exist
"""
