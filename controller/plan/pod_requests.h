// What a pod asks of a node, as the scheduler counts it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/quantity.h"

namespace muster::controller {

// Of a PodSpec, by resource: its containers together, or an init container with the sidecars that run by then, where
// that is more; its overhead on top. A limit counts where there is no request; the pod's own resources count before
// those of its containers. InvalidArgument: one is no quantity. Source: Kubernetes,
// component-helpers/resource/helpers.go.
StatusOr<std::map<std::string, Quantity>> PodRequests(const Json& pod);

// Of several pods together.
class RequestSum {
 public:
  Status Add(const Json& pod, int64_t pods);  // so many pods of one PodSpec. Errors: as PodRequests
  Json Resources() const;                     // a ResourceList: {"cpu": "6", ..}

 private:
  std::map<std::string, Quantity> sum_;
};

}  // namespace muster::controller
