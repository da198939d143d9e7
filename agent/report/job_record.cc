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

}  // namespace

StatusOr<JobRecord> ParseJobRecord(std::string_view json) {
  MUSTER_ASSIGN_OR_RETURN(const Json whole, ReadJson(json, kFieldLevels));
  if (!whole.is_object()) return absl::InvalidArgumentError("it is not an object");
  JsonFields fields(whole, "");
  fields.Need({"kind", "name"});
  JobRecord record{.kind = fields.Text("kind"), .name = fields.Text("name")};
  record.restarts = static_cast<int>(fields.Number("restarts", 0, kMostRestarts).value_or(0));
  record.max_restarts = static_cast<int>(fields.Number("max_restarts", 0, kMostRestarts).value_or(0));
  const Json* drills = fields.Find("drills");
  if (drills != nullptr && !drills->is_array()) fields.Wrong("drills", "a list");
  MUSTER_RETURN_IF_ERROR(fields.status());
  const size_t all = drills == nullptr ? 0 : drills->size();
  for (size_t i = all - std::min(all, kMostDrills); i < all; ++i) {
    MUSTER_ASSIGN_OR_RETURN(JobDrill drill, ReadDrill((*drills)[i], fmt::format("drills[{}]: ", i)));
    record.drills.push_back(std::move(drill));
  }
  return record;
}

}  // namespace muster::agent
