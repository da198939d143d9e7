// SPDX-License-Identifier: Apache-2.0
// Reads and writes the status of a PyTorchJob.
#include <algorithm>

#include "base/iso_time.h"
#include "controller/api/lenient.h"
#include "controller/api/pytorch_job.h"

namespace muster::controller {
namespace {

std::optional<JobCondition> ReadCondition(const Json& object) {
  JobCondition condition;
  condition.type = TextField(object, "type");
  const std::string status = TextField(object, "status");
  if (condition.type.empty() || status.empty()) return std::nullopt;
  condition.status = status == "True";
  condition.reason = TextField(object, "reason");
  condition.message = TextField(object, "message");
  condition.updated = TimeField(object, "lastUpdateTime").value_or(WallTime{});
  condition.since = TimeField(object, "lastTransitionTime").value_or(WallTime{});
  return condition;
}

Json WriteCondition(const JobCondition& condition) {
  return {{"type", condition.type},
          {"status", condition.status ? "True" : "False"},
          {"reason", condition.reason},
          {"message", condition.message},
          {"lastUpdateTime", IsoTime(condition.updated)},
          {"lastTransitionTime", IsoTime(condition.since)}};
}

}  // namespace

const JobCondition* PyTorchJobStatus::Find(std::string_view type) const {
  const auto found = std::find_if(conditions.begin(), conditions.end(), [&](const auto& c) { return c.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

bool PyTorchJobStatus::Is(std::string_view type) const {
  const JobCondition* found = Find(type);
  return found != nullptr && found->status;
}

bool PyTorchJobStatus::Finished() const { return Is("Succeeded") || Is("Failed"); }

PyTorchJobStatus ReadPyTorchJobStatus(const Json& object) {
  PyTorchJobStatus status;
  if (!object.is_object()) return status;
  for (const Json& item : ListField(object, "conditions")) {
    auto condition = ReadCondition(item);
    if (condition && status.Find(condition->type) == nullptr) status.conditions.push_back(*std::move(condition));
  }
  for (const ReplicaType type : kReplicaTypes) {
    const Json& counts = PartOf(object, "replicaStatuses", std::string(ReplicaName(type)).c_str());
    if (!counts.is_object()) continue;
    status.Of(type) = {.active = CountField(counts, "active"),
                       .succeeded = CountField(counts, "succeeded"),
                       .failed = CountField(counts, "failed"),
                       .selector = TextField(counts, "selector"),
                       .succeeded_indexes = TextField(counts, "succeededIndexes")};
  }
  status.start_time = TimeField(object, "startTime");
  status.completion_time = TimeField(object, "completionTime");
  status.message = TextField(object, "message");
  status.attempt = CountField(object, "attempt");
  status.restarts = CountField(object, "restarts");
  status.failures = ReadFailures(object);
  for (const Json& item : ListField(object, "countedPods")) {
    const std::string uid = TextField(item, "uid");
    if (!uid.empty()) status.counted.push_back({uid, CountField(item, "restarts")});
  }
  return status;
}

Json WritePyTorchJobStatus(const PyTorchJobStatus& status) {
  Json object = Json::object();
  Json& conditions = object["conditions"] = Json::array();
  for (const JobCondition& condition : status.conditions) conditions.push_back(WriteCondition(condition));
  Json& replicas = object["replicaStatuses"] = Json::object();
  for (const ReplicaType type : kReplicaTypes) {
    const std::optional<ReplicaStatus>& counts = status.Of(type);
    if (!counts) continue;
    Json& made = replicas[ReplicaName(type)] = {
        {"active", counts->active}, {"succeeded", counts->succeeded}, {"failed", counts->failed}};
    PutText(made, "selector", counts->selector);
    PutText(made, "succeededIndexes", counts->succeeded_indexes);
  }
  if (status.start_time) object["startTime"] = IsoTime(*status.start_time);
  if (status.completion_time) object["completionTime"] = IsoTime(*status.completion_time);
  PutText(object, "message", status.message);
  object["attempt"] = status.attempt;
  object["restarts"] = status.restarts;
  WriteFailures(status.failures, &object);
  if (!status.counted.empty()) {
    Json& counted = object["countedPods"] = Json::array();
    for (const CountedPod& pod : status.counted) counted.push_back({{"uid", pod.uid}, {"restarts", pod.restarts}});
  }
  return object;
}

}  // namespace muster::controller
