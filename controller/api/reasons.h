// SPDX-License-Identifier: Apache-2.0
// The reasons of all conditions and Events that Muster writes. A reason is one word; clients compare it. Where it is
// Kubeflow Trainer's, JobSet's or training-operator's, the message is theirs too, and clients compare its beginning.
//
// An Event that a job has reached a state has the state as its reason: kRunning and others of
// reconcile/train_job_summary.h and reconcile/train_job_conditions.h for a TrainJob, ReasonOf() of
// reconcile/pytorch_conditions.h for a PyTorchJob. docs/controller.md ("Events") lists all of these; tests/docs_test.py
// compares the two lists. Sources: trainer_types.go, jobset constants.go, training-operator pkg/util/status.go and
// pkg/controller.v1.
#pragma once

namespace muster::controller::reason {

// With the message of the condition, to which Muster appends the cause.
struct Upstream {
  const char* reason;
  const char* message;
};

// Conditions of a TrainJob.
inline constexpr Upstream kSuspended{"Suspended", "TrainJob is suspended"};
inline constexpr Upstream kResumed{"Resumed", "TrainJob is resumed"};
inline constexpr Upstream kAllJobsCompleted{"AllJobsCompleted", "jobset completed successfully"};
inline constexpr Upstream kFailedJobs{"FailedJobs", "jobset failed due to one or more job failures"};
inline constexpr Upstream kReachedMaxRestarts{"ReachedMaxRestarts",
                                              "jobset failed due to reaching max number of restarts"};
inline constexpr Upstream kFailurePolicy{"FailJobSetFailurePolicyAction", "applying FailJobSet failure policy action"};
inline constexpr Upstream kDeadline{"DeadlineExceeded", "TrainJob exceeded its active deadline"};

// Events of a job of either kind.
inline constexpr char kPodFailed[] = "PodFailed";
inline constexpr char kPodDisrupted[] = "PodDisrupted";  // a failure that is not counted
inline constexpr char kPodLost[] = "PodLost";
inline constexpr char kSecretLost[] = "SecretLost";
inline constexpr char kRestarted[] = "Restarted";  // in its pods, by the agents
inline constexpr char kWaiting[] = "Waiting";

// Events of a TrainJob.
inline constexpr char kScaled[] = "Scaled";
inline constexpr char kNotNeeded[] = "NotNeeded";
inline constexpr char kSnapshotLost[] = "SnapshotLost";
inline constexpr char kCreationFailed[] = "TrainJobResourcesCreationFailed";
inline constexpr char kFailedCreate[] = "FailedCreate";  // status.reason alone; the Job controller's

// Events of a TrainJob that waits for others.
inline constexpr char kWaitingForTrainJob[] = "WaitingForTrainJob";
inline constexpr char kTrainJobMissing[] = "TrainJobMissing";
inline constexpr char kTrainJobEndedOtherwise[] = "TrainJobEndedOtherwise";
inline constexpr char kAfterInvalid[] = "AfterInvalid";
inline constexpr char kAfterCycle[] = "AfterCycle";

// Events of a plan: what has no effect, or replaces a default of Muster.
inline constexpr char kAgentLeftOut[] = "AgentLeftOut";
inline constexpr char kTrainerIgnored[] = "TrainerIgnored";
inline constexpr char kRestartPolicyKept[] = "RestartPolicyKept";
inline constexpr char kPodFailurePolicyKept[] = "PodFailurePolicyKept";
inline constexpr char kBackoffLimitKept[] = "BackoffLimitKept";
inline constexpr char kRestartStrategyIgnored[] = "RestartStrategyIgnored";
inline constexpr char kAnyFailureRestarts[] = "AnyFailureRestarts";
inline constexpr char kSshKept[] = "SshKept";
inline constexpr char kElasticMetricsIgnored[] = "ElasticMetricsIgnored";

// Events of a PyTorchJob.
inline constexpr char kAdoptedPod[] = "AdoptedPod";
inline constexpr char kPodDeleted[] = "PodDeleted";  // by somebody else
inline constexpr char kServiceConflict[] = "ServiceConflict";
inline constexpr char kInvalidPyTorchJob[] = "InvalidPyTorchJob";

// Events of a PyTorchJob that are training-operator's.
inline constexpr char kPyTorchJobResumed[] = "PyTorchJobResumed";  // of the condition, too
inline constexpr char kFailedCreatePod[] = "FailedCreatePod";
inline constexpr char kExitedWithCode[] = "ExitedWithCode";
inline constexpr char kSuccessfulCreate[] = "SuccessfulCreate";  // and the kind: SuccessfulCreatePod
inline constexpr char kSuccessfulDeletePod[] = "SuccessfulDeletePod";
inline constexpr char kSuccessfulDeletePodGroup[] = "SuccessfulDeletePodGroup";
inline constexpr char kSetPodTemplateRestartPolicy[] = "SetPodTemplateRestartPolicy";
inline constexpr char kSetPodTemplateSchedulerName[] = "SetPodTemplateSchedulerName";

}  // namespace muster::controller::reason
