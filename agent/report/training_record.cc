// SPDX-License-Identifier: Apache-2.0
#include "agent/report/training_record.h"

#include <cmath>

#include "base/json_fields.h"
#include "base/run_facts_json.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr double kLongestSeconds = 4e9;
constexpr double kFurthest = 1e16;   // steps
constexpr double kGreatest = 1e300;  // loss, below and above 0
constexpr int64_t kMostRanks = 10'000'000;

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

StatusOr<RankTraining> ReadRank(const Json& object, std::string where) {
  if (!object.is_object()) return absl::InvalidArgumentError(where + "it is not an object");
  JsonFields fields(object, std::move(where));
  fields.Need({"local_rank", "position"});
  RankTraining rank;
  rank.local_rank = static_cast<int>(fields.Number("local_rank", 0, kMostRanks).value_or(0));
  rank.position = fields.Real("position", 0, kFurthest).value_or(0);
  rank.in_epochs = fields.Text("unit") == "epochs";
  rank.end = fields.Real("end", 0, kFurthest);
  rank.loss = fields.Real("loss", -kGreatest, kGreatest);
  if (const auto seconds = fields.Real("step_seconds", 0, kLongestSeconds)) rank.step_time = FromSeconds(*seconds);
  MUSTER_RETURN_IF_ERROR(fields.status());
  return rank;
}

StatusOr<rendezvous::CurvePoint> ReadPoint(const Json& point) {
  const auto is_number = [](const Json& number, double least, double most) {
    return number.is_number() && number.get<double>() >= least && number.get<double>() <= most;
  };
  if (!point.is_array() || point.size() != 2 || !is_number(point[0], 0, kFurthest) ||
      !is_number(point[1], -kGreatest, kGreatest)) {
    return absl::InvalidArgumentError("'curve' is not a list of pairs of position and loss");
  }
  return rendezvous::CurvePoint{point[0].get<double>(), point[1].get<double>()};
}

// Null: the field is not there.
StatusOr<const Json*> FindList(const JsonFields& fields, const char* name, size_t most) {
  const Json* list = fields.Find(name);
  if (list == nullptr) return list;
  if (!list->is_array()) return absl::InvalidArgumentError(fmt::format("'{}' is not a list", name));
  if (list->size() > most) return absl::InvalidArgumentError(fmt::format("'{}' is too long", name));
  return list;
}

}  // namespace

std::vector<std::string> TrainingTexts(const std::vector<RankTraining>& training, int first_rank) {
  std::vector<std::string> texts;
  for (const RankTraining& rank : training) {
    std::string text = fmt::format(R"({{"local_rank": {}, "rank": {}, "unit": "{}", "position": {})", rank.local_rank,
                                   first_rank + rank.local_rank, rank.in_epochs ? "epochs" : "steps", rank.position);
    if (rank.end) text += fmt::format(R"(, "end": {})", *rank.end);
    if (rank.step_time) text += fmt::format(R"(, "step_seconds": {})", InSeconds(*rank.step_time));
    if (rank.loss && std::isfinite(*rank.loss)) text += fmt::format(R"(, "loss": {})", *rank.loss);
    texts.push_back(text + "}");
  }
  return texts;
}

std::string CurveText(const std::vector<rendezvous::CurvePoint>& curve) {
  std::string text;
  for (const rendezvous::CurvePoint& point : curve) {
    text += fmt::format("{}[{}, {}]", text.empty() ? "" : ", ", point.position, point.loss);
  }
  return "[" + text + "]";
}

std::string SpentText(const TimeSpent& spent) {
  std::string text;
  for (size_t use = 0; use < kTimeUses; ++use) {
    text += fmt::format(R"({}"{}": {})", text.empty() ? "" : ", ", TimeUseName(static_cast<TimeUse>(use)),
                        InSeconds(spent[use]));
  }
  return "{" + text + "}";
}

Status ReadTraining(const JsonFields& fields, size_t most_ranks, AttemptRecord& record) {
  MUSTER_ASSIGN_OR_RETURN(const Json* ranks, FindList(fields, "training", most_ranks));
  for (size_t at = 0; ranks != nullptr && at < ranks->size(); ++at) {
    MUSTER_ASSIGN_OR_RETURN(const RankTraining rank, ReadRank((*ranks)[at], fmt::format("training {}: ", at)));
    if (!record.training.empty() && rank.local_rank <= record.training.back().local_rank) {
      return absl::InvalidArgumentError(fmt::format("training {}: 'local_rank' is not above the one before", at));
    }
    record.training.push_back(rank);
  }
  MUSTER_ASSIGN_OR_RETURN(const Json* points, FindList(fields, "curve", rendezvous::kMaxCurvePoints));
  for (size_t at = 0; points != nullptr && at < points->size(); ++at) {
    MUSTER_ASSIGN_OR_RETURN(const rendezvous::CurvePoint point, ReadPoint((*points)[at]));
    record.curve.push_back(point);
  }
  if (const Json* seconds = fields.Find("seconds")) {
    MUSTER_ASSIGN_OR_RETURN(record.spent, ReadSecondsJson(*seconds, "seconds: "));
  }
  return absl::OkStatus();
}

}  // namespace muster::agent
