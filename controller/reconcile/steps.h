// What a decision about a job comes to, whatever kind of job it is: actions, events, when to look again.
// controller/kube carries the actions out.
//
// Each action may fail or be repeated: a decision goes by what is observed alone, and by the status it wrote itself.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "controller/plan/plan.h"

namespace muster::controller {

struct Action {
  enum class Kind {
    kCreateService,
    kCreateObject,  // one of Plan::objects
    kCreateJob,
    kCreatePod,
    kCreatePodOfJob,  // of the Job `job`, from its template
    kScaleJob,        // to `pods`
    kTellPod,         // that there are meant to be `pods` of its job
    kAdoptPod,        // which belongs to nobody
    kSuspendJob,
    kDeleteJob,
    kDeletePod,
    kDropPod,  // deleted without waiting for its node, which does not answer
    kDeleteService,
    kDeleteObject,   // `object` has its apiVersion and kind
    kSuspendJobSet,  // of Kubeflow Trainer: taken_over.h
    kResumeJobSet,
    kDeleteJobSet,
    kDeleteOwner  // the job itself
  };
  Kind kind;
  std::string name;  // of the object
  std::string uid;   // of what is deleted or changed, of a new pod's Job: a precondition, so that nothing newer is hit
  Json object;       // of what is created
  std::string job;   // of a new pod
  int index = 0;     // of a new pod
  int pods = 0;
  PlannedObject::IfThere if_there = PlannedObject::IfThere::kBelongs;  // of one of Plan::objects
  PlannedObject::Fill fill = PlannedObject::Fill::kNothing;            // the same
};

struct EventText {
  bool warning = false;
  std::string reason, message;
};

struct Steps {
  std::vector<Action> actions;   // in order; each only after those before it have succeeded
  bool status_first = false;     // the status is written before the actions, else after them
  bool status_may_wait = false;  // nor is it written, nor are the events: a pass that comes soon says more
  std::vector<EventText> events;
  std::optional<WallTime> again;  // decide anew then, whatever happens until then
  std::string reason;             // one sentence, for the log

  void LookAgain(WallTime when) { again = again ? std::min(*again, when) : when; }
};

}  // namespace muster::controller
