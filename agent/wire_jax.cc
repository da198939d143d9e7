// JAX: one process per node, found through the first one.
#include "agent/pod_facts.h"
#include "base/host_names.h"
#include "base/text.h"

namespace muster::agent {

StatusOr<Variables> JaxVariables(const Getenv& getenv) {
  MUSTER_ASSIGN_OR_RETURN(auto processes,
                          FirstNumberOf(getenv, "JAX_NUM_PROCESSES PET_NNODES TRAINER_NNODES", 1, FlagReader::kMost));
  if (processes.value_or(1) == 1) return Variables{};
  const int last = *processes - 1;
  MUSTER_ASSIGN_OR_RETURN(auto id, FirstNumberOf(getenv, "JAX_PROCESS_ID PET_NODE_RANK JOB_COMPLETION_INDEX", 0, last));
  if (!id) {
    return absl::InvalidArgumentError(
        fmt::format("--wire=jax: there are {} processes, but nothing says which one this is; set JAX_PROCESS_ID, or "
                    "run the pods as "
                    "an Indexed Job",
                    *processes));
  }
  std::optional<FlagValue> address = FirstOf(getenv, "JAX_COORDINATOR_ADDRESS");
  if (!address) {
    address = FirstNode(getenv);
    if (!address) {
      return absl::InvalidArgumentError(fmt::format(
          "--wire=jax: there are {} processes, but nothing says where the first one is; set JAX_COORDINATOR_ADDRESS",
          *processes));
    }
    MUSTER_ASSIGN_OR_RETURN(auto port, FirstNumberOf(getenv, "PET_MASTER_PORT", 1, 65535));
    address->text = JoinHostPort(address->text, port.value_or(kTrainerPort));
  }
  return Variables{{"JAX_COORDINATOR_ADDRESS", address->text},
                   {"JAX_NUM_PROCESSES", std::to_string(*processes)},
                   {"JAX_PROCESS_ID", std::to_string(*id)}};
}

}  // namespace muster::agent
