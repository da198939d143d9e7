// The controllers of a cluster, for the objects of one local run: the job's own passes and, for each of its Jobs, what
// Kubernetes' Job controller does. Pure, but for the random bytes of tokens. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/local/local_job.h"
#include "controller/local/world.h"

namespace muster::controller {

class Controllers {
 public:
  // Both outlive it.
  Controllers(World* world, LocalJob* job) : world_(world), job_(job) {}

  struct Settled {
    std::vector<EventText> events;      // in their order
    std::optional<WallTime> again;      // then something is due, even if nothing changes
    std::vector<std::string> troubles;  // what could not be done; tried again with the next call
  };

  // Pass after pass until none changes anything. Call it when something has changed in the world, and at `again`.
  Settled Settle(WallTime now);

 private:
  Status StepOne(const std::string& name, WallTime now, Settled* settled);

  World* const world_;
  LocalJob* const job_;
  uint64_t pods_ = 0;  // made so far
};

}  // namespace muster::controller
