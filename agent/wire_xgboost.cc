// XGBoost: DMLC's names; ids by process.
#include "agent/pod_facts.h"
#include "base/text.h"

namespace muster::agent {

StatusOr<Variables> XgboostVariables(const Getenv& getenv, int local_rank, int nproc) {
  Variables variables;
  auto tracker = FirstOf(getenv, "DMLC_TRACKER_URI");
  if (!tracker) tracker = FirstNode(getenv);
  if (tracker) variables["DMLC_TRACKER_URI"] = tracker->text;
  MUSTER_ASSIGN_OR_RETURN(auto port, FirstNumberOf(getenv, "DMLC_TRACKER_PORT PET_MASTER_PORT", 1, 65535));
  variables["DMLC_TRACKER_PORT"] = std::to_string(port.value_or(kTrainerPort));

  constexpr int kMostNodes = 100'000;
  MUSTER_ASSIGN_OR_RETURN(auto nodes, FirstNumberOf(getenv, "PET_NNODES TRAINER_NNODES", 1, kMostNodes));
  MUSTER_ASSIGN_OR_RETURN(auto workers, FirstNumberOf(getenv, "DMLC_NUM_WORKER", 1, FlagReader::kMost));
  const int all = workers.value_or(nodes.value_or(1) * nproc);
  variables["DMLC_NUM_WORKER"] = std::to_string(all);

  MUSTER_ASSIGN_OR_RETURN(auto rank, FirstNumberOf(getenv, "DMLC_TASK_ID PET_NODE_RANK JOB_COMPLETION_INDEX", 0,
                                                   FlagReader::kMost / nproc - 1));
  const int id = rank.value_or(0) * nproc + local_rank;
  if (id >= all) {
    return absl::InvalidArgumentError(fmt::format(
        "--wire=xgboost: process {} of this pod (node rank {}, {} processes each) would be worker {} of {}; correct "
        "DMLC_NUM_WORKER or --nproc-per-node",
        local_rank, rank.value_or(0), nproc, id, all));
  }
  variables["DMLC_TASK_ID"] = std::to_string(id);
  if (!tracker && all > 1) {
    return absl::InvalidArgumentError(fmt::format(
        "--wire=xgboost: there are {} workers, but nothing says where the tracker is; set DMLC_TRACKER_URI", all));
  }
  return variables;
}

}  // namespace muster::agent
