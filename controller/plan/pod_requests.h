// SPDX-License-Identifier: Apache-2.0
// What a pod requests of a node, as the scheduler counts it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/quantity.h"

namespace muster::controller {

// The requests of a PodSpec, by resource. The sum of all containers and sidecars counts, or an init container with the
// sidecars before it if that is more. The overhead is added. A limit counts if there is no request. The pod's own
// resources replace those of its containers. InvalidArgument: an amount is not a quantity. Source: Kubernetes,
// component-helpers/resource/helpers.go.
StatusOr<std::map<std::string, Quantity>> PodRequests(const Json& pod);

// The sum of the requests of several pods.
class RequestSum {
 public:
  Status Add(const Json& pod, int64_t pods);  // `pods` pods of one PodSpec. Errors: as PodRequests
  Json Resources() const;                     // a ResourceList: {"cpu": "6", ..}

 private:
  std::map<std::string, Quantity> sum_;
};

}  // namespace muster::controller
