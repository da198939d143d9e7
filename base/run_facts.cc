// SPDX-License-Identifier: Apache-2.0
#include "base/run_facts.h"

#include <cmath>
#include <numeric>

#include "base/run_facts_json.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr double kLongestSeconds = 4e9;
constexpr double kFurthest = 1e16;   // steps
constexpr double kGreatest = 1e300;  // loss, below and above 0
constexpr int64_t kMostRanks = int64_t{1} << 30;
constexpr int64_t kLatestMillis = 4'000'000'000'000;  // in 2096; as nanoseconds it still fits

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
Duration FromSeconds(double seconds) { return std::chrono::round<Duration>(std::chrono::duration<double>(seconds)); }

void PutNumber(nlohmann::ordered_json& json, const char* name, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) json[name] = *value;
}

}  // namespace

std::string_view TimeUseName(TimeUse use) {
  switch (use) {
    case TimeUse::kWaiting:
      return "waiting";
    case TimeUse::kStart:
      return "start";
    case TimeUse::kTraining:
      return "training";
    case TimeUse::kRedone:
      return "redone";
    case TimeUse::kHang:
      return "hang";
    case TimeUse::kRestart:
      return "restart";
  }
  return "unknown";
}

Duration TotalOf(const TimeSpent& spent) { return std::accumulate(spent.begin(), spent.end(), Duration{}); }

std::optional<double> GoodputOf(const TimeSpent& spent) {
  const Duration all = TotalOf(spent);
  if (all <= Duration{}) return std::nullopt;
  return static_cast<double>(spent[static_cast<size_t>(TimeUse::kTraining)].count()) / static_cast<double>(all.count());
}

nlohmann::ordered_json TrainingJson(const TrainingFacts& training) {
  nlohmann::ordered_json json;
  json["rank"] = training.rank;
  json["unit"] = training.in_epochs ? "epochs" : "steps";
  json["position"] = training.position;
  PutNumber(json, "end", training.end);
  PutNumber(json, "epoch", training.epoch);
  PutNumber(json, "loss", training.loss);
  if (training.step_time) json["step_seconds"] = InSeconds(*training.step_time);
  if (training.left) json["left_seconds"] = InSeconds(*training.left);
  return json;
}

StatusOr<TrainingFacts> ReadTrainingJson(const Json& object, const std::string& where) {
  if (!object.is_object()) return absl::InvalidArgumentError(fmt::format("{}not an object", where));
  JsonFields fields(object, where);
  TrainingFacts training;
  training.rank = static_cast<int>(fields.Number("rank", 0, kMostRanks).value_or(0));
  training.position = fields.Real("position", 0, kFurthest).value_or(0);
  training.in_epochs = fields.Text("unit") == "epochs";
  training.end = fields.Real("end", 0, kFurthest);
  training.epoch = fields.Real("epoch", 0, kFurthest);
  training.loss = fields.Real("loss", -kGreatest, kGreatest);
  if (const auto seconds = fields.Real("step_seconds", 0, kLongestSeconds)) training.step_time = FromSeconds(*seconds);
  if (const auto seconds = fields.Real("left_seconds", 0, kLongestSeconds)) training.left = FromSeconds(*seconds);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return training;
}

nlohmann::ordered_json SecondsJson(const TimeSpent& spent) {
  nlohmann::ordered_json json;
  for (size_t use = 0; use < kTimeUses; ++use) {
    const auto millis = std::chrono::round<std::chrono::milliseconds>(spent[use]).count();
    json[std::string(TimeUseName(static_cast<TimeUse>(use)))] = static_cast<double>(millis) / 1000;
  }
  return json;
}

StatusOr<TimeSpent> ReadSecondsJson(const Json& object, const std::string& where) {
  if (!object.is_object()) return absl::InvalidArgumentError(fmt::format("{}not an object", where));
  JsonFields fields(object, where);
  TimeSpent spent{};
  for (size_t use = 0; use < kTimeUses; ++use) {
    const std::string name(TimeUseName(static_cast<TimeUse>(use)));
    spent[use] = FromSeconds(fields.Real(name.c_str(), 0, kMostSecondsSpent).value_or(0));
  }
  MUSTER_RETURN_IF_ERROR(fields.status());
  return spent;
}

StatusOr<std::optional<RunTime>> ReadRunTime(const JsonFields& fields, const std::string& where) {
  const Json* seconds = fields.Find("seconds");
  const Json* began = fields.Find("began_unix_ms");
  if (seconds == nullptr || began == nullptr) return std::nullopt;
  RunTime time;
  const auto millis = began->is_number_integer() ? began->get<int64_t>() : int64_t{-1};
  if (millis < 0 || millis > kLatestMillis) {
    return absl::InvalidArgumentError(fmt::format("{}'began_unix_ms' is not a time in milliseconds", where));
  }
  time.began_unix_ms = millis;
  MUSTER_ASSIGN_OR_RETURN(time.spent, ReadSecondsJson(*seconds, where + "seconds: "));
  return time;
}

}  // namespace muster
