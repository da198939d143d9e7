// SPDX-License-Identifier: Apache-2.0
// The Kubernetes objects of a plan: batch/v1 Jobs and the headless Service, with JobSet's labels. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/plan.h"

namespace muster::controller {

inline constexpr char kJobSetPrefix[] = "jobset.sigs.k8s.io/";
inline constexpr char kVersionAnnotation[] = "muster.dev/version";  // on a Job: the version of Muster that planned it

// What MakeJobs, MakeService and MakeOwned need of one TrainJob.
struct JobFrame {
  const TrainJob& job;
  const Runtime& runtime;
  const std::vector<ReplicatedJob>& jobs;  // the runtime's, patched, in its order
  std::string subdomain;
  // {labels, annotations} of the runtime and the patches. Every object gets them, without Kueue's.
  Json shared_metadata;
  std::string version;
};

// What the Jobs of `of` have in common, for attempt 0, with `pods` completions. PlannedJob::Object() adds the rest.
Json MakeJobs(const JobFrame& frame, const ReplicatedJob& of, int pods);

Json MakeService(const JobFrame& frame);

// Gives `object`, which has a kind and a name, the TrainJob's namespace, owner, labels and annotations.
void MakeOwned(const JobFrame& frame, Json* object);

}  // namespace muster::controller
