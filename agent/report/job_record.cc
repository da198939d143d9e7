// SPDX-License-Identifier: Apache-2.0
#include "agent/report/job_record.h"

#include <algorithm>
#include <limits>

#include "base/iso_time.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kMostRestarts = std::numeric_limits<int>::max();
constexpr size_t kMostDrills = 256;  // the newest: the page has a line for each
constexpr size_t kMostPods = 2048;   // the newest

StatusOr<JobDrill> ReadDrill(const Json& json, const std::string& where) {
  if (!json.is_object()) return absl::InvalidArgumentError(where + "it is not an object");
  JsonFields fields(json, where);
  fields.Need({"time", "order", "done"});
  JobDrill drill{.unix_ms = 0, .order = fields.Text("order"), .done = fields.Text("done")};
  const auto time = ParseWallTime(fields.Text("time"));
  if (!time.ok()) fields.Wrong("time", "a time");
  MUSTER_RETURN_IF_ERROR(fields.status());
  drill.unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(time->time_since_epoch()).count();
  return drill;
}

StatusOr<JobPod> ReadPod(const Json& json, const std::string& where) {
  if (!json.is_object()) return absl::InvalidArgumentError(where + "it is not an object");
  JsonFields fields(json, where);
  JobPod pod{.name = fields.Text("name"), .host = fields.Text("host"), .address = fields.Text("address")};
  pod.node_rank = static_cast<int>(fields.Number("node_rank", -1, kMostRestarts).value_or(-1));
  pod.ended = fields.Find("ended") != nullptr;
  MUSTER_RETURN_IF_ERROR(fields.status());
  return pod;
}

// The newest `most` items of a list of objects.
template <class Item>
Status ReadNewest(JsonFields* fields, const char* name, size_t most,
                  StatusOr<Item> (*read)(const Json& json, const std::string& where), std::vector<Item>* items) {
  const Json* list = fields->Find(name);
  if (list != nullptr && !list->is_array()) fields->Wrong(name, "a list");
  MUSTER_RETURN_IF_ERROR(fields->status());
  const size_t all = list == nullptr ? 0 : list->size();
  for (size_t i = all - std::min(all, most); i < all; ++i) {
    MUSTER_ASSIGN_OR_RETURN(Item item, read((*list)[i], fmt::format("{}[{}]: ", name, i)));
    items->push_back(std::move(item));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<JobRecord> ParseJobRecord(std::string_view json) {
  MUSTER_ASSIGN_OR_RETURN(const Json whole, ReadJson(json, kFieldLevels));
  if (!whole.is_object()) return absl::InvalidArgumentError("it is not an object");
  JsonFields fields(whole, "");
  fields.Need({"kind", "name"});
  JobRecord record{.kind = fields.Text("kind"), .name = fields.Text("name")};
  record.restarts = static_cast<int>(fields.Number("restarts", 0, kMostRestarts).value_or(0));
  record.max_restarts = static_cast<int>(fields.Number("max_restarts", 0, kMostRestarts).value_or(0));
  record.state = fields.Text("state");
  record.ended = fields.Find("ended") != nullptr;
  MUSTER_RETURN_IF_ERROR(ReadNewest(&fields, "pods", kMostPods, ReadPod, &record.pods));
  MUSTER_RETURN_IF_ERROR(ReadNewest(&fields, "drills", kMostDrills, ReadDrill, &record.drills));
  return record;
}

}  // namespace muster::agent
