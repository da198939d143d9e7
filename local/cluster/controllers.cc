// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/controllers.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_object.h"
#include "local/cluster/job_pods.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int kMostPasses = 1000;  // of one Settle(): a fault in the controllers must not hang the run

void Earlier(const std::optional<WallTime>& time, std::optional<WallTime>* earliest) {
  if (time) *earliest = *earliest ? std::min(**earliest, *time) : *time;
}

}  // namespace

Controllers::Settled Controllers::Settle(WallTime now) {
  Settled settled;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const uint64_t before = world_->version();
    settled.again.reset();
    settled.troubles.clear();
    Steps steps = job_->Pass(now);
    std::move(steps.events.begin(), steps.events.end(), std::back_inserter(settled.events));
    Earlier(steps.again, &settled.again);
    std::vector<std::string> names;
    for (const Json* job : world_->List("Job")) names.push_back(NameOf(*job));
    for (const std::string& name : names) {
      const Status stepped = StepOne(name, now, &settled);
      if (!stepped.ok()) settled.troubles.push_back(fmt::format("Job {}: {}", name, Message(stepped)));
    }
    if (world_->version() == before) return settled;
  }
  settled.troubles.push_back(fmt::format("the job's objects still change after {} passes", kMostPasses));
  return settled;
}

Status Controllers::StepOne(const std::string& name, WallTime now, Settled* settled) {
  const Json* found = world_->Find("Job", name);
  if (found == nullptr) return absl::OkStatus();  // an earlier step has deleted it
  Json job = *found;
  const std::string uid = TextField(job["metadata"], "uid");
  MUSTER_ASSIGN_OR_RETURN(const JobStep step, StepJob(job, world_->ControlledBy("Pod", uid), now));
  Earlier(step.again, &settled->again);
  // The status is written first, so that a pod is counted in it before the pod loses its finalizer.
  job["status"] = step.status;
  MUSTER_RETURN_IF_ERROR(world_->Update(job, now));
  for (const std::string& pod_name : step.counted) {
    const Json* pod = world_->Find("Pod", pod_name);
    if (pod == nullptr) continue;
    Json counted = *pod;
    Json& finalizers = counted["metadata"]["finalizers"];
    finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), kTrackingFinalizer), finalizers.end());
    MUSTER_RETURN_IF_ERROR(world_->Update(std::move(counted), now));
  }
  for (const std::string& pod_name : step.remove) world_->Delete("Pod", pod_name, "", now);
  for (const int index : step.create) {
    const std::string made = ReplacementPodName(name, index, fmt::format("{} {}", uid, ++pods_));
    MUSTER_ASSIGN_OR_RETURN(Json pod, PodOfJob(job, index, made));
    if (const auto more = step.annotations.find(index); more != step.annotations.end()) {
      for (const auto& [key, value] : more->second.items()) pod["metadata"]["annotations"][key] = value;
    }
    MUSTER_RETURN_IF_ERROR(world_->Create(std::move(pod), now).status());
  }
  return absl::OkStatus();
}

}  // namespace muster::local
