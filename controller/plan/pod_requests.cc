// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/pod_requests.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

using Requests = std::map<std::string, Quantity>;

// Requests and limits of a container; a request wins over a limit.
StatusOr<Requests> RequestsOf(const Json& resources) {
  Requests requests;
  for (const char* kind : {"limits", "requests"}) {
    for (const auto& [name, value] : MapField(resources, kind).items()) {
      MUSTER_ASSIGN_OR_RETURN(requests[name], ReadQuantity(value));
    }
  }
  return requests;
}

void Add(const Requests& more, Requests* sum) {
  for (const auto& [name, quantity] : more) (*sum)[name] = (*sum)[name] + quantity;
}

void RaiseTo(const Requests& least, Requests* requests) {
  for (const auto& [name, quantity] : least) (*requests)[name] = std::max((*requests)[name], quantity);
}

}  // namespace

StatusOr<Requests> PodRequests(const Json& pod) {
  Requests all, sidecars, most;  // most: the highest need of an init container
  for (const Json& container : ListField(pod, "containers")) {
    MUSTER_ASSIGN_OR_RETURN(const Requests own, RequestsOf(PartOf(container, "resources")));
    Add(own, &all);
  }
  for (const Json& container : ListField(pod, "initContainers")) {
    MUSTER_ASSIGN_OR_RETURN(Requests own, RequestsOf(PartOf(container, "resources")));
    if (TextField(container, "restartPolicy") == "Always") {
      Add(own, &all);
      Add(own, &sidecars);
      own = sidecars;
    } else {
      Add(sidecars, &own);
    }
    RaiseTo(own, &most);
  }
  RaiseTo(most, &all);
  MUSTER_ASSIGN_OR_RETURN(const Requests whole, RequestsOf(PartOf(pod, "resources")));
  for (const auto& [name, quantity] : whole) all[name] = quantity;
  if (const Json* overhead = FindField(pod, "overhead")) {
    const Json as_requests = {{"requests", *overhead}};
    MUSTER_ASSIGN_OR_RETURN(const Requests more, RequestsOf(as_requests));
    Add(more, &all);
  }
  return all;
}

Status RequestSum::Add(const Json& pod, int64_t pods) {
  MUSTER_ASSIGN_OR_RETURN(const auto requests, PodRequests(pod));
  for (const auto& [name, quantity] : requests) sum_[name] = sum_[name] + quantity.Times(pods);
  return absl::OkStatus();
}

Json RequestSum::Resources() const {
  Json resources = Json::object();
  for (const auto& [name, quantity] : sum_) resources[name] = quantity.Text();
  return resources;
}

}  // namespace muster::controller
