// Which pods under the agent are made anew at once. Pure.
//
// The other pods of the job wait for the lost one. The Job controller brings it back, too, but lets 10 s pass after the
// first failure of a Job, 20 s after the second, up to 10 minutes (job_controller.go, DefaultJobPodFailureBackOff). A
// pod that Muster makes from the Job's own template is one of that Job's in each respect: the Job controller counts it,
// ends it and makes no second one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/reconcile/progress.h"

namespace muster::controller {

// A pod is taken for lost when it is still there so long after it should have ended: its node does not answer.
inline constexpr std::chrono::seconds kLostAfter{30};

struct Replacement {
  const ObservedPod* lost = nullptr;
  std::string name;    // of the new pod: the same for the same lost one, so that it is made once
  bool stuck = false;  // the lost one has not ended
};

struct Replacements {
  std::vector<Replacement> now;
  std::optional<WallTime> again;  // when the first pod that is ending now counts as lost
};

// A pod that lived so long had begun well: what ended it is new, and the next one may come at once.
inline constexpr std::chrono::seconds kGoodLife{60};

// Of a Job that runs. Left to the Job controller and its growing pauses is a pod that failed and never ran, since a
// node that turns pods away would get one after the other; and one that failed soon after another of its index, since
// the budget would be used up before a fault of some seconds is over.
Replacements ReplacementsOf(const Placed& placed, WallTime now);

}  // namespace muster::controller
