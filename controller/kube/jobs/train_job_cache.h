// A cache of TrainJobs and what belongs to them, as watches and answers to writes bring them. Loop thread only.
//
// It is never older than Muster's own writes: the answer to a write counts as an event of a watch. Fields that no
// decision needs are dropped at once, so memory grows with the number of objects.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/api/packed_json.h"
#include "controller/kube/client/api_client.h"
#include "controller/kube/client/freshness.h"
#include "controller/kube/client/informer.h"
#include "controller/kube/jobs/actions.h"
#include "controller/kube/jobs/children.h"
#include "controller/kube/jobs/own_objects.h"
#include "controller/kube/jobs/pod_events.h"
#include "controller/kube/jobs/runtime_cache.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/taken_over.h"

namespace muster::controller {

struct KnownTrainJob {
  TrainJob job;                      // without the parts that only a plan needs
  PackedJson whole;                  // with them, without status; null: the plan is made, or not needed
  Status unreadable;                 // why the spec cannot be read; then `job` has metadata and status only
  std::shared_ptr<const Plan> plan;  // null: not made yet, or not needed any more
  int64_t planned_generation = -1;
  PackedJson runtime;                // by which it was planned last; null: not planned yet
  std::optional<AgentsSaid> agents;  // what they said last, of whichever pod was asked then
};

class TrainJobCache final : public ObjectCache {
 public:
  struct Events {
    std::function<void(const std::string& key)> changed;  // a TrainJob, or an object that belongs to it, has changed
    std::function<void(const std::string& key)> gone;
  };
  // `ns`: empty: all namespaces. `client` and `runtimes` must outlive the cache. When everything is listed, `changed`
  // is called once for each TrainJob, and from then on at each change.
  TrainJobCache(boost::asio::io_context& loop, ApiClient& client, RuntimeCache& runtimes, std::string ns,
                Events events);
  ~TrainJobCache() { runtimes_.Listen({}); }

  void Begin();
  bool synced() const { return unsynced_ == 0; }

  const std::map<std::string, KnownTrainJob>& jobs() const { return jobs_; }
  KnownTrainJob* Find(const std::string& key);  // null: no such job, or another controller's
  // What belongs to `job`, what its agents say, and why it does not begin yet. Valid until the next call.
  const Observed& Of(const TrainJob& job, const std::string& subdomain);

  // True if the ConfigMap with the snapshot of the job's runtime is there, whoever owns it.
  bool HasSnapshot(const TrainJob& job) const;

  // The JobSet with which Kubeflow Trainer started `job`. Null: there is none.
  const ObservedJobSet* JobSetOf(const TrainJob& job) const;

  void Put(const Resource& resource, const Json& object) override;
  void Remove(const Resource& resource, const std::string& ns, const std::string& name) override;

 private:
  using Gone = std::function<void(const GoneObject&)>;
  void Watch(const Resource& resource, const std::string& selector, Gone gone);
  void Keep(const Resource& resource, const Json& object);  // what the watch tells
  void PutTrainJob(const Json& object);
  void PutJobSet(const Json& object);
  void PutService(const Json& object);
  void PutRefusal(const Json& event);
  void WatchRefusals();
  void Synced();  // one more kind is listed
  template <class Object>
  void PutChild(StatusOr<Object> child);
  void Drop(const std::string& key);
  void Wake(const std::string& key);
  void NoteWaits(const std::string& key, const TrainJob& job);
  void WakeWaiting(const std::string& key);

  boost::asio::io_context& loop_;
  ApiClient& client_;
  RuntimeCache& runtimes_;
  const std::string ns_;
  const Events events_;
  Children children_;
  OwnObjects objects_;
  ToldDeletions deletions_;
  std::map<std::string, KnownTrainJob> jobs_;             // by key
  std::map<std::string, ObservedJobSet> job_sets_;        // by key
  std::map<std::string, std::set<std::string>> waiting_;  // keys of the jobs that wait for a job, by its key
  std::vector<std::unique_ptr<Informer>> informers_;
  PodEvents pod_events_;
  int unsynced_ = 0;
};

}  // namespace muster::controller
