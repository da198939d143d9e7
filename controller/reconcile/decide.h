// What to do about one TrainJob now: (job, plan, observed, now) -> actions, status, events. Pure, and the only place
// where it is decided; controller/kube and controller/local carry it out. One file for each policy.
//
// Idempotent: after all actions are carried out and observed, the next decision has none. Each action may fail or be
// repeated: a decision goes by what is observed alone, and by the status it wrote itself.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/train_job.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

struct Action {
  enum class Kind {
    kCreateService,
    kCreateObject,  // one of Plan::objects
    kCreateJob,
    kCreatePod,  // of the Job `job`, from its template
    kScaleJob,   // to `pods`
    kTellPod,    // that there are meant to be `pods` of its Job
    kSuspendJob,
    kDeleteJob,
    kDeletePod,
    kSuspendJobSet,  // of Kubeflow Trainer: taken_over.h
    kResumeJobSet,
    kDeleteJobSet,
    kDeleteTrainJob
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

struct Decision {
  std::vector<Action> actions;  // in order; each only after those before it have succeeded
  TrainJobStatus status;        // to be written before the actions where `status_first`, else after them
  bool status_first = false;
  bool status_may_wait = false;  // nor is it written, nor are the events: a pass that comes soon says more
  std::vector<EventText> events;
  std::optional<WallTime> again;  // decide anew then, whatever happens until then
  std::string reason;             // one sentence, for the log

  void LookAgain(WallTime when) { again = again ? std::min(*again, when) : when; }
};

// Of a job that has not ended (else finished.h).
Decision Decide(const TrainJob& job, const Plan& plan, const Observed& observed, WallTime now);

// The status of a job that cannot be planned: `why` names what is missing or wrong, with the remedy.
Decision DecideWithoutPlan(const TrainJob& job, const Status& why, WallTime now);

}  // namespace muster::controller
