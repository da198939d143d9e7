// SPDX-License-Identifier: Apache-2.0
#include "local/state/job_progress.h"

#include "base/run_facts_json.h"
#include "base/text.h"
#include "controller/reconcile/trainer_progress.h"

namespace muster::local {

std::optional<TrainingFacts> ParseJobProgress(std::string_view status) {
  constexpr int kLevels = 2;  // of `training`
  const Json answer = ReadJsonTop(status, kLevels);
  const Json* training = FindField(answer, "training");
  if (training == nullptr || FindField(*training, "position") == nullptr) return std::nullopt;
  const auto facts = ReadTrainingJson(*training, "");
  return facts.ok() ? std::optional(*facts) : std::nullopt;
}

bool IsFurther(const TrainingFacts& one, const std::optional<TrainingFacts>& other) {
  return !other || (one.in_epochs == other->in_epochs && one.position > other->position);
}

std::string ProgressText(const TrainingFacts& training) {
  if (const auto percent = controller::PercentOf(training)) return fmt::format("{}%", *percent);
  return fmt::format("{} {:.6g}", training.in_epochs ? "epoch" : "step", training.position);
}

std::vector<std::string> AgentsToAsk(const FoundJob& job, size_t most) {
  if (!job.runs || !job.record.ok() || job.record->ended) return {};
  std::map<int, std::string> by_rank;  // a pod that was recreated comes after the older one
  for (const PodRecord& pod : job.record->pods) {
    if (pod.node_rank >= 0 && !pod.ended && !pod.address.empty()) by_rank[pod.node_rank] = pod.address;
  }
  std::vector<std::string> addresses;
  for (const auto& [rank, address] : by_rank) {
    if (addresses.size() < most) addresses.push_back(address);
  }
  return addresses;
}

}  // namespace muster::local
