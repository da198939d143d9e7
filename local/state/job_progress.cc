#include "local/state/job_progress.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace muster::local {
namespace {

constexpr int kLevels = 2;  // of `training`
constexpr double kMost = 1e15;
constexpr double kMostSeconds = 1e9;

std::optional<double> NumberIn(const Json& object, const char* name, double most) {
  const Json* field = FindField(object, name);
  if (field == nullptr || !field->is_number()) return std::nullopt;
  const double number = field->get<double>();
  return std::isfinite(number) && number >= 0 && number <= most ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<JobProgress> ParseJobProgress(std::string_view status) {
  const Json answer = ReadJsonTop(status, kLevels);
  const Json* training = FindField(answer, "training");
  if (training == nullptr || !training->is_object()) return std::nullopt;
  const auto position = NumberIn(*training, "position", kMost);
  if (!position) return std::nullopt;
  JobProgress progress{.position = *position, .in_epochs = TextField(*training, "unit") == "epochs"};
  progress.end = NumberIn(*training, "end", kMost);
  if (progress.end == 0) progress.end.reset();
  if (const auto seconds = NumberIn(*training, "left_seconds", kMostSeconds)) {
    progress.left = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
  }
  return progress;
}

bool IsFurther(const JobProgress& one, const std::optional<JobProgress>& other) {
  return !other || (one.in_epochs == other->in_epochs && one.position > other->position);
}

std::string ProgressText(const JobProgress& progress) {
  if (progress.end) return fmt::format("{:.0f}%", std::floor(100 * std::min(progress.position / *progress.end, 1.0)));
  return fmt::format("{} {:.6g}", progress.in_epochs ? "epoch" : "step", progress.position);
}

Json ProgressJson(const JobProgress& progress) {
  Json json{{"unit", progress.in_epochs ? "epochs" : "steps"}, {"position", progress.position}};
  if (progress.end) json["end"] = *progress.end;
  if (progress.left) json["left_seconds"] = std::chrono::duration<double>(*progress.left).count();
  return json;
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
