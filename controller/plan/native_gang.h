// SPDX-License-Identifier: Apache-2.0
// Gang scheduling by Kubernetes itself: its scheduler places the pods of a PodGroup all at once or not at all. Pure.
// Source: Kubernetes 1.36, k8s.io/api/scheduling/v1alpha2/types.go; plugins GangScheduling, JobValidation and
// PodGroupWorkloadExists.
//
// A job that asks for it (kGangAnnotation) has a Workload, named as the job, and a PodGroup made from its template. The
// members are those of pod_group.h. The spec of both is immutable.
//
// A TrainJob has a PodGroup for each start of its pods: the scheduler counts pods of the group that are ending as
// placed, so pods of a new attempt in the same group would be placed one by one. Those of a PyTorchJob start when the
// old ones are gone, so it has one PodGroup, named as the job.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/draft.h"

namespace muster::controller {

inline constexpr char kGangApi[] = "scheduling.k8s.io/v1alpha2";
// On a TrainJob, its runtime or a PyTorchJob.
inline constexpr char kGangAnnotation[] = "muster.dev/gang";                   // "native" or "off"
inline constexpr char kGangTopologyAnnotation[] = "muster.dev/gang-topology";  // label of cluster nodes
inline constexpr char kGangClaimsAnnotation[] = "muster.dev/gang-claims";      // names of the pods' resourceClaims

// InvalidArgument: the annotation has another value, or the runtime has a podGroupPolicy, too.
StatusOr<bool> WantsNativeGang(const TrainJob& job, const Runtime& runtime);
StatusOr<bool> WantsNativeGang(const Meta& pytorch_job);

// Adds Workload and PodGroup if `draft->native_gang`, and marks the pods as members. Returns the names of their jobs;
// empty: no pod starts. `draft->pods` must have each job. InvalidArgument: an annotation names what the pods do not
// have, the pods differ in what a group has once, or Kueue places them, too.
StatusOr<std::set<std::string>> AddNativeGang(Draft* draft);

// What a PyTorchJob asks of its gang.
struct GangOptions {
  int64_t least = 0;           // how many pods have to be placed
  bool whole = true;           // it cannot go on with fewer pods
  std::string priority_class;  // empty: the pods'
};

// The same for a PyTorchJob that wants one: its objects. `templates`: of its pods, by replica type.
StatusOr<std::vector<PlannedObject>> NativeGangOf(const Meta& pytorch_job, std::string_view api, std::string_view kind,
                                                  const GangOptions& options, std::vector<Json>* templates);

// The name of the PodGroup of a start: of attempt `attempt`, after the job was resumed at `resumed`, if it was.
std::string PodGroupName(std::string_view train_job, int attempt, std::optional<WallTime> resumed);

// Puts the pods of a Job into a PodGroup, and notes it on the Job.
void PutInPodGroup(const std::string& name, Json* job);

// The Workload among the objects of a plan, without owners. Null: the plan has no gang.
Json WorkloadIn(const std::vector<PlannedObject>& objects);

// The answer of an API server to the creation of `asked`, a Workload or a PodGroup. FailedPrecondition: it does not
// know the kind, or dropped a field, because a feature gate is off. Other errors are those of `answer`.
Status CheckGangAnswer(const Json& asked, const StatusOr<Json>& answer);

// Whether `found` has what `planned`, a Workload or a PodGroup, says. Without a feature gate the API server drops
// fields of preemption; these do not count.
bool HoldsGang(const Json& found, const Json& planned);

}  // namespace muster::controller
