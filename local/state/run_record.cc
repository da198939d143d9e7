// SPDX-License-Identifier: Apache-2.0
#include "local/state/run_record.h"

#include <limits>

#include "base/iso_time.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace muster::local {
namespace {

constexpr int kMostRestarts = std::numeric_limits<int>::max();
constexpr size_t kMostDrills = 256;
constexpr size_t kMostTexts = 64;  // files of a run, containers of a pod

std::optional<WallTime> TimeOf(JsonFields* fields, const char* name) {
  const std::string text = fields->Text(name);
  if (text.empty()) return std::nullopt;
  const auto time = ParseWallTime(text);
  if (!time.ok()) fields->Wrong(name, "a time");
  return time.ok() ? std::optional(*time) : std::nullopt;
}

// Whether the name is one component of a path.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

int IntOf(JsonFields* fields, const char* name, int least, int most) {
  return static_cast<int>(fields->Number(name, least, most).value_or(0));
}

PodRecord ReadPod(JsonFields* fields) {
  fields->Need({"name", "host", "begun"});
  PodRecord pod{.name = fields->Text("name"), .host = fields->Text("host"), .address = fields->Text("address")};
  pod.node_rank = static_cast<int>(fields->Number("node_rank", -1, kMostRestarts).value_or(-1));
  pod.containers = fields->Texts("containers", kMostTexts);
  if (!IsPlainName(pod.name)) fields->Wrong("name", "the name of a pod");
  for (const std::string& container : pod.containers) {
    if (!IsPlainName(container)) fields->Wrong("containers", "a list of names");
  }
  pod.begun = TimeOf(fields, "begun").value_or(WallTime());
  pod.ended = TimeOf(fields, "ended");
  pod.ready = fields->Flag("ready");
  pod.marks_ranks = fields->Flag("marks_ranks");
  if (const auto code = fields->Number("exit_code", 0, 255)) pod.exit_code = static_cast<int>(*code);
  return pod;
}

DrillRecord ReadDrill(JsonFields* fields) {
  fields->Need({"time", "order", "done"});
  return {TimeOf(fields, "time").value_or(WallTime()), fields->Text("order"), fields->Text("done")};
}

// Reads the newest `most` items of a list of objects.
template <class Item>
Status ReadItems(const Json* list, std::string_view name, size_t most, Item (*read)(JsonFields*),
                 std::vector<Item>* items) {
  const size_t all = list == nullptr ? 0 : list->size();
  for (size_t i = all - std::min(all, most); i < all; ++i) {
    const Json& item = (*list)[i];
    const std::string where = fmt::format("{}[{}]: ", name, i);
    if (!item.is_object()) return absl::InvalidArgumentError(where + "it is not an object");
    JsonFields fields(item, where);
    items->push_back(read(&fields));
    MUSTER_RETURN_IF_ERROR(fields.status());
  }
  return absl::OkStatus();
}

Json PodAsJson(const PodRecord& pod) {
  Json json = {
      {"name", pod.name}, {"host", pod.host}, {"containers", pod.containers}, {"begun", IsoMicroTime(pod.begun)}};
  if (!pod.address.empty()) json["address"] = pod.address;
  if (pod.node_rank >= 0) json["node_rank"] = pod.node_rank;
  if (pod.marks_ranks) json["marks_ranks"] = true;
  if (pod.ready) json["ready"] = true;
  if (pod.ended) json["ended"] = IsoMicroTime(*pod.ended);
  if (pod.exit_code) json["exit_code"] = *pod.exit_code;
  return json;
}

}  // namespace

StatusOr<RunRecord> ParseRunRecord(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const Json json, ReadJson(text, kFieldLevels));
  if (!json.is_object()) return absl::InvalidArgumentError("it is not an object");
  JsonFields fields(json, "");
  fields.Need({"kind", "name", "pid", "begun"});
  RunRecord record{
      .kind = fields.Text("kind"), .name = fields.Text("name"), .files = fields.Texts("files", kMostTexts)};
  record.id = fields.Text("id");
  record.pid = fields.Number("pid", 1).value_or(0);
  record.pid_started = fields.Number("pid_started", 0).value_or(0);
  record.detached = fields.Flag("detached");
  record.begun = TimeOf(&fields, "begun").value_or(WallTime());
  record.ended = TimeOf(&fields, "ended");
  record.state = fields.Text("state");
  record.message = fields.Text("message");
  record.restarts = IntOf(&fields, "restarts", 0, kMostRestarts);
  record.budget = IntOf(&fields, "max_restarts", 0, kMostRestarts);
  record.exit_code = IntOf(&fields, "exit_code", 0, 255);
  const Json *pods = fields.Find("pods"), *drills = fields.Find("drills");
  if (pods != nullptr && !pods->is_array()) fields.Wrong("pods", "a list");
  if (drills != nullptr && !drills->is_array()) fields.Wrong("drills", "a list");
  MUSTER_RETURN_IF_ERROR(fields.status());
  MUSTER_RETURN_IF_ERROR(ReadItems(pods, "pods", kMostPodRecords, ReadPod, &record.pods));
  MUSTER_RETURN_IF_ERROR(ReadItems(drills, "drills", kMostDrills, ReadDrill, &record.drills));
  return record;
}

std::string ToJson(const RunRecord& record) {
  Json json = {{"version", 1},
               {"kind", record.kind},
               {"name", record.name},
               {"files", record.files},
               {"id", record.id},
               {"pid", record.pid},
               {"pid_started", record.pid_started},
               {"detached", record.detached},
               {"begun", IsoMicroTime(record.begun)},
               {"state", record.state},
               {"message", record.message},
               {"restarts", record.restarts},
               {"max_restarts", record.budget},
               {"pods", Json::array()},
               {"drills", Json::array()}};
  if (record.ended) {
    json["ended"] = IsoMicroTime(*record.ended);
    json["exit_code"] = record.exit_code;
  }
  for (size_t i = record.pods.size() - std::min(record.pods.size(), kMostPodRecords); i < record.pods.size(); ++i) {
    json["pods"].push_back(PodAsJson(record.pods[i]));
  }
  for (const DrillRecord& drill : record.drills) {
    json["drills"].push_back({{"time", IsoMicroTime(drill.time)}, {"order", drill.order}, {"done", drill.done}});
  }
  return WriteJson(json, 1) + "\n";
}

}  // namespace muster::local
