// A cache of PyTorchJobs and their pods, Services and PodGroups, as watches and answers to writes bring them. Loop
// thread only. It is never older than Muster's own writes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/api/pytorch_job.h"
#include "controller/kube/client/freshness.h"
#include "controller/kube/client/informer.h"
#include "controller/kube/jobs/actions.h"
#include "controller/kube/jobs/own_objects.h"
#include "controller/kube/jobs/pod_events.h"
#include "controller/kube/jobs/pod_places.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {

struct KnownPyTorchJob {
  PyTorchJob job;                           // without its pod templates
  PackedJson whole;                         // with them, without status; null: it has ended
  Status unreadable;                        // why the spec cannot be read; then `job` has metadata and status only
  std::shared_ptr<const PyTorchPlan> plan;  // null: not made yet, or not needed any more
  int64_t planned_generation = -1;
  bool planned_with_agent = true;
  std::optional<AgentsSaid> agents;  // what they said last, of whichever pod was asked then
  int64_t objects_generation = -1;   // PyTorchPlan::objects exist as this generation plans them; -1: not known
};

class PyTorchJobCache final : public ObjectCache {
 public:
  struct Events {
    std::function<void(const std::string& key)> changed;  // a job, or an object that belongs to it, has changed
    std::function<void(const std::string& key)> gone;
  };
  // `ns`: empty: all namespaces. `pod_groups`: the gang scheduler's kind; null: none. `client` must outlive the cache.
  // `changed` is called once for each job when everything is listed, and from then on at each change.
  PyTorchJobCache(boost::asio::io_context& loop, ApiClient& client, std::string ns, const Resource* pod_groups,
                  Events events);

  void Begin();
  bool synced() const { return unsynced_ == 0; }

  const std::map<std::string, KnownPyTorchJob>& jobs() const { return jobs_; }
  KnownPyTorchJob* Find(const std::string& key);  // null: no such job, or another controller's
  // What belongs to the job or has its labels. Valid until the next call.
  const ObservedReplicas& Of(const KnownPyTorchJob& known);

  void Put(const Resource& resource, const Json& object) override;
  void Remove(const Resource& resource, const std::string& ns, const std::string& name) override;
  void Gone(const Resource& resource, const GoneObject& gone);  // a watch reports a deletion

 private:
  struct Family {
    PodPlaces places;  // in seen.pods
    ObservedReplicas seen;
  };

  void Watch(const Resource& resource, const std::string& selector);
  void Keep(const Resource& resource, const Json& object);  // what the watch tells
  void PutJob(const Json& object);
  void PutPod(const Json& object);
  void PutService(const Json& object);
  void PutPodGroup(const Json& object);
  void PutPodEvent(ObservedPodEvent event);
  void Forget(const Resource& resource, const GoneObject& gone);
  // Removes a pod or a Service from the job that it belonged to, if that is not `key`. False: that job has a newer
  // state of the object.
  bool Leaves(const Resource& resource, const Meta& meta, const std::string& key);
  void Wake(const std::string& key);

  boost::asio::io_context& loop_;
  ApiClient& client_;
  const std::string ns_;
  const Resource* const pod_groups_;
  const Events events_;
  std::map<std::string, KnownPyTorchJob> jobs_;                     // by key
  std::map<std::string, Family> families_;                          // by key of the job
  std::map<std::string, std::string> pod_owners_, service_owners_;  // keys of jobs, by key of the object
  OwnObjects objects_;
  ToldDeletions deletions_;
  ObservedReplicas nothing_;  // of a job without a family
  std::vector<std::unique_ptr<Informer>> informers_;
  PodEvents pod_events_;
  int unsynced_ = 0;
};

}  // namespace muster::controller
