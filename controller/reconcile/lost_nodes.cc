// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/lost_nodes.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/reasons.h"
#include "controller/reconcile/replacement.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kWholeSeconds{2};  // times of Kubernetes are whole seconds, and of another clock

// A kubelet has reported the end of a container since the loss, or one that is not started again.
bool KubeletSpoke(const ObservedPod& pod, const LostNode& lost) {
  return std::any_of(pod.ends.begin(), pod.ends.end(), [&lost](const ObservedEnd& end) {
    return !end.init && (!end.started_again || end.finished.value_or(lost.lost) + kWholeSeconds >= lost.lost);
  });
}

// Kubernetes believes that the pod runs, or waits for its end.
bool SeemsToRun(const ObservedPod& pod) { return pod.phase == "Running" && !pod.node.empty(); }

// The pod of this address. Null: none, or several share the address of their node.
const ObservedPod* OnlyOneAt(const std::string& address, const std::vector<ObservedPod>& pods) {
  const ObservedPod* found = nullptr;
  for (const ObservedPod& pod : pods) {
    if (pod.address != address || !SeemsToRun(pod)) continue;
    if (found != nullptr) return nullptr;
    found = &pod;
  }
  return found;
}

bool WasLostSoon(const ObservedPod& pod, const LostNode& lost) {
  return !pod.excluded_node.empty() && pod.meta.created && lost.lost < *pod.meta.created + kGoodLife;
}

// When a pod that waits in vain is deleted. nullopt: any other pod.
std::optional<WallTime> GivenUpAt(const ObservedPod& pod) {
  if (StillRuns(pod) && pod.stranded) return *pod.stranded + kStrandedFor;
  const bool waits = StillRuns(pod) && pod.node.empty() && !pod.excluded_node.empty() && pod.meta.created;
  return waits ? std::optional(*pod.meta.created + kExclusionHolds) : std::nullopt;
}

}  // namespace

LostPods::LostPods(const Observed& observed, WallTime now) {
  if (!observed.agents || observed.agents->lost.empty()) return;
  const auto speaker = std::find_if(observed.pods.begin(), observed.pods.end(), [&observed](const ObservedPod& pod) {
    return pod.meta.uid == observed.agents->pod_uid;
  });
  if (speaker == observed.pods.end()) return;
  for (const LostNode& lost : observed.agents->lost) {
    const ObservedPod* pod = OnlyOneAt(lost.address, observed.pods);
    if (pod == nullptr || pod->node == speaker->node) continue;  // a node that speaks is not lost
    if (KubeletSpoke(*pod, lost) || WasLostSoon(*pod, lost)) continue;
    if (lost.due <= now) {
      lost_[pod] = &lost;
    } else {
      again_ = again_ ? std::min(*again_, lost.due) : lost.due;
    }
  }
}

const LostNode* LostPods::Find(const ObservedPod& pod) const {
  const auto found = lost_.find(&pod);
  return found == lost_.end() ? nullptr : found->second;
}

std::string WhyLost(const LostNode& lost) { return lost.closed ? "its connection closed" : "it fell silent"; }

bool GiveUp(const ObservedPod& pod, WallTime now, Steps* steps) {
  const auto at = GivenUpAt(pod);
  if (!at) return false;
  if (now < *at) {
    steps->LookAgain(*at);
    return false;
  }
  steps->actions.push_back({Action::Kind::kDeletePod, pod.meta.name, pod.meta.uid});
  if (!pod.stranded) return true;
  steps->events.push_back({true, reason::kPodLost,
                           fmt::format("pod {} (node {}) lost its sandbox before it started, and the kubelet makes no "
                                       "other for it; it is created again",
                                       pod.meta.name, pod.node)});
  return true;
}

std::optional<std::string> MoveOn(const ObservedPod& pod, const LostPods& lost, WallTime now, Steps* steps) {
  if (const LostNode* how = lost.Find(pod)) {
    steps->actions.push_back({Action::Kind::kDropPod, pod.meta.name, pod.meta.uid});
    steps->events.push_back({true, reason::kPodLost,
                             fmt::format("the agents have lost pod {} (node {}): {}; it is deleted by force, and "
                                         "created again on another node",
                                         pod.meta.name, pod.node, WhyLost(*how))});
    return pod.node;
  }
  return GiveUp(pod, now, steps) ? std::optional<std::string>("") : std::nullopt;
}

void DropWhereStuck(const ObservedPod& pod, WallTime now, Steps* steps) {
  const WallTime lost = *pod.meta.deleted + kLostAfter;
  if (now < lost) return steps->LookAgain(lost);
  steps->actions.push_back({Action::Kind::kDropPod, pod.meta.name, pod.meta.uid});
  steps->events.push_back({true, reason::kPodLost,
                           fmt::format("pod {} (node {}) is still terminating; it is deleted by force, and recreated",
                                       pod.meta.name, pod.node)});
}

}  // namespace muster::controller
