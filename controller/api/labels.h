// Labels that JobSet puts on Jobs and pods, and Muster too, by which it finds them again. Source: JobSet,
// api/jobset/v1alpha2.
#pragma once

namespace muster::controller {

inline constexpr char kJobSetNameLabel[] = "jobset.sigs.k8s.io/jobset-name";  // the TrainJob's name
inline constexpr char kJobKeyLabel[] = "jobset.sigs.k8s.io/job-key";  // the same for all pods of a Job, and no others
inline constexpr char kRestartAttemptLabel[] = "jobset.sigs.k8s.io/restart-attempt";

// On a Job: it is deleted so many seconds after its TrainJob has ended.
inline constexpr char kChildTtlAnnotation[] = "muster.dev/ttl-seconds-after-finished";

// The Job controller's, on pods of an Indexed Job.
inline constexpr char kIndexLabel[] = "batch.kubernetes.io/job-completion-index";

}  // namespace muster::controller
