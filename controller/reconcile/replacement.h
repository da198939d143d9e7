// SPDX-License-Identifier: Apache-2.0
// Which lost pods under the agent are replaced at once. Pure.
//
// The other pods of the job wait for the lost one. The Job controller would replace it too, but 10 s after the first
// failure of a Job, 20 s after the second, and so on up to 10 minutes. Source: job_controller.go,
// DefaultJobPodFailureBackOff. A pod that Muster creates from the Job's own template is a full member of the Job: the
// Job controller counts it, ends it and creates no second one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/reconcile/lost_nodes.h"
#include "controller/reconcile/steps.h"
#include "controller/reconcile/train_job_progress.h"

namespace muster::controller {

// A pod counts as lost if it still exists this long after it should have ended: its node does not answer.
inline constexpr std::chrono::seconds kLostAfter{30};

struct Replacement {
  int index = 0;
  const ObservedPod* lost = nullptr;  // null: the index has no pod
  std::string name;    // of the new pod; the same lost pod gives the same name, so that only one is created
  bool stuck = false;  // the lost pod has not ended
  const LostNode* by_word = nullptr;  // the agents have lost its node, and it may not have been deleted; null: else
};

struct Replacements {
  std::vector<Replacement> now;
  std::optional<WallTime> again;  // when the first pod that is ending now counts as lost
};

// How long the Job controller's pause is waited for. It grows up to 10 minutes.
inline constexpr std::chrono::seconds kLeftToKubernetes{60};

// A pod that lived this long has started well. Its failure is a new one, so it may be replaced at once.
inline constexpr std::chrono::seconds kGoodLife{60};

// The replacements for a Job that runs. Two kinds of pods are left to the Job controller, for kLeftToKubernetes: those
// that failed before they ran, since a node that rejects pods would get one after the other; and those that failed soon
// after another of their index, since a fault of a few seconds would use up the restart budget. An index whose pod is
// gone gets one as well, if the Job has failed pods: the Job controller pauses for it, too.
Replacements ReplacementsOf(const Placed& placed, const LostPods& lost, WallTime now);

// Creates them. A pod that the agents have lost is deleted first, and its replacement goes to another node. Gives up
// the pods that wait in vain, if the job `has_budget`: Kubernetes counts their deletion as a failure of the Job.
void Replace(const Placed& placed, const LostPods& lost, bool has_budget, WallTime now, Steps* steps);

}  // namespace muster::controller
