// The job of a local run, in its World: a pass decides what the controller would decide, and carries it out there. The
// same code decides in both: controller/reconcile. Pure, but for the random bytes of tokens. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/api/job_failure.h"
#include "controller/local/world.h"
#include "controller/plan/plan_files.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// What a person wants to know of it.
struct LocalJobState {
  std::string kind, name;
  bool finished = false, succeeded = false;
  std::string state;    // "Running", "Restarting": the last thing that the status says
  std::string message;  // why it failed, or why nothing happens; empty: nothing to say
  int restarts = 0;     // used up of the budget
  int budget = 0;
  std::vector<Failure> failures;  // the newest last
};

class LocalJob {
 public:
  virtual ~LocalJob() = default;

  // Decides, and carries it out. Idempotent: after one that has changed nothing in `world`, the next does nothing until
  // something changes there, or `again` has come. An error of planning or of an action ends in the job's status.
  virtual Steps Pass(WallTime now) = 0;
  virtual LocalJobState State() const = 0;
};

// Both create the job in `world`, which outlives the LocalJob. InvalidArgument: it cannot be planned.
StatusOr<std::unique_ptr<LocalJob>> BeginTrainJob(const PlannedTrainJob& planned, const PlanOptions& options,
                                                  WallTime now, World* world);
StatusOr<std::unique_ptr<LocalJob>> BeginPyTorchJob(const PlannedPyTorchJob& planned, const PlanOptions& options,
                                                    WallTime now, World* world);

}  // namespace muster::controller
