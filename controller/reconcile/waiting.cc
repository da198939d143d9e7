// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/waiting.h"

#include <algorithm>

#include "base/text.h"
#include "controller/reconcile/failure.h"
#include "controller/reconcile/next_step.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kSecond{1};  // times of Kubernetes are whole seconds
// The scheduler's message about a pod of a PodGroup that would fit. Source: schedule_one_podgroup.go.
constexpr std::string_view kForOthers = "Unschedulable: pod group is unschedulable";

enum class Says { kNothing, kWaits, kWaitsForOthers, kWhatIsWrong };

Says HowMuch(const Wait& wait) {
  if (wait.message.empty()) return Says::kNothing;
  if (wait.reason.empty()) return Says::kWaits;
  return wait.for_others ? Says::kWaitsForOthers : Says::kWhatIsWrong;
}

Wait WithStep(std::string reason, std::string_view said, std::string message) {
  if (const std::string_view step = NextStepOfWait(reason, said); !step.empty()) message += fmt::format("; {}", step);
  return {std::move(reason), std::move(message)};
}

}  // namespace

bool SaysMore(const Wait& wait, const Wait& than) { return HowMuch(wait) > HowMuch(than); }
bool SaysAll(const Wait& wait) { return HowMuch(wait) == Says::kWhatIsWrong; }

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
  const std::string elsewhere =
      pod.excluded_node.empty()
          ? ""
          : fmt::format("; not on node {}, where the job's agents have lost its predecessor", pod.excluded_node);
  if (!pod.waiting.empty()) {
    std::string message = fmt::format("pod {}: {}{}", pod.meta.name, pod.waiting, elsewhere);
    if (pod.waiting_reason == "CrashLoopBackOff") {
      if (const auto newest = NewestFailureOf(pod, {})) message += fmt::format("; {}", Explain(newest->failure));
    }
    Wait wait = WithStep(pod.waiting_reason, pod.waiting, std::move(message));
    wait.for_others = pod.waiting.starts_with(kForOthers);
    return wait;
  }
  if (pod.pending.empty()) return std::nullopt;
  if (const WallTime due = pod.moved + kMovesOn; now < due && elsewhere.empty()) {
    *again = *again ? std::min(**again, due) : due;
    return std::nullopt;
  }
  // An Event from before the pod moved on speaks of something else.
  if (!pod.event.reason.empty() && pod.event.last >= pod.moved) {
    return WithStep(pod.event.reason, pod.event.message,
                    fmt::format("pod {}: {}: {}", pod.meta.name, pod.event.reason, pod.event.message));
  }
  return Wait{pod.gated ? "SchedulingGated" : "", fmt::format("pod {}: {}{}", pod.meta.name, pod.pending, elsewhere)};
}

}  // namespace muster::controller
