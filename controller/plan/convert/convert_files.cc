// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/convert/convert_files.h"

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/pytorch_job.h"

namespace muster::controller {

StatusOr<ConvertedFiles> ConvertFiles(const std::vector<InputFile>& files, const ConvertOptions& options) {
  ConvertedFiles converted;
  MUSTER_ASSIGN_OR_RETURN(std::vector<FileObject> objects, ReadFileObjects(files));
  bool any = false;
  for (FileObject& object : objects) {
    if (object.kind != kPyTorchJobKind) {
      converted.remarks.push_back(fmt::format("{}: {} {} is not a PyTorchJob: it stays as it is", object.Place("kind"),
                                              object.kind, Quoted(object.name)));
      converted.objects.push_back(std::move(object.document.object));
      continue;
    }
    any = true;
    if (object.name.empty()) {
      return object.Wrong("metadata.name: it is missing; give one: the TrainJob and its runtime have it in common");
    }
    auto job = ConvertPyTorchJob(object.document.object, options);
    if (!job.ok()) return object.Wrong(Message(job.status()));
    for (const std::string& remark : job->remarks) converted.remarks.push_back(object.Say(remark));
    converted.objects.push_back(std::move(job->runtime));
    converted.objects.push_back(std::move(job->train_job));
  }
  if (!any) {
    return absl::InvalidArgumentError(
        fmt::format("{}: there is no PyTorchJob to convert; give its file with -f", NamesOf(files)));
  }
  return converted;
}

}  // namespace muster::controller
