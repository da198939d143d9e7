// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/after.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/reasons.h"

namespace muster::controller {
namespace {

constexpr std::pair<Awaited::Until, std::string_view> kUntil[] = {
    {Awaited::Until::kComplete, "Complete"}, {Awaited::Until::kFailed, "Failed"}, {Awaited::Until::kAny, "Any"}};
constexpr size_t kMostAwaited = 100;
constexpr size_t kMostVisited = 1000;  // jobs looked at for a cycle

Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("metadata.annotations.{}: {}", kAfterAnnotation, what));
}

bool IsTrue(const TrainJob& job, const char* type) {
  const Condition* condition = job.status.Find(type);
  return condition != nullptr && condition->status;
}

bool IsMet(const TrainJob& other, Awaited::Until until) {
  switch (until) {
    case Awaited::Until::kComplete:
      return IsTrue(other, "Complete");
    case Awaited::Until::kFailed:
      return IsTrue(other, "Failed");
    case Awaited::Until::kAny:
      return other.status.Finished();
  }
  return false;
}

std::string_view Wanted(Awaited::Until until) {
  return until == Awaited::Until::kComplete ? "to complete" : until == Awaited::Until::kFailed ? "to fail" : "to end";
}

// A cycle from the last job of `path` back into `path`: "a -> b -> a". Empty: none among the first kMostVisited jobs.
std::string CycleFrom(std::vector<const TrainJob*> path, const LookUp& look_up, size_t* visited) {
  if (++*visited > kMostVisited || path.back()->status.start_time) return "";
  const auto awaited = ReadAfter(*path.back());
  if (!awaited.ok()) return "";
  for (const Awaited& each : *awaited) {
    const auto seen =
        std::find_if(path.begin(), path.end(), [&each](const TrainJob* job) { return job->meta.name == each.job; });
    if (seen != path.end()) {
      std::string text;
      for (auto job = seen; job != path.end(); ++job) text += fmt::format("{} -> ", (*job)->meta.name);
      return text + each.job;
    }
    const TrainJob* next = look_up(each.job);
    if (next == nullptr || IsMet(*next, each.until)) continue;
    path.push_back(next);
    if (std::string found = CycleFrom(path, look_up, visited); !found.empty()) return found;
    path.pop_back();
  }
  return "";
}

// Why a job that waits for `awaited` may not begin yet; nullopt: it may.
std::optional<Hold> HoldBy(const Awaited& awaited, const LookUp& look_up) {
  const TrainJob* other = look_up(awaited.job);
  if (other == nullptr) {
    return Hold{
        reason::kTrainJobMissing,
        fmt::format("it waits for TrainJob {} {}, and there is no such TrainJob in its namespace; create it, or "
                    "change the annotation {}",
                    awaited.job, Wanted(awaited.until), kAfterAnnotation),
        true};
  }
  if (IsMet(*other, awaited.until)) return std::nullopt;
  if (other->status.Finished()) {
    return Hold{
        reason::kTrainJobEndedOtherwise,
        fmt::format(
            "it waits for TrainJob {} {}, which has ended: {}; recreate that TrainJob, or change the annotation {}",
            awaited.job, Wanted(awaited.until), other->status.state, kAfterAnnotation),
        true};
  }
  return Hold{reason::kWaitingForTrainJob,
              fmt::format("it waits for TrainJob {} {}", awaited.job, Wanted(awaited.until))};
}

}  // namespace

StatusOr<std::vector<Awaited>> ReadAfter(const TrainJob& job) {
  std::vector<Awaited> all;
  const std::string_view text = job.meta.Annotation(kAfterAnnotation);
  if (text.empty()) return all;
  for (std::string_view part : Split(text, ',')) {
    part = Strip(part);
    const size_t equals = part.find('=');
    Awaited awaited{.job = std::string(part.substr(0, equals))};
    if (!IsLabel(awaited.job)) {
      return Wrong(fmt::format("{} is not a name of a TrainJob; write prepare, or prepare=Any,tune=Failed",
                               Quoted(awaited.job)));
    }
    if (equals != std::string_view::npos) {
      const std::string_view until = part.substr(equals + 1);
      const auto known =
          std::find_if(std::begin(kUntil), std::end(kUntil), [until](const auto& row) { return row.second == until; });
      if (known == std::end(kUntil)) {
        return Wrong(fmt::format("{}: {} is not one of Complete, Failed, Any", awaited.job, Quoted(until)));
      }
      awaited.until = known->first;
    }
    all.push_back(std::move(awaited));
    if (all.size() > kMostAwaited) return Wrong(fmt::format("it names more than {} TrainJobs", kMostAwaited));
  }
  return all;
}

std::optional<Hold> HoldOf(const TrainJob& job, const LookUp& look_up) {
  if (job.status.start_time) return std::nullopt;
  const auto awaited = ReadAfter(job);
  if (!awaited.ok()) return Hold{reason::kAfterInvalid, std::string(Message(awaited.status())), true};
  size_t visited = 0;
  if (const std::string cycle = CycleFrom({&job}, look_up, &visited); !cycle.empty()) {
    return Hold{
        reason::kAfterCycle,
        fmt::format("TrainJobs wait for each other: {}; change the annotation {} of one", cycle, kAfterAnnotation),
        true};
  }
  std::optional<Hold> first;
  for (const Awaited& each : *awaited) {
    std::optional<Hold> hold = HoldBy(each, look_up);
    if (hold && (!first || (hold->warning && !first->warning))) first = std::move(hold);
  }
  return first;
}

}  // namespace muster::controller
