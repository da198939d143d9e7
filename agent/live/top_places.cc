// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_places.h"

#include <vector>

#include "agent/report/job_record.h"
#include "agent/workers/run_options.h"
#include "base/settings_file.h"
#include "base/state_folder.h"
#include "base/text.h"

namespace muster::agent {
namespace {

class FixedPlace : public AgentPlaces {
 public:
  explicit FixedPlace(AgentPlace place) : place_(std::move(place)) {}
  void Find(Found found) override { found(place_); }

 private:
  const AgentPlace place_;
};

// Each node's agent listens at the address of its pod (docs/local.md).
class LocalPlaces : public AgentPlaces {
 public:
  explicit LocalPlaces(std::string folder) : folder_(std::move(folder)) {}

  void Find(Found found) override { found(Next()); }

 private:
  StatusOr<AgentPlace> Next() {
    MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadSettingsFile(RunRecordPath(folder_)));
    auto record = ParseJobRecord(text);
    if (!record.ok()) return Annotate(record.status(), RunRecordPath(folder_));
    if (record->ended) {
      return AgentPlace{.ended = fmt::format("{} {} has ended: {}", record->kind, record->name, record->state)};
    }
    std::vector<std::string> addresses;
    for (const JobPod& pod : record->pods) {
      if (!pod.ended && pod.node_rank >= 0 && !pod.address.empty()) addresses.push_back(pod.address);
    }
    if (addresses.empty()) {
      return absl::UnavailableError(fmt::format("{} {} has no node that runs now", record->kind, record->name));
    }
    return AgentPlace{.host = addresses[asked_++ % addresses.size()], .port = kHttpPortUnderKubernetes};
  }

  const std::string folder_;
  size_t asked_ = 0;
};

}  // namespace

std::unique_ptr<AgentPlaces> OneAgent(const TopTarget& target) {
  return std::make_unique<FixedPlace>(AgentPlace{.host = target.host, .port = target.port, .is_only = true});
}

std::unique_ptr<AgentPlaces> AgentsOfLocalJob(std::string folder) {
  return std::make_unique<LocalPlaces>(std::move(folder));
}

}  // namespace muster::agent
