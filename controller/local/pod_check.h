// What keeps the pods of a job from running here, found before the first one starts: nobody brings a Secret later, as
// somebody may in a cluster. Pure; outside bytes.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/local/pod_program.h"
#include "controller/plan/plan_files.h"

namespace muster::controller {

inline constexpr int64_t kMostPods = 1000;  // of a job on one machine: each is at least an agent, about 10 MB

// InvalidArgument: the job has more than kMostPods; says how to have fewer.
Status CheckPodCount(const PlannedFiles& planned);

// An object of a flag, which some pod is meant to use.
struct GivenObject {
  std::string flag, kind, name;  // "--secret", "Secret", "key"
};

struct PodCheck {
  Status status;                     // why a pod of a step cannot run: as of ProgramOf, with its name before it
  std::vector<std::string> remarks;  // why a helper beside the steps cannot run, and what of `given` no pod uses
};
// `objects`: Jobs and pods of the job, and what it makes beside them (PlannedObjects). `find`: what else is there.
PodCheck CheckPods(const std::vector<Json>& objects, const PodPlace& place, const std::vector<GivenObject>& given,
                   const FindObject& find);

}  // namespace muster::controller
