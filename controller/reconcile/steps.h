// SPDX-License-Identifier: Apache-2.0
// The result of a decision about a job of any kind: actions, events, and when to decide again. controller/kube and
// local carry the actions out. Each action may fail or be repeated (see train_job_decide.h).
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "controller/plan/plan.h"

namespace muster::controller {

struct Action {
  enum class Kind {
    kCreateService,
    kCreateObject,  // one of TrainJobPlan::objects
    kCreateJob,
    kCreatePod,
    kCreatePodOfJob,  // of the Job `job`, from its template
    kScaleJob,        // to `pods`
    kAnnotatePod,     // the planned number of pods of its job, `pods`
    kEndPod,          // its containers end, and it stays: `container` has ended, which decides (deciding.h)
    kAdoptPod,        // a pod without a controller
    kSuspendJob,
    kDeleteJob,
    kDeletePod,
    kDropPod,  // delete it without waiting for its node, which does not answer
    kDeleteService,
    kDeleteObject,
    kSuspendJobSet,  // of Kubeflow Trainer: taken_over.h
    kResumeJobSet,
    kDeleteJobSet,
    kDeleteOwner  // the TrainJob or PyTorchJob itself
  };
  Kind kind;
  std::string name;  // of the object
  std::string uid;   // of the object, or a new pod's Job: a precondition, so that no newer object is hit
  // Makes the object to create; of kDeleteObject: {apiVersion, kind}. Call it when the object is sent, so that a job of
  // thousands of objects takes memory for those under way only. The job and the plan of the decision must still exist.
  std::function<Json()> object;
  size_t bytes = 0;    // of a new Job or pod, about
  std::string job;     // of a new pod
  std::string not_on;  // of kCreatePodOfJob: the node on which the pod may not run; empty: none
  std::string container;
  int index = 0;  // of a new pod
  int pods = 0;
  PlannedObject::IfThere if_there = PlannedObject::IfThere::kBelongs;  // for kCreateObject
  PlannedObject::Fill fill = PlannedObject::Fill::kNothing;            // for kCreateObject
};

// The most Services and pods of a PyTorchJob that one decision creates. The next decision follows at once.
inline constexpr size_t kMostCreations = 256;

struct EventText {
  bool warning = false;
  std::string reason, message;
};

struct Steps {
  std::vector<Action> actions;   // in order; each only after those before it have succeeded
  bool status_first = false;     // write the status before the actions, not after them
  bool status_may_wait = false;  // write neither status nor events now: the next pass, which comes soon, does
  std::vector<EventText> events;
  std::optional<WallTime> again;  // decide again then, even if nothing changes
  std::string reason;             // one sentence, for the log

  void LookAgain(WallTime when) { again = again ? std::min(*again, when) : when; }
};

}  // namespace muster::controller
