// Files in, a plan out: TrainJobs and their runtimes as users have them in files, for `muster-controller plan` and for
// local runs. Pure; outside bytes.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/plan.h"

namespace muster::controller {

struct InputFile {
  std::string name;  // for messages: "job.yaml", "-"
  std::string text;
};

struct PlannedTrainJob {
  TrainJob job;
  Runtime runtime;
  Json snapshot;  // the ConfigMap
  Plan plan;
};

struct PlannedFiles {
  std::vector<PlannedTrainJob> jobs;
  std::vector<std::string>
      remarks;  // for people: notices of the plans, fields of the old shape, objects without a part
};

// Every TrainJob in `files`, with its runtime, which is in `files` too. InvalidArgument: "file:line: path: what is
// wrong".
StatusOr<PlannedFiles> PlanFiles(const std::vector<InputFile>& files, const PlanOptions& options);

// The objects of `planned` as the controller would create them: Service, snapshot, Jobs. The UIDs that only a cluster
// gives, and owner references by them, are left out.
std::vector<Json> PlannedObjects(const PlannedTrainJob& planned);

std::string ObjectsAsYaml(const std::vector<Json>& objects);  // documents, "---" between them
std::string ObjectsAsJson(const std::vector<Json>& objects);  // a v1 List

}  // namespace muster::controller
