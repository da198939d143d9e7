// The annotation muster.dev/after: TrainJobs of its namespace that a job waits for before its Jobs are made. Pure;
// outside bytes.
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

// "prepare,tune=Any" of the annotation; empty: it is not there. InvalidArgument names the part and what is wanted.
StatusOr<std::vector<Awaited>> ReadAfter(const TrainJob& job);

// Why a job does not begin yet.
struct Hold {
  std::string reason;  // a word: WaitingForTrainJob, or one of those that call for a person
  std::string message;
  bool warning = false;  // it does not pass by itself
};

// A TrainJob of the same namespace; null: there is none that Muster runs.
using LookUp = std::function<const TrainJob*(const std::string& name)>;

// Nothing: it may begin. That holds from then on: a job that has begun waits no more. While a job is suspended, nobody
// asks.
std::optional<Hold> HoldOf(const TrainJob& job, const LookUp& look_up);

}  // namespace muster::controller
