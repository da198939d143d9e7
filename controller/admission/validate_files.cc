#include "controller/admission/validate_files.h"

#include "base/text.h"
#include "controller/admission/validate_pytorch_job.h"

namespace muster::controller {

Status ValidatePyTorchJobs(const std::vector<InputFile>& files) {
  const auto objects = ReadFileObjects(files);
  if (!objects.ok()) return absl::OkStatus();
  std::vector<std::string> wrong;
  for (const FileObject& object : *objects) {
    if (object.kind != kPyTorchJobKind) continue;
    const AdmissionRequest request{.operation = "CREATE", .object = object.document.object};
    for (const Refusal& refusal : ValidatePyTorchJob(request, {}).refusals) wrong.push_back(object.Say(refusal.why));
  }
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(Join(wrong, "\n"));
}

}  // namespace muster::controller
