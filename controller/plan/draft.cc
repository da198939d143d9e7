// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/draft.h"

#include <algorithm>

#include "controller/plan/names.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr char kIndexPath[] = "metadata.annotations['batch.kubernetes.io/job-completion-index']";

}  // namespace

ReplicatedJob* FirstTrainer(Draft& draft) {
  const auto found =
      std::find_if(draft.jobs.begin(), draft.jobs.end(), [](const auto& of) { return of.step == Step::kTrainer; });
  return found == draft.jobs.end() ? nullptr : &*found;
}

ReplicatedJob* JobNamed(Draft& draft, std::string_view name) {
  const auto found =
      std::find_if(draft.jobs.begin(), draft.jobs.end(), [name](const auto& of) { return of.name == name; });
  return found == draft.jobs.end() ? nullptr : &*found;
}

Json* TrainerContainer(ReplicatedJob& of) {
  return FindNamed(PodSpec(of.job_template), "containers", kTrainerContainer);
}

std::string FirstHost(const Draft& draft, const ReplicatedJob& of) {
  return HostName(draft.job.meta.name, of.name, 0, 0, draft.subdomain);
}

std::string JobId(const TrainJob& job) { return job.meta.uid.empty() ? job.meta.name : job.meta.uid; }

Json IndexVariable(std::string_view name) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", kIndexPath}}}}}};
}

}  // namespace muster::controller
