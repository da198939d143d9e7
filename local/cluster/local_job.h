// SPDX-License-Identifier: Apache-2.0
// The job of a local run. A pass decides as the controller in a cluster does, by the same code (controller/reconcile),
// and carries the actions out in the World. Pure, except for the random bytes of tokens. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/api/job_failure.h"
#include "controller/plan/plan_files.h"
#include "controller/reconcile/steps.h"
#include "local/cluster/world.h"

namespace muster::local {

// The state of the job, for people and records.
struct LocalJobState {
  std::string kind, name;
  bool finished = false, succeeded = false;
  std::string state;    // the newest state of the status: "Running", "Restarting"
  std::string message;  // why it failed, or why nothing happens; empty: nothing to say
  int restarts = 0;     // used of the budget
  int budget = 0;
  std::vector<controller::Failure> failures;  // the newest last
};

class LocalJob {
 public:
  virtual ~LocalJob() = default;

  // Decides and carries the actions out. Idempotent: after a pass without a change in `world`, the next one does
  // nothing until something changes there or `again` has come. An error of an action goes into the job's status.
  virtual controller::Steps Pass(WallTime now) = 0;
  virtual LocalJobState State() const = 0;
};

// Both create the job in `world`, which must outlive the LocalJob, and plan it again: its objects name the uid that it
// gets by its creation. InvalidArgument: the job cannot be planned.
StatusOr<std::unique_ptr<LocalJob>> BeginTrainJob(const controller::PlannedTrainJob& planned,
                                                  const controller::PlanOptions& options, WallTime now, World* world);
StatusOr<std::unique_ptr<LocalJob>> BeginPyTorchJob(const controller::PlannedPyTorchJob& planned,
                                                    const controller::PlanOptions& options, WallTime now, World* world);

}  // namespace muster::local
