// SPDX-License-Identifier: Apache-2.0
// Finds what keeps the pods of a job from running here, before the first pod starts. In a cluster somebody may add a
// missing Secret later; here nobody can. Pure; untrusted input.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/plan_files.h"
#include "local/pod/program.h"

namespace muster::local {

inline constexpr int64_t kMostPods = 1000;  // of a job on one machine: each has at least an agent, of about 10 MB

// Whether the pod is of the training or of a step before it. A job can do without its other pods.
bool IsStep(const Json& pod);

// The objects of PlannedObjects(), with what the controller puts into them at their creation. Unavailable: there are no
// random bytes.
StatusOr<std::vector<Json>> CreatedObjects(const controller::PlannedFiles& planned);

// InvalidArgument: the job has more than kMostPods pods; says how to have fewer.
Status CheckPodCount(const controller::PlannedFiles& planned);

// An object that a flag gives, so that a pod uses it.
struct GivenObject {
  std::string flag, kind, name;  // "--secret", "Secret", "key"
};

struct PodCheck {
  Status status;                     // why a pod of a step cannot run: of ProgramOf or `fits`, after the pod's name
  std::vector<std::string> remarks;  // why a pod that is not a step cannot run, and which of `given` no pod uses
};
// `objects`: the Jobs, pods and other objects that the job creates (CreatedObjects). `find` finds all others. `fits`:
// whether this machine has what a pod needs of it.
PodCheck CheckPods(const std::vector<Json>& objects, const PodPlace& place, const std::vector<GivenObject>& given,
                   const FindObject& find, const std::function<Status(const PodProgram&)>& fits);

}  // namespace muster::local
