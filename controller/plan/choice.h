// An annotation by which a job, or else a TrainJob's runtime, chooses between two ways. Pure.
#pragma once

#include <string_view>

#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// `one` or `other`; empty: neither has the annotation. InvalidArgument: it says something else.
StatusOr<std::string_view> ChoiceOf(const TrainJob& job, const Runtime& runtime, const char* annotation,
                                    std::string_view one, std::string_view other);

// The same of one object. `prefix` goes before the path in the message.
StatusOr<std::string_view> ChoiceOf(const Meta& meta, const char* annotation, std::string_view one,
                                    std::string_view other, std::string_view prefix = "");

}  // namespace muster::controller
