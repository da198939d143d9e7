// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/frameworks/framework.h"

#include "base/text.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

// The variables that Muster sets for a framework, in alphabetical order.
std::vector<std::string_view> ReservedNames(Framework framework) {
  switch (framework) {
    case Framework::kTorch:
      return {"PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE"};
    case Framework::kMpi:
      return {"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames", "OMPI_MCA_orte_set_default_slots",
              "OMPI_MCA_plm_rsh_args"};
    case Framework::kXgboost:
      return {"DMLC_NUM_WORKER", "DMLC_TASK_ID", "DMLC_TRACKER_PORT", "DMLC_TRACKER_URI"};
    case Framework::kPlain:
    case Framework::kJax:
    case Framework::kFlux:
      break;
  }
  return {};
}

}  // namespace

void SettleSteps(Draft* draft) {
  if (draft->runtime.ml_policy.framework != Framework::kMpi) return;
  const ReplicatedJob* launcher = JobNamed(*draft, kMpiLauncher);
  ReplicatedJob* nodes = JobNamed(*draft, kMpiNodes);
  if (launcher == nullptr || launcher->step != Step::kTrainer || nodes == nullptr) return;
  // spec.trainer.command is mpirun and belongs to the launcher alone, whatever label the nodes' job has.
  nodes->step = Step::kOther;
  draft->workers = nodes->name;
}

Status AddFramework(Draft* draft) {
  switch (draft->runtime.ml_policy.framework) {
    case Framework::kPlain:
      return absl::OkStatus();
    case Framework::kTorch:
      return AddTorch(draft);
    case Framework::kMpi:
      return AddMpi(draft);
    case Framework::kJax:
      return AddJax(draft);
    case Framework::kXgboost:
      return AddXgboost(draft);
    case Framework::kFlux:
      return absl::InvalidArgumentError(fmt::format(
          "runtime '{}': spec.mlPolicy.flux: Flux is not served: its brokers would have to be installed into "
          "every pod, and start the processes out of the agent's sight; use a runtime with mlPolicy.mpi, "
          "whose mpirun needs neither brokers nor sshd",
          draft->runtime.meta.name));
  }
  return absl::InternalError("a framework of no kind");
}

Status CheckReservedNames(Framework framework, std::string_view path, const Json& env) {
  const Json container = {{"env", env}};
  std::vector<std::string> found;
  for (const std::string_view name : ReservedNames(framework)) {
    if (FindNamed(container, "env", name) != nullptr) found.emplace_back(name);
  }
  if (found.empty()) return absl::OkStatus();
  if (framework == Framework::kXgboost) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} is reserved for the XGBoost runtime; leave it out, it follows from numNodes and the GPUs",
                    path, found.front()));
  }
  return absl::InvalidArgumentError(
      fmt::format("{}: must not have reserved envs, invalid envs configured: [{}]; leave them out, they follow from "
                  "numNodes and numProcPerNode",
                  path, Join(found, " ")));
}

}  // namespace muster::controller
