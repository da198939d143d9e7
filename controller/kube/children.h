// What belongs to TrainJobs, by the job's name: Jobs, pods and Services, as watches and answers to writes bring them.
// Pure.
#pragma once

#include <map>
#include <string>

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

  // Of the TrainJob `owner`: what its uid controls; of pods, what those Jobs control.
  Observed Of(const Meta& owner, const std::string& subdomain) const;

 private:
  template <class Object>
  using ByName = std::map<std::string, Object>;
  std::map<std::string, ByName<ObservedJob>> jobs_;  // by key of the TrainJob, then by name
  std::map<std::string, ByName<ObservedPod>> pods_;
  std::map<std::string, std::string> job_owners_, pod_owners_;  // by key of the object
  std::map<std::string, Meta> services_;                        // by key
  std::map<std::string, ObservedRefusal> refusals_;             // by the Job's uid
  std::map<std::string, std::string> refused_jobs_;             // uids, by key of the Event
};

}  // namespace muster::controller
