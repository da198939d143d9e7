// SPDX-License-Identifier: Apache-2.0
// Why a pod does not run yet. Pure.
#pragma once

#include <optional>
#include <string>

#include "controller/reconcile/observed.h"

namespace muster::controller {

// A pod that has not moved on for this long is named. Before, it is on its way.
inline constexpr std::chrono::seconds kMovesOn{10};

struct Wait {
  std::string reason;       // a word of Kubernetes; empty: nothing is known to be wrong
  std::string message;      // for people, with the pod's name; empty: it waits for nothing
  bool for_others = false;  // it would fit, and another pod of its PodGroup does not
};

// Whether `wait` says more about what is wrong than `than`.
bool SaysMore(const Wait& wait, const Wait& than);
// Whether `wait` says as much as a wait can.
bool SaysAll(const Wait& wait);

// Whether a job that waits for `wait` has not said so in `message`, its last one.
bool IsNews(const Wait& wait, const std::string& message);

// nullopt: the pod runs on a node that answers, has ended, is being deleted, or is on its way. In the last case `again`
// becomes the time when it is to be named, unless it is earlier already.
std::optional<Wait> WaitOf(const ObservedPod& pod, WallTime now, std::optional<WallTime>* again);

}  // namespace muster::controller
