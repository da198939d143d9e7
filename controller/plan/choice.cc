#include "controller/plan/choice.h"

#include "base/quoted.h"
#include "base/text.h"

namespace muster::controller {

StatusOr<std::string_view> ChoiceOf(const TrainJob& job, const Runtime& runtime, const char* annotation,
                                    std::string_view one, std::string_view other) {
  for (const Meta* meta : {&job.meta, &runtime.meta}) {
    const std::string_view said = meta->Annotation(annotation);
    if (said.empty()) continue;
    if (said == one || said == other) return said;
    return absl::InvalidArgumentError(fmt::format("{}metadata.annotations.{}: {} is neither {} nor {}",
                                                  meta == &job.meta ? "" : fmt::format("runtime '{}': ", meta->name),
                                                  annotation, Quoted(said), one, other));
  }
  return std::string_view();
}

}  // namespace muster::controller
