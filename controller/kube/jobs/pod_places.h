// Keeps the pods of one job in a vector, each once, by name. Pure.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "controller/kube/client/freshness.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

class PodPlaces {
 public:
  // False: `pods` has this state of the pod, or a newer one.
  bool Put(ObservedPod pod, std::vector<ObservedPod>* pods);
  // Takes an Event about a pod. False: `pods` does not have the pod, or has a newer Event about it.
  bool Note(ObservedPodEvent event, std::vector<ObservedPod>* pods);
  // False: `pods` has no such pod, or a newer one of its name.
  bool Remove(const GoneObject& gone, std::vector<ObservedPod>* pods);

 private:
  std::unordered_map<std::string, size_t> places_;  // by name
};

}  // namespace muster::controller
