#include "controller/reconcile/waiting.h"

#include <algorithm>

#include "base/text.h"
#include "controller/reconcile/failure.h"
#include "controller/reconcile/next_step.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kSecond{1};  // times of Kubernetes are whole seconds

Wait WithStep(std::string reason, std::string_view said, std::string message) {
  if (const std::string_view step = NextStepOfWait(reason, said); !step.empty()) message += fmt::format("; {}", step);
  return {std::move(reason), std::move(message)};
}

}  // namespace

bool IsNews(const Wait& wait, const std::string& message) {
  return !wait.reason.empty() && message.find(wait.reason) == std::string::npos;
}

std::optional<Wait> WaitOf(const ObservedPod& pod, WallTime now, std::optional<WallTime>* again) {
  if (pod.phase == "Succeeded" || pod.phase == "Failed") return std::nullopt;
  // The node controller tells the pods of a node that does not answer, and sets their condition Ready to False.
  if (pod.event.reason == "NodeNotReady" && !pod.ready && pod.event.last + kSecond >= pod.moved) {
    return Wait{pod.event.reason,
                fmt::format("pod {}: its node {} is not ready, and does not answer", pod.meta.name, pod.node)};
  }
  if (pod.meta.deleted) return std::nullopt;
  if (!pod.waiting.empty()) {
    std::string message = fmt::format("pod {}: {}", pod.meta.name, pod.waiting);
    if (pod.waiting_reason == "CrashLoopBackOff") {
      if (const auto newest = NewestFailureOf(pod, {})) message += fmt::format("; {}", Explain(newest->failure));
    }
    return WithStep(pod.waiting_reason, pod.waiting, std::move(message));
  }
  if (pod.pending.empty()) return std::nullopt;
  if (const WallTime due = pod.moved + kMovesOn; now < due) {
    *again = *again ? std::min(**again, due) : due;
    return std::nullopt;
  }
  // An Event from before the pod moved on speaks of something else.
  if (!pod.event.reason.empty() && pod.event.last >= pod.moved) {
    return WithStep(pod.event.reason, pod.event.message,
                    fmt::format("pod {}: {}: {}", pod.meta.name, pod.event.reason, pod.event.message));
  }
  return Wait{pod.gated ? "SchedulingGated" : "", fmt::format("pod {}: {}", pod.meta.name, pod.pending)};
}

}  // namespace muster::controller
