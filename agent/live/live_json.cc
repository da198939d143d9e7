// SPDX-License-Identifier: Apache-2.0
// The answer of /status?ranks=1, in both directions.
#include <algorithm>
#include <cmath>

#include "agent/live/live_view.h"
#include "agent/watch/status_text.h"
#include "base/failure_json.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "rendezvous/wire.h"

namespace muster::agent {
namespace {

using rendezvous::RankTelemetry;
using rendezvous::RoundCause;
using rendezvous::StatusReport;

constexpr int kLevels = 8;
constexpr double kMostSeconds = 1e9;
constexpr int64_t kMostCount = 10'000'000;
constexpr int64_t kLargest = int64_t{1} << 53;

Duration OfSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// The fields of one object. A field of another type is an error; an absent one is empty.
class Reader {
 public:
  Reader(const Json& object, std::string where) : fields_(object, std::move(where)) {}

  std::string Text(const char* name) { return std::string(Beginning(fields_.Text(name), rendezvous::wire::kMaxText)); }
  int Count(const char* name) { return static_cast<int>(fields_.Number(name, 0, kMostCount).value_or(0)); }
  std::optional<int> MaybeCount(const char* name) {
    const auto number = fields_.Number(name, 0, kMostCount);
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
  }
  int64_t Large(const char* name) { return fields_.Number(name, 0, kLargest).value_or(0); }
  std::optional<int64_t> MaybeLarge(const char* name) { return fields_.Number(name, 0, kLargest); }
  std::optional<double> Real(const char* name) { return fields_.Real(name, -1e300, 1e300); }
  Duration Seconds(const char* name) { return MaybeSeconds(name).value_or(Duration{}); }
  std::optional<Duration> MaybeSeconds(const char* name) {
    const auto seconds = fields_.Real(name, 0, kMostSeconds);
    return seconds ? std::optional(OfSeconds(*seconds)) : std::nullopt;
  }
  bool Flag(const char* name) { return fields_.Flag(name); }
  rendezvous::RoundId Round(const char* term, const char* number) {
    const auto round = fields_.Number(number, -1, kLargest);
    return {static_cast<uint64_t>(Large(term)), round.value_or(-1)};
  }
  // Calls `read` for each object of a list; at most `most`.
  template <class Read>
  void Each(const char* name, size_t most, const Read& read) {
    const Json* list = fields_.Find(name);
    if (list == nullptr) return;
    if (!list->is_array() || list->size() > most)
      return fields_.Wrong(name, "a list of at most " + std::to_string(most));
    for (const Json& one : *list) {
      if (!status().ok()) return;
      Keep(read(one));
    }
  }
  const Json* Find(const char* name) const { return fields_.Find(name); }
  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  Status status() const { return fields_.status().ok() ? status_ : fields_.status(); }

 private:
  JsonFields fields_;
  Status status_;
};

RoundCause CauseOf(std::string_view name) {
  for (const RoundCause cause : {RoundCause::kPreemption, RoundCause::kFailure, RoundCause::kSuccess}) {
    if (RoundCauseName(cause) == name) return cause;
  }
  return RoundCause::kMembership;
}

Status ReadRank(const Json& json, RankTelemetry* rank) {
  Reader read(json, "rank: ");
  rank->local_rank = read.Count("local_rank");
  rank->pid = read.Large("pid");
  rank->exit_code = read.MaybeCount("exit_code");
  rank->cpus = read.Real("cpus").value_or(0);
  rank->memory_bytes = read.Large("memory_bytes");
  rank->gpu_share = read.Real("gpu_share");
  rank->gpu_memory_bytes = read.MaybeLarge("gpu_memory_bytes");
  rank->last_line = Beginning(read.Text("last_line"), rendezvous::kMaxLastLine);
  rank->silent = read.MaybeSeconds("silent_seconds");
  rank->position = read.Real("position");
  rank->end = read.Real("end");
  rank->epoch = read.Real("epoch");
  rank->loss = read.Real("loss");
  rank->in_epochs = read.Text("unit") == "epochs";
  rank->step_time = read.MaybeSeconds("step_seconds");
  return read.status();
}

void ReadCurve(const Json& list, std::vector<rendezvous::CurvePoint>* curve) {
  if (!list.is_array()) return;
  for (const Json& point : list) {
    if (curve->size() == rendezvous::kMaxCurvePoints) return;
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number()) continue;
    const double position = point[0], loss = point[1];
    if (std::isfinite(position) && std::isfinite(loss)) curve->push_back({position, loss});
  }
}

Status ReadNode(const Json& json, rendezvous::StatusLine* line) {
  Reader read(json, "node: ");
  line->node = read.Text("node");
  line->host = read.Text("host");
  line->state = read.Text("state");
  line->rank = read.MaybeCount("rank");
  line->slots = read.Count("slots");
  line->pid = read.Large("pid");
  line->last_heard = read.Seconds("last_heard_seconds");
  line->remark = read.Text("remark");
  if (read.Find("ranks") == nullptr) return read.status();
  rendezvous::Telemetry& telemetry = line->telemetry.emplace();
  telemetry.round = read.Round("telemetry_term", "telemetry_round");
  read.Each("ranks", rendezvous::wire::kMaxTelemetryRanks,
            [&](const Json& rank) { return ReadRank(rank, &telemetry.ranks.emplace_back()); });
  if (const Json* curve = read.Find("curve")) ReadCurve(*curve, &telemetry.curve);
  if (const Json* seconds = read.Find("seconds"); seconds != nullptr && seconds->is_object()) {
    for (const auto& [name, value] : seconds->items()) {
      if (telemetry.seconds.size() == rendezvous::kMaxMeasured || !value.is_number()) continue;
      telemetry.seconds[std::string(Beginning(name, rendezvous::kMaxMeasuredName))] = value;
    }
  }
  return read.status();
}

Status ReadLost(const Json& json, rendezvous::LostNode* lost) {
  Reader read(json, "lost node: ");
  lost->node = read.Text("node");
  lost->host = read.Text("host");
  lost->closed = read.Text("how") == "closed";
  lost->lost = read.Seconds("lost_seconds");
  lost->last_heard = read.Seconds("last_heard_seconds");
  return read.status();
}

Status ReadMark(const Json& json, rendezvous::RoundMark* mark) {
  Reader read(json, "round: ");
  mark->id = read.Round("term", "round");
  mark->nodes = read.Count("nodes");
  mark->world_size = read.Count("world_size");
  mark->restart_count = read.Count("restart_count");
  mark->cause = CauseOf(read.Text("cause"));
  mark->reason = read.Text("reason");
  mark->began = read.Seconds("began_seconds");
  mark->stopping = read.MaybeSeconds("stopping_seconds");
  mark->stop_reason = read.Text("stop_reason");
  return read.status();
}

}  // namespace

std::string ToJson(const LiveView& view) {
  return StatusJson(
      view.report,
      {.source = view.source, .source_reason = view.source_reason, .job = view.job, .muster = view.version});
}

StatusOr<LiveView> ParseLiveView(std::string_view json) {
  MUSTER_ASSIGN_OR_RETURN(const Json document, ReadJson(json, kLevels));
  if (!document.is_object()) return absl::InvalidArgumentError("the status is no JSON object");
  LiveView view;
  StatusReport& report = view.report;
  Reader read(document, "status: ");
  report.run_id = read.Text("run_id");
  report.phase = read.Text("phase");
  report.round = read.Round("term", "round");
  report.restart_count = read.Count("restart_count");
  report.max_restarts = static_cast<int>(std::min<int64_t>(read.Large("max_restarts"), INT32_MAX));
  report.min_nodes = read.Count("min_nodes");
  report.max_nodes = read.Count("max_nodes");
  report.reason = read.Text("reason");
  report.heartbeat_timeout = read.Seconds("heartbeat_timeout_seconds");
  report.cut_off = read.Flag("cut_off");
  if (const Json* overcome = read.Find("overcome")) {
    auto failure = ReadFailureJson(*overcome, "overcome: ");
    read.Keep(failure.status());
    if (failure.ok()) report.overcome = *std::move(failure);
  }
  read.Each("nodes", rendezvous::wire::kMaxStatusLines,
            [&](const Json& node) { return ReadNode(node, &report.nodes.emplace_back()); });
  read.Each("lost", rendezvous::kMostLost,
            [&](const Json& lost) { return ReadLost(lost, &report.lost.emplace_back()); });
  read.Each("rounds", rendezvous::kMostMarks,
            [&](const Json& mark) { return ReadMark(mark, &report.rounds.emplace_back()); });
  view.source = read.Text("source");
  view.source_reason = read.Text("source_reason");
  view.job = read.Text("job");
  view.version = read.Text("muster");
  MUSTER_RETURN_IF_ERROR(read.status());
  return view;
}

}  // namespace muster::agent
