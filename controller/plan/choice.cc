// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/choice.h"

#include "base/quoted.h"
#include "base/text.h"

namespace muster::controller {

StatusOr<std::string_view> ChoiceOf(const TrainJob& job, const Runtime& runtime, const char* annotation,
                                    std::string_view one, std::string_view other) {
  if (!job.meta.Annotation(annotation).empty()) return ChoiceOf(job.meta, annotation, one, other);
  return ChoiceOf(runtime.meta, annotation, one, other, fmt::format("runtime '{}': ", runtime.meta.name));
}

StatusOr<std::string_view> ChoiceOf(const Meta& meta, const char* annotation, std::string_view one,
                                    std::string_view other, std::string_view prefix) {
  const std::string_view said = meta.Annotation(annotation);
  if (said.empty() || said == one || said == other) return said;
  return absl::InvalidArgumentError(
      fmt::format("{}metadata.annotations.{}: {} is neither {} nor {}", prefix, annotation, Quoted(said), one, other));
}

}  // namespace muster::controller
