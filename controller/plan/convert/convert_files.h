// SPDX-License-Identifier: Apache-2.0
// `muster-controller convert`: replaces the PyTorchJobs in files by TrainJobs and runtimes. Pure; untrusted input.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/convert/convert.h"
#include "controller/plan/file_objects.h"

namespace muster::controller {

struct ConvertedFiles {
  std::vector<Json> objects;         // in the order of the files; for a PyTorchJob its runtime, then its TrainJob
  std::vector<std::string> remarks;  // "file:line: path: ..."
};

// Objects of other kinds stay as they are, with a remark. InvalidArgument: "file:line: path: what is wrong", or the
// files have no PyTorchJob.
StatusOr<ConvertedFiles> ConvertFiles(const std::vector<InputFile>& files, const ConvertOptions& options);

}  // namespace muster::controller
