// SPDX-License-Identifier: Apache-2.0
// The wiring of JAX: one process per node; each finds the others through the first one.
#include "agent/flags/flag_values.h"
#include "agent/flags/pod_facts.h"
#include "base/host_names.h"
#include "base/text.h"

namespace muster::agent {

StatusOr<PodPlace> JaxPlace(const FlagReader& flags, const Environment& environment) {
  PodPlace place;
  auto told = flags.FlagOr("nnodes", "JAX_NUM_PROCESSES PET_NNODES TRAINER_NNODES");
  if (told) {
    MUSTER_ASSIGN_OR_RETURN(place.nodes, ReadNumber(*told, 1, FlagReader::kMost));
  }
  if (place.nodes == 1) {
    place.workers.emplace_back();
    return place;
  }
  auto rank = flags.FlagOr("node-rank", "JAX_PROCESS_ID PET_NODE_RANK JOB_COMPLETION_INDEX");
  if (!rank) {
    return absl::InvalidArgumentError(fmt::format(
        "--wire=jax: there are {} processes, but no setting gives the index of this one; set JAX_PROCESS_ID, or "
        "run the pods as an Indexed Job",
        place.nodes));
  }
  MUSTER_ASSIGN_OR_RETURN(place.node_rank, ReadNumber(*rank, 0, place.nodes - 1));
  std::optional<FlagValue> first = FirstNode(environment);
  std::optional<FlagValue> address = FirstOf(environment, "JAX_COORDINATOR_ADDRESS");
  if (!first && !address) {
    return absl::InvalidArgumentError(
        fmt::format("--wire=jax: there are {} processes, but no setting gives the address of the first one; set "
                    "JAX_COORDINATOR_ADDRESS",
                    place.nodes));
  }
  if (address) {
    MUSTER_ASSIGN_OR_RETURN(const Endpoint endpoint, Of(*address, ParseEndpoint(address->text, 0)));
    if (endpoint.port == 0) return Bad(*address, "want HOST:PORT");
    place.framework_port = endpoint.port;
    place.first_node = first ? first->text : endpoint.host;
  } else {
    MUSTER_ASSIGN_OR_RETURN(auto port, FirstNumberOf(environment, "PET_MASTER_PORT", 1, 65535));
    place.framework_port = port.value_or(kTrainerPort);
    place.first_node = first->text;
    address = FlagValue{JoinHostPort(first->text, place.framework_port), ""};
  }
  place.workers.push_back({{"JAX_COORDINATOR_ADDRESS", address->text},
                           {"JAX_NUM_PROCESSES", std::to_string(place.nodes)},
                           {"JAX_PROCESS_ID", std::to_string(place.node_rank)}});
  return place;
}

}  // namespace muster::agent
