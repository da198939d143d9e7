// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/written.h"

#include "base/text.h"
#include "controller/plan/elastic.h"
#include "controller/plan/token.h"
#include "controller/reconcile/derived_secrets.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

StatusOr<Json> Filled(const Action& action, std::string_view uid, std::string_view master_key) {
  const SecretOf of{uid, action.name};
  switch (action.fill) {
    case PlannedObject::Fill::kNothing:
      return action.object();
    case PlannedObject::Fill::kToken: {
      MUSTER_ASSIGN_OR_RETURN(const std::string token, DerivedToken(master_key, of));
      return WithToken(action.object(), token);
    }
    case PlannedObject::Fill::kSshKeys: {
      MUSTER_ASSIGN_OR_RETURN(const SshKeys keys, DerivedSshKeys(master_key, of));
      return WithSshKeys(action.object(), keys);
    }
  }
  return absl::InternalError("an object is to be filled with nothing known");
}

Json PatchOf(const Action& action) {
  Json patch;
  patch["metadata"]["uid"] = action.uid;
  switch (action.kind) {
    case Action::Kind::kScaleJob:
      patch["spec"] = {{"parallelism", action.pods}, {"completions", action.pods}};
      break;
    case Action::Kind::kSuspendJob:
    case Action::Kind::kSuspendJobSet:
    case Action::Kind::kResumeJobSet:
      patch["spec"]["suspend"] = action.kind != Action::Kind::kResumeJobSet;
      break;
    case Action::Kind::kEndPod:
      patch["metadata"]["annotations"][kEndedAnnotation] = action.container;
      patch["spec"]["activeDeadlineSeconds"] = 1;
      break;
    case Action::Kind::kAnnotatePod:
      patch["metadata"]["annotations"][kNodesAnnotation] = fmt::format("{}", action.pods);
      break;
    case Action::Kind::kCreateService:
    case Action::Kind::kCreateObject:
    case Action::Kind::kCreateJob:
    case Action::Kind::kCreatePod:
    case Action::Kind::kCreatePodOfJob:
    case Action::Kind::kAdoptPod:
    case Action::Kind::kDeleteJob:
    case Action::Kind::kDeletePod:
    case Action::Kind::kDropPod:
    case Action::Kind::kDeleteService:
    case Action::Kind::kDeleteObject:
    case Action::Kind::kDeleteJobSet:
    case Action::Kind::kDeleteOwner:
      break;
  }
  return patch;
}

}  // namespace muster::controller
