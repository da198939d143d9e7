// What belongs to TrainJobs, by the job's name: Jobs, pods and Services, as watches and answers to writes bring them.
// Pure.
#pragma once

#include <map>
#include <string>

#include "controller/kube/informer_state.h"
#include "controller/kube/pod_places.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

// The TrainJob that an object says it belongs to, by JobSet's label; empty: none.
std::string OwnerKeyOf(const Meta& meta);

class Children {
 public:
  // An older state of an object than the known one is dropped. False: it was.
  bool Put(ObservedJob job);
  bool Put(ObservedPod pod);
  void PutService(const Meta& meta);
  std::string Put(ObservedRefusal refusal);  // the key of the TrainJob; empty: of none that is known
  // The key of the TrainJob whose object it was; empty: nobody's, or one of its name was made since.
  std::string RemoveJob(const GoneObject& gone);
  std::string RemovePod(const GoneObject& gone);
  std::string RemoveService(const GoneObject& gone);
  void RemoveRefusal(const GoneObject& gone);

  // Of the TrainJob `owner`: the Jobs and the Service that its uid controls, and the pods that have its name. No pod is
  // copied: what is returned holds until the next call.
  Observed& Of(const Meta& owner, const std::string& subdomain);

 private:
  struct Family {
    std::map<std::string, ObservedJob> jobs;  // by name
    PodPlaces places;                         // in seen.pods
    Observed seen;                            // its pods are always those that there are
  };

  // An object that is gone leaves its family; gives the family's key.
  std::string Leave(std::map<std::string, std::string>::iterator child, std::map<std::string, std::string>* owners);

  std::map<std::string, Family> families_;                      // by key of the TrainJob
  std::map<std::string, std::string> job_owners_, pod_owners_;  // by key of the object
  std::map<std::string, Meta> services_;                        // by key
  std::map<std::string, ObservedRefusal> refusals_;             // by the Job's uid
  std::map<std::string, std::string> refused_jobs_;             // uids, by key of the Event
  Observed nothing_;                                            // of a TrainJob without a family
};

}  // namespace muster::controller
