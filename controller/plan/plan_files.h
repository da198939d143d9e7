// SPDX-License-Identifier: Apache-2.0
// `muster-controller plan`: plans the TrainJobs and PyTorchJobs in a user's files. Pure; untrusted input.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/file_objects.h"
#include "controller/plan/plan.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {

struct PlannedTrainJob {
  TrainJob job;
  Runtime runtime;
  Json snapshot;  // the ConfigMap
  TrainJobPlan plan;
};

struct PlannedPyTorchJob {
  PyTorchJob job;
  PyTorchPlan plan;
};

struct PlannedFiles {
  std::vector<PlannedTrainJob> jobs;
  std::vector<PlannedPyTorchJob> pytorch_jobs;
  // For people: notices of the plans, fields of the old shape, unknown fields, objects that are in no plan.
  std::vector<std::string> remarks;
};

// Plans every TrainJob in `files`, by its runtime, which must be in `files` too, and every PyTorchJob. InvalidArgument:
// "file:line: path: what is wrong".
// `edit` changes each job before it is read, `check` judges each TrainJob that has a plan; their errors are returned
// unchanged. Objects of the kinds `beside` get no remark: the caller uses them.
struct FileHooks {
  std::function<Status(FileObject* job)> edit;
  std::function<Status(const FileObject& job_file, const TrainJob& job, const FileObject& runtime_file,
                       const Runtime& runtime)>
      check;
  std::set<std::string_view> beside;
};
StatusOr<PlannedFiles> PlanFiles(const std::vector<InputFile>& files, const PlanOptions& options,
                                 const FileHooks& hooks = {});

// The objects of `planned` as the controller would create them: Service, snapshot, further objects, Jobs. UIDs, which a
// cluster gives, and owner references are left out.
std::vector<Json> PlannedObjects(const PlannedTrainJob& planned);
// The same: further objects, then Service and pod of each replica.
std::vector<Json> PlannedObjects(const PlannedPyTorchJob& planned);
// The objects of all jobs, TrainJobs first.
std::vector<Json> PlannedObjects(const PlannedFiles& planned);

}  // namespace muster::controller
