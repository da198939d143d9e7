#include "controller/reconcile/replacement.h"

#include <algorithm>
#include <map>

#include "controller/plan/pod_object.h"

namespace muster::controller {
namespace {

bool IsComplete(const ObservedJob& job, int index) {
  return std::any_of(job.completed.begin(), job.completed.end(),
                     [index](const auto& range) { return range.first <= index && index <= range.second; });
}

bool IsNewer(const ObservedPod& a, const ObservedPod& b) {
  return std::tie(a.meta.created, a.meta.name) > std::tie(b.meta.created, b.meta.name);
}

}  // namespace

Replacements ReplacementsOf(const Placed& placed, WallTime now) {
  Replacements replacements;
  std::map<int, Replacement> lost;  // by index
  std::map<int, bool> kept;         // indexes that need no new pod
  for (const ObservedPod* pod : placed.pods) {
    if (!pod->index || *pod->index >= placed.job->pods || IsComplete(*placed.job, *pod->index)) continue;
    const bool failed = pod->phase == "Failed";
    bool stuck = false;
    if (!failed && pod->phase != "Succeeded" && pod->meta.deleted) {
      const WallTime end = *pod->meta.deleted + kLostAfter;
      stuck = end <= now;
      if (!stuck) replacements.again = replacements.again ? std::min(*replacements.again, end) : end;
    }
    if (!failed && !stuck) {
      kept[*pod->index] = true;
      continue;
    }
    Replacement& newest = lost[*pod->index];
    if (newest.lost == nullptr || IsNewer(*pod, *newest.lost)) newest = {pod, "", stuck};
  }
  for (auto& [index, replacement] : lost) {
    if (kept[index] || (!replacement.lost->ran && !replacement.stuck)) continue;
    replacement.name = ReplacementPodName(placed.job->meta.name, index, replacement.lost->meta.uid);
    replacements.now.push_back(std::move(replacement));
  }
  return replacements;
}

}  // namespace muster::controller
