// Labels on Jobs and pods by which their owner is found again: those of JobSet (api/jobset/v1alpha2) for a TrainJob,
// those of training-operator (pkg/apis/kubeflow.org/v1/common_types.go) for a PyTorchJob.
#pragma once

namespace muster::controller {

inline constexpr char kJobSetNameLabel[] = "jobset.sigs.k8s.io/jobset-name";  // the TrainJob's name
inline constexpr char kJobKeyLabel[] = "jobset.sigs.k8s.io/job-key";  // the same for all pods of a Job, and no others
inline constexpr char kRestartAttemptLabel[] = "jobset.sigs.k8s.io/restart-attempt";

// On a Job: it is deleted so many seconds after its TrainJob has ended.
inline constexpr char kChildTtlAnnotation[] = "muster.dev/ttl-seconds-after-finished";

// The Job controller's, on pods of an Indexed Job.
inline constexpr char kIndexLabel[] = "batch.kubernetes.io/job-completion-index";

inline constexpr char kOperatorNameLabel[] = "training.kubeflow.org/operator-name";
inline constexpr char kPyTorchOperator[] = "pytorchjob-controller";  // its value
inline constexpr char kTrainingJobLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kReplicaTypeLabel[] = "training.kubeflow.org/replica-type";    // master, worker
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";  // from 0 on, of its type
inline constexpr char kJobRoleLabel[] = "training.kubeflow.org/job-role";            // "master": pods only

}  // namespace muster::controller
