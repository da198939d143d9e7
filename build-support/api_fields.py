"""What Muster does with each field of a TrainJob, of a runtime and of a PyTorchJob: the words of docs/api.md, which api_page.py renders.

A line is `path: verdict` or `path: verdict; words`. The verdicts:
served (as upstream has it), mapped (to another field or object), ignored (it changes nothing), refused (by name), written (by
Muster), kept (as it is written). `PREFIX*` is for each field that begins so.
"""

VERDICTS = ("served", "mapped", "ignored", "refused", "written", "kept")

# Kubernetes' own types: one line for all that is in them. By the end of the path.
TYPES = {
    "env": "EnvVar[]", "claims": "ResourceClaim[]", "metrics": "MetricSpec[]", "affinity": "Affinity", "tolerations": "Toleration[]", "volumes": "Volume[]",
    "volumeMounts": "VolumeMount[]", "imagePullSecrets": "LocalObjectReference[]", "schedulingGates": "PodSchedulingGate[]",
    "securityContext": "PodSecurityContext", "containers[].securityContext": "SecurityContext", "initContainers[].securityContext": "SecurityContext",
    "podFailurePolicy": "PodFailurePolicy", "selector": "LabelSelector", "template.spec.successPolicy": "JobSuccessPolicy",
    "template.spec.template.spec": "PodSpec", "KEY.template.spec": "PodSpec", "labelSelector": "LabelSelector", "templates[].spec": "PersistentVolumeClaimSpec"}
# Of this name, and yet fields of the Trainer's own.
NO_TYPES = ("spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template.spec", "status.trainerStatus.metrics",
            "status.selector", "status.replicaStatuses.KEY.selector", "spec.template.spec.successPolicy")

TRAIN_JOB = """
spec.runtimeRef.name: served; the webhooks refuse a job whose runtime is not there yet. Without them it is waited for, which `status.message` says
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
spec.trainer.env: served; the names that follow from other fields are refused
spec.trainer.numNodes: served; `kubectl scale` changes it ([below](#elastic-jobs))
spec.trainer.numProcPerNode: served; `auto`, `cpu`, `gpu` and numbers in quotes are of v2.0 and v2.1: a word becomes the annotation `muster.dev/num-proc-per-node`
spec.trainer.resourcesPerNode.claims: served; merged with the runtime's by name
spec.trainer.resourcesPerNode.limits: served; merged with the runtime's, key by key
spec.trainer.resourcesPerNode.requests: served; the same
spec.suspend: served; Jobs are suspended. At the resume they are made anew from their templates
spec.activeDeadlineSeconds: served; from the creation, or the last resume
spec.ttlSecondsAfterFinished: served; Muster's own: the TrainJob is deleted so long after its end
spec.managedBy: served; a job of another manager is left alone, its status too
spec.labels: mapped; v2.0 and v2.1: the patch of manager `muster.dev/v21`, as its `template.metadata`
spec.annotations: mapped; the same
spec.podTemplateOverrides[].targetJobs[].name: mapped; v2.1: `replicatedJobs[].name` of that patch
spec.podTemplateOverrides[].metadata.labels: mapped; v2.1: labels of the pods in that patch
spec.podTemplateOverrides[].metadata.annotations: mapped; v2.1: their annotations
spec.podTemplateOverrides[].spec: mapped; v2.1: their PodSpec. Clients of v2.2 and later drop `labels`, `annotations` and both overrides: they are put back where all have gone. To be rid of one write it empty
spec.podSpecOverrides[].targetJobs[].name: mapped; v2.0: the same patch. The fields of a PodSpec stand beside `targetJobs`

spec.runtimePatches[].manager: served; one patch each
spec.runtimePatches[].time: written; by the webhook
spec.runtimePatches[].trainingRuntimeSpec.template.metadata.labels: served; of each object of the job, but `kueue.x-k8s.io/` not of Jobs and pods
spec.runtimePatches[].trainingRuntimeSpec.template.metadata.annotations: served; the same
PATCHED.name: served; a job that the runtime lacks is refused with the names that it has
PATCHED.template.metadata.labels: served; of the Job
PATCHED.template.metadata.annotations: served; of the Job
PATCHED.template.spec.template.metadata.labels: served; of its pods
PATCHED.template.spec.template.metadata.annotations: served; of its pods
PATCHED.template.spec.template.spec.serviceAccountName: served
PATCHED.template.spec.template.spec.nodeSelector: served; may change while the job is suspended
PATCHED.template.spec.template.spec.affinity: served; may change while the job is suspended
PATCHED.template.spec.template.spec.tolerations: served; the runtime's are replaced; may change while the job is suspended
PATCHED.template.spec.template.spec.schedulingGates: served; may change while the job is suspended
PATCHED.template.spec.template.spec.volumes: served; merged by name
PATCHED.template.spec.template.spec.imagePullSecrets: served; merged by name
PATCHED.template.spec.template.spec.securityContext: served
PATCHED.template.spec.template.spec.terminationGracePeriodSeconds: served
PATCHED.template.spec.template.spec.containers[].name: served; a container that the runtime lacks is refused with the names that it has
PATCHED.template.spec.template.spec.containers[].env: served; a variable that the runtime or Muster sets is refused
PATCHED.template.spec.template.spec.containers[].volumeMounts: served; merged by path
PATCHED.template.spec.template.spec.containers[].securityContext: served
PATCHED.template.spec.template.spec.initContainers[].*: served; as of containers

status.conditions[].*: written; `Suspended`, `Complete`, `Failed`, as upstream
status.jobsStatus[].*: written; counts of Jobs, not of pods
status.trainerStatus.*: kept; pods post it ([controller.md](controller.md#progress-of-the-training))
status.state: written; `Created`, `Waiting`, `Initializing`, `Running`, `Restarting`, `Suspended`, `Complete`, `Failed`
status.reason: written; a word for the column Reason
status.message: written; why nothing happens yet, or why it ended
status.startTime: written
status.completionTime: written
status.ttlSecondsAfterFinished: written; the runtime's time to live when the TrainJob began
status.nodes: written; pods that the trainer step is meant to have
status.readyNodes: written; those of them that are ready
status.selector: written; the pods of an elastic job, for autoscalers
status.attempt: written; how often the trainer step was made anew
status.restarts: written; of the budget ([restarts.md](restarts.md))
status.failures[].*: written; the newest 10, the newest last: what died and why
""".replace("PATCHED.", "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].")

MISPLACED = "refused; it is often written here, and belongs in"

RUNTIME = f"""
spec.mlPolicy.numNodes: served; not beside `elasticPolicy`
spec.mlPolicy.torch.numProcPerNode: served; v2.0 and v2.1: `auto`, `cpu`, `gpu` or a number
spec.mlPolicy.torch.elasticPolicy.minNodes: served; v2.0 and v2.1 ([below](#elastic-jobs))
spec.mlPolicy.torch.elasticPolicy.maxNodes: served; the same
spec.mlPolicy.torch.elasticPolicy.maxRestarts: served; `PET_MAX_RESTARTS` and the budget of restarts
spec.mlPolicy.torch.elasticPolicy.metrics: mapped; a HorizontalPodAutoscaler
spec.mlPolicy.torch.envInjection.targets[].jobName: served
spec.mlPolicy.torch.envInjection.targets[].containerNames: served; they get the variables of torchrun. `node` has them anyway and is refused
spec.mlPolicy.mpi.numProcPerNode: served; slots of a host ([mpi.md](mpi.md#trainjobs))
spec.mlPolicy.mpi.mpiImplementation: served; empty is `OpenMPI`
spec.mlPolicy.mpi.sshAuthMountPath: served; with the annotation `muster.dev/rsh: ssh`
spec.mlPolicy.mpi.runLauncherAsNode: served
spec.mlPolicy.jax: served; `JAX_NUM_PROCESSES`, `JAX_PROCESS_ID`, `JAX_COORDINATOR_ADDRESS`, where the container has none of its own. The command is wired as [jax](agent.md#pods-of-jax-and-xgboost)
spec.mlPolicy.xgboost: served; `DMLC_TRACKER_URI`, `DMLC_TRACKER_PORT`, `DMLC_TASK_ID`, `DMLC_NUM_WORKER` (nodes x GPUs, or x 1). The command is wired as xgboost
spec.mlPolicy.flux.numProcPerNode: refused; with `mlPolicy.flux` as a whole: its brokers would have to be installed into every pod, and start processes out of the agent's sight
spec.podGroupPolicy.coscheduling.scheduleTimeoutSeconds: served; of the PodGroup ([below](#gang-scheduling))
spec.podGroupPolicy.volcano.networkTopology.mode: served; of the PodGroup
spec.podGroupPolicy.volcano.networkTopology.highestTierAllowed: served; of the PodGroup
spec.podGroupPolicy.volcano.networkTopology.topologyKey: mapped; affinity of the pods
spec.podGroupPolicy.volcano.networkTopology.networkPolicy: mapped; `mode`: `Strict` is `hard`, `Best-effort` is `soft`
spec.podGroupPolicy.volcano.topologyKey: mapped; the same, as some documents write it
spec.podGroupPolicy.volcano.networkPolicy: mapped; the same
spec.runPolicy.activeDeadlineSeconds: served; Muster's own, for TrainJobs that name none
spec.runPolicy.ttlSecondsAfterFinished: served; the same. It is that of the runtime when the TrainJob began
spec.template.metadata.labels: served; of each object of the job, but `kueue.x-k8s.io/` not of Jobs and pods
spec.template.metadata.annotations: served; the same
spec.template.metadata.finalizers: ignored; no JobSet is made
spec.template.metadata.name: ignored; the same
spec.template.metadata.namespace: ignored; the same
spec.template.failurePolicy: {MISPLACED} `template.spec`
spec.failurePolicy: {MISPLACED} `template.spec`

spec.template.spec.replicatedJobs[].name: served
spec.template.spec.replicatedJobs[].groupName: served; in JobSet's labels
spec.template.spec.replicatedJobs[].replicas: served; of a step of the TrainJob it is 1
spec.template.spec.replicatedJobs[].dependsOn[].name: served; a job above this one
spec.template.spec.replicatedJobs[].dependsOn[].status: served; `Ready` is also met by a Job that has succeeded or failed. It is looked at whenever Jobs are made: also after a resume and when a step is made anew
spec.template.spec.replicatedJobs[].failurePolicy: {MISPLACED} `template.spec`
spec.template.spec.network.enableDNSHostnames: served; `false`: no Service and no host names. It is refused beside a framework of `mlPolicy`, whose pods find each other by name
spec.template.spec.network.subdomain: served
spec.template.spec.network.publishNotReadyAddresses: served
spec.template.spec.successPolicy.operator: served; when the policy is met, Jobs that still run are deleted
spec.template.spec.successPolicy.targetReplicatedJobs: served
spec.template.spec.failurePolicy.maxRestarts: served; see [restarts.md](restarts.md)
spec.template.spec.failurePolicy.restartStrategy: served; `InPlaceRestart` is the agent's. Without the agent the step is made anew, and an event says so
spec.template.spec.failurePolicy.rules[].name: served
spec.template.spec.failurePolicy.rules[].action: served; `RestartJob` and `RestartJobAndIgnoreMaxRestarts` are refused: use `RestartJobSet`
spec.template.spec.failurePolicy.rules[].onJobFailureReasons: served
spec.template.spec.failurePolicy.rules[].onJobFailureMessagePatterns: served; regular expressions of RE2
spec.template.spec.failurePolicy.rules[].targetReplicatedJobs: served
spec.template.spec.startupPolicy.startupPolicyOrder: served; `InOrder`: each job once the one before it is ready
spec.template.spec.suspend: ignored; the TrainJob's counts
spec.template.spec.coordinator.replicatedJob: served; as label and annotation. A name longer than 63 characters is left out
spec.template.spec.coordinator.jobIndex: served; the same
spec.template.spec.coordinator.podIndex: served; the same
spec.template.spec.managedBy: ignored; the TrainJob's counts
spec.template.spec.ttlSecondsAfterFinished: served; the Jobs and their pods are deleted so long after the end of the TrainJob, which stays
spec.template.spec.volumeClaimPolicies[].templates[].metadata.name: served; the claim is `NAME-JOB`, made before the first pod. One that is there is used
spec.template.spec.volumeClaimPolicies[].templates[].metadata.labels: served
spec.template.spec.volumeClaimPolicies[].templates[].metadata.annotations: served
spec.template.spec.volumeClaimPolicies[].templates[].metadata.finalizers: ignored
spec.template.spec.volumeClaimPolicies[].templates[].metadata.namespace: refused; the claim is in the TrainJob's
spec.template.spec.volumeClaimPolicies[].templates[].spec: served
spec.template.spec.volumeClaimPolicies[].retentionPolicy.whenDeleted: served; `Retain`: the claim outlives the TrainJob

JOB.metadata.labels: served; `trainer.kubeflow.org/trainjob-ancestor-step` says which step of the TrainJob it is
JOB.metadata.annotations: served
JOB.metadata.finalizers: ignored
JOB.metadata.name: ignored; the Job is `JOB-REPLICATEDJOB-INDEX`
JOB.metadata.namespace: ignored; the TrainJob's counts
JOB.spec.activeDeadlineSeconds: served
JOB.spec.backoffLimit: served; without one, it is the budget of restarts that is left, where the agent runs
JOB.spec.backoffLimitPerIndex: served
JOB.spec.completionMode: served; `Indexed` where there is none
JOB.spec.completions: ignored; as many as pods
JOB.spec.managedBy: served
JOB.spec.manualSelector: served
JOB.spec.maxFailedIndexes: served
JOB.spec.parallelism: served; the number of pods; of the trainer step it is the number of nodes
JOB.spec.podFailurePolicy: served; in place of the agent's
JOB.spec.podReplacementPolicy: served
JOB.spec.selector: served
JOB.spec.successPolicy: served
JOB.spec.suspend: ignored; the TrainJob's counts
JOB.spec.ttlSecondsAfterFinished: served; as that of the JobSet; the shorter of the two
JOB.spec.restartPolicy: {MISPLACED} `template.spec`
JOB.spec.template.metadata.labels: served; of the pods
JOB.spec.template.metadata.annotations: served; of the pods
JOB.spec.template.metadata.finalizers: served; of the pods
JOB.spec.template.metadata.name: kept; Kubernetes ignores it
JOB.spec.template.metadata.namespace: kept; Kubernetes ignores it
JOB.spec.template.restartPolicy: {MISPLACED} `spec`
JOB.spec.template.spec: served; `restartPolicy` is `OnFailure` where there is none; with the agent, or beside a `podFailurePolicy`, it is `Never`
""".replace("JOB.", "spec.template.spec.replicatedJobs[].template.").replace("`spec.template.spec.replicatedJobs[].template.", "`JOB.")

PYTORCH_JOB = """
spec.pytorchReplicaSpecs.KEY.replicas: served; KEY is `Master` or `Worker`, in this spelling. 1 where there is none, but a Master has to say it. `kubectl scale` changes the number of Workers
spec.pytorchReplicaSpecs.KEY.restartPolicy: served; `Always`, `OnFailure`, `Never` or `ExitCode`; `OnFailure` where there is none
spec.pytorchReplicaSpecs.KEY.template.metadata.labels: served; of the pods, but those that Muster sets
spec.pytorchReplicaSpecs.KEY.template.metadata.annotations: served; of the pods
spec.pytorchReplicaSpecs.KEY.template.metadata.finalizers: served; of the pods
spec.pytorchReplicaSpecs.KEY.template.metadata.name: ignored; the pod is `JOB-master-0`, or `JOB-worker-INDEX`
spec.pytorchReplicaSpecs.KEY.template.metadata.namespace: ignored; the PyTorchJob's counts
spec.pytorchReplicaSpecs.KEY.template.spec: served; one container is called `pytorch`. `restartPolicy` follows from the one above
spec.nprocPerNode: served; `auto`, `cpu`, `gpu`, or a number in quotes: `PET_NPROC_PER_NODE`. `auto` where there is none
spec.runPolicy.cleanPodPolicy: served; `None`, `Running` or `All`: which pods are deleted at the end. `None` where there is none
spec.runPolicy.ttlSecondsAfterFinished: served; the PyTorchJob is deleted so long after its end
spec.runPolicy.activeDeadlineSeconds: served; from `status.startTime`
spec.runPolicy.backoffLimit: served; the budget of restarts. None: there is no limit
spec.runPolicy.schedulingPolicy.minAvailable: served; of the PodGroup; all replicas where there is none
spec.runPolicy.schedulingPolicy.queue: served; of Volcano's PodGroup. It cannot be changed
spec.runPolicy.schedulingPolicy.minResources: served; of the PodGroup; what the pods request where there is none
spec.runPolicy.schedulingPolicy.priorityClass: served; of Volcano's PodGroup
spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds: served; of coscheduling's PodGroup
spec.runPolicy.suspend: served; pods and Services are deleted, and made anew at the resume
spec.runPolicy.managedBy: served; none or `kubeflow.org/training-operator`. A job of another manager is left alone, its status too. It cannot be changed
spec.elasticPolicy.minReplicas: served; `PET_NNODES`. `maxReplicas` where there is none; without both the number of Workers
spec.elasticPolicy.maxReplicas: served; `PET_NNODES`. `minReplicas` where there is none
spec.elasticPolicy.rdzvBackend: served; `c10d`, `etcd` or `etcd-v2`: `PET_RDZV_BACKEND`. `c10d` where there is none
spec.elasticPolicy.rdzvPort: served; `PET_RDZV_ENDPOINT`. The container's port `pytorchjob-port` where there is none
spec.elasticPolicy.rdzvHost: served; `PET_RDZV_ENDPOINT`. `JOB-worker-0` where there is none
spec.elasticPolicy.rdzvId: served; `PET_RDZV_ID`
spec.elasticPolicy.rdzvConf[].*: served; `PET_RDZV_CONF`
spec.elasticPolicy.standalone: served; `PET_STANDALONE`
spec.elasticPolicy.nProcPerNode: served; deprecated: `PET_NPROC_PER_NODE`. It is refused beside `nprocPerNode`
spec.elasticPolicy.maxRestarts: served; `PET_MAX_RESTARTS`
spec.elasticPolicy.metrics: mapped; a HorizontalPodAutoscaler

status.conditions[].*: written; `Created`, `Running`, `Restarting`, `Suspended`, `Succeeded`, `Failed`, as upstream. The last one is the state
status.replicaStatuses.KEY.active: written; counts of pods
status.replicaStatuses.KEY.succeeded: written
status.replicaStatuses.KEY.failed: written
status.replicaStatuses.KEY.selector: written; the pods, for autoscalers
status.replicaStatuses.KEY.labelSelector: kept; older versions of training-operator wrote it
status.startTime: written; the first start, or the last resume
status.completionTime: written
status.lastReconcileTime: kept; training-operator writes it while it waits for a PodGroup
status.message: written; Muster's own, as what follows: why nothing happens yet
status.attempt: written; how often all pods were made anew
status.restarts: written; of `backoffLimit`
status.failures[].*: written; the newest 10, the newest last: what died and why
status.countedPods[].*: written; restarts that were charged for pods that are still there
"""
