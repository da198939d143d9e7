// SPDX-License-Identifier: Apache-2.0
// Pods whose nodes the agents of their job have lost, while Kubernetes believes that they run: agents know it within
// milliseconds, Kubernetes after 40 s (docs/restarts.md, "A lost node"). Pure; the word of the agents is untrusted.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// The new pod of a lost one may not run on the lost one's node for so long. By then Kubernetes has noticed (40 s, or
// 50 s from version 1.32 on) if that node is gone; if not, the pod may run there again.
inline constexpr std::chrono::seconds kExclusionHolds{60};

class LostPods {
 public:
  LostPods() = default;
  // Of each pod that has a node and runs by Kubernetes' word: the pod counts as lost if a pod of the same job on
  // another node says so (Observed::agents), and its due time has come. Not if a container of it has ended, since a
  // kubelet reported that; nor a new pod of a lost one that was lost itself within kGoodLife: one word, one new pod.
  LostPods(const Observed& observed, WallTime now);

  // Null: `pod` is not lost. Valid as long as `observed`.
  const LostNode* Find(const ObservedPod& pod) const;
  // When the next pod counts as lost, if the agents say nothing else until then.
  const std::optional<WallTime>& again() const { return again_; }

 private:
  std::map<const ObservedPod*, const LostNode*> lost_;
  std::optional<WallTime> again_;
};

std::string WhyLost(const LostNode& lost);  // "its connection closed"

// A pod that has lost its sandbox before it started is left for so long: the status may only be late.
inline constexpr std::chrono::seconds kStrandedFor{15};

// Deletes a pod that waits in vain, when its time has come, or looks again then: at the end of its exclusion from a
// node (excluded_node), or kStrandedFor after the loss of its sandbox (ObservedPod::stranded; an event says so). True:
// it is deleted.
bool GiveUp(const ObservedPod& pod, WallTime now, Steps* steps);

// What is done about a pod of a PyTorchJob, whose name its successor needs. A lost one is deleted by force; one that
// waits in vain is deleted. Returns the node on which the next pod may not run, maybe "". nullopt: nothing is done.
std::optional<std::string> MoveOn(const ObservedPod& pod, const LostPods& lost, WallTime now, Steps* steps);

// Deletes by force a pod that was told to end kLostAfter ago: it would keep its name for ever.
void DropWhereStuck(const ObservedPod& pod, WallTime now, Steps* steps);

}  // namespace muster::controller
