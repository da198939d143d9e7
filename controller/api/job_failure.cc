// SPDX-License-Identifier: Apache-2.0
#include "controller/api/job_failure.h"

#include <algorithm>
#include <limits>

#include "base/iso_time.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

std::optional<Failure> ReadFailure(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  Failure failure;
  failure.time = TimeField(object, "time").value_or(WallTime{});
  failure.pod = TextField(object, "pod");
  failure.job = TextField(object, "job");
  failure.node = TextField(object, "node");
  failure.reported_by = TextField(object, "reportedBy");
  failure.container = TextField(object, "container");
  failure.rank = IntField(object, "rank");
  failure.node_rank = IntField(object, "nodeRank");
  failure.exit_code = IntField(object, "exitCode", std::numeric_limits<int>::min()).value_or(0);
  failure.signal = TextField(object, "signal");
  failure.oom = FlagField(object, "oom", false);
  failure.reason = TextField(object, "reason");
  failure.message = TextField(object, "message");
  failure.next_step = TextField(object, "nextStep");
  failure.counted = FlagField(object, "counted", true);
  failure.pod_uid = TextField(object, "podUID");
  failure.origin = TextField(object, "origin");
  return failure;
}

Json WriteFailure(const Failure& failure) {
  Json object = {{"time", IsoTime(failure.time)}, {"counted", failure.counted}};
  PutText(object, "pod", failure.pod);
  PutText(object, "job", failure.job);
  PutText(object, "node", failure.node);
  PutText(object, "reportedBy", failure.reported_by);
  PutText(object, "container", failure.container);
  if (failure.rank) object["rank"] = *failure.rank;
  if (failure.node_rank) object["nodeRank"] = *failure.node_rank;
  if (failure.exit_code != 0) object["exitCode"] = failure.exit_code;
  PutText(object, "signal", failure.signal);
  if (failure.oom) object["oom"] = true;
  PutText(object, "reason", failure.reason);
  PutText(object, "message", failure.message);
  PutText(object, "nextStep", failure.next_step);
  PutText(object, "podUID", failure.pod_uid);
  PutText(object, "origin", failure.origin);
  return object;
}

}  // namespace

std::vector<Failure> ReadFailures(const Json& status) {
  std::vector<Failure> failures;
  const Json& list = ListField(status, "failures");
  for (size_t i = list.size() - std::min(list.size(), kMostFailures); i < list.size(); ++i) {
    if (auto failure = ReadFailure(list[i])) failures.push_back(*std::move(failure));
  }
  return failures;
}

void WriteFailures(const std::vector<Failure>& failures, Json* status) {
  if (failures.empty()) return;
  Json& list = (*status)["failures"] = Json::array();
  for (size_t i = failures.size() - std::min(failures.size(), kMostFailures); i < failures.size(); ++i) {
    list.push_back(WriteFailure(failures[i]));
  }
}

}  // namespace muster::controller
