// SPDX-License-Identifier: Apache-2.0
// The objects that belong to the jobs of one kind, by job, as watches and answers to writes bring them. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controller/kube/client/freshness.h"
#include "controller/kube/client/resource.h"
#include "controller/kube/jobs/own_objects.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

// The key of the TrainJob that JobSet's label names. Empty: there is no label.
std::string TrainJobOf(const Meta& object);
// The key of the PyTorchJob that training-operator's label names. Empty: there is no label.
std::string PyTorchJobOf(const Meta& object);

// Keeps the pods of one job in a vector, each once, by name.
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

class Children {
 public:
  using OwnerOf = OwnObjects::OwnerOf;
  using Changed = OwnObjects::Changed;

  // `changed` is called with the key of each job of which an object is new, newer or gone.
  Children(OwnerOf owner_of, Changed changed)
      : owner_of_(std::move(owner_of)), changed_(std::move(changed)), objects_(owner_of_, changed_) {}

  // Drop what is not newer than the known state, and what has no job. An object whose label names another job than
  // before leaves the former one.
  // Logs a warning if the object cannot be read. Of Events, only those that say why a pod does not run, or why the Job
  // controller creates none, are read.
  // `object`: JSON, except of a kind that can come in protobuf.
  void Put(const Resource& resource, const ObjectView& object);
  void Put(ObservedJob job);
  void Put(ObservedPod pod);
  void Put(ObservedService service);
  void Put(ObservedRefusal refusal);
  void Put(ObservedPodEvent event);

  // No effect if a newer object has the name.
  void Remove(const Resource& resource, const GoneObject& gone);

  // What has the name of `job` in its label, and of Jobs, those that it controls (uid). No pod is copied: the reference
  // is valid until the next call. `hold` and `agents` are not set.
  Observed& Of(const Meta& job);

 private:
  struct Family {
    PodPlaces places;                         // in seen.pods
    std::map<std::string, ObservedJob> jobs;  // by name
    Observed seen;                            // but for its jobs, which Of() sets, it is always current
  };

  // The family of an object, after it has left another one. Null: it has none, or the other one has a newer state.
  Family* FamilyOf(const Resource& resource, const Meta& meta);
  void PutEvent(const Json& object);
  void RemoveRefusal(const GoneObject& gone);
  template <class Object>
  void PutRead(const char* what, StatusOr<Object> object);
  // Puts an object that has the name of its job: a PodGroup or a JobSet.
  template <class Object>
  void PutNamesake(const char* what, StatusOr<Object> object, std::optional<Object> Observed::*place);

  const OwnerOf owner_of_;
  const Changed changed_;
  OwnObjects objects_;
  std::map<std::string, Family> families_;                             // by key of the job
  std::map<std::pair<std::string, std::string>, std::string> owners_;  // keys of jobs, by plural and key of the object
  // By the namespace and the Job's uid: anybody may write an Event with the uid of a Job of another namespace.
  std::map<std::string, ObservedRefusal> refusals_;
  std::map<std::string, std::string> refused_jobs_;  // their keys, by key of the Event
  Observed nothing_;                                 // of a job without a family
};

}  // namespace muster::controller
