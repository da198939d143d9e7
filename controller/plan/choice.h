// An annotation by which a TrainJob, or else its runtime, chooses between two ways. Pure.
#pragma once

#include <string_view>

#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// `one` or `other`; empty: neither has the annotation. InvalidArgument: it says something else.
StatusOr<std::string_view> ChoiceOf(const TrainJob& job, const Runtime& runtime, const char* annotation,
                                    std::string_view one, std::string_view other);

}  // namespace muster::controller
