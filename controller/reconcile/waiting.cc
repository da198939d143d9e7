#include "controller/reconcile/waiting.h"

#include <algorithm>

#include "base/text.h"

namespace muster::controller {

std::optional<Wait> WaitOf(const ObservedPod& pod, WallTime now, std::optional<WallTime>* again) {
  if (!StillRuns(pod)) return std::nullopt;
  if (!pod.waiting.empty()) return Wait{pod.waiting_reason, fmt::format("pod {}: {}", pod.meta.name, pod.waiting)};
  if (pod.pending.empty()) return std::nullopt;
  if (const WallTime due = pod.moved + kMovesOn; now < due) {
    *again = *again ? std::min(**again, due) : due;
    return std::nullopt;
  }
  // An Event from before the pod moved on speaks of something else.
  if (!pod.event.reason.empty() && pod.event.last >= pod.moved) {
    return Wait{pod.event.reason, fmt::format("pod {}: {}: {}", pod.meta.name, pod.event.reason, pod.event.message)};
  }
  return Wait{pod.gated ? "SchedulingGated" : "", fmt::format("pod {}: {}", pod.meta.name, pod.pending)};
}

}  // namespace muster::controller
