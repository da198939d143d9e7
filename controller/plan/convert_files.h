// Files with PyTorchJobs in, the same files with TrainJobs and runtimes out: for `muster-controller convert`. Pure;
// outside bytes.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/convert.h"
#include "controller/plan/file_objects.h"

namespace muster::controller {

struct ConvertedFiles {
  std::vector<Json> objects;         // in the order of the files; of each PyTorchJob the runtime, then the TrainJob
  std::vector<std::string> remarks;  // "file:line: path: ..."
};

// Objects of other kinds stay as they are, which a remark says. InvalidArgument: "file:line: path: what is wrong", or
// there is no PyTorchJob.
StatusOr<ConvertedFiles> ConvertFiles(const std::vector<InputFile>& files, const ConvertOptions& options);

}  // namespace muster::controller
