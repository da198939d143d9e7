// SPDX-License-Identifier: Apache-2.0
// Reads an annotation of a job, else of a TrainJob's runtime, that chooses between two words. Pure.
#pragma once

#include <string_view>

#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// `one` or `other`; empty: neither object has the annotation. InvalidArgument: it is another word.
StatusOr<std::string_view> ChoiceOf(const TrainJob& job, const Runtime& runtime, const char* annotation,
                                    std::string_view one, std::string_view other);

// The same for one object. `prefix` goes before the path in the message.
StatusOr<std::string_view> ChoiceOf(const Meta& meta, const char* annotation, std::string_view one,
                                    std::string_view other, std::string_view prefix = "");

}  // namespace muster::controller
