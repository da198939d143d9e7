#include "controller/plan/pod_requests.h"

#include <algorithm>

#include "base/text.h"

namespace muster::controller {
namespace {

using Requests = std::map<std::string, Quantity>;

// Requests go over limits.
StatusOr<Requests> RequestsOf(const Json& resources) {
  Requests requests;
  for (const char* kind : {"limits", "requests"}) {
    const Json* quantities = FindField(resources, kind);
    if (quantities == nullptr || !quantities->is_object()) continue;
    for (const auto& [name, value] : quantities->items()) {
      MUSTER_ASSIGN_OR_RETURN(requests[name], ReadQuantity(value));
    }
  }
  return requests;
}

StatusOr<Requests> RequestsIn(const Json& owner) {
  const Json* resources = FindField(owner, "resources");
  return resources == nullptr ? Requests() : RequestsOf(*resources);
}

void Add(const Requests& more, Requests* sum) {
  for (const auto& [name, quantity] : more) (*sum)[name] = (*sum)[name] + quantity;
}

void RaiseTo(const Requests& least, Requests* requests) {
  for (const auto& [name, quantity] : least) (*requests)[name] = std::max((*requests)[name], quantity);
}

}  // namespace

StatusOr<Requests> PodRequests(const Json& pod) {
  Requests all, sidecars, most;  // most: of init containers
  if (const Json* containers = FindField(pod, "containers")) {
    for (const Json& container : *containers) {
      MUSTER_ASSIGN_OR_RETURN(const Requests own, RequestsIn(container));
      Add(own, &all);
    }
  }
  if (const Json* containers = FindField(pod, "initContainers")) {
    for (const Json& container : *containers) {
      MUSTER_ASSIGN_OR_RETURN(Requests own, RequestsIn(container));
      if (TextField(container, "restartPolicy") == "Always") {
        Add(own, &all);
        Add(own, &sidecars);
        own = sidecars;
      } else {
        Add(sidecars, &own);
      }
      RaiseTo(own, &most);
    }
  }
  RaiseTo(most, &all);
  MUSTER_ASSIGN_OR_RETURN(const Requests whole, RequestsIn(pod));
  for (const auto& [name, quantity] : whole) all[name] = quantity;
  if (const Json* overhead = FindField(pod, "overhead")) {
    const Json as_requests = {{"requests", *overhead}};
    MUSTER_ASSIGN_OR_RETURN(const Requests more, RequestsOf(as_requests));
    Add(more, &all);
  }
  return all;
}

}  // namespace muster::controller
