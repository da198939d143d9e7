// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/carry_out.h"

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_object.h"
#include "controller/reconcile/derived_secrets.h"
#include "controller/reconcile/written.h"

namespace muster::local {

using namespace controller;

namespace {

class Executor {
 public:
  Executor(const Action& action, const Meta& owner, WallTime now, World* world)
      : action_(action), owner_(owner), now_(now), world_(world) {}

  // With kUse an existing object stays as it is; else the job must control it, and kUpdate merges `object` into it.
  Status Create(Json object) {
    const std::string kind = TextField(object, "kind");
    const Json* there = world_->Find(kind, action_.name);
    if (there == nullptr) return world_->Create(std::move(object), now_).status();
    if (action_.if_there == PlannedObject::IfThere::kUse) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const Meta meta, ReadMeta(*there));
    if (!meta.IsControlledBy(owner_)) {
      return absl::FailedPreconditionError(
          fmt::format("the job creates a {} {}, and the files or flags have one of that name; rename one of the two",
                      kind, meta.name));
    }
    return action_.if_there == PlannedObject::IfThere::kUpdate ? Merge(kind, object) : absl::OkStatus();
  }

  Status CreateObject() {
    MUSTER_ASSIGN_OR_RETURN(const std::string key, NewMasterKey());  // the world keeps the Secrets that it has
    MUSTER_ASSIGN_OR_RETURN(Json object, Filled(action_, owner_.uid, key));
    return Create(std::move(object));
  }

  // Makes the pod from the Job's template in the world.
  Status CreatePodOfJob() {
    const Json* job = world_->Find("Job", action_.job);
    if (job == nullptr) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const Meta meta, ReadMeta(*job));
    if (meta.uid != action_.uid || meta.deleted || world_->Find("Pod", action_.name) != nullptr) {
      return absl::OkStatus();
    }
    MUSTER_ASSIGN_OR_RETURN(Json pod, PodOfJob(*job, action_.index, action_.name));
    return world_->Create(std::move(pod), now_).status();
  }

  Status Change(std::string_view kind) { return Merge(kind, PatchOf(action_)); }

  Status Delete(std::string_view kind) {
    world_->Delete(kind, action_.name, action_.uid, now_);
    return absl::OkStatus();
  }

 private:
  Status Merge(std::string_view kind, const Json& patch) {
    const Json* there = world_->Find(kind, action_.name);
    if (there == nullptr) return absl::OkStatus();
    Json changed = *there;
    changed.merge_patch(patch);
    const Status updated = world_->Update(std::move(changed), now_);
    return absl::IsNotFound(updated) ? absl::OkStatus() : updated;
  }

  const Action& action_;
  const Meta& owner_;
  const WallTime now_;
  World* const world_;
};

}  // namespace

Status CarryOut(const Action& action, std::string_view owner_kind, const Meta& owner, WallTime now, World* world) {
  using Kind = Action::Kind;
  Executor executor(action, owner, now, world);
  switch (action.kind) {
    case Kind::kCreateService:
    case Kind::kCreateJob:
    case Kind::kCreatePod:
      return executor.Create(action.object());
    case Kind::kCreateObject:
      return executor.CreateObject();
    case Kind::kCreatePodOfJob:
      return executor.CreatePodOfJob();
    case Kind::kScaleJob:
    case Kind::kSuspendJob:
      return executor.Change("Job");
    case Kind::kAnnotatePod:
    case Kind::kEndPod:
      return executor.Change("Pod");
    case Kind::kDeleteJob:
      return executor.Delete("Job");
    case Kind::kDeletePod:
    case Kind::kDropPod:
      return executor.Delete("Pod");
    case Kind::kDeleteService:
      return executor.Delete("Service");
    case Kind::kDeleteObject:
      return executor.Delete(TextField(action.object(), "kind"));
    case Kind::kDeleteOwner:
      return executor.Delete(owner_kind);
    case Kind::kAdoptPod:
    case Kind::kSuspendJobSet:
    case Kind::kResumeJobSet:
    case Kind::kDeleteJobSet:
      break;
  }
  return absl::InternalError("the objects of another controller are in no local run");
}

}  // namespace muster::local
