// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/validate_files.h"

#include "base/text.h"
#include "controller/admission/patch_rules.h"
#include "controller/admission/validate_pytorch_job.h"
#include "controller/admission/validate_runtime.h"

namespace muster::controller {
namespace {

void AddWrong(const FileObject& object, const Verdict& verdict, std::vector<std::string>* wrong) {
  for (const Refusal& refusal : verdict.refusals) wrong->push_back(object.Say(refusal.why));
}

void AddWrong(const FileObject& job, std::vector<std::string>* wrong) {
  const AdmissionRequest request{.operation = "CREATE", .object = job.document.object};
  AddWrong(job, ValidatePyTorchJob(request, {}), wrong);
}

Status StatusOf(const std::vector<std::string>& wrong) {
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(Join(wrong, "\n"));
}

}  // namespace

Status ValidatePyTorchJobs(const std::vector<InputFile>& files) {
  auto objects = ReadFileObjects(files);
  if (!objects.ok()) return absl::OkStatus();
  std::vector<std::string> wrong;
  for (FileObject& object : *objects) {
    if (object.kind != kPyTorchJobKind) continue;
    GiveName(kSomeLetters, &object);
    AddWrong(object, &wrong);
  }
  return StatusOf(wrong);
}

Status ValidatePyTorchJob(const FileObject& job) {
  std::vector<std::string> wrong;
  AddWrong(job, &wrong);
  return StatusOf(wrong);
}

Status ValidateTrainJob(const FileObject& job_file, const TrainJob& job, const FileObject& runtime_file,
                        const Runtime& runtime) {
  std::vector<std::string> wrong;
  Verdict of_runtime, of_job;
  if (runtime_file.file->is_own && IsValidated(runtime_file.document.object)) JudgeRuntime(runtime, &of_runtime);
  if (job.managed_by == kManagedByMuster) JudgeNewJob(job, runtime, &of_job);
  AddWrong(runtime_file, of_runtime, &wrong);
  AddWrong(job_file, of_job, &wrong);
  return StatusOf(wrong);
}

}  // namespace muster::controller
