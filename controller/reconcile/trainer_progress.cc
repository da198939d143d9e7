// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/trainer_progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/iso_time.h"
#include "base/text.h"

namespace muster::controller {
namespace {

constexpr double kTenth = 0.1;

Json Metric(const char* name, double value) { return {{"name", name}, {"value", fmt::format("{:.6g}", value)}}; }

}  // namespace

std::optional<int> PercentOf(const TrainingFacts& training) {
  if (!training.end || *training.end <= 0) return std::nullopt;
  return static_cast<int>(std::clamp(std::floor(100 * training.position / *training.end), 0.0, 100.0));
}

bool MovedOn(const std::optional<TrainingFacts>& told, const std::optional<TrainingFacts>& now) {
  if (!now) return false;
  if (!told || told->in_epochs != now->in_epochs) return true;
  const auto percent = PercentOf(*now);
  if (percent || PercentOf(*told)) return percent != PercentOf(*told);
  return now->position < told->position || now->position > (1 + kTenth) * told->position;
}

Json TrainerStatusOf(const TrainingFacts& training, WallTime now) {
  Json status = {{"lastUpdatedTime", IsoTime(now)}};
  if (const auto percent = PercentOf(training)) status["progressPercentage"] = *percent;
  if (training.left) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*training.left).count();
    status["estimatedRemainingSeconds"] = std::min<int64_t>(seconds, std::numeric_limits<int32_t>::max());
  }
  Json& metrics = status["metrics"] = Json::array();
  metrics.push_back(Metric(training.in_epochs ? "epoch" : "step", training.position));
  if (training.epoch && !training.in_epochs) metrics.push_back(Metric("epoch", *training.epoch));
  if (training.loss) metrics.push_back(Metric("loss", *training.loss));
  return status;
}

}  // namespace muster::controller
