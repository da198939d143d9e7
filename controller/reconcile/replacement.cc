// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/replacement.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "controller/api/reasons.h"
#include "controller/plan/pod_object.h"
#include "controller/reconcile/deciding.h"

namespace muster::controller {
namespace {

bool IsNewer(const ObservedPod& a, const ObservedPod& b) {
  return std::tie(a.meta.created, a.meta.name) > std::tie(b.meta.created, b.meta.name);
}

bool LivedWell(const ObservedPod& pod) {
  return std::any_of(pod.ends.begin(), pod.ends.end(), [&pod](const ObservedEnd& end) {
    return end.finished && pod.meta.created && *end.finished - *pod.meta.created >= kGoodLife;
  });
}

// When the pod failed, as far as is known.
WallTime FailedAt(const ObservedPod& pod) {
  WallTime last = pod.meta.created.value_or(WallTime{});
  for (const ObservedEnd& end : pod.ends) last = std::max(last, end.finished.value_or(WallTime{}));
  return last;
}

// The Job controller waits before it creates the next pods. Source: job_controller.go, getRemainingTime.
bool Pauses(const ObservedJob& job) { return job.failed > 0 && job.active + job.succeeded < job.pods; }

}  // namespace

Replacements ReplacementsOf(const Placed& placed, const LostPods& lost, WallTime now) {
  Replacements replacements;
  struct Index {
    int lost = 0;
    Replacement newest;
  };
  std::map<int, Index> indexes;  // of lost pods
  std::vector<int> kept;         // indexes that need no new pod: nearly all
  bool any_stuck = false;
  const auto again = [&replacements](WallTime when) {
    replacements.again = replacements.again ? std::min(*replacements.again, when) : when;
  };
  for (const ObservedPod* pod : placed.pods) {
    if (!pod->index || *pod->index >= placed.job->pods || IsScaledAway(*pod, *placed.planned)) continue;
    if (HasCompleted(*placed.job, *pod->index)) continue;
    const bool failed = pod->phase == "Failed";
    const LostNode* by_word = lost.Find(*pod);
    bool stuck = by_word != nullptr;
    if (!stuck && !failed && pod->phase != "Succeeded" && pod->meta.deleted) {
      // No kubelet is to end a pod that has no node.
      const WallTime end = pod->node.empty() && !pod->excluded_node.empty() ? now : *pod->meta.deleted + kLostAfter;
      stuck = end <= now;
      if (!stuck) again(end);
    }
    any_stuck = any_stuck || stuck;
    if ((!failed && !stuck) || HasSucceeded(*pod, now)) {
      kept.push_back(*pod->index);
      continue;
    }
    Index& index = indexes[*pod->index];
    ++index.lost;
    if (index.newest.lost == nullptr || IsNewer(*pod, *index.newest.lost)) {
      index.newest = {*pod->index, pod, "", stuck, by_word};
    }
  }
  if (Pauses(*placed.job)) {
    std::set<int> there(kept.begin(), kept.end());
    for (const auto& [number, index] : indexes) there.insert(number);
    for (int number = 0; number < std::min(placed.job->pods, placed.planned->pods); ++number) {
      if (there.contains(number) || HasCompleted(*placed.job, number)) continue;
      const std::string name = ReplacementPodName(placed.job->meta.name, number, placed.job->meta.uid);
      replacements.now.push_back({number, nullptr, name});
    }
  }
  if (indexes.empty()) return replacements;
  for (const int index : kept) indexes.erase(index);
  for (auto& [number, index] : indexes) {
    const ObservedPod& pod = *index.newest.lost;
    // While one pod does not end, the Job controller creates none, for any index: Muster replaces all lost pods.
    const bool waits = !any_stuck && (!pod.ran || (index.lost > 1 && !LivedWell(pod)));
    if (const WallTime until = FailedAt(pod) + kLeftToKubernetes; waits && now < until) {
      again(until);
      continue;
    }
    index.newest.name = ReplacementPodName(placed.job->meta.name, number, pod.meta.uid);
    replacements.now.push_back(std::move(index.newest));
  }
  return replacements;
}

void Replace(const Placed& placed, const LostPods& lost, bool has_budget, WallTime now, Steps* steps) {
  using Kind = Action::Kind;
  const Replacements found = ReplacementsOf(placed, lost, now);
  if (found.again) steps->LookAgain(*found.again);
  for (const ObservedPod* pod : placed.pods) {
    if (has_budget) GiveUp(*pod, now, steps);
  }
  for (const Replacement& replacement : found.now) {
    Action action{.kind = Kind::kCreatePodOfJob, .name = replacement.name, .uid = placed.job->meta.uid};
    action.job = placed.job->meta.name;
    action.index = replacement.index;
    if (replacement.lost == nullptr) {
      steps->actions.push_back(std::move(action));
      continue;
    }
    const ObservedPod& old = *replacement.lost;
    const bool by_word = replacement.by_word != nullptr;
    if (by_word && !old.meta.deleted) steps->actions.push_back({Kind::kDeletePod, old.meta.name, old.meta.uid});
    if (by_word) action.not_on = old.node;
    steps->actions.push_back(std::move(action));
    if (!replacement.stuck) continue;
    const std::string why =
        by_word ? fmt::format("the agents have lost pod {} (node {}): {}; pod {} replaces it on another node",
                              old.meta.name, old.node, WhyLost(*replacement.by_word), replacement.name)
        : old.node.empty() ? fmt::format("no node but {} fits pod {}; pod {} replaces it on any node",
                                         old.excluded_node, old.meta.name, replacement.name)
                           : fmt::format("pod {} (node {}) is still terminating; pod {} replaces it", old.meta.name,
                                         old.node, replacement.name);
    steps->events.push_back({true, reason::kPodLost, why});
  }
}

}  // namespace muster::controller
