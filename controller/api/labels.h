// SPDX-License-Identifier: Apache-2.0
// Labels on Jobs and pods that lead back to their owner: JobSet's (api/jobset/v1alpha2) for a TrainJob,
// training-operator's (pkg/apis/kubeflow.org/v1/common_types.go) for a PyTorchJob.
#pragma once

namespace muster::controller {

inline constexpr char kJobSetNameLabel[] = "jobset.sigs.k8s.io/jobset-name";  // the TrainJob's name
inline constexpr char kJobKeyLabel[] = "jobset.sigs.k8s.io/job-key";          // shared by the pods of one Job alone
inline constexpr char kRestartAttemptLabel[] = "jobset.sigs.k8s.io/restart-attempt";

// On a Job: how many seconds after the end of its TrainJob it is deleted.
inline constexpr char kChildTtlAnnotation[] = "muster.dev/ttl-seconds-after-finished";

// The Job controller sets it on the pods of an Indexed Job.
inline constexpr char kIndexLabel[] = "batch.kubernetes.io/job-completion-index";

// On a pod that replaces one whose node the agents have lost: that node, on which it may not run.
inline constexpr char kExcludedNodeAnnotation[] = "muster.dev/excluded-node";

inline constexpr char kVolcanoQueueAnnotation[] = "scheduling.volcano.sh/queue-name";
inline constexpr char kMultiKueue[] = "kueue.x-k8s.io/multikueue";  // a value of spec.managedBy

inline constexpr char kOperatorNameLabel[] = "training.kubeflow.org/operator-name";
inline constexpr char kPyTorchOperator[] = "pytorchjob-controller";  // its value
inline constexpr char kTrainingJobLabel[] = "training.kubeflow.org/job-name";
inline constexpr char kReplicaTypeLabel[] = "training.kubeflow.org/replica-type";    // master, worker
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";  // from 0, per type
inline constexpr char kJobRoleLabel[] = "training.kubeflow.org/job-role";            // "master": pods only

}  // namespace muster::controller
