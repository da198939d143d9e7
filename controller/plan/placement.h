// Where pods go: beside each other, and away from others, by a label of nodes. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"

namespace muster::controller {

// JobSet's annotations, on the runtime's template or on that of a job: the pods of one Job on nodes with one value of
// the label that it names, and no other Job's pods there.
inline constexpr char kExclusiveAnnotation[] = "alpha.jobset.sigs.k8s.io/exclusive-topology";
inline constexpr char kNodeSelectorAnnotation[] = "alpha.jobset.sigs.k8s.io/node-selector";

// The pods with label `name`: `value` go together; `required`, or else where that is possible.
void PlaceTogether(std::string_view topology, std::string_view name, std::string_view value, bool required, Json* pod);

// Pods of a Job whose label job-key is `job_key` go together, and away from those of other Jobs that have the label, in
// all namespaces.
void PlaceExclusively(std::string_view topology, std::string_view job_key, Json* pod);

// On nodes that an administrator has labelled and tainted for that Job.
void PlaceOnNodesOf(std::string_view ns, std::string_view job_name, Json* pod);

}  // namespace muster::controller
