#include "controller/reconcile/replacement.h"

#include <algorithm>
#include <map>
#include <vector>

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

}  // namespace

Replacements ReplacementsOf(const Placed& placed, WallTime now) {
  Replacements replacements;
  struct Index {
    int lost = 0;
    Replacement newest;
  };
  std::map<int, Index> indexes;  // of lost pods
  std::vector<int> kept;         // indexes that need no new pod: nearly all
  bool any_stuck = false;
  for (const ObservedPod* pod : placed.pods) {
    if (!pod->index || *pod->index >= placed.job->pods || IsScaledAway(*pod, *placed.planned)) continue;
    if (HasCompleted(*placed.job, *pod->index)) continue;
    const bool failed = pod->phase == "Failed";
    bool stuck = false;
    if (!failed && pod->phase != "Succeeded" && pod->meta.deleted) {
      const WallTime end = *pod->meta.deleted + kLostAfter;
      stuck = end <= now;
      any_stuck = any_stuck || stuck;
      if (!stuck) replacements.again = replacements.again ? std::min(*replacements.again, end) : end;
    }
    if ((!failed && !stuck) || HasSucceeded(*pod, now)) {
      kept.push_back(*pod->index);
      continue;
    }
    Index& index = indexes[*pod->index];
    ++index.lost;
    if (index.newest.lost == nullptr || IsNewer(*pod, *index.newest.lost)) index.newest = {pod, "", stuck};
  }
  if (indexes.empty()) return replacements;
  for (const int index : kept) indexes.erase(index);
  for (auto& [number, index] : indexes) {
    const ObservedPod& pod = *index.newest.lost;
    // While one pod does not end, the Job controller creates none, for any index: Muster replaces all lost pods.
    const bool waits = !pod.ran || (index.lost > 1 && !LivedWell(pod));
    if (waits && !any_stuck) continue;
    index.newest.name = ReplacementPodName(placed.job->meta.name, number, pod.meta.uid);
    replacements.now.push_back(std::move(index.newest));
  }
  return replacements;
}

}  // namespace muster::controller
