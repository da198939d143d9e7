// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/job_pod.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/meta.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/pod_object.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int kMostRestarts = 1'000'000;  // of one container

int CountOf(std::string_view text, int otherwise) {
  const auto number = ParseInt(text);
  return number && *number >= 0 && *number <= std::numeric_limits<int>::max() ? static_cast<int>(*number) : otherwise;
}

const Json& ReadyCondition(const Json& pod) {
  static const Json* const kNone = new Json();
  const Json& conditions = ListField(PartOf(pod, "status"), "conditions");
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [](const Json& condition) { return TextField(condition, "type") == "Ready"; });
  return found == conditions.end() ? *kNone : *found;
}

// Calls `count` for the containers of a list that run side by side: of init containers, only the sidecars.
using Count = std::function<void(const Json& status)>;
void ForRunning(const Json& pod, const char* list, const Count& count) {
  const bool init = std::string_view(list) == "initContainerStatuses";
  const std::set<std::string> sidecars = SidecarsOf(pod);
  for (const Json& status : ListField(PartOf(pod, "status"), list)) {
    if (!init || sidecars.contains(TextField(status, "name"))) count(status);
  }
}

// When the last of the pod's containers and sidecars ended; nullopt: not all of them have ended.
std::optional<WallTime> EndOfContainers(const Json& pod) {
  std::optional<WallTime> last;
  bool all = true;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    ForRunning(pod, list, [&](const Json& status) {
      const auto end = TimeField(PartOf(status, "state", "terminated"), "finishedAt");
      all = all && end;
      if (end) last = std::max(last, end);
    });
  }
  return all ? last : std::nullopt;
}

WallTime EndOf(const Json& pod, const Meta& meta) {
  if (const auto end = EndOfContainers(pod)) return *end;
  const Json& ready = ReadyCondition(pod);
  if (TextField(ready, "status") == "False") {
    if (const auto since = TimeField(ready, "lastTransitionTime")) return *since;
  }
  if (meta.deleted) {
    return *meta.deleted - std::chrono::seconds(CountField(PartOf(pod, "metadata"), "deletionGracePeriodSeconds"));
  }
  return meta.created.value_or(WallTime{});
}

int MostRestarts(const Json& pod, const char* list) {
  int most = 0;
  ForRunning(pod, list, [&](const Json& status) { most = std::max(most, CountField(status, "restartCount")); });
  return most;
}

// The sort key of GoesFirst(): pods that have made less progress come first, and of equal ones the newer pods.
auto RankOf(const JobPod& pod) {
  const Json& object = *pod.object;
  const bool placed = !TextField(PartOf(object, "spec"), "nodeName").empty();
  const int phase = pod.phase == "Running" ? 2 : pod.phase == "Unknown" ? 1 : 0;
  constexpr WallTime kLast = WallTime::max();
  const WallTime ready = pod.ready ? TimeField(ReadyCondition(object), "lastTransitionTime").value_or(kLast) : kLast;
  const WallTime created = TimeField(PartOf(object, "metadata"), "creationTimestamp").value_or(kLast);
  return std::tuple(placed, phase, pod.ready, -ready.time_since_epoch().count(),
                    -MostRestarts(object, "containerStatuses"), -MostRestarts(object, "initContainerStatuses"),
                    -created.time_since_epoch().count(), -pod.index, pod.name);
}

}  // namespace

StatusOr<JobPod> ReadJobPod(const Json& object) {
  MUSTER_ASSIGN_OR_RETURN(const Meta meta, ReadMeta(object));
  JobPod pod;
  pod.object = &object;
  pod.name = meta.name;
  const Json& status = PartOf(object, "status");
  pod.phase = TextField(status, "phase");
  pod.index = CountOf(meta.Annotation(kIndexLabel), -1);
  const Json& finalizers = ListField(PartOf(object, "metadata"), "finalizers");
  pod.tracked = std::find(finalizers.begin(), finalizers.end(), kTrackingFinalizer) != finalizers.end();
  pod.deleted = meta.deleted.has_value();
  pod.ready = TextField(ReadyCondition(object), "status") == "True";
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : ListField(status, list)) {
      pod.restarts += std::min(CountField(container, "restartCount"), kMostRestarts);
    }
  }
  pod.failures = CountOf(meta.Annotation(kIndexFailuresAnnotation), 0);
  pod.ignored = CountOf(meta.Annotation(kIndexIgnoredAnnotation), 0);
  pod.ended = EndOf(object, meta);
  return pod;
}

bool GoesFirst(const JobPod& a, const JobPod& b) { return RankOf(a) < RankOf(b); }

}  // namespace muster::local
