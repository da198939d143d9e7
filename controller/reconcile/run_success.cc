// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/run_success.h"

#include <algorithm>
#include <set>

#include "base/exit_codes.h"
#include "base/text.h"
#include "controller/api/reasons.h"

namespace muster::controller {
namespace {

// An agent found no coordinator, or too few nodes.
bool GaveUp(const ObservedEnd& end) {
  const bool gave_up = end.exit_code == kExitRendezvousTimeout || end.exit_code == kExitCoordinatorLost;
  return gave_up && !end.init && end.message && end.finished;
}

}  // namespace

std::optional<WallTime> RunSucceededAt(std::string_view run_id, const std::vector<const ObservedPod*>& pods,
                                       int least_rank) {
  std::optional<WallTime> first;
  for (const ObservedPod* pod : pods) {
    for (const ObservedEnd& end : pod->ends) {
      if (end.exit_code != 0 || end.started_again || !end.message || !end.message->round || !end.finished) continue;
      if (end.message->run_id != run_id || end.message->inner_exit_code.value_or(0) != 0) continue;
      if (end.message->node_rank.value_or(0) < least_rank) continue;
      if (!first || *end.finished < *first) first = end.finished;
    }
  }
  return first;
}

bool HasUnseenSuccess(const ObservedJob& job, const std::vector<const ObservedPod*>& pods) {
  if (job.completed.empty()) return false;
  std::set<int> seen;
  for (const ObservedPod* pod : pods) {
    if (pod->index && (pod->phase == "Succeeded" || StillRuns(*pod))) seen.insert(*pod->index);
  }
  for (int index = 0; index < job.pods; ++index) {
    if (!seen.contains(index) && HasCompleted(job, index)) return true;
  }
  return false;
}

std::optional<WallTime> UnseenRunEndedAt(const ObservedJob& job, const std::vector<const ObservedPod*>& pods) {
  std::optional<WallTime> first;
  for (const ObservedPod* pod : pods) {
    for (const ObservedEnd& end : pod->ends) {
      if (!GaveUp(end)) continue;
      if (!first || *end.finished < *first) first = end.finished;
    }
  }
  return first && HasUnseenSuccess(job, pods) ? first : std::nullopt;
}

bool CameTooLate(const ObservedPod& pod, WallTime ended) {
  return StillRuns(pod) && (pod.phase == "Pending" || (pod.meta.created && *pod.meta.created > ended));
}

bool FoundNobody(const ObservedPod& pod, WallTime ended) {
  return std::any_of(pod.ends.begin(), pod.ends.end(),
                     [ended](const ObservedEnd& end) { return GaveUp(end) && *end.finished >= ended; });
}

EventText SucceededWithout(const std::string& pod) {
  return {false, reason::kNotNeeded,
          fmt::format("the run has succeeded without pod {}: nothing is left for it to do", pod)};
}

}  // namespace muster::controller
