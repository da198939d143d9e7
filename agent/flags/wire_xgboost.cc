// SPDX-License-Identifier: Apache-2.0
// The wiring of XGBoost: DMLC's variables, with one id per process.
#include <algorithm>

#include "agent/flags/pod_facts.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kMostNodes = 100'000;
constexpr int kTrackerPorts = 8;

// The number of pods, from --nnodes or the variables, else from the number of workers of all pods.
StatusOr<int> Pods(const FlagReader& flags, std::optional<int> workers, int nproc, int gpus, std::string* warning) {
  if (auto told = flags.FlagOr("nnodes", "PET_NNODES TRAINER_NNODES")) {
    return ReadNumber(*told, 1, std::min(kMostNodes, FlagReader::kMost / nproc));
  }
  if (!workers || *workers == 1) return 1;
  if (gpus > 1 && !flags.line().values.contains("nproc-per-node")) {
    *warning = fmt::format(
        "DMLC_NUM_WORKER={} may count the {} GPUs of each pod: no setting gives the number of pods, so this one does "
        "not meet the others; give --nnodes, or --nproc-per-node",
        *workers, gpus);
    return 1;
  }
  if (*workers % nproc == 0) return *workers / nproc;
  return absl::InvalidArgumentError(fmt::format(
      "--wire=xgboost: DMLC_NUM_WORKER={} are not the workers of whole pods with {} processes each; correct "
      "DMLC_NUM_WORKER or --nproc-per-node, or give --nnodes",
      *workers, nproc));
}

}  // namespace

StatusOr<PodPlace> XgboostPlace(const FlagReader& flags, const Environment& environment, int nproc, int gpus) {
  PodPlace place;
  MUSTER_ASSIGN_OR_RETURN(auto workers, FirstNumberOf(environment, "DMLC_NUM_WORKER", 1, FlagReader::kMost));
  MUSTER_ASSIGN_OR_RETURN(place.nodes, Pods(flags, workers, nproc, gpus, &place.warning));
  const int all = workers.value_or(place.nodes * nproc);
  if (place.nodes > 1 && all < place.nodes * nproc) {
    return absl::InvalidArgumentError(
        fmt::format("--wire=xgboost: DMLC_NUM_WORKER={} is less than {} pods with {} each; correct "
                    "DMLC_NUM_WORKER or --nproc-per-node",
                    all, place.nodes, Counted(nproc, "worker")));
  }

  auto rank = flags.FlagOr("node-rank", "DMLC_TASK_ID PET_NODE_RANK JOB_COMPLETION_INDEX");
  if (rank) {
    MUSTER_ASSIGN_OR_RETURN(place.node_rank, ReadNumber(*rank, 0, FlagReader::kMost / nproc - 1));
  } else if (place.nodes > 1) {
    return absl::InvalidArgumentError(fmt::format(
        "--wire=xgboost: there are {} pods, but no setting gives the index of this one; set DMLC_TASK_ID, or run "
        "the pods as an Indexed Job",
        place.nodes));
  }
  if (place.nodes > 1 && place.node_rank >= place.nodes) {
    return Bad(*rank, fmt::format("node ranks go from 0 to {} with {} nodes", place.nodes - 1, place.nodes));
  }
  const int last = place.node_rank * nproc + nproc - 1;
  if (last >= all) {
    return absl::InvalidArgumentError(fmt::format(
        "--wire=xgboost: process {} of this pod (node rank {}, {} processes each) would be worker {} of {}; correct "
        "DMLC_NUM_WORKER or --nproc-per-node",
        nproc - 1, place.node_rank, nproc, last, all));
  }

  const std::optional<FlagValue> first = FirstNode(environment);
  std::optional<FlagValue> tracker = FirstOf(environment, "DMLC_TRACKER_URI");
  if (!tracker) tracker = first;
  if (!tracker && all > 1) {
    return absl::InvalidArgumentError(fmt::format(
        "--wire=xgboost: there are {} workers, but no setting gives the address of the tracker; set DMLC_TRACKER_URI",
        all));
  }
  MUSTER_ASSIGN_OR_RETURN(auto port, FirstNumberOf(environment, "DMLC_TRACKER_PORT PET_MASTER_PORT", 1, 65535));
  place.framework_port = port.value_or(kTrainerPort);
  if (place.nodes > 1) place.first_node = first ? first->text : tracker->text;
  const bool on_node_0 = tracker && (!first || first->text == tracker->text);
  if (on_node_0) place.framework_ports = std::min(kTrackerPorts, 65536 - place.framework_port);

  Variables variables = {{"DMLC_TRACKER_PORT", std::to_string(place.framework_port)},
                         {"DMLC_NUM_WORKER", std::to_string(all)}};
  if (tracker) variables["DMLC_TRACKER_URI"] = tracker->text;
  for (int local_rank = 0; local_rank < nproc; ++local_rank) {
    variables["DMLC_TASK_ID"] = std::to_string(place.node_rank * nproc + local_rank);
    place.workers.push_back(variables);
  }
  return place;
}

void MoveTracker(int64_t round, int ports, Variables* variables) {
  auto port = variables->find("DMLC_TRACKER_PORT");
  auto first = port == variables->end() ? std::nullopt : ParseInt(port->second);
  if (first && ports > 1) port->second = std::to_string(*first + round % ports);
}

}  // namespace muster::agent
