// SPDX-License-Identifier: Apache-2.0
// Reads and writes the status of a TrainJob.
#include <algorithm>
#include <array>

#include "base/iso_time.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/api/train_job.h"

namespace muster::controller {
namespace {

constexpr std::array<std::string_view, 3> kConditions = {"Suspended", "Complete", "Failed"};

std::optional<Condition> ReadCondition(const Json& object) {
  Condition condition;
  condition.type = TextField(object, "type");
  const std::string status = TextField(object, "status");
  const bool own = std::find(kConditions.begin(), kConditions.end(), condition.type) != kConditions.end();
  if (!own || (status != "True" && status != "False")) return std::nullopt;
  condition.status = status == "True";
  condition.reason = TextField(object, "reason");
  condition.message = TextField(object, "message");
  condition.since = TimeField(object, "lastTransitionTime").value_or(WallTime{});
  if (const Json* generation = FindField(object, "observedGeneration")) {
    condition.generation = WholeNumber(*generation).value_or(0);
  }
  return condition;
}

Json WriteCondition(const Condition& condition) {
  Json object = {{"type", condition.type},
                 {"status", condition.status ? "True" : "False"},
                 {"reason", condition.reason},
                 {"message", condition.message},
                 {"lastTransitionTime", IsoTime(condition.since)}};
  if (condition.generation != 0) object["observedGeneration"] = condition.generation;
  return object;
}

}  // namespace

const Condition* TrainJobStatus::Find(std::string_view type) const {
  const auto found = std::find_if(conditions.begin(), conditions.end(), [&](const auto& c) { return c.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

bool TrainJobStatus::Finished() const {
  return std::any_of(conditions.begin(), conditions.end(),
                     [](const auto& c) { return c.status && (c.type == "Complete" || c.type == "Failed"); });
}

TrainJobStatus ReadTrainJobStatus(const Json& object) {
  TrainJobStatus status;
  if (!object.is_object()) return status;
  for (const Json& item : ListField(object, "conditions")) {
    auto condition = ReadCondition(item);
    if (condition && status.Find(condition->type) == nullptr) status.conditions.push_back(*std::move(condition));
  }
  for (const Json& item : ListField(object, "jobsStatus")) {
    const std::string name = TextField(item, "name");
    if (name.empty()) continue;
    status.jobs.push_back({.name = name,
                           .ready = CountField(item, "ready"),
                           .succeeded = CountField(item, "succeeded"),
                           .failed = CountField(item, "failed"),
                           .active = CountField(item, "active"),
                           .suspended = CountField(item, "suspended")});
  }
  status.state = TextField(object, "state");
  status.reason = TextField(object, "reason");
  status.message = TextField(object, "message");
  status.start_time = TimeField(object, "startTime");
  status.completion_time = TimeField(object, "completionTime");
  if (FindField(object, "ttlSecondsAfterFinished") != nullptr) {
    status.ttl_seconds = CountField(object, "ttlSecondsAfterFinished");
  }
  status.nodes = CountField(object, "nodes");
  status.ready_nodes = CountField(object, "readyNodes");
  status.selector = TextField(object, "selector");
  status.attempt = CountField(object, "attempt");
  status.restarts = CountField(object, "restarts");
  status.failures = ReadFailures(object);
  status.time = ReadJobTime(PartOf(object, "goodput"));
  for (const Json& name : ListField(object, "completedJobs")) {
    if (name.is_string()) status.completed_jobs.push_back(name.get<std::string>());
  }
  return status;
}

Json WriteTrainJobStatus(const TrainJobStatus& status) {
  Json object = Json::object();
  Json& conditions = object["conditions"] = Json::array();
  for (const Condition& condition : status.conditions) conditions.push_back(WriteCondition(condition));
  Json& jobs = object["jobsStatus"] = Json::array();
  for (const JobsStatus& job : status.jobs) {
    jobs.push_back({{"name", job.name},
                    {"ready", job.ready},
                    {"succeeded", job.succeeded},
                    {"failed", job.failed},
                    {"active", job.active},
                    {"suspended", job.suspended}});
  }
  PutText(object, "state", status.state);
  PutText(object, "reason", status.reason);
  PutText(object, "message", status.message);
  if (status.start_time) object["startTime"] = IsoTime(*status.start_time);
  if (status.completion_time) object["completionTime"] = IsoTime(*status.completion_time);
  if (status.ttl_seconds) object["ttlSecondsAfterFinished"] = *status.ttl_seconds;
  object["nodes"] = status.nodes;
  object["readyNodes"] = status.ready_nodes;
  PutText(object, "selector", status.selector);
  object["attempt"] = status.attempt;
  object["restarts"] = status.restarts;
  WriteFailures(status.failures, &object);
  if (status.time) object["goodput"] = WriteJobTime(*status.time);
  if (!status.completed_jobs.empty()) object["completedJobs"] = status.completed_jobs;
  return object;
}

}  // namespace muster::controller
