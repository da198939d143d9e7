#include "controller/plan/framework.h"

#include <algorithm>

#include "base/text.h"
#include "controller/plan/names.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr char kIndexPath[] = "metadata.annotations['batch.kubernetes.io/job-completion-index']";

std::string_view FrameworkName(Framework framework) {
  switch (framework) {
    case Framework::kPlain:
      return "plain";
    case Framework::kTorch:
      return "torch";
    case Framework::kMpi:
      return "mpi";
    case Framework::kJax:
      return "jax";
    case Framework::kXgboost:
      return "xgboost";
    case Framework::kFlux:
      return "flux";
  }
  return "unknown";
}

// Of a framework, in the order of their names.
std::vector<std::string_view> ReservedNames(Framework framework) {
  if (framework == Framework::kTorch) {
    return {"PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE"};
  }
  return {};
}

}  // namespace

ReplicatedJob* FirstTrainer(Draft& draft) {
  const auto found =
      std::find_if(draft.jobs.begin(), draft.jobs.end(), [](const auto& of) { return of.step == Step::kTrainer; });
  return found == draft.jobs.end() ? nullptr : &*found;
}

Json* TrainerContainer(ReplicatedJob& of) {
  return FindNamed(PodSpec(of.job_template), "containers", kTrainerContainer);
}

std::string FirstHost(const Draft& draft, const ReplicatedJob& of) {
  return fmt::format("{}-0.{}", JobName(draft.job.meta.name, of.name, 0), draft.subdomain);
}

std::string JobId(const TrainJob& job) { return job.meta.uid.empty() ? job.meta.name : job.meta.uid; }

Json IndexVariable(std::string_view name) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", kIndexPath}}}}}};
}

Status AddFramework(Draft* draft) {
  switch (draft->runtime.ml_policy.framework) {
    case Framework::kPlain:
      return absl::OkStatus();
    case Framework::kTorch:
      return AddTorch(draft);
    default:
      return absl::InvalidArgumentError(
          fmt::format("runtime '{}': spec.mlPolicy.{}: this framework is not served yet; use a runtime with "
                      "mlPolicy.torch, or without a framework",
                      draft->runtime.meta.name, FrameworkName(draft->runtime.ml_policy.framework)));
  }
}

Status CheckReservedNames(Framework framework, std::string_view path, const Json& env) {
  const Json container = {{"env", env}};
  std::vector<std::string> found;
  for (const std::string_view name : ReservedNames(framework)) {
    if (FindNamed(container, "env", name) != nullptr) found.emplace_back(name);
  }
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: must not have reserved envs, invalid envs configured: [{}]; leave them out, they follow from "
                  "numNodes and numProcPerNode",
                  path, Join(found, " ")));
}

}  // namespace muster::controller
