#include "controller/admission/validate_files.h"

#include "base/text.h"
#include "controller/admission/validate_pytorch_job.h"

namespace muster::controller {
namespace {

void AddWrong(const FileObject& job, std::vector<std::string>* wrong) {
  const AdmissionRequest request{.operation = "CREATE", .object = job.document.object};
  for (const Refusal& refusal : ValidatePyTorchJob(request, {}).refusals) wrong->push_back(job.Say(refusal.why));
}

Status StatusOf(const std::vector<std::string>& wrong) {
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(Join(wrong, "\n"));
}

}  // namespace

Status ValidatePyTorchJobs(const std::vector<InputFile>& files) {
  const auto objects = ReadFileObjects(files);
  if (!objects.ok()) return absl::OkStatus();
  std::vector<std::string> wrong;
  for (const FileObject& object : *objects) {
    if (object.kind == kPyTorchJobKind) AddWrong(object, &wrong);
  }
  return StatusOf(wrong);
}

Status ValidatePyTorchJob(const FileObject& job) {
  std::vector<std::string> wrong;
  AddWrong(job, &wrong);
  return StatusOf(wrong);
}

}  // namespace muster::controller
