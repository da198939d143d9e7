// SPDX-License-Identifier: Apache-2.0
// Places pods together, or apart from other pods, by a label of nodes; or off one node. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"

namespace muster::controller {

// JobSet's annotations, on the runtime's template or on a job's. The exclusive one names a label of nodes: all pods of
// a Job go to nodes with the same value of the label, and no pods of other Jobs go there.
inline constexpr char kExclusiveAnnotation[] = "alpha.jobset.sigs.k8s.io/exclusive-topology";
inline constexpr char kNodeSelectorAnnotation[] = "alpha.jobset.sigs.k8s.io/node-selector";

// Places the pod on nodes with the same value of the label `topology` as pods with the label `name`=`value`, in its
// namespace. `required`: nowhere else; otherwise it is a preference.
void PlaceTogether(std::string_view topology, std::string_view name, std::string_view value, bool required, Json* pod);

// The same (required) for pods whose label job-key is `job_key`, and apart from pods with another one; all namespaces.
void PlaceExclusively(std::string_view topology, std::string_view job_key, Json* pod);

// Places the pod on nodes that an administrator has labelled and tainted for that Job.
void PlaceOnNodesOf(std::string_view ns, std::string_view job_name, Json* pod);

// Keeps `pod`, a whole Pod, off that node, and says so in its annotation kExcludedNodeAnnotation.
void ExcludeNode(const std::string& node, Json* pod);

}  // namespace muster::controller
