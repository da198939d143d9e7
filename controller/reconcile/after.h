// SPDX-License-Identifier: Apache-2.0
// The annotation muster.dev/after: TrainJobs of the same namespace that must end before a job creates its Jobs. Pure;
// untrusted input.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controller/api/train_job.h"

namespace muster::controller {

inline constexpr char kAfterAnnotation[] = "muster.dev/after";

struct Awaited {
  enum class Until { kComplete, kFailed, kAny };
  std::string job;
  Until until = Until::kComplete;
  bool operator==(const Awaited&) const = default;
};

// Reads "prepare,tune=Any" of the annotation. Empty: there is none. InvalidArgument names the wrong part and remedy.
StatusOr<std::vector<Awaited>> ReadAfter(const TrainJob& job);

// Why a job does not begin yet.
struct Hold {
  std::string reason;  // one word: WaitingForTrainJob, or an error for a person to correct
  std::string message;
  bool warning = false;  // a person has to act
};

// A TrainJob of the same namespace. Null: Muster runs none of that name.
using LookUp = std::function<const TrainJob*(const std::string& name)>;

// Returns nullopt if the job may begin. A job that has begun (status.startTime) never waits again. Decide ignores the
// hold of a suspended job.
std::optional<Hold> HoldOf(const TrainJob& job, const LookUp& look_up);

}  // namespace muster::controller
