// SPDX-License-Identifier: Apache-2.0
#include "local/state/recorded_rank.h"

#include <limits>

#include "base/host_fs.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace muster::local {
namespace {

constexpr int kMost = std::numeric_limits<int>::max();

std::optional<RecordedWorker> WorkerIn(const Json& record, int rank) {
  const Json* workers = FindField(record, "workers");
  if (workers == nullptr || !workers->is_array()) return std::nullopt;
  for (const Json& worker : *workers) {
    JsonFields fields(worker, "");
    if (fields.Number("rank", 0, kMost) != rank) continue;
    const auto pid = fields.Number("pid", 1, kMost), local_rank = fields.Number("local_rank", 0, kMost);
    if (pid && local_rank) return RecordedWorker{static_cast<pid_t>(*pid), static_cast<int>(*local_rank)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<RecordedWorker> RecordedRank(const std::string& attempts, int rank) {
  const HostFs machine;
  std::optional<RecordedWorker> found;
  int64_t latest = -1;
  for (const std::string& run : machine.List(attempts)) {
    const std::string folder = fmt::format("{}/{}", attempts, run);
    for (const std::string& attempt : machine.List(folder)) {
      const auto text = machine.Read(fmt::format("{}/{}/attempt.json", folder, attempt));
      const Json record = ReadJsonTop(text.value_or(""), kFieldLevels);
      const auto began =
          JsonFields(record, "").Number("workers_started_unix_ms", 0, std::numeric_limits<int64_t>::max());
      if (!began || *began <= latest) continue;
      latest = *began;
      found = WorkerIn(record, rank);
    }
  }
  return found;
}

}  // namespace muster::local
