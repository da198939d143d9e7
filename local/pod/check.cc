// SPDX-License-Identifier: Apache-2.0
#include "local/pod/check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/nearest_names.h"
#include "controller/api/pytorch_job.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/pod_object.h"
#include "controller/reconcile/derived_secrets.h"
#include "controller/reconcile/written.h"

namespace muster::local {

using namespace controller;

namespace {

class Checker {
 public:
  Checker(const std::vector<Json>& objects, const PodPlace& place, const FindObject& find,
          const std::function<Status(const PodProgram&)>& fits)
      : objects_(objects), place_(place), find_(find), fits_(fits) {}

  Status Check() {
    for (const Json& object : objects_) {
      const std::string kind = TextField(object, "kind");
      if (kind == "Pod") MUSTER_RETURN_IF_ERROR(CheckPod(object));
      if (kind != "Job") continue;
      MUSTER_ASSIGN_OR_RETURN(const Json pod, PodOfJob(object, 0, fmt::format("{}-0", NameOf(object))));
      Status status = CheckPod(pod);
      if (!status.ok() && IsStep(pod)) return status;
      if (!status.ok()) remarks_.emplace_back(Message(status));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> TakeRemarks() { return std::move(remarks_); }

  std::string RemarkOn(const GivenObject& given) const {
    std::vector<std::string> names;
    for (const auto& [kind, name] : used_) {
      if (kind == given.kind && name == given.name) return "";
      if (kind == given.kind) names.push_back(name);
    }
    const auto nearest = NearestNames(given.name, names);
    return fmt::format(
        "{} {}: no pod uses a {} of that name{}", given.flag, Quoted(given.name), given.kind,
        names.empty() ? "" : fmt::format("; they use {}", Quoted(Join(nearest.empty() ? names : nearest, ", "))));
  }

 private:
  Status CheckPod(const Json& pod) {
    const auto find = [&](std::string_view kind, std::string_view name) -> const Json* {
      used_.emplace(kind, name);
      const Json* found = find_(kind, name);
      for (const Json& object : objects_) {
        if (found == nullptr && TextField(object, "kind") == kind && NameOf(object) == name) found = &object;
      }
      return found;
    };
    const auto program = ProgramOf(pod, place_, find);
    return Annotate(program.ok() ? fits_(*program) : program.status(), NameOf(pod));
  }

  const std::vector<Json>& objects_;
  const PodPlace& place_;
  const FindObject& find_;
  const std::function<Status(const PodProgram&)>& fits_;
  std::set<std::pair<std::string, std::string>> used_;  // kind and name
  std::vector<std::string> remarks_;
};

}  // namespace

bool IsStep(const Json& pod) {
  for (const char* name : {kTrainerContainer, kPyTorchContainer, "dataset-initializer", "model-initializer"}) {
    if (FindNamed(PartOf(pod, "spec"), "containers", name) != nullptr) return true;
  }
  return false;
}

StatusOr<std::vector<Json>> CreatedObjects(const PlannedFiles& planned) {
  std::vector<Json> objects = PlannedObjects(planned);
  const auto fill = [&objects](const std::vector<PlannedObject>& all) -> Status {
    for (const PlannedObject& each : all) {
      if (each.fill == PlannedObject::Fill::kNothing) continue;
      MUSTER_ASSIGN_OR_RETURN(const std::string key, NewMasterKey());
      const Action creation{
          .kind = Action::Kind::kCreateObject, .object = [&each] { return each.object; }, .fill = each.fill};
      MUSTER_ASSIGN_OR_RETURN(const Json filled, Filled(creation, "", key));
      std::replace(objects.begin(), objects.end(), each.object, filled);
    }
    return absl::OkStatus();
  };
  for (const PlannedTrainJob& job : planned.jobs) MUSTER_RETURN_IF_ERROR(fill(job.plan.objects));
  for (const PlannedPyTorchJob& job : planned.pytorch_jobs) MUSTER_RETURN_IF_ERROR(fill(job.plan.objects));
  return objects;
}

Status CheckPodCount(const PlannedFiles& planned) {
  int64_t count = 0;
  for (const PlannedTrainJob& job : planned.jobs) {
    for (const PlannedJob& each : job.plan.jobs) count += each.pods;
  }
  for (const PlannedPyTorchJob& job : planned.pytorch_jobs) {
    for (const PlannedReplicas& replicas : job.plan.replicas) count += replicas.count;
  }
  if (count <= kMostPods) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the job has {} pods; one machine runs at most {}; set fewer nodes with --nodes", count, kMostPods));
}

PodCheck CheckPods(const std::vector<Json>& objects, const PodPlace& place, const std::vector<GivenObject>& given,
                   const FindObject& find, const std::function<Status(const PodProgram&)>& fits) {
  Checker checker(objects, place, find, fits);
  PodCheck check{.status = checker.Check()};
  check.remarks = checker.TakeRemarks();
  for (const GivenObject& one : given) {
    if (std::string remark = checker.RemarkOn(one); !remark.empty()) check.remarks.push_back(std::move(remark));
  }
  return check;
}

}  // namespace muster::local
