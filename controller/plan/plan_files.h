// Files in, plans out: TrainJobs with their runtimes, and PyTorchJobs, as users have them in files, for
// `muster-controller plan`. Pure; outside bytes.
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
  Plan plan;
};

struct PlannedPyTorchJob {
  PyTorchJob job;
  PyTorchPlan plan;
};

struct PlannedFiles {
  std::vector<PlannedTrainJob> jobs;
  std::vector<PlannedPyTorchJob> pytorch_jobs;
  // For people: notices of the plans, fields of the old shape, objects without a part.
  std::vector<std::string> remarks;
};

// Every TrainJob in `files`, with its runtime, which is in `files` too; and every PyTorchJob. InvalidArgument:
// "file:line: path: what is wrong".
// `edit`: changes each job before it is read; its error is given as it is. `beside`: kinds of objects that the caller
// has a use for: no remark.
using EditJob = std::function<Status(FileObject* job)>;
StatusOr<PlannedFiles> PlanFiles(const std::vector<InputFile>& files, const PlanOptions& options,
                                 const EditJob& edit = {}, const std::set<std::string_view>& beside = {});

// The objects of `planned` as the controller would create them: Service, snapshot, Jobs. The UIDs that only a cluster
// gives, and owner references by them, are left out.
std::vector<Json> PlannedObjects(const PlannedTrainJob& planned);
// The same: objects beside, then Service and pod of each replica.
std::vector<Json> PlannedObjects(const PlannedPyTorchJob& planned);
// Of all jobs: TrainJobs first.
std::vector<Json> PlannedObjects(const PlannedFiles& planned);

}  // namespace muster::controller
