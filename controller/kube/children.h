// What belongs to TrainJobs, by the job's name: Jobs, pods and Services, as watches and answers to writes bring them.
// Pure.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "controller/reconcile/observed.h"

namespace muster::controller {

// "namespace/name".
std::string KeyOf(std::string_view ns, std::string_view name);
// The TrainJob that an object says it belongs to, by JobSet's label; empty: none.
std::string OwnerKeyOf(const Meta& meta);

// True where `a` is older than `b`, by resourceVersions, which grow (KEP-5504).
bool IsOlder(const Meta& a, const Meta& b);

class Children {
 public:
  // An older state of an object than the known one is dropped. False: it was.
  bool Put(ObservedJob job);
  bool Put(ObservedPod pod);
  void PutService(const Meta& meta);
  std::string Put(ObservedRefusal refusal);  // the key of the TrainJob; empty: of none that is known
  // The key of the TrainJob whose object it was; empty: nobody's.
  std::string RemoveJob(const std::string& ns, const std::string& name);
  std::string RemovePod(const std::string& ns, const std::string& name);
  std::string RemoveService(const std::string& ns, const std::string& name);
  void RemoveRefusal(const std::string& ns, const std::string& name);

  // Of the TrainJob `owner`: the Jobs and the Service that its uid controls, and the pods that have its name. No pod is
  // copied: what is returned holds until the next call.
  Observed& Of(const Meta& owner, const std::string& subdomain);

 private:
  struct Family {
    std::map<std::string, ObservedJob> jobs;             // by name
    std::unordered_map<std::string, size_t> pod_places;  // in seen.pods, by name
    Observed seen;                                       // its pods are always those that there are
  };

  std::map<std::string, Family> families_;                      // by key of the TrainJob
  std::map<std::string, std::string> job_owners_, pod_owners_;  // by key of the object
  std::map<std::string, Meta> services_;                        // by key
  std::map<std::string, ObservedRefusal> refusals_;             // by the Job's uid
  std::map<std::string, std::string> refused_jobs_;             // uids, by key of the Event
  Observed nothing_;                                            // of a TrainJob without a family
};

}  // namespace muster::controller
