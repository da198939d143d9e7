// SPDX-License-Identifier: Apache-2.0
// A cluster's controllers for the objects of one local run: Muster's passes for the job, and for each batch/v1 Job the
// steps of Kubernetes' Job controller. Pure, except for the random bytes of tokens. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "local/cluster/local_job.h"
#include "local/cluster/world.h"

namespace muster::local {

class Controllers {
 public:
  // `world` and `job` outlive the Controllers.
  Controllers(World* world, LocalJob* job) : world_(world), job_(job) {}

  struct Settled {
    std::vector<controller::EventText> events;  // in their order
    std::optional<WallTime> again;              // call Settle() again then, even if nothing has changed
    std::vector<std::string> troubles;          // errors; the next call tries again
  };

  // Makes passes until a pass changes nothing. Call it when an object in the world has changed, and at `again`.
  Settled Settle(WallTime now);

 private:
  Status StepOne(const std::string& name, WallTime now, Settled* settled);

  World* const world_;
  LocalJob* const job_;
  uint64_t pods_ = 0;  // made so far
};

}  // namespace muster::local
