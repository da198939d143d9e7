// The objects that belong to TrainJobs, by the TrainJob's name: Jobs, pods and Services, as watches and answers to
// writes bring them. Pure.
#pragma once

#include <map>
#include <string>

#include "controller/kube/client/informer_state.h"
#include "controller/kube/jobs/pod_places.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

// The key of the TrainJob that JobSet's label names. Empty: there is no label.
std::string OwnerKeyOf(const Meta& meta);

class Children {
 public:
  // False: it was dropped, since it is not newer than the known state or has no TrainJob.
  bool Put(ObservedJob job);
  bool Put(ObservedPod pod);
  void PutService(const Meta& meta);
  std::string Put(ObservedRefusal refusal);  // returns the key of the TrainJob; empty: the Job is not known
  std::string Put(ObservedPodEvent event);   // the same; empty: the pod is not known, or a newer Event about it is
  // Return the key of the TrainJob that had the object. Empty: none is known, or a newer object has the name.
  std::string RemoveJob(const GoneObject& gone);
  std::string RemovePod(const GoneObject& gone);
  std::string RemoveService(const GoneObject& gone);
  void RemoveRefusal(const GoneObject& gone);

  // The Jobs and the Service that the TrainJob `owner` controls (uid), and pods with its name in JobSet's label. No pod
  // is copied: the reference is valid until the next call.
  Observed& Of(const Meta& owner, const std::string& subdomain);

 private:
  struct Family {
    std::map<std::string, ObservedJob> jobs;  // by name
    PodPlaces places;                         // in seen.pods
    Observed seen;                            // its pods are always current; Of() sets the rest
  };

  // Removes an object that is gone, and its family if that is empty. Returns the family's key.
  std::string Leave(std::map<std::string, std::string>::iterator child, std::map<std::string, std::string>* owners);

  std::map<std::string, Family> families_;                      // by key of the TrainJob
  std::map<std::string, std::string> job_owners_, pod_owners_;  // by key of the object
  std::map<std::string, Meta> services_;                        // by key
  // By the namespace and the Job's uid: anybody may write an Event with the uid of a Job of another namespace.
  std::map<std::string, ObservedRefusal> refusals_;
  std::map<std::string, std::string> refused_jobs_;  // their keys, by key of the Event
  Observed nothing_;                                 // of a TrainJob without a family
};

}  // namespace muster::controller
